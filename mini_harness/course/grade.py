"""Grade one exercise: run its checks on what the learner wrote, in a process of its own.

The process is what makes this safe to call from a notebook: a loop that never ends, or one that
fills the memory, takes nothing with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mini_harness.course.borrow import written
from mini_harness.course.exercises import Exercise, exercise

SECONDS = 20
"""How long all checks of one exercise may take together."""


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
    file = folder / wanted.file
    if not written(file):
        return Report(exercise_id, "untouched", _not_done(wanted, there=file.is_file()))
    with tempfile.TemporaryDirectory(prefix="mini-harness-") as scratch:
        result = Path(scratch) / "result.json"
        said = Path(scratch) / "stderr"
        command = [sys.executable, "-P", "-B", "-m", "mini_harness.course.judge"]
        try:
            # What the learner's code prints isn't kept: it may print without end.
            with said.open("wb") as stderr:
                ended = subprocess.run(
                    [*command, exercise_id, str(folder), str(result)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    timeout=SECONDS,
                    check=False,
                )
        except subprocess.TimeoutExpired:
            return Report(exercise_id, "failed", _endless(wanted))
        if not result.is_file():
            return Report(exercise_id, "failed", _ended(ended.returncode, _end_of(said)))
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    after = f"\n{_of_the_file(wanted)}" if found["status"] == "failed" else ""
    return Report(exercise_id, found["status"], found["text"] + after)


def _of_the_file(wanted: Exercise) -> str:
    return (
        f"This is about {wanted.file} as it was saved. "
        "If you changed its cell since, run the cell first."
    )


def _not_done(wanted: Exercise, *, there: bool) -> str:
    state = f"{wanted.file} still holds the stub." if there else f"There is no {wanted.file} yet."
    cell = f"the cell that begins with %%save {wanted.file}"
    return f"not done yet. {state}\nWrite it in {cell}, and run it."


def _endless(wanted: Exercise) -> str:
    return (
        f"stopped after {SECONDS} seconds.\n"
        f"  likely    A loop in {wanted.file} never ends: look at what each turn of "
        "it changes,\n            and where it returns."
    )


def _end_of(file: Path) -> str:
    with file.open("rb") as stderr:
        stderr.seek(max(0, file.stat().st_size - 1000))
        return stderr.read().decode("utf-8", "replace").strip().rpartition("\n")[2]


def _ended(code: int, last: str) -> str:
    return f"Python ended (exit code {code}) before the checks were over. {last:.300}".rstrip()
