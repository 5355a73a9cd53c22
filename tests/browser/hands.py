"""What a learner does in JupyterLab: opens a lesson, uses its menus, writes and runs cells."""

import os
import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Lab

SLOW = 60_000  # milliseconds; a shared machine starts a kernel in 3 to 20 s


def open_lesson(page: Page, lab: Lab) -> None:
    page.goto(lab.address)
    expect(page.locator(".jp-Notebook .jp-CodeCell").first).to_be_visible(timeout=SLOW)
    # Run All before the kernel is there makes JupyterLab ask for one.
    expect_idle(page)


def expect_idle(page: Page) -> None:
    expect(page.locator("#jp-main-statusbar")).to_contain_text("(ipykernel) | Idle", timeout=SLOW)


def menu(page: Page, name: str, entry: str) -> None:
    page.locator(".lm-MenuBar-itemLabel", has_text=name).first.click()
    page.locator(".lm-Menu-itemLabel").get_by_text(entry, exact=True).click()


def restart(page: Page) -> None:
    """A new kernel, and no output or count of the old one."""
    menu(page, "Kernel", "Restart Kernel and Clear Outputs of All Cells…")
    page.locator(".jp-Dialog .jp-mod-accept").click()
    expect(page.locator(".jp-Dialog")).to_have_count(0)
    expect(page.locator(".jp-Notebook .jp-OutputArea-output")).to_have_count(0, timeout=SLOW)
    expect_idle(page)


def code_cell(page: Page, text: str) -> Locator:
    """The first code cell whose source holds the text. Only a tall window holds all cells."""
    source = page.locator(".jp-InputArea", has_text=text)
    return page.locator(".jp-CodeCell").filter(has=source).first


def run(page: Page, cell: Locator) -> None:
    """Run a cell with the keyboard, from within its editor, and wait for its end."""
    prompt = cell.locator(".jp-InputPrompt")
    before = prompt.inner_text()
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(prompt).not_to_have_text(before)
    expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=SLOW)
    page.keyboard.press("Escape")


def write(page: Page, cell: Locator, source: str) -> None:
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)


def shot(what: Page | Locator, name: str) -> None:
    """A picture for a person to look at, when a folder is named for it."""
    folder = os.environ.get("MINI_HARNESS_SHOTS")
    if folder:
        what.screenshot(path=Path(folder) / f"{name}.png")
