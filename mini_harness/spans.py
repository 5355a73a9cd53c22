"""What in a run took time, and what happened at one moment: read out of its events.

The table, the timeline and the exports all tell a run by these, so that they can't disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from mini_harness.events import Event, EventType


class Kind(StrEnum):
    """What a lane of the timeline holds. They are drawn in this order."""

    MESSAGE = "message"
    MODEL = "model"
    TOOL = "tool"
    WAITING = "waiting"
    DENIED = "denied"
    OTHER = "other"
    END = "end"


class Ending(StrEnum):
    """How a span ended. OPEN: no end was recorded."""

    OK = "ok"
    FAILED = "failed"
    OPEN = "open"


class Span(NamedTuple):
    """Something that took time. Times are in seconds, see ``elapsed``."""

    kind: Kind
    name: str
    start: float
    end: float
    first: int
    """The event it began with, counted from 0; ``last`` is the one it ended with."""
    last: int
    ending: Ending
    call_id: str = ""

    @property
    def lane(self) -> Lane:
        return self.kind, self.name


class Moment(NamedTuple):
    """Something that happened at once, at event number ``event``, counted from 0."""

    kind: Kind
    name: str
    at: float
    event: int
    subject: str = ""
    """Whose moment it is: for a denial, the tool."""

    @property
    def lane(self) -> Lane:
        return self.kind, self.name


Lane = tuple[Kind, str]
"""A kind, and for tools and other happenings which one."""

NOT_RUN = "not run"
"""The subject of a tool's moment: a call that was proposed, and never started."""

PAUSED = "paused"
"""The name of a wait for something else than an answer to a call."""

_LABELS = {
    Kind.MESSAGE: "user",
    Kind.MODEL: "model",
    Kind.WAITING: "approval",
    Kind.DENIED: "denied",
    Kind.END: "end",
}
_TAKEN = {*_LABELS.values(), PAUSED, "verdicts"} | {each.replace("_", " ") for each in EventType}
"""A tool of such a name would pass for a lane that isn't a tool's."""

# What a span begins or ends with is told by the span; these are told by a mark.
_WITHIN = {
    EventType.MODEL_DECISION,
    EventType.TOOL_START,
    EventType.TOOL_RESULT,
    EventType.TOOL_ERROR,
    EventType.PAUSE,
    EventType.RESUME,
}

_AT_REST = {EventType.PAUSE, EventType.STOP, EventType.FINAL}


def elapsed(events: Sequence[Event]) -> list[float]:
    """For each event of one run, the seconds since it began.

    A run that paused or stopped isn't driven until somebody takes it up, so its offset stands
    still. To a person the wait is real: what the wall clock says beyond the offset is added.
    """
    times: list[float] = []
    waited, before = 0.0, None
    for event in events:
        if before and (event.type is EventType.RESUME or before.type in _AT_REST):
            waited += max(0.0, event.time - before.time - (event.offset - before.offset))
        before = event
        times.append(event.offset + waited)
    return times


class Told(NamedTuple):
    """A run, as what took time and what happened at once; with the time of each event."""

    spans: list[Span]
    moments: list[Moment]
    times: list[float]


def tell(events: Sequence[Event]) -> Told:
    """Read the events of one run, in their order."""
    times = elapsed(events)
    teller = _Teller(times)
    for index, event in enumerate(events):
        teller.take(index, event)
    teller.close(len(events) - 1)
    teller.spans.sort(key=lambda span: (span.first, span.last))
    return Told(teller.spans, teller.moments, times)


class _Teller:
    """Holds what has begun until its end comes by."""

    def __init__(self, times: Sequence[float]) -> None:
        self.times = times
        self.spans: list[Span] = []
        self.moments: list[Moment] = []
        self.running: dict[str, tuple[int, str]] = {}
        """Calls that were started: where, and which tool."""
        self.asked: dict[str, int] = {}
        """Where somebody was first asked about each call that waits."""
        self.paused: int | None = None
        """Where the run was paused, if nobody was asked about a call."""

    def take(self, index: int, event: Event) -> None:
        if self.paused is not None:
            self._add(Kind.WAITING, PAUSED, self.paused, index, Ending.OK)
            self.paused = None
        data = event.data
        call_id = str(data.get("call_id", ""))
        match event.type:
            case EventType.MODEL_DECISION:
                # From the event before: that is when the model was asked.
                self._add(Kind.MODEL, "", max(0, index - 1), index, model_ending(data))
            case EventType.TOOL_START:
                self.running[call_id] = index, str(data.get("tool", ""))
            case EventType.TOOL_RESULT | EventType.TOOL_ERROR:
                self._ended(index, event, call_id)
            case EventType.PAUSE if "digest" in data:
                self.asked.setdefault(call_id, index)
            case EventType.PAUSE:
                self.paused = index
            case EventType.VERDICT | EventType.APPROVAL:
                self._decided(index, event, call_id)
            case type if type not in _WITHIN:
                self._mark(index, event)

    def _ended(self, index: int, event: Event, call_id: str) -> None:
        """A call got its observation: because it ran, or because it won't."""
        tool = str(event.data.get("tool", ""))
        failed = event.type is EventType.TOOL_ERROR
        if call_id in self.asked:
            self._waited(call_id, index, Ending.FAILED)
        if call_id in self.running:
            first, tool = self.running.pop(call_id)
            ending = Ending.FAILED if failed else Ending.OK
            self._add(Kind.TOOL, tool, first, index, ending, call_id)
        elif failed and event.data.get("outcome") != "denied" and "replaces" not in event.data:
            self.moments.append(Moment(Kind.TOOL, tool, self.times[index], index, NOT_RUN))

    def _decided(self, index: int, event: Event, call_id: str) -> None:
        if verdict_of(event.data) == "require_approval":
            self.asked.setdefault(call_id, index)
        elif event.type is EventType.APPROVAL:
            said_yes = event.data.get("approved") is True
            self._waited(call_id, index, Ending.OK if said_yes else Ending.FAILED)
        if is_denial(event):
            tool = str(event.data.get("tool", ""))
            self.moments.append(Moment(Kind.DENIED, "", self.times[index], index, tool))

    def _waited(self, call_id: str, index: int, ending: Ending) -> None:
        first = self.asked.pop(call_id, index)
        self._add(Kind.WAITING, "", first, index, ending, call_id)

    def _mark(self, index: int, event: Event) -> None:
        kinds = {
            EventType.MESSAGE: Kind.MESSAGE,
            EventType.FINAL: Kind.END,
            EventType.STOP: Kind.END,
        }
        kind = kinds.get(event.type, Kind.OTHER)
        name = event.type.value if kind is Kind.OTHER else ""
        self.moments.append(Moment(kind, name, self.times[index], index, event.type.value))

    def close(self, last: int) -> None:
        """What never ended is shown up to the last event."""
        for call_id, (first, tool) in self.running.items():
            self._add(Kind.TOOL, tool, first, last, Ending.OPEN, call_id)
        for call_id, first in self.asked.items():
            self._add(Kind.WAITING, "", first, last, Ending.OPEN, call_id)
        if self.paused is not None:
            self._add(Kind.WAITING, PAUSED, self.paused, last, Ending.OPEN)

    def _add(
        self, kind: Kind, name: str, first: int, last: int, ending: Ending, call_id: str = ""
    ) -> None:
        start, end = self.times[first], self.times[last]
        self.spans.append(Span(kind, name, start, max(start, end), first, last, ending, call_id))


def model_ending(data: Mapping[str, Any]) -> Ending:
    """A turn that no harness can take is a failed one."""
    return Ending.FAILED if "unknown" in data else Ending.OK


def verdict_of(data: Mapping[str, Any]) -> str:
    """``allow``, ``deny`` or ``require_approval``; nothing if there is no verdict."""
    return str(data.get("verdict", "")).lower()


def is_denial(event: Event) -> bool:
    """Whether this event is where a call was refused, by a rule or by a person."""
    if event.type is EventType.APPROVAL:
        return event.data.get("approved") is not True
    return event.type is EventType.VERDICT and verdict_of(event.data) == "deny"


def calls_in(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The calls of a decision. Who records by hand may have put anything there."""
    calls = data.get("calls")
    return [each for each in calls if isinstance(each, Mapping)] if isinstance(calls, list) else []


def rows_of(spans: Sequence[Span]) -> list[int]:
    """For each span, the row of its lane in which it overlaps no other: 0 unless calls ran side
    by side. The spans come in the order in which they began."""
    free: dict[Lane, list[int]] = {}
    rows = []
    for span in spans:
        ends = free.setdefault(span.lane, [])
        row = next((n for n, last in enumerate(ends) if last <= span.first), len(ends))
        ends[row:] = [span.last, *ends[row + 1 :]]
        rows.append(row)
    return rows


def seconds(value: float) -> str:
    """A time for people, in s, or in ms where that is all there is to see."""
    if 0 < value < 0.1:
        return f"{value * 1000:.1f} ms"
    return f"{value:,.2f} s" if value < 100 else f"{value:,.0f} s"


def label_of(lane: Lane) -> str:
    """What people read beside a lane. No tool's name passes for another lane."""
    kind, name = lane
    match kind:
        case Kind.TOOL:
            return f"{name} (tool)" if name in _TAKEN else name or "tool"
        case Kind.OTHER:
            return name.replace("_", " ")
        case _:
            return name or _LABELS[kind]


def by_run(events: Iterable[Event]) -> dict[str, list[Event]]:
    """The events of each run, runs in the order in which they began."""
    runs: dict[str, list[Event]] = {}
    for event in events:
        runs.setdefault(event.run_id, []).append(event)
    return runs
