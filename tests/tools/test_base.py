"""What a tool is, and the contract of it that a model sees."""

import asyncio
import dataclasses
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, create_model
from typing_extensions import TypedDict

from mini_harness.clock import VirtualClock
from mini_harness.tools.base import BaseTool, Tool, ToolExecutionContext, ToolResult
from mini_harness.tools.call import Call, InvalidArguments
from tests.loops import DONE, call, play


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Careless(BaseModel):
    model_config = ConfigDict(extra="ignore")
    inner: Loose


class Empty(BaseModel):
    model_config = ConfigDict(extra="allow")


class Tree(BaseModel):
    model_config = ConfigDict(extra="allow")
    kids: list["Tree"] = []


@dataclass
class Plain:
    a: int


class Typed(TypedDict):
    a: int


class LooseTyped(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    a: int


class Tricky(BaseModel):
    """Its fields have the names of a schema's own keywords."""

    type: Literal["object"]
    properties: dict[str, int]
    default: Loose


class Write(BaseModel):
    path: str
    force: bool = False


class WriteTool(BaseTool):
    name = "write"
    description = "Write a file."
    input_model: type[BaseModel] = Write

    async def execute(self, arguments: Write, context: ToolExecutionContext) -> ToolResult:
        return ToolResult(f"{arguments.path} {arguments.force}")


def tool_for(annotation: Any) -> BaseTool:
    """A tool whose only argument ``x`` has this type."""

    class Arguments(BaseModel):
        x: annotation

    tool = WriteTool()
    tool.input_model = Arguments
    return tool


def test_the_simplest_tool_has_exactly_three_fields() -> None:
    """A01"""
    assert dataclasses.is_dataclass(Tool)
    assert [field.name for field in fields(Tool)] == ["name", "description", "handler"]


def test_a_tool_is_an_input_model_and_an_async_execute() -> None:
    """B01"""
    run, _ = play([call("write", path="a.txt", force=True), DONE], [WriteTool()])
    assert run.history.messages[2]["tool_result"] == "a.txt True"
    with pytest.raises(TypeError, match="abstract"):
        BaseTool()  # type: ignore[abstract]


def test_a_result_is_text_that_is_no_error_unless_it_says_so() -> None:
    """B02"""
    assert [field.name for field in fields(ToolResult)] == ["output", "is_error", "metadata"]
    assert ToolResult("x") == ToolResult("x", False, {})


def test_a_context_can_be_made_for_a_test_by_hand(tmp_path: Path) -> None:
    """B03"""
    context = ToolExecutionContext(tmp_path, {"ask_user_prompt": print})
    assert context.cwd == tmp_path
    assert context.metadata["ask_user_prompt"] is print
    result = asyncio.run(WriteTool().execute(Write(path="a"), context))
    assert result.output == "a False"


def test_the_harness_gives_a_tool_where_and_for_whom_it_runs(tmp_path: Path) -> None:
    """B03"""
    seen: list[ToolExecutionContext] = []

    class Look(WriteTool):
        async def execute(self, arguments: Write, context: ToolExecutionContext) -> ToolResult:
            seen.append(context)
            return ToolResult("")

    clock = VirtualClock()
    run, _ = play([call("write", "c1", path="x"), DONE], [Look()], clock=clock, cwd=tmp_path)
    (context,) = seen
    assert context.cwd == tmp_path.resolve()
    assert context.clock is clock
    assert (context.call_id, context.attempt) == ("c1", 1)
    assert context.idempotency_key == f"{run.id}:c1"
    assert context.run is run
    assert context.harness is not None
    assert context.metadata["tool_registry"] is context.harness.tools


def test_a_tool_is_neither_read_only_nor_repeatable_unless_it_declares_so() -> None:
    """B04, DESIGN BaseTool: declared, not guessed from names"""

    class ReadFile(WriteTool):
        name = "read_file"

    made = Call(ReadFile(), "c", {"path": "x"})
    assert not made.read_only
    assert not made.repeatable


def test_read_only_is_asked_for_every_call() -> None:
    """B04: per call, not per tool"""

    class Careful(WriteTool):
        def is_read_only(self, arguments: Write) -> bool:
            return not arguments.force

    calls = [Call(Careful(), "c", {"path": "x", "force": force}) for force in (False, True)]
    assert [made.read_only for made in calls] == [True, False]


def test_the_schema_is_generated_from_the_input_model() -> None:
    """B05, A18"""
    schema = WriteTool().to_api_schema()
    assert list(schema) == ["name", "description", "input_schema"]
    assert (schema["name"], schema["description"]) == ("write", "Write a file.")
    assert schema["input_schema"] == {
        **Write.model_json_schema(),
        "additionalProperties": False,
    }


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """All schemas of objects with named fields inside a schema, itself included."""
    if isinstance(schema, list):
        for item in schema:
            yield from objects(item)
    elif isinstance(schema, dict):
        if schema.get("type") == "object" and schema.get("properties"):
            yield schema
        for item in schema.values():
            yield from objects(item)


LEVELS: list[tuple[Any, Any, Any, str]] = [
    # type of x, a value that fits, the same with an unknown key, where that key is
    (Loose, {"a": 1}, {"a": 1, "z": 2}, "x.z"),
    (Careless, {"inner": {"a": 1}}, {"inner": {"a": 1}, "z": 2}, "x.z"),
    (Careless, {"inner": {"a": 1}}, {"inner": {"a": 1, "z": 2}}, "x.inner.z"),
    (Empty, {}, {"z": 2}, "x.z"),
    (Tree, {"kids": [{"kids": []}]}, {"kids": [{"kids": [{"z": 2}]}]}, "x.kids.0.kids.0.z"),
    (Plain, {"a": 1}, {"a": 1, "z": 2}, "x.z"),
    (Typed, {"a": 1}, {"a": 1, "z": 2}, "x.z"),
    (LooseTyped, {"a": 1}, {"a": 1, "z": 2}, "x.z"),
    (list[Loose], [{"a": 1}], [{"a": 1}, {"a": 1, "z": 2}], "x.1.z"),
    (tuple[Loose, int], [{"a": 1}, 2], [{"a": 1, "z": 2}, 2], "x.0.z"),
    (dict[str, Loose], {"k": {"a": 1}}, {"k": {"a": 1, "z": 2}}, "x.k.z"),
    (Loose | None, None, {"a": 1, "z": 2}, "x.z"),
    (Loose | list[Plain], [{"a": 1}], [{"a": 1, "z": 2}], "0.z"),
    (
        Tricky,
        {"type": "object", "properties": {"p": 1}, "default": {"a": 1}},
        {"type": "object", "properties": {"p": 1}, "default": {"a": 1, "z": 2}},
        "x.default.z",
    ),
]


@pytest.mark.parametrize(("annotation", "good", "bad", "place"), LEVELS)
def test_unknown_keys_are_refused_at_every_level_and_the_schema_says_so(
    annotation: Any, good: Any, bad: Any, place: str
) -> None:
    """report T04: whatever the nested model's own configuration says"""
    tool = tool_for(annotation)
    shown = tool.to_api_schema()["input_schema"]
    closed = [level["additionalProperties"] for level in objects(shown)]
    assert closed
    assert not any(closed), json.dumps(shown)
    assert Call(tool, "c", {"x": good}).arguments == {"x": good}
    with pytest.raises(InvalidArguments, match=f"{place}: unknown argument"):
        Call(tool, "c", {"x": bad})


def test_a_dict_keeps_the_schema_of_its_values() -> None:
    """report T04: free keys are no unknown keys"""
    tool = tool_for(dict[str, int])
    shown = tool.to_api_schema()["input_schema"]["properties"]["x"]
    assert shown["additionalProperties"] == {"type": "integer"}
    assert Call(tool, "c", {"x": {"any key": 1}}).arguments["x"] == {"any key": 1}
    with pytest.raises(InvalidArguments, match=r"x\.any key: Input should be a valid integer"):
        Call(tool, "c", {"x": {"any key": "one"}})


@pytest.mark.parametrize("name", ["x", "default", "const", "examples", "properties"])
def test_a_field_may_have_the_name_of_a_schemas_own_keyword(name: str) -> None:
    """report T04: what is a field's name and what is a keyword depends on the place"""
    keys = dict[Annotated[str, Field(pattern="^k")], int]
    tool = WriteTool()
    fields: dict[str, Any] = {name: (keys, ...)}
    tool.input_model = create_model("Arguments", **fields)
    shown = tool.to_api_schema()["input_schema"]["properties"][name]
    assert shown["additionalProperties"] is False
    assert Call(tool, "c", {name: {"key": 1}}).arguments == {name: {"key": 1}}
    with pytest.raises(InvalidArguments, match=name):
        Call(tool, "c", {name: {"other": 1}})


def test_a_default_or_an_example_is_shown_as_it_is() -> None:
    """Only schemas are closed, not values that look like one."""
    value = {"type": "object", "properties": {"type": "object"}}

    class Arguments(BaseModel):
        x: dict[str, Any] = Field(default=value, examples=[value])

    tool = WriteTool()
    tool.input_model = Arguments
    shown = tool.to_api_schema()["input_schema"]["properties"]["x"]
    assert shown["default"] == value
    assert shown["examples"] == [value]


def test_generating_the_schema_leaves_the_model_as_it_is() -> None:
    before = json.dumps(Loose.model_json_schema())
    tool_for(Loose).to_api_schema()
    assert json.dumps(Loose.model_json_schema()) == before


@pytest.mark.parametrize("bad", [math.nan, object(), {1: 2}])
def test_metadata_is_json_or_the_result_is_an_error(bad: object) -> None:
    """DESIGN, Event: no NaN in the record"""

    class Odd(WriteTool):
        results: ClassVar = ToolResult("fine", metadata={"bad": bad})

        async def execute(self, arguments: Write, context: ToolExecutionContext) -> ToolResult:
            return self.results

    run, _ = play([call("write", path="x"), DONE], [Odd()])
    seen = run.history.messages[2]
    assert seen["is_error"]
    assert "NotJson" in seen["error"]
