"""Which tools a server becomes: all pages, legal names, and what is left out with a reason."""

import json
import re
import warnings
from typing import Any

import pytest

from mini_harness.protocol import Outcome
from mini_harness.tools.call import Call
from mini_harness.tools.mcp.errors import McpRequestFailed
from mini_harness.tools.mcp.listing import MOST_PAGES
from mini_harness.tools.mcp.server import McpServer
from mini_harness.tools.mcp.tool import LONGEST_DESCRIPTION
from mini_harness.tools.registry import ToolRegistry
from tests.tools.mcp.kit import by_name, call, stub, told


def left_out(server: McpServer) -> dict[str, str]:
    """What is left out. The same stands in the warnings, one each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        server.tools()
    assert [str(each.message) for each in caught] == [
        f"MCP server {server.name!r}: {what} is left out, because {why}."
        for what, why in server.left_out.items()
    ]
    return dict(server.left_out)


# --- pages ------------------------------------------------------------------------------------


def test_all_pages_are_read() -> None:
    """B17"""
    with stub(pages=[told("a", "b"), told("c"), told("d")]) as server:
        assert list(by_name(server)) == ["a", "b", "c", "d"]
        assert server.left_out == {}


@pytest.mark.parametrize(
    ("cursor", "why"),
    [
        ("on", f"the list has more than {MOST_PAGES} pages"),
        ("1", "the server leads from one page of the list back to an earlier one"),
    ],
)
def test_a_list_without_an_end_is_cut(cursor: str, why: str) -> None:
    with stub(pages=[told("a"), told("b"), told("c")], cursor=cursor) as server:
        assert left_out(server)["the rest of the list"] == why
        assert {"a", "b", "c"} <= set(by_name_quietly(server))


def test_a_server_without_tools_isnt_asked_for_them() -> None:
    with stub(able={"tools": None}) as server:
        assert server.tools() == []


def test_the_list_is_the_one_of_the_last_question() -> None:
    """A server that changes its list changes nothing until somebody asks again."""
    with stub(pages=[told("a")]) as server:
        one, two = server.tools()[0], server.tools()[0]
        assert one is not two
        assert one.to_api_schema() == two.to_api_schema()


# --- names ------------------------------------------------------------------------------------


def test_names_are_legal_and_each_tool_is_called_by_its_own() -> None:
    """B18"""
    odd = ["a.b", "a_b", "größe", "2fa", "x" * 100, "has space", 'quote"', "echo"]
    with stub("odd", pages=[told(*odd)]) as server:
        tools = server.tools()
        registry = ToolRegistry(tools)
        assert len(registry.names()) == len(odd)
        assert all(re.fullmatch(r"mcp__odd__[A-Za-z0-9_-]+", name) for name in registry.names())
        called = [json.loads(call(tool).output)["params"]["name"] for tool in tools]
    assert called == odd


def test_of_two_tools_that_cant_be_told_apart_the_first_counts() -> None:
    """B18"""
    with stub(pages=[[*told("same", description="1"), *told("same", description="2")]]) as server:
        assert left_out(server) == {"tool 'same'": "another one has the same name"}
        assert [tool.description for tool in by_name_quietly(server).values()] == ["1"]


# --- schemas ----------------------------------------------------------------------------------

HOSTILE = {
    "remote": {"$ref": "https://example.org/schema.json"},
    "broken": {"properties": {"a": {"type": "cats"}}},
    "deep": json.loads('{"items":' * 80 + "{}" + "}" * 80),
    "slow": {"patternProperties": {"^(a+)+$": {}}},
}


def test_a_tool_whose_schema_cant_be_used_is_left_out_and_the_others_stay() -> None:
    """B18"""
    tools = [
        *(told(name, schema={"type": "object", **each})[0] for name, each in HOSTILE.items()),
        *told("fine"),
    ]
    with stub(pages=[tools]) as server:
        reasons = left_out(server)
        assert list(reasons) == [f"tool {name!r}" for name in HOSTILE]
        assert all(why.startswith("its schema can't be used: ") for why in reasons.values())
        assert len(by_name_quietly(server)) == 1


def test_a_list_that_is_no_mcp_is_refused_whole() -> None:
    """The SDK takes it whole or not at all."""
    with (
        stub(pages=[told("t", schema={"type": "string"}) + told("fine")]) as server,
        pytest.raises(McpRequestFailed, match="'stub' gave an answer that MCP doesn't allow"),
    ):
        server.tools()


def by_name_quietly(server: McpServer) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(by_name(server))


def test_the_model_sees_the_servers_own_schema_closed() -> None:
    """B18, report T04"""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "title": "Anything",
        "properties": {"a": {"type": "integer", "x-mine": [1.0]}, "b": {"$ref": "#/definitions/B"}},
        "definitions": {"B": {"type": "object", "properties": {}}},
    }
    with stub(pages=[told("t", schema=schema, description="Does it.")]) as server:
        shown = by_name(server)["t"].to_api_schema()
    closed = json.loads(json.dumps(schema))
    closed["additionalProperties"] = False
    closed["definitions"]["B"]["additionalProperties"] = False
    assert shown == {"name": "mcp__stub__t", "description": "Does it.", "input_schema": closed}
    assert json.dumps(shown["input_schema"]["properties"]) == json.dumps(schema["properties"])


def test_a_description_has_an_end_and_a_tool_without_one_has_its_name() -> None:
    tools = told("none") + told("long", description="x" * 50_000) + told("titled", title="A title")
    with stub(pages=[tools]) as server:
        found = by_name(server)
    assert len(found["long"].description) == LONGEST_DESCRIPTION + 1
    assert (found["none"].description, found["titled"].description) == ("none", "A title")


# --- hints ------------------------------------------------------------------------------------

HINTS = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}


@pytest.mark.parametrize(
    ("trusted", "read_only", "repeatable"),
    [
        ({}, False, False),
        ({"trust_read_only": True}, True, True),
        ({"trust_idempotent": True}, False, True),
    ],
)
def test_what_a_server_says_about_its_tools_counts_only_if_the_user_says_so(
    trusted: dict[str, bool], read_only: bool, repeatable: bool
) -> None:
    """B18: a hint is a stranger's word"""
    tools = [*told("hinted", annotations=HINTS), *told("plain"), *told("not", annotations={})]
    with stub(pages=[tools], settings=trusted) as server:
        made = {name: Call(tool, "1", {}) for name, tool in by_name(server).items()}
    assert (made["hinted"].read_only, made["hinted"].repeatable) == (read_only, repeatable)
    assert not any(made[name].repeatable for name in ("plain", "not"))


def test_a_policy_takes_every_text_for_a_path() -> None:
    with stub(pages=[told("t")]) as server:
        made = Call(by_name(server)["t"], "1", {"x": "y"})
        assert made.tool.paths(made.parsed) is None
        assert made.tool.command(made.parsed) is None


# --- resources --------------------------------------------------------------------------------

THING = {"uri": "file:///thing", "name": "thing", "mimeType": "text/plain", "description": "It."}


def test_resources_are_two_tools_more_if_there_are_any() -> None:
    """B17"""
    able: dict[str, Any] = {"resources": {}}
    with stub(pages=[told("t")], able=able, resources=[THING]) as server:
        tools = by_name(server)
        assert list(tools) == ["t", "list_resources", "read_resource"]
        listed = call(tools["list_resources"])
        assert listed.output == "file:///thing | thing | text/plain | It."
        read = call(tools["read_resource"], uri="file:///thing")
        assert read.output == "[resource file:///thing, text/plain]\nthe thing itself"
        missing = call(tools["read_resource"], uri="file:///other")
        assert missing.outcome is Outcome.ERROR
        assert "answered with error -32002: no such resource" in missing.output
        assert not Call(tools["list_resources"], "1", {}).read_only
    with stub(pages=[told("t")], able=able, resources=[]) as server:
        assert list(by_name(server)) == ["t"]


def test_a_servers_own_list_resources_is_told_apart_from_ours() -> None:
    """B17, B18"""
    own = told("list_resources", "read_resource")
    with stub(pages=[own], able={"resources": {}}, resources=[THING]) as server:
        tools = server.tools()
        assert len(ToolRegistry(tools).names()) == 4
        assert call(tools[2]).output.startswith("file:///thing")
        assert json.loads(call(tools[0]).output)["params"]["name"] == "list_resources"
