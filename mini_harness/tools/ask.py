"""The tool by which a model asks a person."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, TypeAlias

from pydantic import BaseModel, Field, field_validator

from mini_harness.sync import in_own_thread
from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult

Asker: TypeAlias = Callable[[str, tuple[str, ...]], str | Awaitable[str | None] | None]
"""Gets the question and the choices, and gives the answer; None if nobody answered.

One that isn't ``async`` is called in a thread of its own, so that it may wait.
"""


class AskUserInput(BaseModel):
    question: str = Field(min_length=1, max_length=2_000, description="One clear question.")
    choices: list[Annotated[str, Field(max_length=200)]] = Field(
        default=[], max_length=10, description="Answers to choose from; none means any text."
    )

    @field_validator("choices")
    @classmethod
    def _told_apart(cls, choices: list[str]) -> list[str]:
        seen = {choice.strip() for choice in choices}
        if "" in seen or len(seen) < len(choices):
            raise ValueError("no choice may be empty, and no two the same")
        return choices


class AskUser(BaseTool):
    """Ask the person whom the run serves. ``ask`` reaches them; without it nobody can be asked.

    In a notebook, ``views.answer_here`` asks in the running cell. The call changes nothing, so a
    run that was interrupted while a person thought asks again.
    """

    name = "ask_user"
    description = (
        "Ask the user one question, and wait for the answer. "
        "Ask only what you can't find out with the other tools."
    )
    input_model = AskUserInput

    def __init__(self, ask: Asker | None = None) -> None:
        self._ask = ask

    def is_read_only(self, arguments: AskUserInput) -> bool:
        return True

    def paths(self, arguments: AskUserInput) -> tuple[()]:
        return ()

    async def execute(self, arguments: AskUserInput, context: ToolExecutionContext) -> ToolResult:
        """What the asker raises is the tool's failure. Raises TypeError for an answer not text."""
        if self._ask is None:
            return ToolResult(
                "Nobody can be asked here. Go on with what you know, and say what you assumed.",
                is_error=True,
            )
        answer = await _answered(self._ask, arguments.question, tuple(arguments.choices))
        if answer is None:
            return ToolResult("Nobody answered. Go on with what you know.", is_error=True)
        if not isinstance(answer, str):
            raise TypeError(f"The answer must be text, but it is {answer!r:.100}.")
        return ToolResult(answer or "(an empty answer)")


async def _answered(ask: Asker, question: str, choices: tuple[str, ...]) -> str | None:
    answer: str | Awaitable[str | None] | None
    if inspect.iscoroutinefunction(ask):
        answer = ask(question, choices)
    else:
        answer = await in_own_thread(partial(ask, question, choices))
    return await answer if isinstance(answer, Awaitable) else answer
