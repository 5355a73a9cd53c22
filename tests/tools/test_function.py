"""A typed function becomes a tool."""

import asyncio
import enum
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from mini_harness.clock import VirtualClock
from mini_harness.tools.base import ToolExecutionContext, ToolResult, TransientError
from mini_harness.tools.call import Call, InvalidArguments
from mini_harness.tools.function import FunctionTool, function_tool, tool
from tests.loops import DONE, call, play


class Colour(str, enum.Enum):  # noqa: UP042 - its str() isn't its value
    RED = "red"


@dataclass
class Point:
    x: int


class Order(BaseModel):
    item: str
    pieces: int = 1


def use(made: FunctionTool, **arguments: Any) -> str:
    """What the model reads after this call. Raises InvalidArguments."""
    ready = Call(made, "c", arguments)
    return asyncio.run(made.execute(ready.fresh(), ToolExecutionContext())).output


def save(text: str) -> str:
    """Save a note."""
    return text


def test_name_description_and_schema_come_from_the_function() -> None:
    """B05"""

    @tool
    def order(item: str, pieces: int = 1) -> str:
        """Order an item
        from the shop.

        Not shown.
        """
        return f"{pieces} {item}"

    schema = order.to_api_schema()
    assert schema["name"] == "order"
    assert schema["description"] == "Order an item from the shop."
    assert schema["input_schema"]["required"] == ["item"]
    assert schema["input_schema"]["properties"]["pieces"]["default"] == 1
    assert use(order, item="tea") == "1 tea"
    assert use(order, item="tea", pieces=2) == "2 tea"
    assert order("tea", 3) == "3 tea"


def test_name_description_and_effect_can_be_given() -> None:
    @tool(name="note", description="Keep a note.", read_only=True, idempotent=True)
    def _save(text: str) -> str:
        return text

    assert (_save.name, _save.description) == ("note", "Keep a note.")
    assert Call(_save, "c", {"text": ""}).read_only
    assert Call(_save, "c", {"text": ""}).repeatable
    assert not Call(function_tool(save), "c", {"text": ""}).repeatable
    assert Call(function_tool(save, idempotent=True), "c", {"text": ""}).repeatable


@pytest.mark.parametrize("text", ['{"a": 1}', "123", "null", "[1]", "true", '"quoted"', "", "\0"])
def test_text_that_looks_like_json_reaches_the_function_as_text(text: str) -> None:
    """report T02"""
    assert use(function_tool(save), text=text) == text


NAMES = [
    *["model_extra", "model_fields_set", "model_config", "model_dump", "model_fields", "schema"],
    *["json", "copy", "dict", "construct", "validate", "self", "cls", "fields", "type", "name"],
    *["_private", "__dict__", "__class__", "class_", "parameter_schema", "context", "handler"],
    *["arguments", "kwargs", "args", "func", "default", "alias", "model_", "parse_obj", "title"],
]


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_may_have_any_name_and_gets_its_own_value(name: str) -> None:
    """report T05"""
    scope: dict[str, Any] = {}
    exec(f"def echo({name}: str, other: int = 3) -> str: return {name} + str(other)", scope)
    echo = function_tool(scope["echo"], description="Echo.")
    assert use(echo, **{name: "v"}) == "v3"
    assert list(echo.to_api_schema()["input_schema"]["properties"]) == [name, "other"]
    with pytest.raises(InvalidArguments, match=f"- {name}: Field required"):
        Call(echo, "c", {})


def test_names_that_are_made_up_inside_do_not_meet_those_of_the_function() -> None:
    """report T05: never a wrong value"""

    @tool
    def echo(schema: str, parameter_schema: str, parameter_parameter_schema: str) -> str:
        """Echo."""
        return f"{schema} {parameter_schema} {parameter_parameter_schema}"

    given = {"schema": "a", "parameter_schema": "b", "parameter_parameter_schema": "c"}
    assert use(echo, **given) == "a b c"
    with pytest.raises(InvalidArguments, match="unknown argument"):
        Call(echo, "c", {**given, "parameter_parameter_parameter_schema": "d"})


def test_a_field_may_describe_a_parameter_in_both_ways() -> None:
    """What pydantic's own functions take: never the Field itself as a value."""

    @tool
    def scale(
        low: Annotated[int, Field(ge=0, description="From here")],
        high: int = Field(description="To there", le=9),
        by: int = Field(3, gt=0),
    ) -> str:
        """Scale."""
        return f"{low} {high} {by}"

    schema = scale.to_api_schema()["input_schema"]
    assert schema["required"] == ["low", "high"]
    assert schema["properties"]["high"]["description"] == "To there"
    assert schema["properties"]["by"]["default"] == 3
    assert use(scale, low=1, high=2) == "1 2 3"
    for wrong in ({"low": -1, "high": 2}, {"low": 1, "high": 10}, {"low": 1}):
        with pytest.raises(InvalidArguments):
            Call(scale, "c", wrong)


def test_a_default_that_a_function_changes_is_fresh_at_the_next_call() -> None:
    @tool
    def collect(item: str, found: list[str] = []) -> str:  # noqa: B006 - the point of the test
        """Collect."""
        found.append(item)
        return " ".join(found)

    assert [use(collect, item="a"), use(collect, item="b")] == ["a", "b"]


def test_nested_types_reach_the_function_as_declared() -> None:
    """report T01"""

    @tool
    def order(order: Order, at: Point, colour: Colour, tags: set[str]) -> str:
        """Order."""
        kinds = [type(one).__name__ for one in (order, at, colour, tags)]
        return " ".join(kinds)

    assert (
        use(order, order={"item": "tea"}, at={"x": 1}, colour="red", tags=["a"])
        == "Order Point Colour set"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        ("", ""),
        (None, ""),
        (0, "0"),
        (False, "false"),
        (1.5, "1.5"),
        ([1, "a"], '[1,"a"]'),
        ({"a": None}, '{"a":null}'),
        (Point(1), '{"x":1}'),
        (Order(item="tea"), '{"item":"tea","pieces":1}'),
        (Colour.RED, "red"),
        (b"bytes", '"bytes"'),
        (ToolResult("as it is", is_error=True), "as it is"),
    ],
)
def test_what_a_function_returns_becomes_text(value: Any, text: str) -> None:
    """B02: nothing as nothing, text as it is, anything else as JSON"""
    read = use(function_tool(lambda: value, name="give", description="Give it."))
    assert read == text
    assert type(read) is str


def test_what_has_no_text_is_an_error_and_no_crash() -> None:
    give = function_tool(object, name="give", description="Give it.")
    run, _ = play([call("give"), DONE], [give])
    assert run.history.messages[2]["is_error"]


def test_an_async_function_is_awaited_and_may_take_the_time_of_the_clock() -> None:
    clock = VirtualClock()

    @tool
    async def wait(seconds: float, context: ToolExecutionContext) -> str:
        """Wait."""
        await context.clock.sleep(seconds)
        return f"{context.clock.monotonic()}"

    run, events = play([call("wait", seconds=2.5), DONE], [wait], clock=clock)
    assert run.history.messages[2]["tool_result"] == "2.5"
    assert events[3].offset - events[2].offset == 2.5


def test_the_context_is_given_by_type_and_not_shown_to_the_model() -> None:
    """B03"""

    @tool
    def where(context: str, here: ToolExecutionContext) -> str:
        """Where am I?"""
        return f"{context} {here.call_id}"

    assert list(where.to_api_schema()["input_schema"]["properties"]) == ["context"]
    run, _ = play([call("where", "c1", context="text"), DONE], [where])
    assert run.history.messages[2]["tool_result"] == "text c1"
    with pytest.raises(InvalidArguments, match="here: unknown argument"):
        Call(where, "c", {"context": "text", "here": {}})


def test_only_a_blocking_function_gets_a_thread_of_its_own() -> None:
    """Rule 5; a thread costs more than all the rest"""

    def who() -> str:
        """Which thread is it?"""
        return str(threading.get_ident())

    mine = str(threading.get_ident())
    assert use(function_tool(who)) == mine
    assert use(function_tool(who, blocking=True)) != mine


def test_a_blocking_function_may_fail_like_any_other() -> None:
    @tool(blocking=True)
    def fail() -> str:
        """Fail."""
        raise TransientError("the line is busy")

    run, _ = play([call("fail"), DONE], [fail])
    assert "the line is busy" in run.history.messages[2]["tool_result"]


def no_type(a) -> str:  # type: ignore[no-untyped-def]
    """Add."""
    return str(a)


def many(*names: str) -> str:
    """Add."""
    return str(names)


def any_name(**names: str) -> str:
    """Add."""
    return str(names)


def by_place(a: int, /) -> str:
    """Add."""
    return str(a)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (no_type, "'no_type': give parameter 'a' a type"),
        (many, r"'many': parameter '\*names: str' has no fixed name"),
        (any_name, r"'any_name': parameter '\*\*names: str' has no fixed name"),
        (by_place, "'by_place': parameter 'a: int' has no fixed name"),
    ],
)
def test_a_signature_that_no_model_can_fill_in_is_refused_at_once(function: Any, said: str) -> None:
    """report T05: one clear error at decoration time"""
    with pytest.raises(TypeError, match=said):
        tool(function)


def test_a_tool_needs_a_description() -> None:
    def silent(a: int) -> int:
        return a

    with pytest.raises(ValueError, match="'silent' needs a description"):
        tool(silent)


def test_a_method_makes_a_tool_without_its_self() -> None:
    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        def order(self, item: str) -> str:
            """Order an item."""
            return f"{item} from {self.name}"

    made = function_tool(Shop("the corner shop").order)
    assert list(made.to_api_schema()["input_schema"]["properties"]) == ["item"]
    assert use(made, item="tea") == "tea from the corner shop"


def test_the_parameters_that_hold_paths_are_named_and_nothing_is_guessed() -> None:
    @tool(paths=("source", "copy", "more"))
    def move(source: str, copy: str, text: str, more: list[str] | None = None) -> str:
        """Move."""
        return source

    def paths(handler: FunctionTool, **arguments: object) -> Sequence[str] | None:
        return handler.paths(handler.input_model.model_validate(arguments))

    assert paths(move, source="a", copy="b", text="c") == ["a", "b"]
    assert paths(move, source="a", copy="b", text="c", more=["d", "e"]) == ["a", "b", "d", "e"]
    assert paths(tool(paths=())(untouched), path="a") == []
    assert paths(tool(untouched), path="a") is None
    with pytest.raises(ValueError, match="no parameter 'wrong'"):
        tool(paths=("wrong",))(untouched)


def test_what_is_declared_counts_however_the_decorator_is_called() -> None:
    made: Any = tool
    assert made(untouched, read_only=True).read_only
    assert made(read_only=True)(untouched).read_only


def untouched(path: str) -> str:
    """Do nothing with a path."""
    return path


def test_paths_in_a_set_come_in_the_same_order_in_every_process() -> None:
    @tool(paths=["some"])
    def look(some: frozenset[Path]) -> str:
        """Look."""
        return ""

    names = [f"f{at}" for at in range(20)]
    found = look.paths(look.input_model.model_validate({"some": names}))
    assert found == sorted(names)


def test_the_parameter_that_holds_a_shell_line_is_named() -> None:
    """C22"""

    def run(copy: str | None, other: str = "") -> str:
        """Run."""
        return ""

    made = tool(command="copy")(run)
    assert made.command(made.input_model.model_validate({"copy": "ls"})) == "ls"
    assert made.command(made.input_model.model_validate({"copy": None})) is None
    silent = tool(run)
    assert silent.command(silent.input_model.model_validate({"copy": "ls"})) is None
    with pytest.raises(ValueError, match="no parameter 'line'"):
        tool(command="line")(run)
