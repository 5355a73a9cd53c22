"""An hour in the notebook: out of order, an exercise, keyboard only, and what axe finds."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from mini_harness.course.exercises import Exercise, exercises
from mini_harness.course.workspace import lesson_files
from tests.browser.conftest import Lab
from tests.browser.hands import (
    SLOW,
    code_cell,
    expect_idle,
    menu,
    open_lesson,
    restart,
    run,
    shot,
    write,
)
from tests.kernels import lesson, static_page

pytestmark = pytest.mark.browser

TALL: ViewportSize = {"width": 1280, "height": 16_000}
"""JupyterLab keeps only the cells near the window: in this one, all."""

USUAL: ViewportSize = {"width": 1280, "height": 1_000}
CONTROLS = (
    ":is(.jp-MarkdownOutput, .jp-OutputArea-output) :is(summary, button, input, select, textarea)"
)


@pytest.fixture(scope="module")
def opened(lab: Lab, page: Page) -> Page:
    page.set_viewport_size(TALL)
    open_lesson(page, lab)
    return page


@pytest.fixture
def fresh(opened: Page) -> Page:
    """The lesson with a kernel that has run nothing."""
    opened.set_viewport_size(TALL)
    restart(opened)
    return opened


# --- cells out of order -----------------------------------------------------------------------


def test_a_cell_that_comes_too_early_says_what_to_run_and_that_helps(fresh: Page) -> None:
    """report N08"""
    farm = code_cell(fresh, "story.fresh_farm()")
    run(fresh, farm)
    expect(farm).to_contain_text("This kernel is new: no cell of this notebook has run in it.")
    shot(farm, "guard-new-kernel")
    menu(fresh, "Run", "Run All Above Selected Cell")
    expect(code_cell(fresh, "begin(")).to_contain_text("ready.", timeout=SLOW)
    expect_idle(fresh)
    run(fresh, farm)
    expect(farm).to_contain_text("farm/shop/shipping.py")
    late = code_cell(fresh, "told[0]")
    run(fresh, late)
    expect(late).to_contain_text('It is in the section "See it", and it begins with')
    shot(late, "guard-earlier-cell")


# --- an exercise ------------------------------------------------------------------------------


def test_an_exercise_goes_from_not_done_to_red_to_green_and_outlives_the_kernel(
    fresh: Page, lab: Lab
) -> None:
    for exercise in exercises("v0")[:2]:
        solve(fresh, exercise)
    saved = {path.name for path in (lab.workspace / "my_harness").glob("*.py")}
    assert {f"{exercise.module}.py" for exercise in exercises("v0")} < saved
    restart(fresh)
    run(fresh, code_cell(fresh, "begin("))
    check = code_cell(fresh, f'check("{exercises("v0")[1].id}")')
    run(fresh, check)
    expect(check).to_contain_text("passed.")


def solve(page: Page, exercise: Exercise) -> None:
    run(page, code_cell(page, "begin("))
    answer = code_cell(page, f"%%save my_harness/{exercise.module}.py")
    check = code_cell(page, f'check("{exercise.id}")')
    run(page, answer)
    run(page, check)
    expect(check).to_contain_text("not done yet")
    first_line = f"%%save my_harness/{exercise.module}.py\n"
    wrong = re.sub(r"raise NotImplementedError.*", "return None", exercise.stub)
    for source, said in ((wrong, "The first that doesn't:"), (exercise.solution, "passed.")):
        write(page, answer, first_line + source)
        run(page, answer)
        expect(answer).to_contain_text(f"Saved as my_harness/{exercise.module}.py.")
        run(page, check)
        expect(check).to_contain_text(said)
        shot(answer, f"{exercise.id}-save-{said[:6]}")
        shot(check, f"{exercise.id}-check-{said[:6]}")


# --- the switch -------------------------------------------------------------------------------


def test_a_double_click_or_a_second_run_leaves_one_switch_that_answers_once(fresh: Page) -> None:
    """report N02"""
    run(fresh, code_cell(fresh, "begin("))
    cell = code_cell(fresh, "ModeToggle()")
    for _ in range(2):
        run(fresh, cell)
        box = cell.get_by_role("checkbox", name="use a real model")
        expect(box).to_have_count(1)
        box.dblclick()
        expect(cell).to_contain_text("There is no real model")
        expect(box).not_to_be_checked()
    shot(cell, "switch")


# --- without a mouse, and for everybody -------------------------------------------------------


@pytest.fixture(scope="module")
def ran(opened: Page) -> Page:
    """All cells have run; no test after this one restarts the kernel."""
    opened.set_viewport_size(TALL)
    restart(opened)
    menu(opened, "Run", "Run All Cells")
    last = opened.locator(".jp-CodeCell .jp-InputPrompt").last
    expect(last).to_have_text(re.compile(r"\[\d+\]:"), timeout=SLOW)
    for red in ("error", "stderr"):
        expect(opened.locator(f".jp-Notebook [data-mime-type$='{red}']")).to_have_count(0)
    return opened


def test_every_control_is_reached_with_tab_and_used_with_a_key(ran: Page) -> None:
    """From the first cell, in command mode: a cell that is being edited keeps Tab for itself."""
    wanted = set(controls(ran, "*"))
    ran.set_viewport_size(USUAL)
    for _ in range(ran.locator(".jp-Cell").count()):
        ran.keyboard.press("ArrowUp")
    reached: set[str] = set()
    for _ in range(3 * len(wanted)):
        ran.keyboard.press("Tab")
        reached.update(found := controls(ran, ":focus"))
        if found:
            use(ran)
    assert reached == wanted
    assert len(wanted) > 9


def controls(page: Page, which: str) -> list[str]:
    """Our controls, each as the number of its cell and its place and text in that cell."""
    found: list[str] = page.evaluate(
        """([controls, which]) => [...document.querySelectorAll('.jp-Cell')].flatMap(cell =>
            [...cell.querySelectorAll(controls)]
                .map((each, place) => [each, place])
                .filter(([each]) => each.matches(which))
                .map(([each, place]) =>
                    [cell.dataset.windowedListIndex, place, each.innerText].join(' ')))""",
        [CONTROLS, which],
    )
    return found


def use(page: Page) -> None:
    """Both keys open and close a text; Space ticks a box. Neither loses the focus."""
    focused, before = page.locator(":focus"), controls(page, ":focus")
    if focused.evaluate("each => each.tagName") == "SUMMARY":
        text = focused.locator("..")
        for key, is_open in (("Space", True), ("Enter", False)):
            page.keyboard.press(key)
            expect(text).to_have_js_property("open", is_open)
    else:
        expect(focused).to_have_attribute("type", "checkbox")
        page.keyboard.press("Space")
        cell = page.locator(".jp-Cell:has(:focus)")
        expect(cell).to_contain_text("There is no real model")
        expect(focused).not_to_be_checked()
    assert controls(page, ":focus") == before


def test_axe_finds_nothing_serious_in_what_is_ours(ran: Page) -> None:
    """All outputs and all Markdown, with every hint and every explanation open."""
    ran.set_viewport_size(TALL)
    ran.evaluate("document.querySelector('.jp-WindowedPanel-outer').scrollTop = 0")
    ran.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    found = axe(ran)
    serious = [
        (rule["id"], node["html"])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]
    assert serious == []
    looked_at = {rule["id"]: len(rule["nodes"]) for rule in found["passes"]}
    assert looked_at["label"] >= 1, "the switch"
    assert looked_at["color-contrast"] > 200, "nearly all that is there to read"


def axe(page: Page) -> dict[str, Any]:
    # JupyterLab's body has no height, and axe takes what overflows it for invisible.
    page.add_style_tag(content="body { height: 100vh }")
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    result: dict[str, Any] = page.evaluate(
        "axe.run({include: [['.jp-OutputArea-output'], ['.jp-MarkdownOutput']]})"
    )
    return result


# --- where nothing runs -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [path.stem for path in lesson_files()])
def test_a_static_page_shows_every_card(name: str, page: Page, folder: Path) -> None:
    """report N07: no kernel, no network"""
    file = folder / f"{name}.html"
    file.write_text(static_page(lesson(name)), encoding="utf-8")
    static = page.context.new_page()
    static.goto(file.as_uri(), wait_until="domcontentloaded")
    expect(static.get_by_text(re.compile(r"Model: offline \("))).to_be_visible()
    shot(static, f"static-{name}")
    static.close()
