"""Every tool call has a limit in seconds, and what comes after it is late (SEEDS A21).

At the limit the call is cancelled, and its end is waited for: processes have to be ended, files to
be closed. What doesn't end is abandoned. A thread can't be ended at all. Nothing that comes of such
a call any more is taken for its result; it is only recorded.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, ClassVar

from mini_harness.layer import Act, Decide, Failed, Layer, Proposal, Stop, View
from mini_harness.models.base import ModelError
from mini_harness.protocol import Observation, Outcome, Usage, usage_of
from mini_harness.record import Attempt, current_attempt
from mini_harness.run import Run, StopReason
from mini_harness.tools.base import TransientError
from mini_harness.tools.call import Call
from mini_harness.tools.function import FunctionTool

GRACE = 8.0
"""Seconds in which what was cancelled must end. The processes of a shell command may take 6."""


class ToolTimedOut(TransientError, TimeoutError):
    """A call took longer than ``limit`` seconds. It has ended, so it may be tried again."""

    def __init__(self, tool: str, limit: float) -> None:
        super().__init__(f"{tool} took longer than {limit:g} seconds")
        self.tool, self.limit = tool, limit


class ToolAbandoned(TimeoutError):
    """A call took longer than ``limit`` seconds, and it is still going on."""

    def __init__(self, tool: str, limit: float) -> None:
        super().__init__(f"{tool} took longer than {limit:g} seconds and goes on")
        self.tool, self.limit = tool, limit


class ModelTimedOut(ModelError):
    """The model took longer than ``limit`` seconds for a turn. ``usage`` is what is known of it."""

    transient: ClassVar[bool] = True

    def __init__(self, limit: float, usage: Usage | None = None) -> None:
        super().__init__(f"The model gave no answer within {limit:g} seconds.")
        self.limit, self.usage = limit, usage


class Timeout(Layer):
    """Ends a tool call after ``seconds``, or after those that ``tools`` has for its name, and a
    turn of the model after ``model`` seconds, if given. Each attempt has the whole limit.

    The observation is TIMED_OUT and says whether the call may have had its effect; its metadata are
    ``limit_seconds``, and ``abandoned`` if it goes on. It is declared transient, so that Retry may
    repeat a call that may be repeated. One that goes on is repeated only if it just reads: no two
    attempts act side by side. A model that is out of time fails with a transient error.

    What a call gives after its limit is recorded as a late result, also if it was cleaning up.
    A function that waits needs ``@tool(blocking=True)``: else nothing else runs, this clock either.
    ``bash`` keeps a limit of its own, in real seconds, and then shows what the command had printed.
    So give it a longer one here than the model may ask for there: ``tools={"bash": 610}``.

    It also obeys ``run.cancel()``. Put it inside Retry and Budget.
    """

    def __init__(
        self,
        seconds: float = 30,
        *,
        tools: Mapping[str, float] = MappingProxyType({}),
        model: float | None = None,
        grace: float = GRACE,
    ) -> None:
        """``grace`` is how many seconds a cancelled call has for its end, on whichever clock these
        pass first: the harness's or the real one.

        Raises TypeError for what isn't a number, and ValueError for one that is no limit (0,
        negative, NaN, infinite).
        """
        self.seconds = _checked("seconds", seconds)
        self.tools = {name: _checked(f"The limit of {name}", each) for name, each in tools.items()}
        self.model = None if model is None else _checked("model", model)
        self.grace = _checked("grace", grace)
        self._ending: set[asyncio.Task[Any]] = set()
        """Cancelled, and not ended yet. An event loop alone wouldn't keep them."""

    async def decide(self, run: Run, view: View, next: Decide) -> Proposal:
        if run.is_cancelled:
            raise Stop(StopReason.CANCELLED)
        if self.model is None:
            return await next(run, view)
        task = asyncio.create_task(next(run, view))
        if await self._in_time(run, task, self.model):
            return task.result()
        await self._end(run, task)
        raise Failed(ModelTimedOut(self.model, _spent(task)))

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        limit = self.tools.get(call.name, self.seconds)
        attempt = Attempt(run, call.call_id)
        token = current_attempt.set(attempt)
        try:
            task = asyncio.create_task(next(run, call))
        finally:
            current_attempt.reset(token)
        try:
            if await self._in_time(run, task, limit):
                return task.result()
        finally:
            attempt.is_over = True
        await self._end(run, task)
        if task.done() and not task.cancelled() and (error := task.exception()):
            raise error  # No tool raises here: it is a layer's, or the record's.
        seen = _timed_out(run, call, limit, goes_on=not task.done() or _has_thread(call))
        run.driver.record.end(run, call, seen)
        return seen

    async def _in_time(self, run: Run, task: asyncio.Task[Any], limit: float) -> bool:
        """Whether the task ended before its limit. If this is cancelled, so is the task."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with run.driver.clock.deadline(limit, over.cancel):
            try:
                await asyncio.wait({task, over}, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError as cancelled:
                with suppress(asyncio.CancelledError):
                    await self._end(run, task)
                ended = task.done() and not task.cancelled()
                raise cancelled from (task.exception() if ended else None)
        return task.done()

    async def _end(self, run: Run, task: asyncio.Task[Any]) -> None:
        """Cancel the task and wait for its end, within the grace.

        If somebody cancels this meanwhile, that goes up afterwards.
        """
        task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        # What it still does may take the time of the harness's clock, or only real time.
        real = loop.call_later(self.grace, over.cancel)
        cancelled = None
        with run.driver.clock.deadline(self.grace, over.cancel):
            while not (task.done() or over.done()):
                try:
                    await asyncio.wait({task, over}, return_when=asyncio.FIRST_COMPLETED)
                except asyncio.CancelledError as error:
                    cancelled = error
        real.cancel()
        if cancelled is not None:
            raise cancelled


def _has_thread(call: Call) -> bool:
    """Whether the call has begun something that no cancellation ends."""
    return isinstance(call.tool, FunctionTool) and call.tool.blocking


def _timed_out(run: Run, call: Call, limit: float, *, goes_on: bool) -> Observation:
    has_begun = call.call_id in run.in_doubt
    goes_on = goes_on and has_begun
    text = f"Tool {call.name} took longer than its limit of {limit:g} seconds"
    text += ", can't be ended and goes on." if goes_on else " and was ended."
    if goes_on:
        text += " What it still gives is dropped."
    if not has_begun:
        text += " It had not begun."
    elif not call.repeatable:
        text += " It may have had its effect."
    elif goes_on and not call.read_only:
        text += " It may still have its effect, so it isn't tried again."
    # Two attempts must not act side by side, even if one after the other they may.
    is_final = goes_on and call.repeatable and not call.read_only
    error = (ToolAbandoned if is_final else ToolTimedOut)(call.name, limit)
    metadata = {"limit_seconds": limit, "abandoned": goes_on}
    return Observation(call.call_id, call.name, text, Outcome.TIMED_OUT, error, metadata)


def _spent(task: asyncio.Task[Proposal]) -> Usage | None:
    """What a turn cost that came too late, if that is known. Raises what isn't the model's."""
    if not task.done() or task.cancelled():
        return None
    try:
        return usage_of(task.result())
    except Failed as failed:
        return usage_of(failed.error)


def _checked(name: str, seconds: float) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"{name} must be a number, but it is {seconds!r}.")
    if not 0 < seconds < math.inf:
        raise ValueError(f"{name} is {seconds}, but must be more than 0, and finite.")
    return seconds
