"""The story of v2: the farm's servers are flaky, and a model that means well makes it worse.

All of it happens on the harness's clock. A server that fails is away for a moment, and says so in
the way that a tool says it: with a TransientError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from mini_harness.course.story import ANSWER, call, final
from mini_harness.tools.base import BaseTool, ToolExecutionContext, TransientError
from mini_harness.tools.function import function_tool

AWAY = "the log server doesn't answer"
BROKEN = "the connection broke before the answer came"
ANSWER_TIME = 0.5
"""Seconds that a server takes for an answer, or to fail."""


class Servers:
    """A log server that fails so often, and a build queue that loses its first answer.

    ``queued`` is what the queue has really taken: every build that runs now, in order.
    """

    def __init__(self, away: int = 2, *, retry_after: float | None = None) -> None:
        self.away, self.retry_after = away, retry_after
        self.queued: list[str] = []
        self._keys: set[str] = set()
        self._answers_lost = 1

    def tools(self) -> list[BaseTool]:
        return [
            function_tool(self.read_log, read_only=True, paths=()),
            function_tool(self.search_logs, read_only=True, paths=()),
            function_tool(self.rerun_build, paths=()),
            function_tool(self.rerun_once, idempotent=True, paths=()),
            function_tool(self.bisect, idempotent=True, paths=()),
        ]

    async def read_log(self, build_id: str, context: ToolExecutionContext) -> str:
        """Read the end of a build's log."""
        await context.clock.sleep(ANSWER_TIME)
        if self.away:
            self.away -= 1
            raise TransientError(AWAY, retry_after=self.retry_after)
        return f"{build_id}: 1 failed, test_an_order_of_exactly_50_euros_is_free"

    async def search_logs(self, text: str, context: ToolExecutionContext) -> str:
        """Search all logs there have ever been. This takes an hour."""
        try:
            await context.clock.sleep(3600)
        except asyncio.CancelledError:
            # Like many a tool that is ended, it closes what it opened, and means to help.
            await context.clock.sleep(ANSWER_TIME)
            return f"{text!r} was found 9 times so far."
        return f"{text!r} was found 3,122 times."

    async def rerun_build(self, build_id: str, context: ToolExecutionContext) -> str:
        """Queue a build again."""
        await context.clock.sleep(ANSWER_TIME)
        return self._queue(build_id)

    async def rerun_once(self, build_id: str, context: ToolExecutionContext) -> str:
        """Queue a build again. Under the same key the queue takes it once."""
        return await self._once(build_id, context)

    async def bisect(self, build_id: str, context: ToolExecutionContext) -> str:
        """Run the forty builds before this one again, to find the change. Costs 40 euros."""
        return await self._once(f"bisect {build_id}", context)

    async def _once(self, what: str, context: ToolExecutionContext) -> str:
        await context.clock.sleep(ANSWER_TIME)
        if context.idempotency_key in self._keys:
            return f"{what} is queued already."
        self._keys.add(context.idempotency_key)
        return self._queue(what)

    def _queue(self, what: str) -> str:
        self.queued.append(what)
        if self._answers_lost:
            self._answers_lost -= 1
            raise TransientError(BROKEN)
        return f"{what} is queued."


def helpful() -> list[Any]:
    """What a model says that wants to help: if a server fails, it queues the build again."""
    return [call("read_log", build_id="build-102"), _rerun, _again, _report]


def reporting(tool: str) -> list[Any]:
    """What one says that calls this tool for build-102, and tells what it heard."""
    return [call(tool, build_id="build-102"), _report]


def confused(times: int = 50) -> list[Any]:
    """What one says that has lost its way: a, b, a, b, and so on."""
    a, b = (call("read_log", build_id=name) for name in ("build-102", "build-101"))
    return [a, b] * (times // 2)


def _rerun(history: Sequence[Mapping[str, Any]], tools: object) -> dict[str, Any]:
    """The turn after the log was asked for."""
    failed = history[-1]["is_error"]
    return call("rerun_build", build_id="build-102") if failed else final(ANSWER)


def _again(history: Sequence[Mapping[str, Any]], tools: object) -> dict[str, Any]:
    """The turn after a rerun: once more, unless it is known to be queued or warned."""
    seen = history[-1]
    if seen["is_error"] and "unknown" not in seen["tool_result"]:
        return call("rerun_build", build_id="build-102")
    return _report(history, tools)


def _report(history: Sequence[Mapping[str, Any]], tools: object) -> dict[str, Any]:
    """The last turn: what came of the last call."""
    return final(f"I was told: {history[-1]['tool_result']}")
