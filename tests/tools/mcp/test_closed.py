"""Where a server's schema can be closed against unknown keys, and where it must not be."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mini_harness.tools.mcp.closed import closed

A: dict[str, Any] = {"properties": {"a": {"type": "integer"}}}
B: dict[str, Any] = {"properties": {"b": {"type": "integer"}}}
REF = {"$ref": "#/$defs/A"}


def accepts(schema: dict[str, Any], value: Any) -> bool:
    return Draft202012Validator(closed(schema)).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "known", "unknown"),
    [
        (A, {"a": 1}, {"a": 1, "x": 1}),
        ({"properties": {}}, {}, {"x": 1}),
        ({"properties": {"o": A}}, {"o": {"a": 1}}, {"o": {"x": 1}}),
        ({"properties": {"o": {"items": A}}}, {"o": [{"a": 1}]}, {"o": [{"a": 1}, {"x": 1}]}),
        ({"properties": {"o": {"prefixItems": [A]}}}, {"o": [{"a": 1}]}, {"o": [{"x": 1}]}),
        ({"additionalProperties": A}, {"k": {"a": 1}}, {"k": {"x": 1}}),
        ({"properties": {"o": REF}, "$defs": {"A": A}}, {"o": {"a": 1}}, {"o": {"x": 1}}),
        (
            {"properties": {"o": {"anyOf": [REF, {"type": "null"}]}}, "$defs": {"A": A}},
            {"o": {"a": 1}},
            {"o": {"x": 1}},
        ),
        ({"properties": {"o": {"oneOf": [A, {"enum": [1]}]}}}, {"o": {"a": 1}}, {"o": {"x": 1}}),
        (
            {"properties": {"o": REF}, "$defs": {"A": {"properties": {"n": REF}}}},
            {"o": {"n": {"n": {}}}},
            {"o": {"n": {"n": {"x": 1}}}},
        ),
        ({"$id": "https://x.org/s", **A}, {"a": 1}, {"x": 1}),
    ],
)
def test_an_object_that_lists_its_keys_takes_no_others(
    schema: dict[str, Any], known: Any, unknown: Any
) -> None:
    """report T04"""
    assert accepts(schema, known)
    assert Draft202012Validator(schema).is_valid(unknown)
    assert not accepts(schema, unknown)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object"}, {"x": 1}),
        ({**A, "additionalProperties": True}, {"x": 1}),
        ({**A, "additionalProperties": {"type": "string"}}, {"x": "y"}),
        ({**A, "unevaluatedProperties": True}, {"x": 1}),
        ({**A, "patternProperties": {"^x": {}}}, {"x": 1}),
        ({"allOf": [A, B]}, {"a": 1, "b": 1}),
        ({**A, "allOf": [B]}, {"a": 1, "b": 1}),
        ({"anyOf": [A, B]}, {"a": 1, "b": 1}),
        ({"oneOf": [{**A, "required": ["a"]}, {"required": ["x"]}]}, {"x": 1}),
        ({**A, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"b": 1}),
        ({**A, "$ref": "#/$defs/B", "$defs": {"B": B}}, {"a": 1, "b": 1}),
        ({**A, "if": {"required": ["a"]}, "then": B}, {"a": 1, "b": 1}),
        ({**A, "dependentSchemas": {"a": B}}, {"a": 1, "b": 1}),
        ({**A, "dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 1}),
        ({**A, "required": ["b"]}, {"b": 1}),
        ({**A, "minProperties": 2}, {"a": 1, "b": 1}),
        (
            {"properties": {"o": A}, "allOf": [{"properties": {"o": B}}]},
            {"o": {"a": 1, "b": 1}},
        ),
        ({"items": A, "contains": B}, [{"a": 1, "b": 1}]),
        (
            # Closed for `one`, it would be closed for `two` as well, which adds a key to it.
            {
                "properties": {"one": REF, "two": {**B, "allOf": [REF]}},
                "$defs": {"A": A},
            },
            {"two": {"a": 1, "b": 1}},
        ),
        (
            {**B, "$dynamicRef": "#a", "$defs": {"A": {"$dynamicAnchor": "a", **A}}},
            {"a": 1, "b": 1},
        ),
        ({"properties": {"o": {"$ref": "#a"}}, "$defs": {"A": {"$anchor": "a", **A}}}, {"x": 1}),
    ],
)
def test_what_is_said_in_more_than_one_place_stays_as_it_is(
    schema: dict[str, Any], value: Any
) -> None:
    """report T04: to be closed must not refuse what the server knows"""
    assert Draft202012Validator(schema).is_valid(value)
    assert accepts(schema, value)


def test_the_schema_itself_is_not_changed() -> None:
    schema: dict[str, Any] = {"properties": {"o": {"properties": {}}}}
    assert closed(schema) != schema
    assert schema == {"properties": {"o": {"properties": {}}}}
