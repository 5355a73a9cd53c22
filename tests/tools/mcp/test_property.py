"""For any schema and any arguments: what is valid reaches the server as it is, the rest never."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mini_harness.protocol import Outcome
from mini_harness.tools.call import Call, InvalidArguments
from mini_harness.tools.mcp.server import McpServer
from mini_harness.tools.mcp.tool import McpTool
from tests.tools.mcp.kit import call, stub, told

KEYS = st.sampled_from(["a", "b", "model_config", "schema", "ключ", "a.b", "$ref"])
SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, 1, 0.0, -0.0, 1.0, "0", "1", "", "true", "null", "\u2028", "\x00", "😀"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def with_required(properties: dict[str, Any]) -> st.SearchStrategy[Any]:
        needed = st.sets(st.sampled_from(sorted(properties))) if properties else st.just(set())
        return needed.map(
            lambda names: {"type": "object", "properties": properties, "required": sorted(names)}
        )

    return st.dictionaries(KEYS, inner, max_size=3).flatmap(with_required)


SIMPLE = st.one_of(
    st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(lambda t: {"type": t}),
    st.just({"type": ["integer", "null"]}),
    st.lists(SCALARS, min_size=1, max_size=3).map(lambda values: {"enum": values}),
    st.integers(-2, 2).map(lambda least: {"type": "number", "minimum": least}),
    st.just({"type": "string", "maxLength": 1}),
)
SCHEMAS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items}),
        inner.map(lambda form: {"anyOf": [form, {"type": "null"}]}),
        objects(inner),
    ),
    max_leaves=6,
)


FIT: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=2),
    "boolean": st.booleans(),
    "null": st.none(),
    "integer": st.integers(-(2**66), 2**66) | st.sampled_from([1.0, -0.0, 1e300]),
    "number": st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False),
}


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that mostly fit a schema of this family."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.none() | fitting(schema["anyOf"][0])
    if "items" in schema:
        return st.lists(fitting(schema["items"]), max_size=3)
    if "properties" in schema:
        fits = {name: fitting(each) for name, each in schema["properties"].items()}
        required = {name: fits.pop(name) for name in schema["required"]}
        return st.fixed_dictionaries(required, optional=fits)
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return st.one_of(*(FIT[kind] for kind in kinds))


CASES = objects(SCHEMAS).flatmap(
    lambda schema: st.tuples(
        st.just(schema), fitting(schema) | st.dictionaries(KEYS, VALUES, max_size=3)
    )
)


def has_unknown_keys(schema: dict[str, Any], value: Any) -> bool:
    """Whether a key that the schema doesn't list stands where it lists some."""
    if "anyOf" in schema:
        return has_unknown_keys(schema["anyOf"][0], value)
    if "items" in schema and isinstance(value, list):
        return any(has_unknown_keys(schema["items"], each) for each in value)
    if "properties" in schema and isinstance(value, dict):
        known = schema["properties"]
        return any(
            key not in known or has_unknown_keys(known[key], each) for key, each in value.items()
        )
    return False


@pytest.fixture(scope="module")
def server() -> Iterator[McpServer]:
    with stub(pages=[told("echo")]) as running:
        yield running


@pytest.mark.once
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(case=CASES)
def test_what_is_valid_reaches_the_server_unchanged_and_the_rest_never(
    server: McpServer, case: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    """B18, report T04: judged by jsonschema itself, on the schema as the server gave it"""
    schema, arguments = case
    tool = echo(server, schema)
    valid = Draft202012Validator(schema).is_valid(arguments)
    if not valid or has_unknown_keys(schema, arguments):
        with pytest.raises(InvalidArguments):
            Call(tool, "1", arguments)
        return
    seen = call(tool, **arguments)
    assert seen.outcome is Outcome.OK
    # What arrived, read as JSON and written again by the same writer: 1, 1.0 and true differ.
    arrived = json.loads(seen.output)["params"]["arguments"]
    assert json.dumps(arrived) == json.dumps(arguments)


def echo(server: McpServer, schema: dict[str, Any]) -> McpTool:
    """The stub's tool that answers with the bytes it got, under another schema."""
    from mcp_types import Tool

    return McpTool(server, Tool(name="echo", input_schema=schema), "mcp__stub__echo")
