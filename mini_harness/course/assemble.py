"""From a lesson's source to a notebook that hasn't run yet: all that is put in, put in."""

import base64
import hashlib
import html
import re

import nbformat
from nbformat import NotebookNode

from mini_harness.course.exercises import ExerciseError, stub_of
from mini_harness.course.includes import IncludeError, symbol_source
from mini_harness.course.markdown import Image, outline
from mini_harness.course.questions import QuestionError, as_markdown, read_questions
from mini_harness.course.source import Cell, Lesson
from mini_harness.course.tables import TableError, generated, registry

CODE_LINES = 20
ID_LENGTH = 64
INCLUDE = re.compile(r"#: include (?P<symbol>\w+(\.\w+)+)(?P<bare> without docstring)?")
GENERATE = re.compile(r"<!-- generate:(?P<what>.*)-->")
FORBIDDEN_CODE = (
    # Each of these makes what nbval sees differ from what was stored.
    (r";\s*(#.*)?\Z", "a trailing ; hides nothing from nbval: write `_ = …`, or end another way"),
    (r"\bclear_output\b", "no clear_output: print only the end"),
    (r"\bOutput\(", "no Output widget: print, or display a card"),
    (r"\b(update_display|display_id)\b", "no display updates: display once, at the end"),
    (r"(?m)^%%writefile\b", "no %%writefile: it speaks differently the second time; use a helper"),
    (r"(?mi)^\s*#\s*(nbval_|pytest_validate_)", "no nbval comment: the tag, with its :reason:"),
)


def assemble(lesson: Lesson) -> NotebookNode:
    """Raises LessonError where something can't be put in, or a cell breaks a rule."""
    notebook: NotebookNode = nbformat.v4.new_notebook(metadata={"title": lesson.title})
    ids: set[str] = set()
    for cell in lesson.cells:
        node = _code(lesson, cell) if cell.kind == "code" else _markdown(lesson, cell)
        node["id"] = cell_id(lesson.name, cell.section, cell.name)
        if node["id"] in ids:
            lesson.fail(cell.line, f"the cell id {node['id']!r} is taken: rename the cell")
        ids.add(node["id"])
        notebook.cells.append(node)
    return notebook


def cell_id(lesson: str, section: str, name: str) -> str:
    """The same as long as lesson, section and name are; at most 64 of [A-Za-z0-9_-]."""
    whole = f"{lesson}_{section}_{name}"
    if len(whole) <= ID_LENGTH:
        return whole
    digest = hashlib.sha256(whole.encode("utf-8")).hexdigest()[:8]
    return f"{whole[: ID_LENGTH - 9]}-{digest}"


def _code(lesson: Lesson, cell: Cell) -> NotebookNode:
    source = "\n".join(_include(lesson, cell, _stub(lesson, cell).split("\n")))
    length = len(source.split("\n"))
    if length > CODE_LINES:
        lesson.fail(cell.line, f"cell {cell.name!r} has {length} lines, {CODE_LINES} at most")
    for pattern, advice in FORBIDDEN_CODE:
        if re.search(pattern, source):
            lesson.fail(cell.line, f"cell {cell.name!r}: {advice}")
    tags = [*cell.tags, *(["draft"] if cell.draft else [])]
    metadata: dict[str, object] = {"tags": tags} if tags else {}
    if cell.reason:
        metadata["reason"] = cell.reason
    node: NotebookNode = nbformat.v4.new_code_cell(source, metadata=metadata)
    return node


def _stub(lesson: Lesson, cell: Cell) -> str:
    """A cell's source, with the stub in the place of an exercise's solution."""
    if cell.exercise is None:
        return cell.source
    try:
        return stub_of(cell.source).strip()
    except ExerciseError as error:
        lesson.fail(cell.line, str(error))


def _include(lesson: Lesson, cell: Cell, lines: list[str], first: int = 0) -> list[str]:
    """`lines` with each include line replaced; `first` is their place within the cell."""
    done: list[str] = []
    for number, line in enumerate(lines):
        if not line.lstrip().startswith("#:"):
            done.append(line)
            continue
        place = cell.line + first + number
        wanted = INCLUDE.fullmatch(line)
        if wanted is None:
            lesson.fail(place, "write `#: include module.name` at the start of a line, alone")
        try:
            source = symbol_source(wanted["symbol"], docstring=wanted["bare"] is None)
        except IncludeError as error:
            lesson.fail(place, str(error))
        done += source.split("\n")
    return done


def _markdown(lesson: Lesson, cell: Cell) -> NotebookNode:
    """The last line is worked on first, so that the line numbers before it stay true."""
    found, lines = outline(cell.source), cell.source.split("\n")
    for image in found.images:
        lines[image.line] = _draw(lesson, cell, image, lines[image.line])
    changes = [(fence.first, fence.last, _fence) for fence in found.fences]
    changes += [
        (number, number + 1, _generate)
        for number, line in enumerate(lines)
        if line.lstrip().startswith("<!-- generate") and not found.fenced(number)
    ]
    for first, last, change in sorted(changes, key=lambda each: each[0], reverse=True):
        lines[first:last] = change(lesson, cell, lines[first:last], first)
    node: NotebookNode = nbformat.v4.new_markdown_cell("\n".join(lines))
    return node


def _fence(lesson: Lesson, cell: Cell, lines: list[str], first: int) -> list[str]:
    done = _include(lesson, cell, lines, first)
    if done != lines and any(line.lstrip().startswith("```") for line in done):
        lesson.fail(cell.line + first, "the included source holds a fence of its own")
    return done


def _generate(lesson: Lesson, cell: Cell, lines: list[str], first: int) -> list[str]:
    wanted = GENERATE.fullmatch(lines[0].strip())
    what = wanted["what"].strip() if wanted else lines[0]
    try:
        if what == "questions":
            table = as_markdown(read_questions(lesson.path))
        else:
            table = generated(what, registry())
    except (TableError, QuestionError) as error:
        lesson.fail(cell.line + first, str(error))
    return ["", *table.split("\n"), ""]


def _draw(lesson: Lesson, cell: Cell, image: Image, line: str) -> str:
    """An <img> that carries the drawing: JupyterLab shows no SVG that is an attachment."""
    place = cell.line + image.line
    if not image.alt.strip():
        lesson.fail(place, f"{image.source}: say between the [ ] what the drawing shows")
    written = f"![{image.alt}]({image.source})"
    file = lesson.path.parent / image.source
    if not re.fullmatch(r"figures/[\w-]+\.svg", image.source) or not file.is_file():
        lesson.fail(place, f"{image.source}: a drawing is a file figures/name.svg of the lesson")
    if line.strip() != written:
        lesson.fail(place, f"write {written} in a paragraph of its own")
    data = base64.b64encode(file.read_bytes()).decode("ascii")
    return f'<img alt="{html.escape(image.alt)}" src="data:image/svg+xml;base64,{data}">'
