"""The story of v3: the night shift is a process of its own, and it can be killed.

``python -m mini_harness.course.night_shift FOLDER HOW [TOOL]`` works through the night in that
folder. HOW is "session" or "memory": whether it keeps a session. It kills itself right after TOOL
has had its effect, before anybody has recorded that.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mini_harness.clock import Clock, VirtualClock
from mini_harness.course.story import call, final
from mini_harness.doubt import AskInDoubt
from mini_harness.events import Sink
from mini_harness.layer import Layer
from mini_harness.limits import MaxSteps
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.policy import Policy
from mini_harness.retry import Retry
from mini_harness.rules import Rule, Verdict
from mini_harness.run import Run, Status
from mini_harness.session import Session
from mini_harness.sync import run_sync
from mini_harness.tools.base import BaseTool, ToolExecutionContext
from mini_harness.tools.function import function_tool

ID = "night-shift"
GOAL = "Look after build-102 tonight."
TURNS = [
    call("read_build", build_id="build-102"),
    call("rerun_build", build_id="build-102"),
    call("page_oncall", text="build-102 fails, and runs again."),
    final("build-102 failed. It runs again, and whoever is on call knows."),
]
_MAY = [
    Rule("reruns", Verdict.ALLOW, tool="rerun_build", reason="The night shift may."),
    Rule("pages", Verdict.ALLOW, tool="page_oncall", reason="The night shift may."),
]


_OPEN = (Status.RUNNING, Status.PAUSED, Status.STOPPED)
_LOG = "\n".join(f"test_{number} passed" for number in range(1, 61))
"""Long enough to be worth leaving out."""


@cache
def _room() -> TemporaryDirectory[str]:
    """Where the nights of this process lie. It goes when the process ends."""
    return TemporaryDirectory(prefix="mini-harness-", ignore_cleanup_errors=True)


def fresh(name: str = "night") -> Path:
    """An empty folder for one night, among those that go with this process, and its path."""
    path = Path(_room().name) / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    return path


def lasting(folder: Path | str) -> Path:
    """A folder for a night that outlives this process, made where there is none."""
    path = Path(folder)
    path.mkdir(exist_ok=True)
    return path


def copied(night: Path, name: str) -> Path:
    """The same night in a folder beside, as on another machine, and its path."""
    path = night.with_name(name)
    shutil.rmtree(path, ignore_errors=True)
    return Path(shutil.copytree(night, path))


def live(night: Path, how: str = "session", *, dies_after: str = "") -> str:
    """Let the night shift work as a process of its own, and say how it ended."""
    command = [sys.executable, "-m", "mini_harness.course.night_shift", str(night), how, dies_after]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode == -signal.SIGKILL:
        return f"killed right after {dies_after}"
    return done.stdout.strip() or done.stderr.strip()


def opened(night: Path) -> Session:
    """The session of that night: the one there is, or a new one."""
    try:
        return Session.open(ID, night / "sessions")
    except FileNotFoundError:
        return Session.create(night / "sessions", session_id=ID, cwd=night)


def pages(night: Path) -> list[str]:
    """What whoever is on call has got on the phone."""
    return _lines(night / "pages.log")


def queued(night: Path) -> list[str]:
    """What the build queue has taken, each under the key with which it was asked."""
    return _lines(night / "queue.log")


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def harness(
    night: Path,
    *sinks: Sink,
    asked: int = 0,
    layers: Sequence[Layer] = (),
    clock: Clock | None = None,
    dies_after: str = "",
) -> Harness:
    """The night shift's harness. ``asked`` turns of its script have been played already.

    Without a ``clock`` it has a virtual one, which goes on where its session ends.
    """
    if clock is None:
        clock = next((each.clock() for each in sinks if isinstance(each, Session)), VirtualClock())
    model = ScriptedModel(TURNS, clock=clock, latency=0.5, asked=asked)
    around = [MaxSteps(8), Policy(rules=_MAY), AskInDoubt(), Retry(), *layers]
    tools = Night(night, dies_after).tools()
    return Harness(model, tools, layers=around, sinks=sinks, clock=clock, cwd=night)


async def go_on(harness: Harness, session: Session) -> Run:
    """Take up the session's last run if it is unfinished, else begin a new one."""
    last = session.run() if session.runs else None
    if last is None or last.status not in _OPEN:
        return await harness.run(GOAL)
    return await harness.resume(last)


class Night:
    """The tools of the night shift. What they do is in files, as on a server elsewhere."""

    def __init__(self, folder: Path, dies_after: str = "") -> None:
        self.folder, self.dies_after = folder, dies_after

    def tools(self) -> list[BaseTool]:
        return [
            function_tool(self.read_build, read_only=True, paths=()),
            function_tool(self.read_log, read_only=True, paths=()),
            function_tool(self.rerun_build, idempotent=True, paths=()),
            function_tool(self.page_oncall, paths=()),
        ]

    def read_build(self, build_id: str) -> str:
        """Read build status."""
        return self._done("read_build", "failed")

    def read_log(self, build_id: str) -> str:
        """Read build log."""
        return self._done("read_log", f"{build_id}\n{_LOG}")

    def rerun_build(self, build_id: str, context: ToolExecutionContext) -> str:
        """Queue a build again. Under the same key the queue takes it once."""
        if any(line.startswith(f"{context.idempotency_key} ") for line in queued(self.folder)):
            return f"{build_id} is queued already."
        self._append("queue.log", f"{context.idempotency_key} {build_id}")
        return self._done("rerun_build", f"{build_id} is queued.")

    def page_oncall(self, text: str) -> str:
        """Ring the phone of whoever is on call."""
        self._append("pages.log", text)
        return self._done("page_oncall", "It rang.")

    def _append(self, name: str, line: str) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def _done(self, tool: str, result: str) -> str:
        if tool == self.dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
        return result


def main(folder: str, how: str, dies_after: str = "") -> Any:
    night = Path(folder)
    if how == "memory":
        return run_sync(harness(night, dies_after=dies_after).run(GOAL))
    session = opened(night)
    last = session.run() if session.runs else None
    asked = last.step if last is not None and last.status in _OPEN else 0
    return run_sync(go_on(harness(night, session, asked=asked, dies_after=dies_after), session))


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
