"""`mini-harness watch`, with a learner who saves files meanwhile."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mini_harness.course.exercises import exercise, exercises
from mini_harness.course.workspace import make, save_module
from tests.course.commands import COMMAND, module_of, solve
from tests.serving import private_environment, until

pytestmark = pytest.mark.once

FIRST, *_, LAST = [each.id for each in exercises("v0")]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make(tmp_path / "w")


class Watching:
    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self.log = process, log

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def until(self, holds: Callable[[str], bool]) -> str:
        return until(lambda: self.said if holds(self.said) else None, 60, lambda: self.said)


@contextmanager
def watching(folder: Path, *asked: str) -> Iterator[Watching]:
    log = folder.parent / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*COMMAND, "watch", *asked, "--workspace", str(folder)],
            cwd=folder,
            env=private_environment(folder.parent),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        seen = Watching(process, log)
        seen.until(lambda said: "Ctrl-C ends it." in said)
        yield seen
    finally:
        process.kill()
        process.wait(20)


def test_what_is_saved_is_graded_at_once_and_ctrl_c_ends_it(workspace: Path) -> None:
    with watching(workspace) as seen:
        save_module(workspace, exercise(FIRST).module, exercise(FIRST).stub)
        seen.until(lambda said: f"{FIRST}: not done yet" in said)
        save_module(workspace, exercise(FIRST).module, exercise(FIRST).solution)
        seen.until(lambda said: f"{FIRST}: passed" in said)
        graded = seen.said.count(f"{LAST}: ")
        module_of(workspace, FIRST).unlink()
        seen.until(lambda said: said.count(f"{FIRST}: not done yet") == 2)
        # Its own file hasn't changed, but it may borrow from the one that has.
        seen.until(lambda said: said.count(f"{LAST}: ") > graded)
        seen.process.send_signal(signal.SIGINT)
        assert seen.process.wait(20) == 0
        assert seen.said.endswith("\nNo longer watching.\n")
        assert "Traceback" not in seen.said


def test_what_is_there_at_the_start_is_graded_first(workspace: Path) -> None:
    solve(workspace, FIRST)
    solve(workspace, LAST)
    with watching(workspace, FIRST) as seen:
        seen.until(lambda said: f"{FIRST}: passed" in said)
        assert f"{LAST}:" not in seen.said, "it wasn't asked for"


def test_ctrl_c_in_the_middle_of_a_check_ends_that_too(workspace: Path) -> None:
    """The whole group gets the signal, as from a terminal: the grader's process as well."""
    with watching(workspace) as seen:
        name = exercise(FIRST).module
        started = workspace / "started"
        endless = f"open({str(started)!r}, 'w').close()\nwhile True: pass\n"
        save_module(workspace, name, endless)
        until(lambda: started.exists() or None, 60, lambda: seen.said)
        seen.process.send_signal(signal.SIGINT)
        assert seen.process.wait(20) == 0
        assert seen.said.endswith("\nNo longer watching.\n")
