"""Try again what failed in a way that passes, and never what might then happen twice.

Whether a failure may pass is declared by whoever raises it: a tool raises ``TransientError``, and
the class of a model's error says ``transient = True``. Whatever else is raised is permanent.
Whether a call may be repeated is declared too: it only reads, or its tool is idempotent. Nothing is
guessed from texts or names.
"""

from __future__ import annotations

import asyncio
import math
import random
from functools import partial
from typing import Any, Protocol, runtime_checkable

from mini_harness.events import EventType
from mini_harness.frozen import FrozenDict, shown
from mini_harness.layer import Act, Decide, Failed, Layer, Proposal, Stop, View
from mini_harness.models.base import ModelError
from mini_harness.protocol import Message, Observation, Outcome
from mini_harness.run import Run, StopReason
from mini_harness.tools.base import TransientError, wait_asked_by
from mini_harness.tools.call import IN_DOUBT, Call, let_cancellation_pass

_MODEL = ""
"""The model's key among the retries of a run."""
_NONE = FrozenDict()
_DOUBLINGS = 60
"""More of them than any cap allows, and few enough for a float."""


@runtime_checkable
class LimitsTime(Protocol):
    """A layer that knows when a run has to be over, such as Budget."""

    def seconds_left(self, run: Run) -> float | None:
        """How long the run may still take, or None if nobody limits that."""


class Retry(Layer):
    """Tries a tool call or a model turn up to ``attempts`` times in total (SEEDS A20, A22, B26).

    Before attempt n + 1 it waits ``base`` * 2^(n - 1) seconds, at most ``cap``, and a share between
    0 and ``jitter`` of that on top. The share follows from ``seed``, the run, the call and the
    attempt: two runs don't come back at the same moment, and a rerun, or a run that is taken up
    after a crash, waits as long as it would have. A longer ``retry_after`` of the error is obeyed.
    But if that is longer than ``cap``, or if no time would be left after the wait, there is none,
    and the failure is final. All of it is in seconds of the harness's clock.

    A call is repeated only if that does no harm, and then under the same idempotency key. Any other
    one that fails in a passing way has the outcome UNKNOWN. A model turn that failed may have
    reached the service and cost money all the same; what its error says it cost is counted.

    Put it inside the policy, so that one approval is for all attempts, and outside of what limits
    a single attempt.
    """

    def __init__(
        self,
        attempts: int = 3,
        *,
        base: float = 1.0,
        cap: float = 30.0,
        jitter: float = 0.25,
        seed: int = 0,
    ) -> None:
        """Raises TypeError for what isn't a number, and ValueError for less than one attempt and
        for seconds or shares that are negative, NaN or infinite."""
        if not isinstance(attempts, int) or isinstance(attempts, bool):
            raise TypeError(f"attempts must be an integer, but it is {attempts!r}.")
        if attempts < 1:
            raise ValueError(f"attempts is {attempts}, but must be at least 1.")
        for name, value in (("base", base), ("cap", cap), ("jitter", jitter)):
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise TypeError(f"{name} must be a number, but it is {value!r}.")
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} is {value}, but must be 0 or more, and finite.")
        self.attempts, self.base, self.cap = attempts, base, cap
        self.jitter, self.seed = jitter, seed

    async def decide(self, run: Run, view: View, next: Decide) -> Proposal:
        await self._wait(run, _MODEL)  # If it was interrupted while it waited.
        while True:
            try:
                return await next(run, view)
            except Failed as failed:
                error = failed.error
                if error is None or not _may_pass(error):
                    raise
                attempt = run.retries.get(_MODEL, _NONE).get("attempt", 0) + 1
                wait, final = self._plan(run, _MODEL, attempt, wait_asked_by(error))
                if final:
                    failed.numbers |= {"attempts": attempt, "because": final}
                    raise
                spent = {k: v for k, v in failed.numbers.items() if k == "usage"}
                _note(run, _MODEL, attempt, wait, because=shown(error), **spent)
            await self._wait(run, _MODEL)

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        call_id, call.is_retried = call.call_id, True
        before = attempt = run.attempts.get(call_id, 0)
        if (failure := run.failed.get(call_id)) is not None:
            # The run was interrupted after this attempt had failed. It is judged now.
            seen = _told_by(failure)
        else:
            attempt += 1
            seen = await next(run, call)
        while isinstance(seen.error, TransientError):
            if not call.repeatable:
                has_begun = run.attempts.get(call_id, 0) > before
                return _in_doubt(seen) if has_begun else seen
            wait, final = self._plan(run, call_id, attempt, wait_asked_by(seen.error))
            if final:
                return seen.replaced(output=f"{seen.output}\n{final}")
            if run.retries.get(call_id, _NONE).get("attempt") != attempt:
                _note(run, call_id, attempt, wait, tool=call.name, because=shown(seen.error))
            await self._wait(run, call_id)
            attempt += 1
            seen = await next(run, call)
        return seen

    def _plan(self, run: Run, key: str, attempt: int, asked_for: float | None) -> tuple[float, str]:
        """How long to wait after this attempt; or why there is no other one."""
        if attempt >= self.attempts:
            return 0.0, f"It was tried {attempt} {'time' if attempt == 1 else 'times'}."
        wait = max(self.back_off(run, key, attempt), asked_for or 0.0)
        if asked_for is not None and asked_for > self.cap:
            why = f"a wait of {asked_for:g} seconds is asked for, and {self.cap:g} is the longest"
            return wait, f"It wasn't tried again: {why}."
        left = _seconds_left(run)
        if left is not None and wait >= left:
            why = f"the wait would take {wait:g} seconds, and the run has {left:g} left"
            return wait, f"It wasn't tried again: {why}."
        return wait, ""

    def back_off(self, run: Run, key: str, attempt: int) -> float:
        """Seconds to wait after this attempt at a call, or with the key "" at a model turn.

        To the millisecond.
        """
        share = random.Random(f"{self.seed}:{run.id}:{key or run.step}:{attempt}").random()
        doubled = self.base * 2.0 ** min(attempt - 1, _DOUBLINGS)
        return round(min(self.cap, doubled) * (1 + self.jitter * share), 3)

    async def _wait(self, run: Run, key: str) -> None:
        """Wait as the last retry says, if its attempt hasn't begun. Raises Stop."""
        seconds = run.retries.get(key, _NONE).get("seconds")
        if seconds is None:
            return
        loop, nap = (
            asyncio.get_running_loop(),
            asyncio.ensure_future(run.driver.clock.sleep(seconds)),
        )
        wake = partial(loop.call_soon_threadsafe, nap.cancel)
        run.when_cancelled.add(wake)
        try:
            if not run.is_cancelled:
                await nap
        except asyncio.CancelledError as error:
            let_cancellation_pass(error)
        finally:
            run.when_cancelled.discard(wake)
            nap.cancel()
        if run.is_cancelled:
            raise Stop(StopReason.CANCELLED)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, TransientError) or (
        isinstance(error, ModelError) and error.transient is True
    )


def _seconds_left(run: Run) -> float | None:
    limits = [
        layer.seconds_left(run) for layer in run.driver.layers if isinstance(layer, LimitsTime)
    ]
    return min((left for left in limits if left is not None), default=None)


def _note(run: Run, key: str, attempt: int, seconds: float, **data: Any) -> None:
    about = {"call_id": key or None, "attempt": attempt, "seconds": seconds}
    run.driver.record.note(run, EventType.RETRY, **about, **data)


class _Recorded(TransientError):
    """What the record tells of an error that was raised before the run was taken up again."""

    def __repr__(self) -> str:
        return str(self)


def _told_by(failure: Message) -> Observation:
    error = _Recorded(failure["error"], retry_after=failure.get("retry_after"))
    text, outcome = failure["tool_result"], Outcome(failure["outcome"])
    about = failure["call_id"], failure["tool"]
    return Observation(*about, text, outcome, error, failure.get("metadata", FrozenDict()))


def _in_doubt(seen: Observation) -> Observation:
    if seen.outcome is Outcome.UNKNOWN:
        return seen
    return seen.replaced(output=f"{seen.output}\n{IN_DOUBT}", outcome=Outcome.UNKNOWN)
