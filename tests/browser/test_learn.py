"""The first minute of a learner: JupyterLab opens on the first lesson, and all of it runs."""

import os
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.reader import NotJSONError
from playwright.sync_api import Page, expect

from tests.browser.conftest import Lab
from tests.serving import until

pytestmark = pytest.mark.browser
SLOW = 60_000  # milliseconds; a shared machine starts a kernel in 3 to 20 s


def test_the_first_lesson_opens_and_every_cell_runs(lab: Lab, page: Page) -> None:
    """N08: run in a fresh kernel from top to bottom, counts 1..n, no error."""
    lesson = next(lab.workspace.glob("v0_*.ipynb"))
    take_outputs_away(lesson)

    page.goto(lab.address)
    expect(page.locator(".jp-Notebook .jp-CodeCell").first).to_be_visible(timeout=SLOW)
    # Run All before the kernel is there makes JupyterLab ask for one.
    expect(page.locator("#jp-main-statusbar")).to_contain_text("(ipykernel) | Idle", timeout=SLOW)
    expect(page.locator(".jp-Dialog, .Toastify__toast")).to_have_count(0)
    shot(page, "1-opened")

    menu(page, "Run", "Run All Cells")
    cells = until(lambda: all_have_run(page, lesson), SLOW / 1000, lambda: seen(page, lesson))
    shot(page, "2-ran")
    page.locator(".jp-Notebook .jp-Cell").first.scroll_into_view_if_needed()
    shot(page, "3-ran-top")

    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [out for cell in cells for out in cell.outputs if out.output_type == "error"] == []
    assert page.locator(".jp-Notebook [data-mime-type*='stderr']").count() == 0
    expect(page.locator(".jp-Dialog")).to_have_count(0)


def take_outputs_away(lesson: Path) -> None:
    """So that an output stored in the lesson can't pass for one of this run."""
    notebook = nbformat.read(lesson, as_version=4)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, lesson)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def menu(page: Page, name: str, entry: str) -> None:
    page.locator(".lm-MenuBar-itemLabel", has_text=name).first.click()
    page.locator(".lm-Menu-itemLabel").get_by_text(entry, exact=True).click()


def all_have_run(page: Page, lesson: Path) -> list[NotebookNode] | None:
    """Save, and read what was saved: the page itself holds only the cells near the window."""
    page.keyboard.press("Control+s")
    try:
        cells = code_cells(nbformat.read(lesson, as_version=4))
    except NotJSONError:  # the server is writing it just now
        return None
    done = all(cell.execution_count is not None for cell in cells)
    stopped = any(out.output_type == "error" for cell in cells for out in cell.outputs)
    return cells if done or stopped else None


def seen(page: Page, lesson: Path) -> str:
    shot(page, "failed")
    cells = code_cells(nbformat.read(lesson, as_version=4))
    waiting = [cell.source for cell in cells if cell.execution_count is None]
    return f"{len(waiting)} of {len(cells)} cells have not run; the first:\n{waiting[:1]}"


def shot(page: Page, name: str) -> None:
    folder = os.environ.get("MINI_HARNESS_SHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png")
