"""Which tools there are."""

import asyncio
from typing import Any

import pytest

from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.tools.base import Tool
from mini_harness.tools.builds import TOOLS, add, read_build
from mini_harness.tools.function import function_tool
from mini_harness.tools.registry import ToolRegistry
from tests.loops import DONE, call, play


def twice(a: int) -> int:
    """Double it."""
    return 2 * a


def test_a_registry_maps_names_to_tools_and_needs_no_agent() -> None:
    """A03, B06"""
    registry = ToolRegistry([add, read_build])
    assert registry.get("add") is add
    assert asyncio.iscoroutinefunction(add.execute)
    assert ToolRegistry(TOOLS).list_tools() == list(TOOLS.values())


@pytest.mark.parametrize("name", ["sub", "Add", "ADD", " add", "add ", ""])
def test_a_name_is_compared_exactly_and_an_unknown_one_is_none(name: str) -> None:
    """B06, report T11"""
    assert ToolRegistry([add]).get(name) is None


def test_the_order_of_registration_is_kept() -> None:
    """B06"""
    registry = ToolRegistry([read_build, add])
    assert registry.names() == ["read_build", "add"]
    assert [shown["name"] for shown in registry.to_api_schema()] == ["read_build", "add"]


def test_registering_a_name_again_replaces_the_tool_also_for_the_model() -> None:
    """B06, report N08"""
    registry = ToolRegistry([add, read_build])
    assert registry.to_api_schema()[0]["description"] == "Add two integers."
    registry.register(function_tool(twice, name="add"))
    assert registry.names() == ["add", "read_build"]
    assert registry.to_api_schema()[0]["description"] == "Double it."


def test_the_simple_tool_of_three_fields_is_registered_like_any_other() -> None:
    """A01, A03"""
    run, _ = play([call("double", a=4), DONE], [Tool("double", "Double it.", twice)])
    assert run.history.messages[2]["tool_result"] == "8"


@pytest.mark.parametrize(
    "name",
    ["", "a" * 65, "1st", "-x", "a.b", "a b", "größe", "x\n", "a/b", "工具"],
)
def test_a_name_that_no_api_takes_is_refused_at_once(name: str) -> None:
    with pytest.raises(ValueError, match="use 1 to 64 ASCII letters"):
        ToolRegistry([Tool(name, "Double it.", twice)] if name else [nameless()])


def nameless() -> Any:
    tool = function_tool(twice)
    tool.name = ""
    return tool


@pytest.mark.parametrize("name", ["a", "_", "a" * 64, "read_file", "Read-File", "a1", "class"])
def test_a_name_that_every_api_takes_is_taken(name: str) -> None:
    assert ToolRegistry([Tool(name, "Double it.", twice)]).names() == [name]


@pytest.mark.parametrize("thing", [twice, "add", None, 7])
def test_what_is_no_tool_is_refused_with_a_hint(thing: Any) -> None:
    with pytest.raises(TypeError, match="isn't a tool yet: put @tool above it"):
        ToolRegistry([thing])


def test_a_model_cannot_change_the_schemas_it_is_shown() -> None:
    """Every turn shows the same ones; DESIGN: a layer shortens the view, never the record."""

    def meddle(history: Any, tools: Any) -> Any:
        for change in (tools[0].clear, tools[0]["input_schema"]["properties"].clear):
            with pytest.raises(TypeError):
                change()
        return DONE

    harness = Harness(ScriptedModel([meddle]), [add])
    assert asyncio.run(harness.run("go")).unwrap() == "done"
    assert harness.tools.to_api_schema()[0] == add.to_api_schema()


def test_a_tool_may_bring_another_one_in_the_middle_of_a_run() -> None:
    def show(history: Any, tools: Any) -> Any:
        return {"type": "final", "output": [tool["name"] for tool in tools]}

    def learn() -> str:
        """Learn to add."""
        registry.register(add)
        return "learnt"

    registry = ToolRegistry([function_tool(learn)])
    run = asyncio.run(Harness(ScriptedModel([call("learn"), show]), registry).run("go"))
    assert run.unwrap() == ["learn", "add"]
