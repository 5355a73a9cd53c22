"""Grade one exercise: run its checks on what the learner wrote, in a process of its own.

The process is what makes this safe to call from a notebook: a loop that never ends, or one that
fills the memory, takes nothing with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

from mini_harness.course.borrow import defined_in, written
from mini_harness.course.conformance import Check, Subject, Wrong, conformance
from mini_harness.course.exercises import PACKAGE, Exercise, exercise
from mini_harness.frozen import shown

SECONDS = 20
"""How long all checks of one exercise may take together."""

MEMORY = 2 << 30
"""How many bytes of address space they may take."""

WIDTH = 88
NO_INIT = f"{PACKAGE}/__init__.py is missing. `mini-harness update` puts it back."


@dataclass(frozen=True)
class Report:
    """``text`` is for people; a report is passed, failed, or of a stub that nobody touched."""

    exercise_id: str
    status: Literal["untouched", "failed", "passed"]
    text: str

    def __str__(self) -> str:
        return f"{self.exercise_id}: {self.text}"


def grade(exercise_id: str, folder: Path) -> Report:
    """Check what ``folder``/my_harness holds for an exercise. Raises UnknownExercise only."""
    wanted = exercise(exercise_id)
    file = folder / PACKAGE / f"{wanted.module}.py"
    if not written(file):
        return Report(exercise_id, "untouched", _not_done(wanted, there=file.is_file()))
    with tempfile.TemporaryDirectory(prefix="mini-harness-") as scratch:
        result = Path(scratch) / "result.json"
        command = [
            sys.executable,
            "-P",
            "-B",
            "-m",
            __name__,
            exercise_id,
            str(folder),
            str(result),
        ]
        try:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return Report(exercise_id, "failed", _endless(wanted))
        if not result.is_file():
            return Report(exercise_id, "failed", _ended(ended.returncode, ended.stderr))
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return Report(exercise_id, found["status"], found["text"])


def _not_done(wanted: Exercise, *, there: bool) -> str:
    file = f"{PACKAGE}/{wanted.module}.py"
    state = f"{file} still holds the stub." if there else f"There is no {file} yet."
    return (
        f"not done yet. {state}\nWrite it in the cell that begins with %%save {file}, and run it."
    )


def _endless(wanted: Exercise) -> str:
    return (
        f"stopped after {SECONDS} seconds.\n"
        f"  likely    A loop in {PACKAGE}/{wanted.module}.py never ends: look at what each turn of "
        "it changes,\n            and where it returns."
    )


def _ended(code: int, stderr: bytes) -> str:
    last = stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return f"Python ended (exit code {code}) before the checks were over. {last:.300}".rstrip()


def judge(subject: Subject, checks: Iterable[Check]) -> tuple[Literal["failed", "passed"], str]:
    """Run all checks. The first that doesn't hold is told whole, since it often explains others."""
    faults: list[tuple[Check, str]] = []
    checks = list(checks)
    for check in checks:
        try:
            check.run(subject)
        except Wrong as wrong:
            faults.append((check, _explained(wrong)))
        except NotImplementedError:
            text = "  likely    A line `raise NotImplementedError` is still there: take it out."
            faults.append((check, text))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is told
            faults.append((check, f"  got       {shown(error)} was raised"))
    if not faults:
        return "passed", f"passed. All {len(checks)} checks hold."
    first, why = faults[0]
    held = len(checks) - len(faults)
    lines = [f"{held} of {len(checks)} checks hold. The first that doesn't:", first.title, why]
    return "failed", "\n".join(lines)


def _explained(wrong: Wrong) -> str:
    parts = {
        "called": wrong.called,
        "got": wrong.got,
        "expected": wrong.expected,
        "likely": wrong.likely,
    }
    return "\n".join(
        fill(
            text,
            WIDTH,
            initial_indent=f"  {name:<10}",
            subsequent_indent=" " * 12,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for name, text in parts.items()
    )


def _own(name: str) -> Any:
    """A learner's function, wherever in the package it lies."""
    return getattr(import_module(PACKAGE), name)


def _import_fault(error: BaseException, wanted: Exercise) -> str:
    file = f"{PACKAGE}/{wanted.module}.py"
    if isinstance(error, SyntaxError):
        return f"{file}, line {error.lineno}: {error.msg}."
    return f"{file} can't be imported: {shown(error)}."


def _limit_memory() -> None:
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))


def _child(exercise_id: str, folder: str, result: str) -> None:
    wanted = exercise(exercise_id)
    sys.path.append(folder)
    if not (Path(folder) / PACKAGE / "__init__.py").is_file():
        return _tell(result, "failed", NO_INIT)
    status: str = "failed"
    try:
        own = import_module(f"{PACKAGE}.{wanted.module}")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a learner reads it
        text = _import_fault(error, wanted)
    else:
        missing = [name for name in defined_in(wanted.stub) if not hasattr(own, name)]
        if missing:
            return _tell(
                result, "failed", f"{PACKAGE}/{wanted.module}.py defines no {missing[0]!r}."
            )
        checks = [each for each in conformance(wanted.step) if each.exercise == exercise_id]
        status, text = judge(Subject(PACKAGE, _own), checks)
    _tell(result, status, text)


def _tell(result: str, status: str, text: str) -> None:
    Path(result).write_text(json.dumps({"status": status, "text": text}), encoding="utf-8")


if __name__ == "__main__":
    _limit_memory()
    _child(*sys.argv[1:])
