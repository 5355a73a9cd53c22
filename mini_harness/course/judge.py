"""The process in which an exercise is graded.

`python -m mini_harness.course.judge ID FOLDER RESULT` runs the checks on what the folder's
`my_harness` holds, and writes status and text to the file RESULT.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

from mini_harness.course.conformance import Check, Subject, Wrong, conformance
from mini_harness.course.exercises import PACKAGE, exercise
from mini_harness.course.names import bound
from mini_harness.course.trouble import explained, own_frames, place
from mini_harness.frozen import shown

MEMORY = 2 << 30
"""How many bytes of address space the checks of one exercise may take."""

FILE = 64 << 20
"""How many bytes a file may have that they write."""

WIDTH = 88
NO_INIT = (
    f"{PACKAGE}/__init__.py is missing, or isn't the one of the course any more. "
    "Rename it if it is there; then `mini-harness update` puts it back."
)


def judge(subject: Subject, checks: Iterable[Check]) -> tuple[Literal["failed", "passed"], str]:
    """Run all checks. The first that doesn't hold is told whole, since it often explains others."""
    faults: list[tuple[Check, dict[str, str]]] = []
    checks = list(checks)
    for check in checks:
        try:
            check.run(subject)
        except Wrong as wrong:
            faults.append((check, wrong.parts))
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - it is told
            faults.append((check, _parts(error)))
    if not faults:
        return "passed", f"passed. All {len(checks)} checks hold."
    (first, parts), held = faults[0], len(checks) - len(faults)
    lines = [f"{held} of {len(checks)} checks hold. The first that doesn't:", first.title]
    return "failed", "\n".join([*lines, *(_line(*part) for part in parts.items() if part[1])])


def _parts(error: BaseException) -> dict[str, str]:
    frames = own_frames(error)
    where = f" in {place(frames[-1])}" if frames else ""
    parts = {"got": f"{shown(error)} was raised{where}"}
    if isinstance(error, NotImplementedError):
        parts["likely"] = "A line `raise NotImplementedError` is still there: take it out."
    return parts


def _line(name: str, text: str) -> str:
    return fill(
        text,
        WIDTH,
        initial_indent=f"  {name:<10}",
        subsequent_indent=" " * 12,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _own(name: str) -> Any:
    """A learner's function, wherever in the package it lies."""
    return getattr(import_module(PACKAGE), name)


def grade_here(exercise_id: str, folder: Path) -> tuple[str, str]:
    """Status and text of an exercise, in this very process."""
    wanted = exercise(exercise_id)
    file = folder / wanted.file
    if not file.with_name("__init__.py").is_file():
        return "failed", NO_INIT
    # First, or the package of another workspace may be found before this one.
    sys.path.insert(0, str(folder))
    try:
        package, own = import_module(PACKAGE), import_module(f"{PACKAGE}.{wanted.module}")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a learner reads it
        return "failed", explained(wanted.module, error)
    if not hasattr(package, "__getattr__"):
        return "failed", NO_INIT
    if Path(own.__file__ or "").resolve() != file.resolve():
        return "failed", f"Python takes {own.__file__} for {wanted.file}. Rename it."
    here = bound(file.read_text(encoding="utf-8", errors="replace")).defined
    if missing := sorted(bound(wanted.stub).defined - here):
        return "failed", f"{wanted.file} defines no {missing[0]!r}: write it in this file."
    checks = [each for each in conformance(wanted.step) if each.exercise == exercise_id]
    return judge(Subject(PACKAGE, _own), checks)


def _limit() -> None:
    """Memory, and what is written: where it can be done. macOS refuses it, Windows has none."""
    if sys.platform != "linux":
        return
    import resource

    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILE)):
        _, hard = resource.getrlimit(kind)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (allowed, hard))


def _main(exercise_id: str, folder: str, result: str) -> None:
    _limit()
    # Nothing compiled earlier is taken: Python can't tell two texts of one length and one second.
    sys.pycache_prefix = str(Path(result).with_name("bytecode"))
    status, text = grade_here(exercise_id, Path(folder))
    found = json.dumps({"status": status, "text": text})
    Path(result).write_text(found, encoding="utf-8")
    # A thread that the learner's code left running is not waited for.
    os._exit(0)


if __name__ == "__main__":
    _main(*sys.argv[1:])
