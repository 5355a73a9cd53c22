"""What the builder takes from a lesson's source, and what it refuses, before any kernel starts."""

import re
import sys
from pathlib import Path

import pytest
from nbformat import NotebookNode

from mini_harness.course.assemble import assemble, cell_id
from mini_harness.course.includes import IncludeError, symbol_source
from mini_harness.course.markdown import ToolMissing
from mini_harness.course.source import LessonError, read_lesson
from mini_harness.course.tables import TableError, generated
from tests.course.lessons import FIRST_BODY_LINE, code, make_lesson

pytestmark = pytest.mark.once

MODULE = '''\
"""A module to include from."""

from dataclasses import dataclass

LIMIT = 3  # tries


@dataclass(frozen=True)
class Point:
    """A place."""

    # in metres
    x: int = 0

    def moved(self, by: int) -> "Point":
        """Elsewhere."""

        text = """not
  moved"""
        return Point(self.x + len(text) * by)

    def bare(self) -> None:
        """Nothing else."""


def twice() -> int:
    return 1


def twice() -> int:
    return 2
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An importable module, by its name."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "included_here.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    return "included_here"


def cells(root: Path, body: str) -> list[NotebookNode]:
    path = make_lesson(root, body)
    (path.parent / "figures").mkdir(exist_ok=True)
    (path.parent / "figures" / "loop.svg").write_text("<svg/>", encoding="utf-8")
    found: list[NotebookNode] = assemble(read_lesson(path)).cells
    return found


REFUSED = {
    "unnamed cell": ("```{code-cell}\n1\n```", 0, "needs a :name:"),
    "capital in a name": (code("1", name="First"), 0, "needs a :name:"),
    "double name": (code("1") + code("2"), 6, "two cells are named 'cell'"),
    "unknown option": (code("1", ":linenos: true"), 0, ":name: :tags: :reason: :draft:"),
    "options in the --- style": ("```{code-cell}\n---\nname: a\n---\n1\n```", 0, "options are"),
    "unreadable option": (code("1", ":reason: a: b"), 0, "no YAML"),
    "unknown tag": (code("1", ":tags: [nbval-skip]"), 0, "known tags: nbval-ignore-output"),
    "no reason": (code("1", ":tags: [nbval-ignore-output]"), 0, "say why"),
    "draft with a value": (code("1", ":draft: yes"), 0, ":draft: stands alone"),
    "language on the directive": ("```{code-cell} python\n:name: a\n1\n```", 0, "nothing else"),
    "unknown include": (code("x = 1\n#: include mini_harness.nothing"), 4, "'nothing'"),
    "include inside a line": (code("  #: include mini_harness.x"), 3, "at the start of a line"),
    "include outside of a fence": ("words\n\n#: include a.b", 2, "in a ```python fence"),
    "unknown include in Markdown": (
        "a\n\n```python\n#: include no_such.thing\n```",
        3,
        "no module",
    ),
    "alt text missing": ("![](figures/loop.svg)", 0, "what the drawing shows"),
    "missing drawing": ("words\n\n![a loop](figures/none.svg)", 2, "figures/name.svg"),
    "drawing from elsewhere": ("![a](https://example.org/a.svg)", 0, "figures/name.svg"),
    "drawing inside a sentence": ("see ![a](figures/loop.svg)", 0, "paragraph of its own"),
    "html image": ('<img src="a.svg">', 0, "no <img>"),
    "directive": ("## A\n\n```{note}\nhi\n```", 2, "no directive {note}"),
    "colon directive": ("words\n\n:::{note}\nhi\n:::", 2, "no directives"),
    "cell inside a list": (
        "- a\n\n  ```{code-cell}\n  :name: b\n  1\n  ```",
        2,
        "not inside a list",
    ),
    "raw cell": ("```{raw-cell}\nhi\n```", 0, "no raw cells"),
    "metadata after +++": ('a\n\n+++ {"tags": []}\n\nb', 2, "no metadata after +++"),
    "role": ("words\n\nsee {ref}`there`", 2, "no role {ref}"),
    "admonition": ("> [!NOTE]\n> hi", 0, "no admonitions"),
    "two sections alike": ("## One\n\na\n\n## One", 4, "two sections called 'One'"),
    "too long": (code("\n".join(["1"] * 21)), 3, "has 21 lines, 20 at most"),
    "trailing semicolon": (code("1;"), 3, "trailing ;"),
    "semicolon before a comment": (code("1 ; # quiet\n"), 3, "trailing ;"),
    "clear_output": (code("clear_output(wait=True)"), 3, "clear_output"),
    "output widget": (code("out = widgets.Output()"), 3, "Output widget"),
    "display update": (code("display(1, display_id='a')"), 3, "display updates"),
    "writefile": (code("%%writefile a.py\n1"), 3, "%%writefile"),
    "nbval comment": (code("# NBVAL_IGNORE_OUTPUT\n1"), 3, "the tag, with its :reason:"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_lesson_may_not_hold_is_refused_with_file_line_and_advice(
    case: str, tmp_path: Path
) -> None:
    """reports N05, N07"""
    body, line, advice = REFUSED[case]
    with pytest.raises(LessonError) as refused:
        cells(tmp_path, body)
    assert advice in str(refused.value)
    expected = tmp_path / "lessons" / "v0_small" / f"lesson.md:{FIRST_BODY_LINE + line}"
    assert str(refused.value).startswith(f"{expected}: ")


@pytest.mark.parametrize(
    ("written", "instead", "advice"),
    [
        ("title: A small lesson\n", "", "'title' is missing"),
        ("kind: ladder", "kind: snake", "kind is one of start, ladder"),
        ("lesson: v0_small", "lesson: v0_large", "the folder another name"),
        ("step: v0", "step: v0\nauthor: me", "'author' isn't one of"),
    ],
)
def test_the_front_matter_says_exactly_four_things(
    written: str, instead: str, advice: str, tmp_path: Path
) -> None:
    path = make_lesson(tmp_path, "words")
    text = path.read_text(encoding="utf-8").replace(written, instead)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LessonError, match=re.escape(advice)):
        read_lesson(path)


def test_markdown_is_split_at_cells_sections_and_plus_lines_and_plain_fences_stay(
    tmp_path: Path,
) -> None:
    body = (
        "# Title\n\nwords\n\n## One\n\n```python\n## no section\nprint()\n```\n\n"
        + code("1", name="one")
        + "<details><summary>Hint</summary>\n\n```sh\nls\n```\n\n</details>\n\n+++\n\nlast\n"
    )
    found = cells(tmp_path, body)
    assert [(cell.cell_type, cell.source.split("\n")[0]) for cell in found] == [
        ("markdown", "# Title"),
        ("markdown", "## One"),
        ("code", "1"),
        ("markdown", "<details><summary>Hint</summary>"),
        ("markdown", "last"),
    ]
    assert "## no section" in found[1].source


def test_the_rules_for_prose_do_not_hold_inside_a_fence(tmp_path: Path) -> None:
    body = (
        "```text\n:::\n> [!NOTE]\n<img src>\n<!-- generate: poem -->\n```\n\nand `{name}` in code"
    )
    (cell,) = cells(tmp_path, body)
    assert cell.source == body


def test_a_cell_keeps_its_id_when_other_cells_come_and_go(tmp_path: Path) -> None:
    before = (
        "## One\n\n" + code("1", name="first") + "words\n\n## Two\n\n" + code("2", name="second")
    )
    after = before.replace("words\n", code("0", name="between"))
    ids = [cell["id"] for cell in cells(tmp_path, before)]
    assert ids == [
        "v0_small_one_text_1",
        "v0_small_one_first",
        "v0_small_one_text_2",
        "v0_small_two_text_1",
        "v0_small_two_second",
    ]
    kept = {cell["id"] for cell in cells(tmp_path, after)}
    assert set(ids) - kept == {"v0_small_one_text_2"}


def test_a_long_id_is_cut_to_what_nbformat_allows_and_stays_distinct() -> None:
    ids = {cell_id("v5_failure_corpus_and_regression", "s" * 40, name) for name in ("a", "b")}
    assert len(ids) == 2
    assert all(re.fullmatch(r"[\w-]{1,64}", each) for each in ids)


def test_tag_reason_and_draft_travel_in_the_cell(tmp_path: Path) -> None:
    options = (":tags: [nbval-ignore-output]", ":reason: it's drawn", ":draft:")
    (cell,) = cells(tmp_path, code("1", *options))
    assert cell.metadata == {"tags": ["nbval-ignore-output", "draft"], "reason": "it's drawn"}


def test_an_include_is_the_exact_source_with_decorators_from_column_0(
    module: str, tmp_path: Path
) -> None:
    lines = MODULE.split("\n")
    shown, ran = cells(
        tmp_path,
        f"```python\n#: include {module}.Point.moved\n```\n\n"
        + code(f"a = 1\n#: include {module}.Point\n#: include {module}.LIMIT"),
    )
    start = lines.index("@dataclass(frozen=True)")
    end = lines.index("def twice() -> int:") - 2
    assert ran.source == "\n".join(["a = 1", *lines[start:end], "LIMIT = 3  # tries"])
    assert shown.source.split("\n")[1:4] == [
        'def moved(self, by: int) -> "Point":',
        '    """Elsewhere."""',
        "",
    ]
    assert "\n  moved" in shown.source, "the inside of a string is not moved"


def test_without_docstring_leaves_out_the_docstring_and_nothing_else(module: str) -> None:
    method = symbol_source(f"{module}.Point.moved", docstring=False).split("\n")
    assert method[:2] == ['def moved(self, by: int) -> "Point":', '    text = """not']
    point = symbol_source(f"{module}.Point", docstring=False)
    assert "A place." not in point
    assert point.split("\n")[2] == "    # in metres"
    assert "Elsewhere." in point


@pytest.mark.parametrize(
    ("symbol", "docstring", "advice"),
    [
        ("Pint", True, "did you mean Point?"),
        ("twice", True, "defined 2 times"),
        ("LIMIT.x", True, "isn't a class"),
        ("LIMIT", False, "has no docstring"),
        ("Point.bare", False, "nothing without its docstring"),
    ],
)
def test_an_include_that_cannot_be_meant_says_what_is_wrong(
    symbol: str, docstring: bool, advice: str, module: str
) -> None:
    with pytest.raises(IncludeError, match=re.escape(advice)):
        symbol_source(f"{module}.{symbol}", docstring=docstring)


class StandInStep:
    def __init__(self, name: str, *modules: str) -> None:
        self.name, self.modules, self.public_names = name, modules, ("Point", "LIMIT")


def test_a_generated_table_is_measured_from_the_code(module: str, tmp_path: Path) -> None:
    steps = {"v8": StandInStep("v8", module), "v9": StandInStep("v9")}
    length = MODULE.count("\n")
    assert generated("step v8", steps).split("\n") == [
        "| module | public names | lines |",
        "|---|---|--:|",
        f"| `{module}` | `LIMIT`, `Point` | {length} |",
        f"| together | | {length} |",
    ]
    assert generated("changes v8", steps) == generated("step v8", steps)
    assert generated("changes v9", steps).endswith(
        f"Nothing else changed: 1 modules ({length} lines) stay as they were."
    )
    room = generated("changes v0b", {**steps, "v0b": StandInStep("v0b", module)})
    assert room == f"{generated('step v8', steps)}\n\nNothing else changed."
    with pytest.raises(TableError, match="the steps are v8, v9"):
        generated("step v7", steps)


def test_a_generated_table_stands_where_the_lesson_asks_for_it(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = {"v0": StandInStep("v0", module)}
    monkeypatch.setattr("mini_harness.course.assemble.registry", lambda: steps)
    (cell,) = cells(tmp_path, "before\n<!-- generate: step v0 -->\nafter")
    assert cell.source == f"before\n\n{generated('step v0', steps)}\n\nafter"
    for wrong in (
        "<!-- generate: poem -->",
        "  <!-- generate: step v0",
        "<!-- generate step v0 -->",
    ):
        with pytest.raises(LessonError, match=rf"md:{FIRST_BODY_LINE + 2}: .*generate: step v0"):
            cells(tmp_path, f"before\n\n{wrong}")


def test_a_drawing_travels_inside_the_notebook_with_its_alt_text(tmp_path: Path) -> None:
    """report N07"""
    (cell,) = cells(tmp_path, 'words\n\n![The "loop"](figures/loop.svg)\n\nmore')
    tag = '<img alt="The &quot;loop&quot;" src="data:image/svg+xml;base64,PHN2Zy8+">'
    assert cell.source == f"words\n\n{tag}\n\nmore"


def test_without_jupytext_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "jupytext"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jupytext", None)
    with pytest.raises(ToolMissing, match="pip install 'jupytext"):
        read_lesson(make_lesson(tmp_path, "words"))
