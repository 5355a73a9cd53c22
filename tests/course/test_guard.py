"""Cells out of order, in real kernels: which cell to run first, and nothing else is touched."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat import NotebookNode

from mini_harness.course.guard import lesson_cells
from mini_harness.course.names import bound
from mini_harness.course.workspace import lesson_files, make
from tests.kernels import Kernel, code_cells, kernel, lesson

V0 = "v0_loop_and_tool"
BEGIN = f"from mini_harness.course.notebook import begin\nbegin({V0!r}, expects='0.1')"
SECOND_LOOP = f"{V0}_build-it_second-loop"
FIRST_TOOL = f"{V0}_build-it_first-tool"
FARM = """\
NameError: there is no `farm` yet. An earlier cell of this notebook makes it.
Run that cell first. It is in the section "v0: Loop and tool", and it begins with

    farm = story.fresh_farm()

Or choose Run > Run All Above Selected Cell. Then run this cell again."""
NEW_KERNEL = """\
NameError: there is no `farm` yet. This kernel is new: no cell of this notebook has run in it.
Run the first code cell of this notebook first. It begins with

    from textwrap import fill

Or choose Run > Run All Above Selected Cell. Then run this cell again."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("guard") / "workspace")


@pytest.fixture(scope="module")
def begun(workspace: Path) -> Iterator[Kernel]:
    """A kernel in which nothing but the call of `begin` has run."""
    with kernel(workspace) as shell:
        shell.run(BEGIN)
        yield shell


@pytest.fixture(scope="module")
def fresh(workspace: Path) -> Iterator[Kernel]:
    """A kernel that has just been restarted."""
    with kernel(workspace) as shell:
        yield shell


# --- after the first cell ---------------------------------------------------------------------


def test_a_missing_name_of_the_lesson_is_told_with_the_cell_that_makes_it(begun: Kernel) -> None:
    """report N08"""
    assert begun.told("print(farm)", SECOND_LOOP) == FARM


@pytest.mark.parametrize(
    "source", ["async def f():\n    return farm\nawait f()", "[farm for _ in 'a']"]
)
def test_wherever_in_the_cells_own_code_the_name_is_missing(source: str, begun: Kernel) -> None:
    assert begun.told(source, SECOND_LOOP) == FARM


def test_of_several_cells_that_make_a_name_it_is_the_last_one_above(begun: Kernel) -> None:
    """The earlier `my_loop` would run too, and do what the lesson has left behind."""
    told = begun.told("my_loop()", f"{V0}_break-it-twice_schema")
    assert 'in the section "Third move: never trust a decision"' in told


def test_in_a_cell_that_the_learner_added_it_is_the_first_one(begun: Kernel) -> None:
    """Nobody knows where such a cell stands."""
    assert begun.told("print(farm)") == begun.told("print(farm)", "added-by-hand") == FARM
    told = begun.told("my_loop()", "added-by-hand")
    assert 'in the section "Second move: ask, act, append"' in told


@pytest.mark.parametrize(
    "source",
    [
        "made_up",
        "my_loop()",  # a cell below makes it
        "def f():\n    print(farm)\n    farm = 1\nf()",
        "import types; exec('farm', vars(types.ModuleType('other')))",
        "{}['farm']",
    ],
)
def test_everything_else_keeps_its_usual_traceback(source: str, begun: Kernel) -> None:
    assert "Traceback (most recent call last)" in begun.told(source, FIRST_TOOL)


def test_a_file_of_the_learners_that_lacks_a_name_is_not_told_to_run_a_cell(begun: Kernel) -> None:
    """No cell could help: a module doesn't see the notebook's names."""
    begun.printed("%%save my_harness/late.py\ndef late():\n    return farm\n")
    told = re.sub(r"\x1b\[[\d;]*m", "", begun.told("late()", SECOND_LOOP))
    assert "Traceback (most recent call last)" in told
    assert told.endswith("NameError: name 'farm' is not defined")


# --- before it --------------------------------------------------------------------------------


def test_in_a_new_kernel_the_first_cell_comes_first(fresh: Kernel) -> None:
    """report N08"""
    assert fresh.told("print(farm)", SECOND_LOOP) == NEW_KERNEL


def test_a_new_kernel_knows_its_lesson_by_the_notebooks_name_too(tmp_path: Path) -> None:
    """A front end that tells no cell ids, or a cell that the learner added."""
    folder = make(tmp_path / "workspace")
    with kernel(folder, JPY_SESSION_NAME=str(folder / f"{V0}.ipynb")) as shell:
        assert shell.told("print(farm)") == NEW_KERNEL
    with kernel(folder, JPY_SESSION_NAME=str(folder / "scratch.ipynb")) as shell:
        assert "Traceback (most recent call last)" in shell.told("print(farm)")


@pytest.mark.parametrize("name", [path.stem for path in lesson_files()])
def test_starting_in_the_middle_gives_one_clear_message_or_works(name: str, fresh: Kernel) -> None:
    """report N08: each cell alone, as after a restart"""
    first, *others = code_cells(lesson(name))
    said = []
    for cell in others:
        fresh.run("%reset -f")
        said += [error for error in fresh.run(cell.source, cell.id) if is_error(error)]
    assert said
    for error in said:
        (text,) = error.traceback
        assert re.match(r"NameError: there is no `\w+` yet. This kernel is new", text), text
        assert first.source.split("\n")[0] in text


def is_error(output: NotebookNode) -> bool:
    return bool(output.output_type == "error")


# --- what it reads ----------------------------------------------------------------------------


def test_every_cell_of_every_lesson_has_its_heading_and_its_names() -> None:
    for path in lesson_files():
        for cell in lesson_cells(path):
            assert cell.section, cell.id
            assert cell.first_line, cell.id


def test_the_names_that_code_binds_are_those_that_stay() -> None:
    names = bound(
        "import os.path, json as j\nfrom a import b\n"
        "x, (y, *z) = await f()\nfor i in r: k = 1\nwith o() as w: pass\n"
        "class C:\n    inside = 1\nasync def g(argument):\n    local = 1\n"
        "[comp for comp in r]\nlambda parameter: 0\nobject.attribute = 1\nif (walrus := 1): pass\n"
    )
    assert names.imported == {"os", "j", "b"}
    assert names.defined == {"x", "y", "z", "i", "k", "w", "C", "g", "walrus"}
    assert bound("def half(").defined == set()
