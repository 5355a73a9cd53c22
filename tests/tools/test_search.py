"""tool_search lists the tools of the registry that it is in."""

import asyncio

import pytest

from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.files import ReadFile
from mini_harness.tools.registry import ToolRegistry
from mini_harness.tools.search import ToolSearch, ToolSearchInput
from mini_harness.tools.shell import Bash

REGISTRY = ToolRegistry([ToolSearch(), Bash(), ReadFile()])


def search(query: str = "") -> str:
    context = ToolExecutionContext(metadata={"tool_registry": REGISTRY})
    result = asyncio.run(ToolSearch().execute(ToolSearchInput(query=query), context))
    assert not result.is_error
    return result.output


def found(query: str) -> list[str]:
    return [line.partition(":")[0] for line in search(query).splitlines()]


def test_an_empty_query_lists_all_tools_in_registry_order() -> None:
    """C26"""
    assert found("") == ["tool_search", "bash", "read_file"]
    assert f"bash: {Bash.description}" in search()


def test_the_query_may_be_left_out() -> None:
    """C26"""
    assert ToolSearchInput().query == ""


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("read_f", ["read_file"]),
        ("shell command", ["bash"]),
        ("WORKSPACE", ["bash", "read_file"]),
        ("  bash ", ["bash"]),
        ("read file", ["read_file"]),
        ("lines some", ["read_file"]),
        ("read zebra", ["(no tool matches 'read zebra')"]),
    ],
)
def test_a_query_filters_by_name_or_description_in_any_case(query: str, names: list[str]) -> None:
    """C26"""
    assert found(query) == names


def test_nothing_found_is_said() -> None:
    """C26"""
    assert search("zebra") == "(no tool matches 'zebra')"


def test_searching_only_reads() -> None:
    """B04"""
    assert ToolSearch().is_read_only(ToolSearchInput())


def test_the_loop_gives_the_tool_its_registry() -> None:
    """C20, B03"""
    script = [
        {"type": "tool", "name": "tool_search", "arguments": {}},
        {"type": "final", "output": "done"},
    ]
    run = Harness(ScriptedModel(script), REGISTRY).run_sync("which tools are there?")
    assert run.unwrap() == "done"
    seen = [message for message in run.history.messages if message["role"] == "tool"]
    assert seen[0]["tool_result"].splitlines()[0].startswith("tool_search: ")


def test_without_a_registry_the_error_says_what_is_missing() -> None:
    """B03"""
    with pytest.raises(LookupError, match="tool_registry"):
        asyncio.run(ToolSearch().execute(ToolSearchInput(), ToolExecutionContext()))
