"""A run is what its events say. Apply them one by one and you have it; so a run can be resumed.

What a run is changes in one way only: an event is recorded, and ``Run.apply`` is what it means. So
a run that was read back is the same as the one that wrote it. What belongs to this process says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mini_harness.events import Event, EventType
from mini_harness.frozen import FrozenDict, freeze, shown
from mini_harness.history import History
from mini_harness.protocol import Final, Observation, ToolCall, Usage
from mini_harness.visible import shortened, visible, visible_lines

if TYPE_CHECKING:
    from mini_harness.loop import Harness
    from mini_harness.tools.call import Call


class Status(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"


RUNNING = Status.RUNNING

NAMED_BY = ("digest", "scope")
"""The keys of a note by which it is found again."""


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
        numbers = ", ".join(f"{k} {v}" for k, v in (run.stop or {}).items() if k != "reason")
        why = f"{run.status}: {run.stop['reason']}" if run.stop else f"it is {run.status}"
        super().__init__(f"{run.id} has no answer, {why}" + (f" ({numbers})." if numbers else "."))
        self.run = run


class RunIsBusy(RuntimeError):
    """A run was to be resumed while a harness is still driving it."""


class NotWaiting(RuntimeError):
    """Somebody answered a run that waits for no answer, or has one already."""


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
        self.pause: FrozenDict | None = None
        """What a paused run waits for: the details of the Pause."""
        self._notes: dict[EventType, list[FrozenDict]] = defaultdict(list)
        self.named: dict[tuple[EventType, str], FrozenDict] = {}
        """The last note of its type with that digest or scope, so that nobody has to search."""
        self.output: Any = None
        self.error: BaseException | None = None
        """The error itself, if the run was stopped by one in this process."""
        self.usage = Usage()
        self.step = self.sequence = 0
        self.offset = 0.0
        self.time = self.born = 0.0
        """When its last event and its first were recorded, in seconds since the Unix epoch."""
        self.calls = self.begun = 0
        """How many calls were proposed so far, and how many attempts at one were started."""
        self.rejections = 0
        """How often the answer to the present question was sent back."""
        self.attempts: dict[str, int] = {}
        """How often each call of this turn was started."""
        self.failed: dict[str, FrozenDict] = {}
        """Of each call of this turn whose last attempt failed in a passing way, how it did."""
        self.retries: dict[str, FrozenDict] = {}
        """What was decided last about trying again, for each call of this turn. The model's key
        is the empty text. It stands until that attempt begins; the model's, until it answers."""
        self.in_doubt: dict[str, FrozenDict] = {}
        """Calls that were started and whose end nobody recorded, with their arguments then."""
        self.answer: dict[str, Any] | None = None
        """What a person said about what it waits for, until the next resume takes it."""
        self._asked_about = self.asked_by = ""
        """About which call, and which layer's question, a person answered last."""
        self.harness: Harness | None = None
        """Who drives the run now, in this process. Layers reach the record by it."""
        self.origin = 0.0
        """When it began, on the clock that drives it, in seconds."""
        self.observed: dict[str, Observation] = {}
        """What this process recorded for the calls of this turn."""
        self.is_cancelled = False
        """Whether somebody in this process asked it to stop, and it hasn't yet."""
        self.when_cancelled: set[Callable[[], object]] = set()
        """What is called then, in the thread of whoever asks, by those who only wait."""

    @property
    def notes(self) -> dict[EventType, list[FrozenDict]]:
        """What layers recorded of their own, by type, so that they find it again on resume."""
        return self._notes

    def __repr__(self) -> str:
        return f"<{self.id}: {self.status} after {self.step} steps>"

    def __str__(self) -> str:
        """One line for people: how it stands, and what has to be done about it."""
        match self.status:
            case Status.COMPLETED:
                said = visible_lines(shortened(shown(self.output, str)))
                return f"{self.id} is completed: {said}"
            case Status.PAUSED if self.answer is not None:
                return f"{self.id} is paused, and you have answered. Resume it."
            case Status.PAUSED if self.pause is not None and "digest" in self.pause:
                tool = visible(self.pause["tool"])
                return f"{self.id} is paused: {tool} waits for your answer. Then look again."
            case Status.RUNNING | Status.PAUSED:
                return f"{self.id} is {self.status} after {self.step} steps."
        return str(RunNotCompleted(self))

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
        raise RunNotCompleted(self) if self.error is None else self.error

    def approve(
        self, arguments: Mapping[str, Any] | None = None, *, remember: bool = False
    ) -> None:
        """Say yes to what a paused run waits for; then resume it.

        ``arguments`` are run instead of the proposed ones. ``remember`` says yes to the same call
        until the run ends. Raises NotWaiting, also for a second answer, and NotJson.
        """
        if not isinstance(remember, bool):
            raise TypeError(f"remember must be True or False, but it is {remember!r}.")
        edited = None if arguments is None else freeze(arguments)
        self._answer(approved=True, arguments=edited, remember=remember)

    def deny(self, reason: str = "") -> None:
        """Say no to what a paused run waits for; then resume it. The model is told the reason.

        Raises NotWaiting, also for a second answer.
        """
        if not isinstance(reason, str):
            raise TypeError(f"The reason must be text, but it is {reason!r}.")
        self._answer(approved=False, reason=reason)

    def cancel(self) -> None:
        """Ask it to stop as soon as what runs now has ended: a tool, or a turn of the model.

        No tool begins any more; with a Timeout around, the model isn't asked again either. It can
        be resumed. Call it in any thread, as often as you like. To end also what is running,
        cancel the task that drives the run.
        """
        if self.status in (Status.RUNNING, Status.PAUSED):
            self.is_cancelled = True
            for tell in tuple(self.when_cancelled):
                tell()

    def _answer(self, **said: Any) -> None:
        if self.status is not Status.PAUSED or self.pause is None or "digest" not in self.pause:
            raise NotWaiting(f"{self.id} waits for no answer: it is {self.status}.")
        if self.answer is not None:
            raise NotWaiting(f"{self.id} has an answer already. Resume it: harness.resume(run).")
        self.answer = {**said, "digest": self.pause["digest"]}
        self._asked_about, self.asked_by = self.pause["call_id"], self.pause.get("asker", "")

    def has_answer(self, call_id: str) -> bool:
        """Whether a person answered about this call, and nobody has taken the answer yet."""
        return self.answer is not None and self._asked_about == call_id

    def take_answer(self, call_id: str) -> dict[str, Any] | None:
        """What a person said about this call while the run was paused. It counts once."""
        if not self.has_answer(call_id):
            return None
        answer, self.answer = self.answer, None
        return answer

    @property
    def driver(self) -> Harness:
        """The harness that drives it now. Raises RuntimeError if none does."""
        if self.harness is None:
            raise RuntimeError(f"No harness is driving {self.id}.")
        return self.harness

    @contextmanager
    def driven_by(self, harness: Harness) -> Iterator[None]:
        """One driver at a time. Raises RunIsBusy: two would write one record across each other."""
        if self.harness is not None:
            raise RunIsBusy(f"{self.id} is being driven already. Wait until that is over.")
        self.harness = harness
        try:
            yield
        finally:
            self.harness = None
            harness.record.left(self)

    def doubts(self, call: Call) -> bool:
        """Whether running this call might repeat an effect that it had before."""
        before = self.in_doubt.get(call.call_id)
        return before is not None and not (before == call.arguments and call.repeatable)

    def apply(self, event: Event) -> None:
        """Let one event happen to this run."""
        _, self.sequence, self.step, kind, self.offset, self.time, data = event
        meaning = MEANINGS.get(kind)
        if meaning is None:
            self._noted(kind, data)
        else:
            meaning(self, data)

    def _noted(self, kind: EventType, data: FrozenDict) -> None:
        """A layer's own note, kept so that it is found again. What it says it cost counts."""
        usage = data.get("usage")
        if isinstance(usage, dict) and set(usage) == set(Usage.__slots__):
            self.usage += Usage(**usage)
        self._notes[kind].append(data)
        self.named.update({(kind, data[name]): data for name in NAMED_BY if name in data})

    def _stopped(self, data: FrozenDict) -> None:
        failed = data["reason"] == StopReason.ERROR
        if failed and "usage" in data:  # Elsewhere a layer may have a "usage" of its own.
            self.usage += Usage(**data["usage"])
        self.stop, self.status = data, Status.FAILED if failed else Status.STOPPED
        self.answer, self.is_cancelled = None, False
        self.retries.clear()

    def _paused(self, data: FrozenDict) -> None:
        self.status, self.pause, self.answer = Status.PAUSED, data, None

    def _resumed(self, data: FrozenDict) -> None:
        self.status, self.stop, self.pause, self.error = Status.RUNNING, None, None, None
        self.observed.clear()

    def _told(self, data: FrozenDict) -> None:
        """The user, or the harness in the user's place, said something."""
        match data.get("because"):
            case None:
                self.rejections = 0
            case "rejected":
                self.rejections += 1
        if self.sequence == 1:
            self.goal, self.born = data["content"], self.time
        self.history.add(data)
        self.pending, self.status = None, Status.RUNNING
        self.retries.clear()

    def _proposed(self, data: FrozenDict) -> None:
        self.observed.clear()
        self.attempts.clear()
        if self.failed or self.retries:
            self.failed.clear()
            self.retries.clear()
        if "usage" in data:
            self.usage += Usage(**data["usage"])
        if "calls" in data:
            self.pending = tuple(map(ToolCall.from_wire, data["calls"]))
            self.calls += len(self.pending)
            self.history.add_calls(self.pending, data)
        elif "final" in data:
            thought, note, raw = (data.get(name) for name in ("thought", "note", "raw"))
            self.pending = Final(data["content"], thought, note=note, raw=raw)
            self.history.add(data)

    def _concluded(self, data: FrozenDict) -> None:
        self.pending, self.output, self.status = None, data["output"], Status.COMPLETED
        self.is_cancelled = False

    def _started(self, data: FrozenDict) -> None:
        call_id = data["call_id"]
        self.begun += 1
        self.attempts[call_id] = self.attempts.get(call_id, 0) + 1
        self.in_doubt[call_id] = data["arguments"]
        self.failed.pop(call_id, None)
        self.retries.pop(call_id, None)
        if call_id not in self.history.open:
            self.history.reopen(call_id)
            self.pending = tuple(self.history.open.values())

    def _ended(self, data: FrozenDict) -> None:
        """An attempt ended. If the failure was transient, that isn't the call's last word."""
        call_id = data["call_id"]
        self.in_doubt.pop(call_id, None)
        if "transient" in data:
            self.failed[call_id] = data
            return
        self.failed.pop(call_id, None)
        self.history.add_observation(data)
        self.pending = tuple(self.history.open.values()) or None

    def _retried(self, data: FrozenDict) -> None:
        """A call will run again, whatever it did before; or the model is asked again."""
        call_id = data.get("call_id") or ""
        self.in_doubt.pop(call_id, None)
        self.retries[call_id] = data
        self._noted(EventType.RETRY, data)


MEANINGS: dict[EventType, Callable[[Run, FrozenDict], None]] = {
    EventType.MESSAGE: Run._told,
    EventType.MODEL_DECISION: Run._proposed,
    EventType.TOOL_START: Run._started,
    EventType.TOOL_RESULT: Run._ended,
    EventType.TOOL_ERROR: Run._ended,
    EventType.FINAL: Run._concluded,
    EventType.STOP: Run._stopped,
    EventType.PAUSE: Run._paused,
    EventType.RESUME: Run._resumed,
    EventType.RETRY: Run._retried,
}
"""What an event does to a run. The others are kept in its notes."""
