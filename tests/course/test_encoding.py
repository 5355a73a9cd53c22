"""A machine whose own encoding isn't UTF-8 (Windows, mostly) reads and writes the same."""

import subprocess
import sys
from pathlib import Path

import pytest

from mini_harness.course.exercises import exercises
from mini_harness.course.workspace import make
from tests.serving import private_environment

pytestmark = pytest.mark.once

# An open() that leaves the encoding to the machine is an error, where it stands in a file of ours.
STRICT = """\
import sys, warnings
warnings.filterwarnings("ignore", category=EncodingWarning)
warnings.filterwarnings("error", category=EncodingWarning, module="mini_harness")
from mini_harness.cli import main
sys.exit(main(sys.argv[1:]))
"""
C_LOCALE = {"PYTHONUTF8": "0", "LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0"}
COMMANDS = [
    "check v0",
    "progress",
    "doctor",
    "hint {id}",
    "solution {id} --give-up",
    "update",
    "reset {id}",
    "demo",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_and_writes_the_same_in_the_c_locale(command: str, tmp_path: Path) -> None:
    """report N10"""
    assert run(command, tmp_path / "one", C_LOCALE) == run(command, tmp_path / "one", {})


def run(command: str, home: Path, locale: dict[str, str]) -> tuple[int, str, str, dict[str, bytes]]:
    """What a command says, and all files of a workspace that holds a letter beyond ASCII."""
    workspace = make(home / "workspace")
    exercise = exercises("v0")[0]
    mine = workspace / "my_harness" / f"{exercise.module}.py"
    mine.write_text(f"# naïve → not yet\n{exercise.solution}", encoding="utf-8")
    arguments = command.format(id=exercise.id).split()
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-c", STRICT, *arguments],
        cwd=workspace,
        env=private_environment(home) | {"MINI_HARNESS_HOME": str(workspace)} | locale,
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.stdout
    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr, done.stderr
    files = {
        str(path.relative_to(workspace)): path.read_bytes()
        for path in sorted(workspace.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    for path in sorted(workspace.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    return done.returncode, done.stdout, done.stderr, files
