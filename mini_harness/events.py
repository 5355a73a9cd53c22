"""Everything that happens is one ordered stream of events. Sinks read it.

A sink only records: it can't change what happens. If recording fails, that failure goes up
to the caller as it is (rule 4 of the design): it is never mistaken for a failed tool.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, Protocol, runtime_checkable

from mini_harness.frozen import FrozenDict, NotJson, canonical, freeze, parse_object
from mini_harness.visible import visible

WIDTH = 56
"""How many characters of an event's data are shown to people."""


class EventType(StrEnum):
    """The closed list of what can happen. Later steps give the later ones their meaning."""

    # An enum hashes in Python code; every event is looked up in a dict.
    __hash__ = str.__hash__

    MESSAGE = "message"
    MODEL_DECISION = "model_decision"
    TOOL_START = "tool_start"
    TOOL_RESULT = "tool_result"
    TOOL_ERROR = "tool_error"
    FINAL = "final"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    VERDICT = "verdict"
    APPROVAL = "approval"
    RETRY = "retry"
    LATE_RESULT = "late_result"
    COMPACTION = "compaction"
    CHECKPOINT = "checkpoint"
    VERIFICATION = "verification"
    HOOK = "hook"


class Event(NamedTuple):
    """One thing that happened in one run. ``data`` is frozen JSON.

    ``sequence`` counts from 1 without gaps; ``step`` is the number of model turns so far;
    ``offset`` is in seconds since the run began, ``time`` in seconds since the Unix epoch.
    """

    run_id: str
    sequence: int
    step: int
    type: EventType
    offset: float
    time: float
    data: FrozenDict

    @property
    def event_id(self) -> str:
        return f"{self.run_id}:{self.sequence}"

    def __str__(self) -> str:
        """One line for people: sequence, step, type, and what matters of the data."""
        what = _cut(_gist(self.type, self.data))
        return f"{self.sequence:>3}  step {self.step:<2}  {self.type:<14}  {what}".rstrip()

    def to_json(self) -> str:
        """One line of strict JSON, without a line end: ``canonical`` of all fields. Raises NotJson
        for times that aren't finite."""
        if not math.isfinite(self.offset + self.time):
            raise NotJson(f"Event {self.event_id} has a time that isn't finite.")
        # Put together here, since every event is written: this takes a third of the time.
        run_id = _quoted(self.run_id)
        return (
            f'{{"data":{canonical(self.data)},"event_id":{run_id[:-1]}:{self.sequence}",'
            f'"offset":{self.offset!r},"run_id":{run_id},"sequence":{self.sequence},'
            f'"step":{self.step},"time":{self.time!r},"type":"{self.type}"}}'
        )

    @classmethod
    def from_json(cls, line: str) -> Event:
        """The event that ``to_json`` wrote. Raises NotJson, KeyError or ValueError if it isn't."""
        found = parse_object(line)
        # What was recorded of a call lies deeper in its event than it lay in the call.
        data = freeze(found["data"], depth=-8)
        where = found["run_id"], found["sequence"], found["step"], EventType(found["type"])
        return cls(*where, found["offset"], found["time"], data)


_quoted = lru_cache(maxsize=64)(canonical)

Sink = Callable[[Event], None]
"""A reader of the stream: anything that can be called with an event, even ``print`` or
``events.append``. What it raises stops the run and reaches the caller."""


@runtime_checkable
class Holder(Protocol):
    """A sink that holds something for a run, such as a lock, until nobody drives it any more."""

    def let_go(self, run_id: str) -> None:
        """Whatever ended the driving; also what nobody records, such as an interrupted kernel."""


_NOTED = {
    EventType.COMPACTION: ("strategy", "{strategy}: {before:,} -> {after:,} bytes"),
    EventType.HOOK: ("hook", "{event}: {hook} {result}. {reason}"),
    EventType.RETRY: ("because", "after attempt {attempt}, in {seconds:g} s: {because}"),
    EventType.VERIFICATION: ("standing", "{standing}: {told}"),
}
"""How a layer's note is told, if it has this key."""


def _gist(type: EventType, data: FrozenDict) -> str:
    match type:
        case EventType.TOOL_START:
            what = f"{data['tool']} {canonical(data['arguments'])}"
        case EventType.TOOL_RESULT | EventType.TOOL_ERROR | EventType.LATE_RESULT:
            what = f"{data['tool']} -> {data['tool_result']}"
        case EventType.STOP:
            numbers = {k: v for k, v in data.items() if k not in ("reason", "error")}
            what = f"{data['reason']}: {data.get('error') or canonical(numbers)}"
        case EventType.MODEL_DECISION if "calls" in data:
            what = "call " + " and ".join(wire["name"] for wire in data["calls"])
        case EventType.MODEL_DECISION:
            what = "final answer" if "final" in data else f"unknown: {data['decision']}"
        case EventType.VERDICT:
            what = f"{data['verdict']} {data['tool']} by rule {data['rule']}: {data['reason']}"
        case EventType.APPROVAL:
            what = f"{data['by']} {'approved' if data['approved'] else 'denied'} {data['tool']}"
        case _ if type in _NOTED and _NOTED[type][0] in data:
            what = _NOTED[type][1].format_map(data)
        case EventType.PAUSE if "digest" in data:
            what = f"{data['tool']} waits for an answer"
        case _:
            what = str(data.get("content", data.get("output", canonical(data) if data else "")))
    return what


def _cut(text: str) -> str:
    """The first line that isn't empty, cut to the width, and how many lines follow."""
    lines = text.strip().splitlines() or [""]
    if lines[0].endswith(":") and len(lines) > 1:
        # A heading alone says nothing.
        lines[:2] = [f"{lines[0]} {lines[1].removeprefix('- ')}"]
    # No tool's text may steer a terminal, or make ``print`` fail and so stop the run.
    first = visible(" ".join(lines[0].split()))
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    room = WIDTH - len(more)
    return (first if len(first) <= room else first[: room - 2] + " …") + more
