"""What a tool receives is what was sent, or the call doesn't run: for any types and any values."""

import asyncio
import inspect
import math
from enum import IntEnum
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, create_model

from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.call import Call, InvalidArguments
from mini_harness.tools.function import FunctionTool, function_tool

NAMES = [
    "path",
    "schema",
    "json",
    "copy",
    "self_",
    "model_config",
    "model_fields_set",
    "model_dump",
]
"""Among them names that pydantic's own models have (report T05)."""


class Level(IntEnum):
    LOW = 0
    HIGH = 1


LEAVES = st.sampled_from(
    [bool, int, float, str, int | None, str | None, Literal["a", 1], Literal[True, 0], Level]
)


def modelled(fields: dict[str, Any]) -> Any:
    definitions: dict[str, Any] = {name: (kind, ...) for name, kind in fields.items()}
    return create_model("Nested", **definitions)


TYPES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda kind: list[kind]),  # type: ignore[valid-type]
        inner.map(lambda kind: dict[str, kind]),  # type: ignore[valid-type]
        st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, min_size=1).map(modelled),
    ),
    max_leaves=4,
)
WORDS = st.sampled_from(["", "a", "b", "1", "7.0", "true", "null", "NaN", "no", "{}", "[1]"])
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(2**53 - 2, 2**53 + 2),
    st.integers(10**400, 10**401),
    st.floats(),
    st.sampled_from([0.0, -0.0, 1.0, 1e308, math.nan, math.inf]),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, WORDS, st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), inner)
    ),
    max_leaves=5,
)


LEAVES_FITTING: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.sampled_from([True, False, True, False, 0, 1, "true", "no"]),
    int: NUMBERS | st.sampled_from([True, "7", "0", 2.0]),
    float: NUMBERS | st.sampled_from([True, "7.0", "NaN"]),
    str: WORDS | st.sampled_from([1, True]),
    Level: st.sampled_from([0, 1, True, False, 1.0, "LOW"]),
    Literal["a", 1]: st.sampled_from(["a", 1, True, 1.0]),
    Literal[True, 0]: st.sampled_from([True, False, 1, 0]),
}
"""What fits, and what somebody might take for it."""


def fitting(kind: Any) -> st.SearchStrategy[Any]:
    """Values that mostly fit a type, so that many calls get through."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        inner = {name: fitting(field.annotation) for name, field in kind.model_fields.items()}
        return st.fixed_dictionaries(inner)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is list:
        return st.lists(fitting(parts[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(st.sampled_from(["a", "b"]), fitting(parts[1]), max_size=2)
    return LEAVES_FITTING.get(kind, VALUES)


@st.composite
def calls(draw: st.DrawFn) -> tuple[FunctionTool, list[Any], dict[str, Any]]:
    """A tool, the list into which it puts what it receives, and arguments for it."""
    kinds = draw(st.dictionaries(st.sampled_from(NAMES), TYPES, min_size=1, max_size=3))
    received: list[Any] = []

    def keep(**given: Any) -> str:
        received.append(given)
        return "kept"

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)
        for name, kind in kinds.items()
    ]
    keep.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    keep.__annotations__ = dict(kinds)
    arguments = {
        name: draw(st.one_of(fitting(kind), fitting(kind), VALUES)) for name, kind in kinds.items()
    }
    arguments |= draw(st.dictionaries(st.sampled_from(["extra", "path"]), VALUES, max_size=1))
    return function_tool(keep, name="keep", description="Keep."), received, arguments


def same(sent: Any, received: Any) -> bool:
    """Whether two values are the same JSON: 1 is no true, and 2**53 + 1 no other number."""
    if isinstance(received, BaseModel):
        received = {name: getattr(received, name) for name in type(received).model_fields}
    if isinstance(received, IntEnum):
        received = received.value
    if isinstance(sent, dict):
        return (
            isinstance(received, dict)
            and sent.keys() == received.keys()
            and all(same(sent[key], received[key]) for key in sent)
        )
    if isinstance(sent, list):
        if not isinstance(received, list) or len(sent) != len(received):
            return False
        return all(same(one, other) for one, other in zip(sent, received, strict=True))
    if isinstance(sent, bool) or isinstance(received, bool):
        return sent is received
    number = isinstance(sent, int | float) and isinstance(received, int | float)
    return (number or type(sent) is type(received)) and sent == received


@pytest.mark.once
@given(calls())
@settings(max_examples=300)
def test_what_validates_reaches_the_tool_as_it_was_sent(
    made: tuple[FunctionTool, list[Any], dict[str, Any]],
) -> None:
    """reports T01, T02, T04, T05, T07, T13; issue 5"""
    tool, received, arguments = made
    try:
        call = Call(tool, "c1", arguments)
    except InvalidArguments:
        assert received == []
        return
    asyncio.run(tool.execute(call.fresh(), ToolExecutionContext()))
    (given,) = received
    assert same(arguments, given)
