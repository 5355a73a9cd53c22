"""The tool by which a model asks a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pydantic import BaseModel, Field

from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult

Asker: TypeAlias = Callable[[str, tuple[str, ...]], str | Awaitable[str | None] | None]
"""Gets the question and the choices, and gives the answer; None if nobody answered."""


class AskUserInput(BaseModel):
    question: str = Field(min_length=1, max_length=2_000, description="One clear question.")
    choices: list[str] = Field(
        default=[], max_length=10, description="Answers to choose from; none means any text."
    )


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
        answer = self._ask(arguments.question, tuple(arguments.choices))
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer is None:
            return ToolResult("Nobody answered. Go on with what you know.", is_error=True)
        if not isinstance(answer, str):
            raise TypeError(f"The answer must be text, but it is {answer!r:.100}.")
        return ToolResult(answer or "(an empty answer)")
