"""Errors in what a learner wrote: where it stopped, that line, the error. No screens of trace."""

from __future__ import annotations

import re
from pathlib import Path
from traceback import FrameSummary, extract_tb, format_exception_only, walk_tb
from types import FrameType

from mini_harness.course.borrow import home_of
from mini_harness.course.exercises import PACKAGE

LONGEST = 300
_PATH_OF_A_MODULE = re.compile(r" \([^()]*\.py\)$")
_NOT_IMPORTED = re.compile(rf"cannot import name '(\w+)' from '{PACKAGE}'")
_QUOTED = re.compile(r"'(\w+)'")


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
    lines = [lacking(error), f"Python stops in {where}.", *code, last_line(error)]
    return "\n".join(filter(None, lines))


def lacking(error: BaseException) -> str:
    """Which file lacks a name that another asks the package for: that is the one to look at."""
    asked = _NOT_IMPORTED.match(str(error)) if isinstance(error, ImportError) else None
    home = home_of(asked[1]) if asked else None
    return f"{home.file} defines no {asked[1]!r}." if asked and home else ""


def unknown_name(error: BaseException) -> str:
    """The likely cause of a NameError in the learner's own code; nothing for any other error."""
    if isinstance(error, UnboundLocalError):
        return _read_too_early(error)
    if not isinstance(error, NameError):
        return ""
    return f"That file doesn't know `{error.name}`. A name of the notebook isn't one of the file."


def _read_too_early(error: UnboundLocalError) -> str:
    """A function that assigns to a name anywhere has it to itself everywhere."""
    quoted, frames = (
        _QUOTED.search(str(error)),
        [frame for frame, _ in walk_tb(error.__traceback__)],
    )
    if quoted is None or not frames:
        return ""
    name, code = quoted[1], frames[-1].f_code
    told = f"`{name}` is read in `{code.co_name}` before it has a value there."
    if outer := _word_for_the_outer(name, frames[-1]):
        return f"{told} To change the one outside, say `{outer} {name}` first."
    return f"{told} Give it one on every way through the function."


def _word_for_the_outer(name: str, frame: FrameType) -> str:
    """What a function has to say to assign to the name outside of it; nothing if none is there."""
    outermost = frame.f_globals.get(frame.f_code.co_qualname.partition(".")[0])
    around = getattr(outermost, "__code__", frame.f_code)
    if around is not frame.f_code and name in (*around.co_varnames, *around.co_cellvars):
        return "nonlocal"
    return "global" if name in frame.f_globals else ""


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
