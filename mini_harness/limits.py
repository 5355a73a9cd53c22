"""Two layers that end a run: after too many steps, and at the first error."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from mini_harness.approval import ToolDenied
from mini_harness.layer import Act, Decide, Layer, Proposal, Stop, View
from mini_harness.protocol import Message, Observation, Outcome, UnknownDecision, UnknownTool
from mini_harness.run import Run, StopReason
from mini_harness.tools.call import Call, InvalidArguments


class MaxStepsExceeded(RuntimeError):
    """A run used up its steps without an answer (SEEDS A13)."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"max_steps exceeded: {limit}")
        self.limit = limit


class MaxSteps(Layer):
    """Stop a run that has no answer after ``limit`` turns of the model (SEEDS A12).

    An answer in the last turn counts, and 0 lets nobody ask the model. A stopped run can be resumed
    with a higher limit.
    """

    def __init__(self, limit: int = 8) -> None:
        """Raises TypeError for what isn't an integer, and ValueError for less than 0."""
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise TypeError(f"The limit of steps must be an integer, but it is {limit!r}.")
        if limit < 0:
            raise ValueError(f"The limit of steps is {limit}, but must be at least 0.")
        self.limit = limit

    def decide(self, run: Run, view: View, next: Decide) -> Coroutine[Any, Any, Proposal]:
        # Nothing is waited for here, so it isn't async: what comes next is simply handed on.
        if run.step < self.limit:
            return next(run, view)
        error = MaxStepsExceeded(self.limit)
        raise Stop(StopReason.MAX_STEPS, error, limit=self.limit, used=run.step)


class FailFast(Layer):
    """Stop at the first error instead of showing it to the model.

    ``run.unwrap()`` then raises that very error: ToolDenied, UnknownTool, InvalidArguments, or
    what the tool raised (SEEDS A07, A15, A16); UnknownDecision if the model said something else
    than a decision (A14). A tool that only reports a failure, such as an exit code, raised none.

    It goes by the history, so the error counts also after a pause or in another process. What the
    tool raised there is then a RuntimeError here. A run that it stopped goes on without it only.
    """

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        _stop_at_error(run)
        return await next(run, call)

    async def decide(self, run: Run, view: View, next: Decide) -> Proposal:
        _stop_at_error(run)
        last = run.history.messages[-1]
        if last.get("because") == "unknown_decision":
            raise Stop(StopReason.ERROR, UnknownDecision(last["content"], "told to the model"))
        return await next(run, view)


def _stop_at_error(run: Run) -> None:
    messages = run.history.messages
    at = len(messages)
    while messages[at - 1]["role"] == "tool":
        at -= 1
    for message in messages[at:]:
        if "error" in message:
            refused = message.get("outcome") == Outcome.DENIED
            reason = StopReason.DENIED if refused else StopReason.ERROR
            raise Stop(reason, _error(run, message))


def _error(run: Run, message: Message) -> BaseException:
    """What was raised in this process, or what the record tells of it."""
    seen = run.observed.get(message["call_id"])
    if seen is not None and seen.error is not None:
        return seen.error
    text = message["tool_result"]
    match message.get("outcome"):
        case Outcome.DENIED:
            rule = message.get("metadata", {}).get("rule", "")
            return ToolDenied(message["tool"], rule, text)
        case Outcome.UNKNOWN_TOOL:
            return UnknownTool(message["tool"])
        case Outcome.INVALID_ARGUMENTS:
            return InvalidArguments(text)
        case _:
            return RuntimeError(text)
