"""Sessions on the disk, and runs that are kept in them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mini_harness.layer import Layer, Pause
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.run import Run
from mini_harness.session import Session
from mini_harness.tools.builds import TOOLS
from tests.loops import DONE, call

TOUR = [call("read_build", build_id="build-101"), call("read_build", build_id="build-102"), DONE]


def new(root: Path, **more: Any) -> Session:
    return Session.create(root, session_id="s1", **more)


def drive(session: Session, turns: Iterable[Any] = TOUR, tools: Any = TOOLS, **parts: Any) -> Run:
    harness = Harness(ScriptedModel(turns), tools, sinks=[session], clock=session.clock(), **parts)
    return harness.run_sync("Why did it fail? ✓")


def same(one: Run, other: Run) -> None:
    """Both are one state, whichever way they were read."""
    for name in ("id", "goal", "status", "step", "sequence", "offset", "usage", "output", "stop"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("pause", "pending", "rejections", "calls", "begun", "in_doubt", "failed"):
        assert getattr(one, name) == getattr(other, name), name
    assert list(one.history.messages) == list(other.history.messages)
    assert one.history.open == other.history.open
    assert one.notes == other.notes


class Halt(Layer):
    """Lets somebody look at the moment of a call, and pauses if told so."""

    def __init__(self, look: Any, *, pauses: bool = False) -> None:
        self.look, self.pauses = look, pauses

    async def act(self, run: Run, call: Any, next: Any) -> Any:
        self.look()
        if self.pauses:
            raise Pause(waits="for a person")
        return await next(run, call)
