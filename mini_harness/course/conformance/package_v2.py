"""The package's retry and budget behind the functions that a learner writes in v2."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any

from mini_harness.budget import Budget, BudgetExceeded, _Account
from mini_harness.clock import VirtualClock
from mini_harness.layer import Stop
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Observation, Outcome
from mini_harness.retry import Retry
from mini_harness.run import Run
from mini_harness.tools.base import Tool
from mini_harness.tools.function import FunctionTool, function_tool

Sleep = Callable[[float], None]


class OutcomeUnknown(RuntimeError):
    """As a learner calls it."""


class BudgetSpent(RuntimeError):
    """As a learner calls it."""

    def __init__(self, used: float, limit: float) -> None:
        super().__init__(f"budget spent: {used:g} of {limit:g} calls")
        self.used, self.limit = used, limit


class _Sleeping(VirtualClock):
    """Tells somebody how long it sleeps, who can say that it is enough."""

    def __init__(self, sleep: Sleep) -> None:
        super().__init__()
        self._tell = sleep

    async def sleep(self, seconds: float) -> None:
        self._tell(seconds)
        await super().sleep(seconds)


def retry(
    attempt: Callable[[Any], Any], key: Any, repeatable: bool, sleep: Sleep, attempts: int = 3
) -> Any:
    tool = function_tool(
        lambda: attempt(key), name="attempt", description="For a check.", idempotent=repeatable
    )
    model = ScriptedModel([{"type": "tool", "name": "attempt", "arguments": {}}])
    layers = [Retry(attempts, jitter=0)]
    run = Harness(model, [tool], layers=layers, clock=_Sleeping(sleep)).run_sync("Try.")
    seen: Observation = next(iter(run.observed.values()))
    if seen.outcome is Outcome.UNKNOWN:
        raise OutcomeUnknown(seen.output) from seen.error
    if seen.error is not None:
        raise seen.error
    return seen.output


def limited(tools: Mapping[str, Tool], max_calls: float | None) -> dict[str, Tool]:
    account = _Account(Budget(tool_calls=max_calls), Run("run"))  # type: ignore[arg-type]

    def around(tool: Tool) -> Tool:
        @wraps(tool.handler)
        def handler(**arguments: Any) -> Any:
            try:
                account.check_tool_call()
            except Stop as stop:
                raise _spent(stop.error) from None
            account.tool_calls += 1
            return tool.handler(**arguments)

        return dataclasses.replace(tool, handler=handler)

    return {name: around(tool) for name, tool in tools.items()}


def _spent(error: BaseException | None) -> BudgetSpent:
    assert isinstance(error, BudgetExceeded)
    return BudgetSpent(error.used, error.limit)


def survive(
    model: Any,
    tools: Mapping[str, Tool],
    goal: str,
    repeatable: Collection[str],
    sleep: Sleep,
    max_calls: float | None = None,
) -> Any:
    own = [_declared(tool, tool.name in repeatable) for tool in tools.values()]
    layers = [Retry(jitter=0), Budget(tool_calls=max_calls)]  # type: ignore[arg-type]
    run = Harness(model, own, layers=layers, clock=_Sleeping(sleep)).run_sync(goal)
    if isinstance(run.error, BudgetExceeded):
        raise _spent(run.error)
    return run.unwrap()


def _declared(tool: Tool, idempotent: bool) -> FunctionTool:
    about = {"name": tool.name, "description": tool.description}
    return function_tool(tool.handler, **about, idempotent=idempotent)
