"""Calls that only read run side by side (SEEDS B24); all others run alone, in their order."""

from __future__ import annotations

import asyncio
from asyncio import gather
from collections.abc import Sequence

from mini_harness.deferred import SEARCH
from mini_harness.layer import Act, Interrupt, Layer, Pause
from mini_harness.loop import Harness
from mini_harness.protocol import Observation, ToolCall
from mini_harness.run import Run
from mini_harness.tools.call import Call, prepare

_Member = tuple[ToolCall, Call]
_TWICE = "ParallelReads is twice in the list of layers. Keep the first."


class ParallelReads(Layer):
    """Runs neighbouring read-only calls of one turn side by side, at most ``limit`` at once.

    Of the calls [r1, r2, w1, r3], where w1 writes: r1 beside r2, then w1, then r3. Each goes
    through every layer inside this one, as if it were alone, and the history shows them in call
    order. When the first of a group comes, all of it runs; the loop gets the observations of the
    others as it comes to them.

    A call that fails changes nothing for the others. When one pauses the run, they come to their
    end first. When one stops it, or recording fails, those that are under way do, and no further
    one begins; a stop counts more than a pause. A person's "always" counts for the calls that
    begin after it, not for those beside it: of three equal calls each is asked about.

    A search for tools ends its group: what it finds, the calls after it may use.

    Put it first: a layer outside would not see the calls that this one starts. It keeps nothing
    between two calls, so harnesses may share it.
    """

    def __init__(self, limit: int = 8) -> None:
        """Raises TypeError for what isn't an integer, and ValueError for less than 1."""
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise TypeError(f"The limit of calls must be an integer, but it is {limit!r}.")
        if limit < 1:
            raise ValueError(f"The limit of calls is {limit}, but must be at least 1.")
        self.limit = limit

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        """Raises ValueError if another layer outside this one judges calls."""
        self._come_first(run.driver)
        seen = run.observed.get(call.call_id)
        if seen is not None and call.call_id not in run.history.open:
            return seen
        group = _group(run, call)
        if len(group) < 2:
            return await next(run, call)
        return await self._all(run, group, next)

    def _come_first(self, harness: Harness) -> None:
        for layer in harness.layers:
            if layer is self:
                break
            if isinstance(layer, ParallelReads):
                raise ValueError(_TWICE)
            if _judges_calls(layer):
                raise ValueError(
                    f"Put ParallelReads before {type(layer).__name__} in the list of layers: "
                    "a layer outside doesn't see the calls that it starts."
                )
        if harness.layers.count(self) > 1:
            raise ValueError(_TWICE)

    async def _all(self, run: Run, group: Sequence[_Member], next: Act) -> Observation:
        """Run the group, record what was observed, and return what was observed of the first."""
        room = asyncio.Semaphore(self.limit)
        seen: dict[str, Observation] = {}
        over = asyncio.Event()

        async def alone(call: Call) -> None:
            async with room:
                if over.is_set():
                    return
                try:
                    seen[call.call_id] = await next(run, call)
                except Pause:
                    raise
                except BaseException:
                    over.set()
                    raise

        errors: list[BaseException] = []
        try:
            # Cancelled, it cancels all of them, and goes on up only when all have ended.
            ended = await gather(*(alone(call) for _, call in group), return_exceptions=True)
            errors += [error for error in ended if error is not None]
        except asyncio.CancelledError as error:
            errors.append(error)
        try:
            _keep(run, group, seen)
        except Exception as error:  # noqa: BLE001 - raised below, unless another came before it
            errors.append(error)
        if errors:
            raise min(errors, key=_urgency)
        return seen[group[0][1].call_id]


def _group(run: Run, first: Call) -> list[_Member]:
    """This call, and the calls after it up to one that doesn't only read.

    Those that can't be prepared are left to the loop, which says why.
    """
    found: list[_Member] = []
    pending = run.pending
    if not isinstance(pending, tuple) or len(pending) < 2:
        return found
    for proposed in pending:
        known = proposed.call_id == first.call_id
        if not (found or known):
            continue
        call = first if known else prepare(run.driver.tools, proposed)
        if not isinstance(call, Call):
            continue
        # Whoever answered may have made another call of it.
        if run.has_answer(call.call_id) or not call.read_only:
            break
        found.append((proposed, call))
        if call.name == SEARCH:
            break
    return found


def _urgency(error: BaseException) -> int:
    """0 comes first. A pause can be taken up again, and what else was raised must not wait for
    that: neither that the record is broken nor a stop."""
    return 2 if isinstance(error, Pause) else 1 if isinstance(error, Interrupt) else 0


def _keep(run: Run, group: Sequence[_Member], seen: dict[str, Observation]) -> None:
    """Record what the layers made of each call, unless its end says it already."""
    for proposed, call in group:
        if call.call_id in seen:
            run.driver.record.observation(run, proposed, seen[call.call_id])


def _judges_calls(layer: Layer) -> bool:
    return getattr(layer.act, "__func__", layer.act) is not Layer.act
