"""Cells out of order: a name that isn't there yet is told in five lines, and which cell makes it.

Only a lesson's own names are told so. Whatever else goes wrong in a cell, and a name that the
learner made up, keeps its usual traceback.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mini_harness.course.names import bound
from mini_harness.course.workspace import lesson_files

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

SAVE = re.compile(r"\s*%%save\b.*\n")

NOT_YET = """\
NameError: there is no `{name}` yet. An earlier cell of this notebook makes it.
Run that cell first. It is in the section "{section}", and it begins with

    {first_line}

Or choose Run > Run All Above Selected Cell. Then run this cell again."""

NOT_BEGUN = """\
NameError: there is no `{name}` yet. This kernel is new: no cell of this notebook has run in it.
Run the first code cell of this notebook first. It begins with

    {first_line}

Or choose Run > Run All Above Selected Cell. Then run this cell again."""


@dataclass(frozen=True)
class LessonCell:
    """A code cell of a built lesson, under the heading that stands last before it."""

    id: str
    section: str
    source: str

    @property
    def first_line(self) -> str:
        return self.source.lstrip().partition("\n")[0]

    def makes(self, name: str) -> bool:
        names = bound(SAVE.sub("", self.source, count=1))
        return name in names.defined or name in names.imported


def install(shell: InteractiveShell, lesson: str | None) -> None:
    """Tell of a lesson's missing names from now on; once more does no harm.

    `lesson` is None until the notebook's first cell has run.
    """

    def tell(
        shell: InteractiveShell,
        kind: type[NameError],
        error: NameError,
        trace: TracebackType,
        tb_offset: int | None = None,
    ) -> None:
        text = advice(shell, error, trace, lesson)
        if text is not None:
            # IPython shows what this returns in place of its own traceback.
            vars(error)["_render_traceback_"] = lambda: [text]
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)

    shell.set_custom_exc((NameError,), tell)


def advice(
    shell: InteractiveShell, error: NameError, trace: TracebackType, lesson: str | None
) -> str | None:
    """Which cell to run first; None where no cell of the lesson would help."""
    name = error.name  # none where it isn't the notebook's name, but a function's own
    if name is None or _innermost(trace) is not shell.user_ns:
        return None
    running = running_cell(shell)
    cells = _cells_of(lesson, running)
    earlier = before(cells, running)
    makers = [cell for cell in earlier if cell.makes(name)]
    if not makers:
        return None
    if lesson is None:
        return NOT_BEGUN.format(name=name, first_line=cells[0].first_line)
    # The last one before the running cell made what that cell was written for. Of a cell that
    # the learner added nobody knows the place, so there it is the first.
    maker = makers[0] if earlier is cells else makers[-1]
    return NOT_YET.format(name=name, section=maker.section, first_line=maker.first_line)


def _innermost(trace: TracebackType) -> dict[str, Any]:
    """Where the name was looked up: a module of its own can't see a notebook's names."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_globals


def running_cell(shell: InteractiveShell) -> str | None:
    """The id of the cell that runs, where the front end says it, as JupyterLab does."""
    parent: dict[str, Any] = shell.get_parent() if hasattr(shell, "get_parent") else {}
    cell_id: str | None = parent.get("metadata", {}).get("cellId")
    return cell_id


def before(cells: Sequence[LessonCell], running: str | None) -> Sequence[LessonCell]:
    """The cells above the running one; all of them for a cell that isn't the lesson's."""
    for place, cell in enumerate(cells):
        if cell.id == running:
            return cells[:place]
    return cells


def _cells_of(lesson: str | None, running: str | None) -> list[LessonCell]:
    """The cells of that lesson; without one, of the lesson that has the running cell or the
    name of the notebook that Jupyter started this kernel for."""
    session = Path(os.environ.get("JPY_SESSION_NAME", "")).stem
    named: list[LessonCell] = []
    for path in lesson_files():
        cells = lesson_cells(path)
        if path.stem == lesson or (lesson is None and running in {cell.id for cell in cells}):
            return cells
        if lesson is None and path.stem == session:
            named = cells
    return named


def lesson_cells(path: Path) -> list[LessonCell]:
    """The code cells of a built notebook, in order."""
    section, cells = "", []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            cells.append(LessonCell(cell["id"], section, source))
        else:
            section = _last_heading(source) or section
    return cells


def _last_heading(markdown: str) -> str | None:
    unfenced = re.sub(r"(?ms)^(```+|~~~+).*?^\1", "", markdown)
    headings: list[str] = re.findall(r"(?m)^#{1,6} +(.+?) *#*$", unfenced)
    return headings[-1] if headings else None
