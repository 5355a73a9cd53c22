"""Runs in memory with their events, and the rules that every run must keep."""

import asyncio
import itertools
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from mini_harness.clock import VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.frozen import freeze
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final, ToolCall, Turn
from mini_harness.run import Run, Status
from mini_harness.tools.registry import AnyTool

DONE = Final("done")


class Played(NamedTuple):
    run: Run
    events: list[Event]


def call(name: str, call_id: str = "", **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments, call_id)


def turn(*calls: ToolCall) -> Turn:
    return Turn(calls)


def harness(
    turns: Iterable[Any], tools: Iterable[AnyTool] = (), **parts: Any
) -> tuple[Harness, list[Event]]:
    """A harness on the virtual clock that plays ``turns``, and the list its events go to."""
    events: list[Event] = []
    parts.setdefault("sinks", [events.append])
    parts.setdefault("clock", VirtualClock())
    return Harness(ScriptedModel(turns), tools, **parts), events


def play(turns: Iterable[Any], tools: Iterable[AnyTool] = (), **parts: Any) -> Played:
    """A whole run, and its events. The rules that hold for every run are checked."""
    player, events = harness(turns, tools, **parts)
    run = asyncio.run(player.run("go"))
    check(run, events)
    return Played(run, events)


def go_on(run: Run, turns: Iterable[Any], tools: Iterable[AnyTool] = (), **parts: Any) -> Played:
    """Resume a run in a harness of its own, as another process would."""
    player, events = harness(turns, tools, **parts)
    resumed = asyncio.run(player.resume(run))
    check_history(resumed)
    return Played(resumed, events)


def reread(event: Event) -> Event:
    """The event as it comes back from a line of text."""
    line = json.loads(event.to_json())
    if line.pop("event_id") != event.event_id:
        raise AssertionError(f"{event.to_json()} isn't {event.event_id}")
    # What lies in an event is nested a few levels deeper than it was when it was frozen.
    data = freeze(line.pop("data"), depth=-8)
    return Event(type=EventType(line.pop("type")), data=data, **line)


def refold(events: Iterable[Event]) -> Run:
    """The run that these events tell of, read back from text."""
    return Run.fold([reread(event) for event in events])


def state(run: Run) -> dict[str, Any]:
    """All that a run must have again when it is folded from its events."""
    plain = ("id", "goal", "pending", "status", "stop", "pause", "output", "usage", "step")
    counted = ("sequence", "rejections", "attempts", "in_doubt", "notes")
    found = {name: getattr(run, name) for name in (*plain, *counted)}
    return {**found, "history": list(run.history.messages), "open": run.history.open}


def kinds(events: Iterable[Event]) -> list[str]:
    return [event.type.value for event in events]


def tool_messages(run: Run) -> list[dict[str, Any]]:
    return [dict(message) for message in run.history.messages if message["role"] == "tool"]


def outcomes(run: Run) -> list[tuple[str, str]]:
    """Id and outcome of every call, in the order of the history."""
    return [(seen["call_id"], seen.get("outcome", "ok")) for seen in tool_messages(run)]


def check_history(run: Run) -> None:
    """After a turn with calls come exactly their observations, in call order, once each."""
    waiting: list[str] = []
    met: set[str] = set()
    for message in run.history.messages:
        if message["role"] == "tool":
            assert waiting, f"nobody asked for {message}"
            assert waiting.pop(0) == message["call_id"]
            continue
        assert not waiting, f"no observation for {waiting}"
        waiting = [made["call_id"] for made in message.get("calls", ())]
        assert all(made.strip() for made in waiting)
        assert not met.intersection(waiting)
        assert len(set(waiting)) == len(waiting)
        met.update(waiting)
    assert waiting == list(run.history.open)
    assert not waiting or run.status in (Status.RUNNING, Status.PAUSED)


def check(run: Run, events: list[Event]) -> None:
    """History well-formed, sequence without a gap, and the fold is the run."""
    check_history(run)
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert {event.run_id for event in events} == {run.id}
    assert all(a.offset <= b.offset for a, b in itertools.pairwise(events))
    assert state(refold(events)) == state(run)
