"""A run is what its events say. Apply them one by one and you have it; so a run can be resumed.

The loop changes a run in one way only: it records an event, and ``Run.apply`` is what that event
means. A run that was read back from its record is therefore the same as the one that wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

from mini_harness.events import Event, EventType
from mini_harness.frozen import FrozenDict
from mini_harness.protocol import Final, History, Observation, ToolCall, Usage


class Status(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"


RUNNING = Status.RUNNING


class StopReason(StrEnum):
    """The closed list of reasons for which a run ends without an accepted answer."""

    MAX_STEPS = "max_steps"
    BUDGET = "budget"
    DENIED = "denied"
    REJECTED = "rejected"
    REPEATED_CALL = "repeated_call"
    CANCELLED = "cancelled"
    ERROR = "error"


class RunNotCompleted(RuntimeError):
    """``unwrap()`` was called on a run without an accepted answer. ``run`` is the evidence."""

    def __init__(self, run: Run) -> None:
        why = f"{run.stop['reason']}, {dict(run.stop)}" if run.stop else run.status.value
        super().__init__(f"Run {run.id} has no answer: {why}.")
        self.run = run


class Run:
    """The state of one run: read it freely, change it only by events."""

    def __init__(self, run_id: str) -> None:
        self.id = run_id
        self.goal = ""
        self.history = History()
        self.pending: tuple[ToolCall, ...] | Final | None = None
        """What the model proposed last and the harness hasn't dealt with yet."""
        self.status = Status.RUNNING
        self.stop: FrozenDict | None = None
        """Why it stopped: a ``reason`` out of StopReason, and its numbers."""
        self.output: Any = None
        self.error: BaseException | None = None
        """The error itself, where the run failed in this process."""
        self.usage = Usage()
        self.step = 0
        self.sequence = 0
        self.offset = 0.0
        self.origin = 0.0
        """When it began, on the clock of this process, in seconds."""
        self.rejections = 0
        self.attempts: dict[str, int] = {}
        """How often each pending call was started."""
        self.in_doubt: set[str] = set()
        """Calls that were started and whose end nobody recorded."""
        self.observed: dict[str, Observation] = {}
        """What was recorded for the calls of this turn, in this process."""

    @classmethod
    def fold(cls, events: Iterable[Event]) -> Run:
        """Make the run that wrote these events. Raises ValueError for none, or for a gap."""
        run = None
        for event in events:
            run = run or cls(event.run_id)
            if (event.run_id, event.sequence) != (run.id, run.sequence + 1):
                raise ValueError(f"After {run.id}:{run.sequence} comes {event.event_id}.")
            run.apply(event)
        if run is None:
            raise ValueError("There are no events to make a run of.")
        return run

    def unwrap(self) -> Any:
        """The output, or the error that says why there is none."""
        if self.status is Status.COMPLETED:
            return self.output
        raise self.error or RunNotCompleted(self)

    def apply(self, event: Event) -> None:
        """Let one event happen to this run."""
        self.sequence, self.step, self.offset = event.sequence, event.step, event.offset
        meaning = _MEANINGS.get(event.type)
        if meaning is not None:
            meaning(self, event.data)

    def _stopped(self, data: FrozenDict) -> None:
        failed = data["reason"] == StopReason.ERROR
        self.stop, self.status = data, Status.FAILED if failed else Status.STOPPED

    def _paused(self, data: FrozenDict) -> None:
        self.status = Status.PAUSED

    def _resumed(self, data: FrozenDict) -> None:
        self.status, self.stop, self.error = Status.RUNNING, None, None

    def _told(self, data: FrozenDict) -> None:
        """The user, or the harness in the user's place, said something."""
        if isinstance(self.pending, Final):
            self.rejections += 1
        if self.sequence == 1:
            self.goal = data["content"]
        self.history.add_user(data)
        self.pending, self.status = None, Status.RUNNING

    def _proposed(self, data: FrozenDict) -> None:
        if "usage" in data:
            self.usage += Usage(**data["usage"])
        if "calls" in data:
            self.pending = tuple([ToolCall.from_wire(wire) for wire in data["calls"]])
            self.history.add_calls(self.pending, data)
            self.observed.clear()
        elif "final" in data:
            thought, note, raw = (data.get(name) for name in ("thought", "note", "raw"))
            self.pending = Final(data["content"], thought, note=note, raw=raw)
            self.history.add_final(data)

    def _concluded(self, data: FrozenDict) -> None:
        self.pending, self.output, self.status = None, data["output"], Status.COMPLETED

    def _started(self, data: FrozenDict) -> None:
        call_id = data["call_id"]
        self.attempts[call_id] = self.attempts.get(call_id, 0) + 1
        self.in_doubt.add(call_id)

    def _ended(self, data: FrozenDict) -> None:
        """An attempt ended. If the failure was transient, that isn't the call's last word."""
        call_id = data["call_id"]
        self.in_doubt.discard(call_id)
        if "transient" in data:
            return
        self.history.add_observation(data)
        self.pending = tuple(self.history.open.values()) or None
        self.attempts.pop(call_id, None)


_MEANINGS: dict[EventType, Callable[[Run, FrozenDict], None]] = {
    EventType.MESSAGE: Run._told,
    EventType.MODEL_DECISION: Run._proposed,
    EventType.TOOL_START: Run._started,
    EventType.TOOL_RESULT: Run._ended,
    EventType.TOOL_ERROR: Run._ended,
    EventType.FINAL: Run._concluded,
    EventType.STOP: Run._stopped,
    EventType.PAUSE: Run._paused,
    EventType.RESUME: Run._resumed,
}
"""What an event does to a run. Those that aren't listed only tell what happened."""
