"""Read a lesson's source: MyST Markdown through jupytext, and only a small part of it.

A lesson is `lessons/<lesson>/lesson.md`. What is allowed there is said in the error texts below,
each of which names the file, the line and what to do.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NoReturn

from mini_harness.course.markdown import development_tool, outline

FRONT_MATTER = ("lesson", "title", "step", "kind")
KINDS = ("start", "ladder")
OPTIONS = ("name", "tags", "reason", "draft", "exercise", "improves")
TAGS = ("nbval-ignore-output",)
FORBIDDEN_MARKDOWN = (
    (r":::", "no directives: write plain Markdown"),
    (r"> \[!", "no admonitions, Jupyter shows them as a quotation: write plain Markdown"),
    (r".*<img\b", "no <img>: write ![what it shows](figures/name.svg)"),
    (r"#:", "an include stands in a code cell or in a ```python fence"),
)


class LessonError(Exception):
    """A lesson can't be built; `line` counts from 1, and `advice` says what to do."""

    def __init__(self, path: Path, line: int, advice: str) -> None:
        super().__init__(f"{path}:{line}: {advice}")
        self.path, self.line, self.advice = path, line, advice


@dataclass(frozen=True)
class Cell:
    """A cell as written: nothing is put in yet.

    `line` is the line of the file, from 1, on which `source` starts. `name` is what the author
    wrote with `:name:`; a Markdown cell is called text_1, text_2 … within its section.
    A cell with an `exercise` holds the solution. If it `improves` another exercise it is no cell
    of the notebook: the learner goes back to that one.
    """

    kind: Literal["code", "markdown"]
    source: str
    line: int
    section: str
    name: str
    tags: tuple[str, ...] = ()
    reason: str | None = None
    draft: bool = False
    exercise: str | None = None
    improves: str | None = None


@dataclass(frozen=True)
class Lesson:
    path: Path
    name: str
    title: str
    step: str
    kind: str
    cells: tuple[Cell, ...]

    def fail(self, line: int, advice: str) -> NoReturn:
        raise LessonError(self.path, line, advice)


def read_lesson(path: Path) -> Lesson:
    """Raises LessonError for what a lesson may not hold, ToolMissing without jupytext."""
    return _Reader(path).read()


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.splitlines()
        self.section = "start"
        self.sections = {self.section}
        self.names: set[str] = set()
        self.texts = 0

    def fail(self, line: int, advice: str) -> NoReturn:
        raise LessonError(self.path, line, advice)

    def read(self) -> Lesson:
        myst = development_tool("jupytext.myst")
        try:
            notebook = myst.myst_to_notebook(self.text, add_source_map=True)
        except (myst.MystMetadataParsingError, myst.yaml.YAMLError) as error:
            where = re.search(r"at line (\d+) could not", str(error))
            self.fail(int(where[1]) if where else 1, f"no YAML that can be read: {error}")
        starts = notebook.metadata.pop("source_map")
        front = self.front_matter(notebook.metadata)
        cells = [
            cell
            for raw, start in zip(notebook.cells, starts, strict=True)
            for cell in self.cells(raw, start)
        ]
        shown = tuple(cell for cell in cells if cell.improves is None)
        name, title, step, kind = (front[key] for key in FRONT_MATTER)
        return Lesson(self.path, name, title, step, kind, shown)

    def front_matter(self, front: Mapping[str, Any]) -> Mapping[str, str]:
        expected = ", ".join(FRONT_MATTER)
        for key in front:
            if key not in (*FRONT_MATTER, "jupyter"):
                self.fail(1, f"front matter: {key!r} isn't one of {expected}")
        for key in FRONT_MATTER:
            if not isinstance(front.get(key), str):
                self.fail(1, f"front matter: {key!r} is missing (or no text); say {expected}")
        if front["lesson"] != self.path.parent.name:
            self.fail(1, f"front matter: lesson is {front['lesson']!r}, the folder another name")
        if front["kind"] not in KINDS:
            self.fail(1, f"front matter: kind is one of {', '.join(KINDS)}")
        return front

    def cells(self, raw: Any, start: int) -> Iterator[Cell]:
        if raw.cell_type == "code":
            yield self.code_cell(raw, start)
        elif raw.cell_type == "markdown" and not raw.metadata:
            yield from self.markdown_cells(raw.source, start)
        else:
            self.fail(start, "no raw cells, and no metadata after +++: write plain Markdown")

    def code_cell(self, raw: Any, fence: int) -> Cell:
        opening = self.lines[fence - 1]
        if opening.strip("`~ ") != "{code-cell}":
            self.fail(fence, f"write ```{{code-cell}} and nothing else, not {opening!r}")
        if not set(raw.metadata) <= set(OPTIONS) or self.lines[fence].startswith("---"):
            self.fail(fence, f"a cell's options are :{': :'.join(OPTIONS)}:, and no others")
        name = self.code_name(raw.metadata.get("name"), fence)
        tags, reason = self.tags(raw.metadata, fence)
        return Cell(
            kind="code",
            source=raw.source,
            line=self.body_line(fence),
            section=self.section,
            name=name,
            tags=tags,
            reason=reason,
            draft=self.draft(raw.metadata, fence),
            exercise=raw.metadata.get("exercise"),
            improves=raw.metadata.get("improves"),
        )

    def code_name(self, name: object, fence: int) -> str:
        name = str(name) if isinstance(name, int) else name  # YAML reads a bare 102 as a number
        if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9-]+", name):
            self.fail(fence, "each code cell needs a :name: of small letters, digits and hyphens")
        if name in self.names:
            self.fail(fence, f"two cells are named {name!r}: rename one")
        self.names.add(name)
        return name

    def tags(self, options: Mapping[str, Any], fence: int) -> tuple[tuple[str, ...], str | None]:
        tags, reason = options.get("tags", []), options.get("reason")
        if not isinstance(tags, list) or not set(tags) <= set(TAGS):
            self.fail(fence, f":tags: is a list like [{TAGS[0]}]; known tags: {', '.join(TAGS)}")
        if bool(tags) != bool(isinstance(reason, str) and reason.strip()):
            self.fail(fence, "nbval-ignore-output and :reason: go together: say why no comparison")
        return tuple(tags), reason

    def draft(self, options: Mapping[str, Any], fence: int) -> bool:
        if options.get("draft") is not None:
            self.fail(fence, ":draft: stands alone, without a value")
        return "draft" in options

    def body_line(self, fence: int) -> int:
        line = fence
        while self.lines[line].lstrip().startswith(":"):
            line += 1
        return line + 1 if self.lines[line].strip() else line + 2

    def markdown_cells(self, text: str, start: int) -> Iterator[Cell]:
        while not self.lines[start]:
            start += 1
        self.check_markdown(text, start + 1)
        lines, sections = text.splitlines(), dict(outline(text).sections)
        cuts = sorted({0, *sections, len(lines)})
        for first, last in pairwise(cuts):
            if first in sections:
                self.start_section(sections[first], start + 1 + first)
            self.texts += 1
            yield Cell(
                kind="markdown",
                source="\n".join(lines[first:last]).rstrip(),
                line=start + 1 + first,
                section=self.section,
                name=f"text_{self.texts}",
            )

    def start_section(self, title: str, line: int) -> None:
        self.section = "-".join(re.findall(r"[a-z0-9]+", title.lower()))
        if not self.section or self.section in self.sections:
            self.fail(line, f"two sections called {title!r}: each heading needs its own words")
        self.sections.add(self.section)
        self.texts = 0

    def check_markdown(self, text: str, first: int) -> None:
        found = outline(text)
        for fence in found.fences:
            if fence.info.startswith("{"):
                self.fail(
                    first + fence.first - 1,
                    f"no directive {fence.info}: only {{code-cell}}, and that not inside a list",
                )
        for line, role in found.roles:
            self.fail(first + line, f"no role {{{role}}}: write plain Markdown")
        for number, line_text in enumerate(text.splitlines()):
            for pattern, advice in FORBIDDEN_MARKDOWN:
                if re.match(pattern, line_text) and not found.fenced(number):
                    self.fail(first + number, advice)
