"""What a server asks a person in the middle of a call."""

import asyncio
from typing import Any

import pytest
from mcp_types import ElicitRequestFormParams, ElicitRequestURLParams, ElicitResult

from mini_harness.tools.mcp.questions import Answerer, elicitation

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "loud": {"type": "boolean", "default": False},
        "times": {"type": "integer", "default": 0},
    },
}


def ask(answer: Answerer, params: Any = None) -> ElicitResult:
    params = params or ElicitRequestFormParams(message="Who?", requested_schema=SCHEMA)
    context: Any = None
    result = asyncio.run(elicitation(answer)(context, params))
    assert isinstance(result, ElicitResult)
    return result


def test_the_answer_goes_back_and_what_it_leaves_out_has_the_default() -> None:
    """False and 0 are values"""
    heard: list[Any] = []

    def answer(message: str, schema: Any) -> dict[str, Any]:
        heard.append((message, sorted(schema["properties"])))
        return {"name": "Ada", "times": 2}

    result = ask(answer)
    assert (result.action, result.content) == ("accept", {"name": "Ada", "loud": False, "times": 2})
    assert heard == [("Who?", ["loud", "name", "times"])]


def test_an_answer_may_take_its_time() -> None:
    async def answer(message: str, schema: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"name": "Ada"}

    assert ask(answer).content == {"name": "Ada", "loud": False, "times": 0}


def test_no_answer_declines() -> None:
    result = ask(lambda message, schema: None)
    assert (result.action, result.content) == ("decline", None)


def test_an_address_to_visit_is_declined_unasked() -> None:
    def answer(message: str, schema: Any) -> None:
        raise AssertionError("nobody is asked")

    params = ElicitRequestURLParams(message="Log in", url="https://example.org", elicitation_id="1")
    assert ask(answer, params).action == "decline"


def test_an_answer_that_fails_is_no_answer() -> None:
    def answer(message: str, schema: Any) -> dict[str, Any]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        ask(answer)
