"""Errors in what a learner wrote: where it stopped, that line, the error. No screens of trace."""

from __future__ import annotations

import re
from pathlib import Path
from traceback import FrameSummary, extract_tb, format_exception_only

from mini_harness.course.exercises import PACKAGE

LONGEST = 300
_PATH_OF_A_MODULE = re.compile(r" \([^()]*\.py\)$")


class Told(Exception):
    """An error that its text tells whole: a notebook shows the text, and no trace."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def explained(module: str, error: BaseException) -> str:
    """What helps of a traceback, in a few lines; ``module`` if nothing says where."""
    above = "".join(format_exception_only(error)).rstrip().split("\n")[:-1]
    where, code = f"{PACKAGE}/{module}.py", list[str]()
    if isinstance(error, SyntaxError):
        if _is_own(error.filename) and error.lineno:
            where = f"{_relative(error.filename)}, line {error.lineno}"
            code = [line for line in above if not line.startswith("  File ")]
    elif frames := own_frames(error):
        where, code = place(frames[-1]), [f"    {frames[-1].line}"]
    return "\n".join([f"Python stops in {where}.", *code, last_line(error)])


def last_line(error: BaseException) -> str:
    """As in "KeyError: 'x'", without the path that an ImportError names."""
    last = "".join(format_exception_only(error)).rstrip().rpartition("\n")[2]
    last = _PATH_OF_A_MODULE.sub("", last) if isinstance(error, ImportError) else last
    return last if len(last) <= LONGEST else f"{last[: LONGEST - 2]} …"


def own_frames(error: BaseException) -> list[FrameSummary]:
    """The part of an error's traceback that lies in the learner's package, outermost first."""
    return [each for each in extract_tb(error.__traceback__) if _is_own(each.filename)]


def place(frame: FrameSummary) -> str:
    """As in "my_harness/loop.py, line 3"."""
    return f"{_relative(frame.filename)}, line {frame.lineno}"


def _is_own(filename: str | None) -> bool:
    return Path(filename or "").parent.name == PACKAGE


def _relative(filename: str | None) -> str:
    return f"{PACKAGE}/{Path(filename or '').name}"
