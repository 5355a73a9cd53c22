"""The first minute of a learner: JupyterLab opens on the first lesson, and all of it runs."""

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.reader import NotJSONError
from playwright.sync_api import Page, expect

from tests.browser.conftest import Lab
from tests.browser.hands import SLOW, menu, open_lesson, shot
from tests.kernels import code_cells
from tests.serving import until

pytestmark = pytest.mark.browser


def test_the_first_lesson_opens_and_every_cell_runs(lab: Lab, page: Page) -> None:
    """N08: run in a fresh kernel from top to bottom, counts 1..n, no error."""
    lesson = next(lab.workspace.glob("v0_*.ipynb"))
    take_outputs_away(lesson)

    open_lesson(page, lab)
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
