"""Calls that sleep on the virtual clock, for the tests of what runs side by side."""

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from mini_harness.events import Event
from mini_harness.layer import Layer
from mini_harness.loop import Harness
from mini_harness.parallel import ParallelReads
from mini_harness.protocol import ToolCall
from mini_harness.run import Run
from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult, TransientError
from mini_harness.tools.call import Call
from tests.loops import DONE, Played, call, check, harness, play, refold, state, tool_messages, turn


class Nap(BaseModel):
    seconds: float = 1.0
    how: str = "fine"
    writes: bool = False


class Napping(BaseTool):
    """Sleeps on the harness's clock, then ends as it was told. Keeps who slept beside whom."""

    name = "nap"
    description = "Sleep a while."
    input_model = Nap

    def __init__(self) -> None:
        self.under_way: list[str] = []
        self.beside: dict[str, set[str]] = {}
        self.most = 0

    def is_read_only(self, arguments: Nap) -> bool:
        return not arguments.writes

    def paths(self, arguments: Nap) -> tuple[()]:
        return ()

    async def execute(self, arguments: Nap, context: ToolExecutionContext) -> ToolResult:
        self.under_way.append(context.call_id)
        self.most = max(self.most, len(self.under_way))
        try:
            await context.clock.sleep(arguments.seconds)
        finally:
            for one in self.under_way:
                self.beside.setdefault(one, set()).update(self.under_way)
            self.under_way.remove(context.call_id)
        return _ending(arguments.how, context.call_id)


def _ending(how: str, call_id: str) -> ToolResult:
    match how:
        case "raises":
            raise ValueError(call_id)
        case "transient":
            raise TransientError(call_id)
        case "cancels itself":
            raise asyncio.CancelledError
        case "exits":
            raise SystemExit(1)
        case "reports":
            return ToolResult(f"{call_id} went wrong", is_error=True)
        case _:
            return ToolResult(f"{call_id} slept")


def read(call_id: str, seconds: float = 1.0, how: str = "fine") -> ToolCall:
    return call("nap", call_id, seconds=seconds, how=how)


def write(call_id: str, seconds: float = 1.0, how: str = "fine") -> ToolCall:
    return call("nap", call_id, seconds=seconds, how=how, writes=True)


def together(*calls: ToolCall, layers: Sequence[Layer] = (), limit: int = 8) -> tuple[Played, Any]:
    """A run of one turn with these calls, and the tool that it used."""
    nap = Napping()
    played = play([turn(*calls), DONE], [nap], layers=[ParallelReads(limit), *layers])
    return played, nap


def halfway(
    *calls: ToolCall, layers: Sequence[Layer] = (), limit: int = 8
) -> tuple[Harness, Run, list[Event]]:
    """A run that doesn't end in its turn, and how to go on with it. Later calls may have been
    observed before earlier ones; else the rules of every run hold."""
    player, events = harness(
        [turn(*calls), DONE], [Napping()], layers=[ParallelReads(limit), *layers]
    )
    run = asyncio.run(player.run("go"))
    assert state(refold(events)) == state(run)
    order = [one.call_id for one in calls]
    assert [m["call_id"] for m in tool_messages(run)] == [
        n for n in order if n not in run.history.open
    ]
    return player, run, events


def resumed(player: Harness, run: Run, events: list[Event]) -> Run:
    asyncio.run(player.resume(run))
    check(run, events)
    return run


def took(events: Sequence[Event]) -> float:
    return events[-1].offset


class Before(Layer):
    """Raises or waits before certain calls; each once."""

    def __init__(self, **todo: Any) -> None:
        self.todo = todo

    async def act(self, run: Run, call: Call, next: Any) -> Any:
        todo = self.todo.pop(call.call_id, None)
        if isinstance(todo, BaseException):
            raise todo
        if callable(todo):
            return todo(call)
        return await next(run, call)
