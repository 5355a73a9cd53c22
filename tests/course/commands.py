"""The `mini-harness` command as a learner runs it, in a workspace of their own."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from mini_harness.course.exercises import exercise
from tests.serving import private_environment

COMMAND = [sys.executable, "-m", "mini_harness.cli"]


class Done(NamedTuple):
    code: int
    out: str
    err: str


def run(
    folder: Path,
    *arguments: str,
    cwd: Path | None = None,
    env: Mapping[str, str] = MappingProxyType({}),
) -> Done:
    """Run a command on the workspace `folder`, named as $MINI_HARNESS_HOME."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd or folder,
        env=private_environment(folder) | {"MINI_HARNESS_HOME": str(folder)} | dict(env),
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def module_of(folder: Path, exercise_id: str) -> Path:
    return folder / "my_harness" / f"{exercise(exercise_id).module}.py"


def solve(folder: Path, exercise_id: str) -> Path:
    """Write the solution where the learner's own file belongs; the file."""
    file = module_of(folder, exercise_id)
    file.parent.mkdir(exist_ok=True)
    file.write_text(exercise(exercise_id).solution, encoding="utf-8")
    return file
