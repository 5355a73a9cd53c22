"""ask_user reaches a person, or says that nobody is there."""

import asyncio
import threading
from typing import Any

import pytest
from pydantic import ValidationError

from mini_harness import AskUser, Harness, Policy, ScriptedModel
from mini_harness.tools.ask import Asker, AskUserInput
from mini_harness.tools.base import ToolExecutionContext, ToolResult


def ask(asker: Asker | None, question: str = "Which build?", *choices: str) -> ToolResult:
    arguments = AskUserInput(question=question, choices=list(choices))
    return asyncio.run(AskUser(asker).execute(arguments, ToolExecutionContext()))


def test_the_asker_gets_question_and_choices_and_its_answer_is_the_output() -> None:
    """B03"""
    heard: list[Any] = []

    def answer(question: str, choices: tuple[str, ...]) -> str:
        heard.append((question, choices))
        return "build-102"

    assert ask(answer, "Which build?", "build-101", "build-102").output == "build-102"
    assert heard == [("Which build?", ("build-101", "build-102"))]


def test_an_asker_may_be_async() -> None:
    async def answer(question: str, choices: tuple[str, ...]) -> str:
        await asyncio.sleep(0)
        return "later"

    assert ask(answer).output == "later"


def test_an_asker_that_waits_keeps_nobody_else_waiting() -> None:
    """B03"""
    moved = threading.Event()

    def answer(*_: Any) -> str:
        return "waited for the loop" if moved.wait(5) else "the loop stood still"

    async def both() -> ToolResult:
        asking = asyncio.create_task(
            AskUser(answer).execute(AskUserInput(question="?"), ToolExecutionContext())
        )
        await asyncio.sleep(0)
        moved.set()
        return await asking

    assert asyncio.run(both()).output == "waited for the loop"


def test_an_asker_may_give_something_to_await() -> None:
    async def later() -> str:
        return "later"

    assert ask(lambda *_: later()).output == "later"


def test_without_an_asker_the_model_is_told_that_nobody_is_there() -> None:
    result = ask(None)
    assert result.is_error
    assert result.output.startswith("Nobody can be asked here.")


def test_no_answer_is_an_error_and_an_empty_one_is_an_answer() -> None:
    """DESIGN, rule 1: test `is None`, never truthiness"""
    assert ask(lambda *_: None).is_error
    empty = ask(lambda *_: "")
    assert (empty.output, empty.is_error) == ("(an empty answer)", False)


def test_an_answer_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="The answer must be text, but it is 7"):
        ask(lambda *_: 7)  # type: ignore[arg-type]


@pytest.mark.parametrize("question", ["", "x" * 2_001])
def test_a_question_has_a_sensible_length(question: str) -> None:
    with pytest.raises(ValidationError):
        AskUserInput(question=question)


@pytest.mark.parametrize("choices", [["x" * 201], ["a", ""], [" "], ["a", "b", "a "]])
def test_choices_can_be_told_apart_and_shown(choices: list[str]) -> None:
    with pytest.raises(ValidationError):
        AskUserInput(question="?", choices=choices)


def test_to_ask_needs_no_approval() -> None:
    """B04: it changes nothing, and it touches no file"""
    script = [
        {"type": "tool", "name": "ask_user", "arguments": {"question": "Is ~/.ssh/id_rsa yours?"}},
        {"type": "final", "output": "done"},
    ]
    harness = Harness(ScriptedModel(script), [AskUser(lambda *_: "yes")], layers=[Policy()])
    run = asyncio.run(harness.run("go"))
    assert run.output == "done"
    assert run.history.messages[2]["tool_result"] == "yes"
