"""Every built notebook, run again where a learner runs it, and shown where nothing can run."""

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from mini_harness.course.normalise import WIDGET_VIEW
from mini_harness.course.workspace import lesson_files, make
from tests.kernels import Kernel, code_cells, kernel, lesson, static_page

pytestmark = pytest.mark.once

ELSEWHERE = {
    "TZ": "Asia/Tokyo",
    "PYTHONHASHSEED": "1",
    "USER": "somebody",
    "LOGNAME": "somebody",
    "COLUMNS": "160",
    # A machine whose own encoding isn't UTF-8.
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "LC_ALL": "C",
    "PYTHONWARNDEFAULTENCODING": "1",
}
# An open() that leaves the encoding to the machine, in a file of ours, is an error of its cell.
STRICT = """\
import warnings
warnings.filterwarnings("ignore", category=EncodingWarning)
warnings.filterwarnings("error", category=EncodingWarning, module=r"mini_harness|my_harness")
"""
CARD, LINE = "text/html", "text/plain"

lessons = pytest.mark.parametrize("name", [path.stem for path in lesson_files()])


@lessons
def test_each_cell_twice_in_a_row_and_then_all_again_elsewhere_give_what_is_stored(
    name: str, tmp_path: Path
) -> None:
    """reports N05, N07, N08, N10: another folder, user, zone, hash seed, width and encoding"""
    cells = code_cells(lesson(name))
    with kernel(make(tmp_path / "some where else"), tmp_path, **ELSEWHERE) as shell:
        assert shell.run(STRICT) == []
        for cell in [*(cell for cell in cells for _ in range(2)), *cells]:
            assert seen(shell, cell) == stored(cell), cell.source


def seen(shell: Kernel, cell: NotebookNode) -> list[NotebookNode]:
    """What a cell shows, as the builder would store it."""
    outputs: list[NotebookNode] = []
    for output in shell.run(cell.source, cell.id):
        last = outputs[-1] if outputs else {}
        if output.output_type == "stream" and last.get("name") == output.name:
            outputs[-1].text += output.text
        else:
            outputs.append(output)
    return [without_count(without_widget(output)) for output in outputs]


def without_widget(output: NotebookNode) -> NotebookNode:
    """What a static viewer is left with, which must be a card and a line."""
    data = output.get("data", {})
    if data.pop(WIDGET_VIEW, None):
        assert data.keys() == {CARD, LINE}
        assert "\n" not in data[LINE]
    return output


def stored(cell: NotebookNode) -> list[NotebookNode]:
    return [without_count(output) for output in cell.outputs]


def same_markup(page: str) -> str:
    """A page that was written anew: it may spell a quote and the end of an image otherwise."""
    return page.replace("&quot;", '"').replace("&#x27;", "'").replace("/>", ">")


def without_count(output: NotebookNode) -> NotebookNode:
    output.pop("execution_count", None)
    return output


@lessons
def test_a_static_viewer_gets_a_valid_file_without_widgets_and_a_page_with_every_card(
    name: str,
) -> None:
    """report N07"""
    notebook = lesson(name)
    nbformat.validate(notebook)
    page = static_page(notebook)
    assert "widget-state" not in page
    assert "widget-view" not in page
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if card := output.get("data", {}).get(CARD):
                assert same_markup(card) in same_markup(page)
