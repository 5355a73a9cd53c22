"""The record remembers: everything that happens to a run goes through here, once, in order.

An event is given to the first sink, then applied to the run, then given to the other sinks. A run
is therefore never ahead of what it is read back from, nor behind it: give the sink that keeps the
record first. What a sink raises goes up to the caller untouched. Secrets are taken out before any
sink; what is read back from a record can therefore hold a mask, and a call that does never runs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import asdict
from functools import lru_cache
from itertools import count
from types import MethodType
from typing import Any

from mini_harness.clock import Clock
from mini_harness.events import Event, EventType, Holder, Sink
from mini_harness.frozen import FrozenDict, FrozenList, freeze, shown
from mini_harness.layer import Feedback, Interrupt, Pause, Proposal, Stop
from mini_harness.protocol import Final, Observation, Outcome, ToolCall, Turn, UnknownDecision
from mini_harness.redact import Redactor
from mini_harness.run import MEANINGS, Run, Status, StopReason
from mini_harness.tools.base import TransientError, wait_asked_by
from mini_harness.tools.call import Call

# Reading a member of an enum costs 0.2 µs on Python 3.11; these are read at every step.
_MODEL_DECISION, _TOOL_START = EventType.MODEL_DECISION, EventType.TOOL_START
_TOOL_RESULT, _TOOL_ERROR = EventType.TOOL_RESULT, EventType.TOOL_ERROR
_OK = Outcome.OK
_ACTED_ON = frozenset((_MODEL_DECISION, _TOOL_START, EventType.MESSAGE, EventType.PAUSE))
"""The run needs these as they are. The sinks never see a secret in them, nor anywhere else."""
_new = tuple.__new__


class Attempt:
    """One try of a call that has a limit. Once it is over, what still comes of it is late."""

    __slots__ = ("call_id", "is_over", "run")

    def __init__(self, run: Run, call_id: str) -> None:
        self.run, self.call_id, self.is_over = run, call_id, False

    def concerns(self, run: Run, call_id: str) -> bool:
        """No, if a run inside the call records something."""
        return run is self.run and call_id == self.call_id


current_attempt: ContextVar[Attempt | None] = ContextVar("current_attempt", default=None)
"""Within which attempt this code runs, if that has a limit."""

running_call: ContextVar[tuple[Run, str] | None] = ContextVar("running_call", default=None)
"""The call that was started last in this context. A run that begins while it is being driven
belongs to it."""


class Record:
    """Writes what happens to the sinks, and lets it happen to the run."""

    def __init__(self, sinks: Iterable[Sink], clock: Clock) -> None:
        """Raises TypeError for what can't record: also for a lone sink that is in no list."""
        self.sinks = _checked(sinks)
        self._keep, *self._others = map(_called, self.sinks or (_nobody,))
        holders: Iterable[object] = self.sinks
        self._holders = [sink for sink in holders if isinstance(sink, Holder)]
        self.clock = clock
        self._monotonic, self._time = clock.monotonic, clock.time
        self.redactor = Redactor()
        self._plain: FrozenDict | None = None

    def note(self, run: Run, type: EventType, **data: Any) -> None:
        """Record something of a layer's own. ``data`` is frozen here.

        Raises NotJson, and ValueError for the types by which the loop itself changes a run.
        """
        if type in MEANINGS and type is not EventType.RETRY:
            raise ValueError(f"{type} is what the loop records. A layer can't note it.")
        if run.harness is None:
            self._begin(run)
        self._write(run, type, freeze(data), run.step)

    def message(self, run: Run, content: str) -> None:
        """The user speaks. Calls that still wait are not run any more."""
        self._close(run)
        if run.harness is None:
            self._begin(run)
        data = FrozenDict(role="user", content=str(content))
        if run.sequence == 0 and (around := running_call.get()) and around[0].harness is not None:
            data = FrozenDict(data, within=f"{around[0].id}:{around[1]}")
        self._write(run, EventType.MESSAGE, data, run.step)

    def resume(self, run: Run) -> None:
        """Take up a run that isn't completed. Time that passed in between isn't counted."""
        self._begin(run)
        self.redactor.look_around()
        if run.status in (Status.PAUSED, Status.STOPPED, Status.FAILED):
            self._write(run, EventType.RESUME, FrozenDict(), run.step)

    def decision(self, run: Run, turn: Proposal) -> None:
        """The model's turn, as the harness takes it: with an id for every call."""
        plain = False
        if isinstance(turn, Turn) and (proposed := turn.calls):
            numbers = count(run.calls + 1)
            run.history.admit(proposed, lambda tool: _prefix(tool, run.born) + str(next(numbers)))
            calls = FrozenList(map(ToolCall.to_wire, proposed))
            data = FrozenDict(role="assistant", content=turn.thought, calls=calls)
            plain = turn.thought is None and self.redactor.is_plain(proposed)
            self._plain = proposed[0].arguments if plain else None
        elif isinstance(turn, Final):
            data = FrozenDict(role="assistant", content=freeze(turn.output), final=True)
        elif isinstance(turn, UnknownDecision):
            data = FrozenDict(decision=turn.said, unknown=turn.reason)
        else:
            raise TypeError(f"For a decision, a layer returned {shown(turn):.200}.")
        if turn.usage is not None or not isinstance(turn, Turn) or turn.raw is not None:
            data, plain = FrozenDict(data, **_beside(turn)), False
        self._write(run, _MODEL_DECISION, data, run.step + 1, plain)
        if isinstance(turn, UnknownDecision):
            self._speak_for_user(run, _explain(turn), "unknown_decision")

    def start(self, run: Run, call: Call) -> None:
        """A tool is about to run. Raises Stop if the run was cancelled, and RuntimeError."""
        call_id = call.call_id
        if run.is_cancelled:
            raise Stop(StopReason.CANCELLED)
        if current_attempt.get() is not None and _is_over(run, call_id):
            raise RuntimeError(f"Call {call_id} would begin after its time was over.")
        if run.answer is not None and run.has_answer(call_id):
            raise RuntimeError(
                f"{run.id} was answered, and no policy of this harness took the answer. "
                "Resume it with the layers with which it was paused."
            )
        running_call.set((run, call_id))
        attempt = run.attempts.get(call_id, 0) + 1
        arguments, tool, rule = call.arguments, call.tool.name, call.allowed_by
        data = (
            FrozenDict(tool=tool, arguments=arguments, call_id=call_id, attempt=attempt, rule=rule)
            if rule
            else FrozenDict(tool=tool, arguments=arguments, call_id=call_id, attempt=attempt)
        )
        self._write(run, _TOOL_START, data, run.step, arguments is self._plain)

    def end(self, run: Run, call: Call, seen: Observation) -> None:
        """An attempt ended.

        A transient failure leaves the call open, if it may be repeated. An end that comes when
        the call has its observation already, or its time was over, is only noted.
        """
        is_over = current_attempt.get() is not None and _is_over(run, call.call_id)
        if is_over or call.call_id not in run.history.open:
            return self.late(run, seen)
        error = seen.error
        if error is not None and isinstance(error, TransientError) and call.repeatable:
            return self._observe(run, seen, "transient")
        return self._observe(run, seen)

    def late(self, run: Run, seen: Observation) -> None:
        """Somebody brings a result for which nobody waits any more. It changes nothing."""
        driver = run.harness
        if driver is not None and driver.record is not self:
            return driver.record.late(run, seen)
        if driver is None:
            self._begin(run)
        return self._write(run, EventType.LATE_RESULT, _message(seen), run.step)

    def observation(self, run: Run, call: ToolCall, seen: Observation) -> None:
        """What the model is told about a call. Written only if its end doesn't say it already."""
        if seen is not None and run.observed.get(call.call_id) is seen:
            return
        fits = isinstance(seen, Observation) and isinstance(seen.output, str)
        if not fits or seen.call_id != call.call_id:
            raise TypeError(f"For call {call.call_id}, a layer returned {shown(seen):.200}.")
        is_first = call.call_id in run.history.open and call.call_id not in run.failed
        self._observe(run, seen, "" if is_first else "replaces")

    def answer(self, run: Run, answer: Any) -> None:
        """The final answer was accepted, or goes back with a reason."""
        if isinstance(answer, Feedback):
            self._speak_for_user(run, answer.reason, "rejected")
        else:
            self._write(run, EventType.FINAL, FrozenDict(output=freeze(answer)), run.step)

    def interrupt(self, run: Run, interrupt: Interrupt) -> None:
        """Obey: pause, or close what is open and stop."""
        if isinstance(interrupt, Pause):
            return self._write(run, EventType.PAUSE, freeze(interrupt.details), run.step)
        if not isinstance(interrupt, Stop):
            raise interrupt
        self._close(run)
        error = {} if interrupt.error is None else {"error": shown(interrupt.error)}
        why = freeze({"reason": interrupt.reason, **error, **interrupt.numbers})
        self._write(run, EventType.STOP, why, run.step)
        run.error = interrupt.error
        return None

    def left(self, run: Run) -> None:
        """Nobody drives the run any more."""
        for sink in self._holders:
            sink.let_go(run.id)

    def _close(self, run: Run) -> None:
        """Give every call that still waits its observation."""
        for call in tuple(run.history.open.values()):
            mark = "replaces" if call.call_id in run.failed else ""
            self._observe(run, _left_over(run, call), mark)

    def _speak_for_user(self, run: Run, content: str, because: str) -> None:
        data = FrozenDict(role="user", content=str(content), because=because)
        self._write(run, EventType.MESSAGE, data, run.step)

    def _observe(self, run: Run, seen: Observation, mark: str = "") -> None:
        data, outcome = _message(seen), seen.outcome
        if mark:
            data = FrozenDict(data, **{mark: True})
        wait = None if seen.error is None else wait_asked_by(seen.error)
        if mark == "transient" and wait is not None:
            data = FrozenDict(data, retry_after=wait)
        if outcome is _OK:
            plain = not seen.metadata and seen.output in self.redactor.harmless
            self._write(run, _TOOL_RESULT, data, run.step, plain)
        else:
            self._write(run, _TOOL_ERROR, data, run.step)
        if mark != "transient":
            run.observed[seen.call_id] = seen

    def _write(
        self, run: Run, type: EventType, data: FrozenDict, step: int, plain: bool = False
    ) -> None:
        """``plain`` says that the caller has looked for secrets already."""
        offset = self._monotonic() - run.origin
        shown = data if plain else self.redactor.hidden(data)
        event = _new(Event, (run.id, run.sequence + 1, step, type, offset, self._time(), shown))
        self._keep(event)
        run.apply(event if shown is data else event._replace(data=self._for_run(type, data)))
        if self._others:
            for sink in self._others:
                sink(event)

    def _for_run(self, type: EventType, data: FrozenDict) -> FrozenDict:
        """What the run itself gets of an event that holds a secret."""
        if type in _ACTED_ON:
            return data
        known: FrozenDict = (
            self.redactor.for_answer(data)
            if type is EventType.FINAL
            else self.redactor.for_people(data)
        )
        return known

    def _begin(self, run: Run) -> None:
        """Go on from the last event on this clock: the time since then isn't counted."""
        run.origin = self._monotonic() - run.offset


def _is_over(run: Run, call_id: str) -> bool:
    attempt = current_attempt.get()
    return attempt is not None and attempt.is_over and attempt.concerns(run, call_id)


def _nobody(event: Event) -> None:
    """Keeps the record where there is no sink."""


def _checked(sinks: Iterable[Sink]) -> tuple[Sink, ...]:
    if not isinstance(sinks, Iterable):
        raise TypeError(f"Give the sinks as a list: [{sinks!r}].")
    for sink in (found := tuple(sinks)):
        if not callable(sink):
            raise TypeError(f"{sink!r} isn't a sink: it can't be called with an event.")
        if inspect.iscoroutinefunction(sink):
            raise TypeError(f"{sink!r} is async, and nobody would wait for it.")
    return found


def _called(sink: Sink) -> Sink:
    """What a call of the sink comes to. To look it up anew for every event takes time."""
    called = getattr(sink, "__call__", None)  # noqa: B004 - wanted, not only tested for
    return called if isinstance(called, MethodType) else sink


@lru_cache(maxsize=1024)
def _prefix(tool: str, born: float) -> str:
    """What an id begins with; the number of the call in its run follows (SEEDS C21).

    It is unique in its run, safe as a file name, and the same in a run that is resumed elsewhere.
    """
    return f"call_{re.sub(r'[^A-Za-z0-9_]', '_', tool[:24])}_{int(born * 1e9)}_"


def _message(seen: Observation) -> FrozenDict:
    """The data of an end: the very message that the model gets to see."""
    call_id, tool, output, outcome, _error, metadata = seen
    failed = outcome is not _OK
    data = FrozenDict(role="tool", tool=tool, tool_result=output, call_id=call_id, is_error=failed)
    return FrozenDict(data, **_details(seen)) if failed or metadata else data


def _details(seen: Observation) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if seen.metadata:
        details["metadata"] = freeze(seen.metadata)
    if seen.is_error:
        details["outcome"] = seen.outcome.value
    if seen.error is not None:
        details["error"] = shown(seen.error)
    return details


def _beside(turn: Proposal) -> dict[str, Any]:
    """What came with a turn, as far as there is any."""
    beside: dict[str, Any] = {}
    if turn.usage is not None:
        beside["usage"] = FrozenDict(asdict(turn.usage))
    if isinstance(turn, UnknownDecision):
        return beside
    if turn.raw is not None:
        beside["raw"] = freeze(turn.raw)
    if isinstance(turn, Final):
        beside |= {k: v for k, v in (("note", turn.note), ("thought", turn.thought)) if v}
    return beside


def _left_over(run: Run, call: ToolCall) -> Observation:
    if call.call_id in run.in_doubt:
        text = "The run was interrupted while this call was running. Its outcome is unknown."
        return Observation(call.call_id, call.name, text, Outcome.UNKNOWN)
    if call.call_id in run.attempts:
        text = "It failed, and the run was interrupted before it was tried again."
        return Observation(call.call_id, call.name, text, Outcome.ERROR)
    text = "Not run: the run was interrupted before this call."
    return Observation(call.call_id, call.name, text, Outcome.NOT_RUN)


def _explain(turn: UnknownDecision) -> str:
    return (
        f"{turn}: {turn.said} ({turn.reason}). Answer with exactly one of "
        '{"type": "tool", "name": ..., "arguments": {...}} or {"type": "final", "output": ...}.'
    )
