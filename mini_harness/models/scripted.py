"""Models that need no network: their turns are written down beforehand."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any

from mini_harness.clock import Clock
from mini_harness.models.base import ModelError
from mini_harness.protocol import Message
from mini_harness.tools.base import ToolSchema


class ScriptEnded(ModelError):
    """The harness asked for one more turn than the script has."""


class ScriptedModel:
    """Plays a list of turns, one each time it is asked.

    A turn is whatever a model may return, an exception (which is raised), or a function of
    ``(history, tools)`` that gives one of these. With a ``clock``, each turn takes ``latency``
    seconds of its time. Only then, and for an async function, is there something to await.

    ``asked`` turns have been played already. A script doesn't outlive its process: for a run that
    goes on in another one give ``asked=run.step``.
    """

    def __init__(
        self,
        turns: Iterable[Any],
        *,
        clock: Clock | None = None,
        latency: float = 0.0,
        asked: int = 0,
    ) -> None:
        if isinstance(turns, str | Mapping):
            raise TypeError("Give the turns as a list, even if there is only one.")
        self.turns = list(turns)
        self.asked = asked
        self.clock = clock
        self.latency = latency

    def decide(self, history: Sequence[Message], tools: Sequence[ToolSchema]) -> Any:
        if self.asked >= len(self.turns):
            raise ScriptEnded(
                f"All {len(self.turns)} turns of the script are played, and one more was asked "
                "for. End a script with a final answer, and make a new model for each run."
            )
        turn = self.turns[self.asked]
        self.asked += 1
        if self.clock is not None:
            return _later(self.clock.sleep(self.latency), turn, history, tools)
        said = turn(history, tools) if callable(turn) else turn
        return _awaited(said) if inspect.isawaitable(said) else _told(said)


async def _later(pause: Awaitable[None], turn: Any, history: Any, tools: Any) -> Any:
    await pause
    said = turn(history, tools) if callable(turn) else turn
    return await _awaited(said) if inspect.isawaitable(said) else _told(said)


async def _awaited(said: Awaitable[Any]) -> Any:
    return _told(await said)


def _told(turn: Any) -> Any:
    if isinstance(turn, BaseException):
        raise turn
    return turn


class DemoModel:
    """The smallest model there is: it looks a build up, then says what it saw (SEEDS A06)."""

    def decide(self, history: Sequence[Message], tools: Sequence[ToolSchema]) -> dict[str, Any]:
        last = history[-1]
        if last["role"] != "tool":
            arguments = {"build_id": "build-102"}
            return {"type": "tool", "name": "read_build", "arguments": arguments}
        return {"type": "final", "output": f"The build status is: {last['tool_result']}"}
