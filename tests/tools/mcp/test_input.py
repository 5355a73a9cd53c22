"""Arguments are checked against a stranger's schema, and the stranger can't hold us up."""

import gc
import re
import time
from typing import Any

import pytest

from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult
from mini_harness.tools.call import Call, InvalidArguments
from mini_harness.tools.mcp.arguments import input_model
from mini_harness.tools.mcp.schema import LARGEST, UnusableSchema, is_quick, usable

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


class Told(BaseTool):
    """A tool with a server's schema."""

    name = "told"
    description = "A tool."

    def __init__(self, schema: Any) -> None:
        self.input_model, self.schema = input_model("Told", schema)

    async def execute(self, arguments: Any, context: ToolExecutionContext) -> ToolResult:
        return ToolResult(repr(arguments.root))


def one(schema: Any) -> Told:
    """A tool with one argument, ``a``."""
    return Told({"type": "object", "properties": {"a": schema}})


def faults(tool: BaseTool, arguments: Any) -> list[str]:
    try:
        Call(tool, "1", arguments)
    except InvalidArguments as error:
        return str(error).split("\n")
    return []


# --- what is valid ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, [1, -(2**80), 1.0], [True, "1", 1.5, None]),
        ({"type": "number"}, [1, 0.1], [True, "1", None]),
        ({"type": "boolean"}, [True], [1, 0, "true"]),
        ({"type": "string"}, ["", "\u2028"], [1, None]),
        ({"type": ["string", "null"]}, ["x", None], [1]),
        ({"enum": [1, "x"]}, [1, "x"], [True, "1"]),
        ({"const": False}, [False], [0]),
        ({"type": "array", "items": {"type": "integer"}}, [[], [1]], [[True], "1", [["1"]]]),
    ],
)
def test_nothing_is_converted(schema: Any, good: list[Any], bad: list[Any]) -> None:
    """B18: strict in JSON's own terms, where a bool is no number and text is no number"""
    tool = one(schema)
    for value in good:
        parsed: Any = Call(tool, "1", {"a": value}).parsed
        assert repr(parsed.root) == repr({"a": value})
    for value in bad:
        assert faults(tool, {"a": value}), value


def test_the_draft_that_the_schema_names_decides() -> None:
    """B18: 1.0 is an integer from draft 6 on, and wasn't one before"""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert faults(Told({"$schema": DRAFT_7, **schema}), {"a": 1.0}) == []
    assert faults(Told({"$schema": DRAFT_4, **schema}), {"a": 1.0})
    exclusive = {"properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}}
    assert faults(Told({"$schema": DRAFT_4, **exclusive}), {"a": 1})
    tuples = {"properties": {"a": {"prefixItems": [{"type": "string"}]}}}
    assert faults(Told({"$schema": DRAFT_7, **tuples}), {"a": [1]}) == []
    assert faults(Told(tuples), {"a": [1]})


# --- what the model is told -------------------------------------------------------------------


def test_each_fault_names_its_place_and_what_is_known() -> None:
    """report T04: every fault at once, as for the harness's own tools"""
    tool = Told(
        {
            "properties": {
                "path": {"type": "string"},
                "mode": {"enum": ["r", "w"]},
                "cfg": {"properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]},
                "at": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            },
            "required": ["path", "cfg"],
        }
    )
    wrong = {"mode": "rw", "cfg": {"a": 1, "forse": True}, "at": "x", "pth": "y"}
    found = faults(tool, wrong)
    assert found[0] == "Invalid arguments:"
    assert found[-1] == "Known arguments: path, mode, cfg, at."
    assert sorted(found[1:-1]) == [
        '- at: fits none of the allowed forms: must be of type "integer", but is string; or '
        'must be of type "null", but is string',
        "- cfg.a: must keep to minimum: 3",
        "- cfg.forse: unknown argument",
        '- mode: must be one of ["r", "w"]',
        "- path: is required, but missing",
        "- pth: unknown argument",
    ]


def test_a_message_doesnt_grow_with_the_arguments() -> None:
    many = {f"key{number}": "x" * 10_000 for number in range(1_000)}
    assert len("\n".join(faults(Told({"properties": {}}), many))) < 2_000
    assert len("\n".join(faults(one({"enum": ["y" * 9_000]}), {"a": "x" * 9_000}))) < 1_000


# --- what can't be used -----------------------------------------------------------------------

DEEP: Any = {}
for _ in range(70):
    DEEP = {"properties": {"a": DEEP}}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (7, "describes no JSON object"),
        ({"type": "string"}, "describes no JSON object"),
        ({"properties": 7}, "no JSON schema: at properties"),
        ({"properties": {"a": {"type": "number of cats"}}}, "no JSON schema: at properties/a/type"),
        ({"$schema": "https://example.org/mine"}, "its $schema is unknown"),
        ({"$schema": 7}, "no JSON schema|its $schema is unknown"),
        ({"properties": {"a": {"$schema": DRAFT_7}}}, "a $schema of its own"),
        ({"properties": {"a": {"pattern": "("}}}, "'(' is not a 'regex'"),
        ({"properties": {"a": {"pattern": r"\p{L}"}}}, "is not a 'regex'"),
        ({"patternProperties": {"^(a+)+$": {}}}, "may take for ever"),
        ({"$ref": "https://example.org/schema"}, "isn't in it"),
        ({"properties": {"a": {"$ref": "other.json#/a"}}}, "isn't in it"),
        ({"properties": {"a": {"items": {"$ref": "#/$defs/none"}}}}, "isn't in it"),
        ({"properties": {"a": {"$ref": "http://[bad"}}}, "no JSON schema|isn't in it"),
        ({"$ref": DRAFT_2020}, "isn't in it"),
        ({"$ref": "#/odd", "odd": {"type": 7}}, "no JSON schema"),
        ({"$ref": "#/odd", "odd": {"$ref": "file:///etc/passwd"}}, "isn't in it"),
        (DEEP, "can't be read"),
        ({"description": "x" * LARGEST}, "bytes"),
    ],
)
def test_a_schema_that_cant_be_used_is_refused_with_the_reason(schema: Any, reason: str) -> None:
    """B18: and nothing is fetched, for the tests have no network"""
    with pytest.raises(UnusableSchema, match="|".join(map(re.escape, reason.split("|")))):
        usable(schema)


@pytest.mark.parametrize("value", [{"$ref": "https://example.org/"}, "https://example.org/"])
def test_what_only_looks_like_a_reference_is_none(value: Any) -> None:
    usable({"properties": {"$ref": {"type": "string"}}, "default": value, "examples": [value]})
    usable({"properties": {"a": {"enum": [value]}, "b": {"const": value}}})


def test_an_object_is_what_every_tool_takes() -> None:
    assert usable({})[1] == {"type": "object"}
    assert faults(Told({}), {"anything": [1]}) == []


# --- what would take for ever -----------------------------------------------------------------


def test_a_schema_that_refers_to_itself_is_followed_as_far_as_the_arguments_go() -> None:
    tree = {"properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}}
    assert faults(Told(tree), {"child": {"child": {"n": 1}}}) == []
    assert faults(Told(tree), {"child": {"child": {"n": "1"}}})
    assert faults(Told(tree), {"child": {"child": {"m": 1}}})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {
            "$ref": "#/$defs/a0",
            "$defs": {
                **{f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)},
                "a40": {},
            },
        },
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#"},
        {"$dynamicAnchor": "x", "$dynamicRef": "#x"},
    ],
)
def test_a_schema_without_an_end_refuses_every_call(schema: Any) -> None:
    """Two to the power of 40 steps, or a loop: what can't be checked isn't valid."""
    began = time.monotonic()
    # What other tests have left must not be finalised where the stack has no room for that.
    gc.collect()
    gc.disable()
    try:
        (_, line, _) = faults(Told(schema), {"a": 1})
    finally:
        gc.enable()
    assert "can't be checked: the server's schema refers to itself" in line
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 60 + "!"),
        ("^(.|a.)*c$", "a" * 60),
        ("(x*)*y", "x" * 60),
        (r"^\s*a*a*a*a*a*a*b$", "a" * 3_000),
    ],
)
def test_a_pattern_that_takes_for_ever_is_given_up(pattern: str, text: str) -> None:
    """B18: Python's engine holds the whole process up, so it isn't asked in this one"""
    assert not is_quick(pattern)
    tool = one({"type": "string", "pattern": pattern})
    began = time.monotonic()
    (_, line, _) = faults(tool, {"a": text})
    assert "can't be checked: the pattern" in line
    assert time.monotonic() - began < 20


def test_many_slow_patterns_share_one_time_limit() -> None:
    """Each of these is quick, and each takes a process."""
    tool = one({"items": {"type": "string", "pattern": "^(a+)+$"}})
    assert faults(tool, {"a": ["a", "aa", "a"]}) == []
    (_, line, _) = faults(tool, {"a": ["a" * number for number in range(1, 1_000)]})
    assert "takes too long" in line


@pytest.mark.parametrize("draft", [DRAFT_7, DRAFT_2020])
def test_the_bounds_hold_behind_a_reference_too(draft: str) -> None:
    """The library chooses its own rules at a reference to a schema that names its draft."""
    slow = {"child": {"$ref": "#"}, "t": {"type": "string", "pattern": "^(a+)+$"}}
    tool = Told({"$schema": draft, "properties": slow})
    assert "can't be checked" in faults(tool, {"child": {"t": "a" * 60 + "!"}})[1]


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^\d{4}-\d{2}-\d{2}$", "2026-11-30", "today"),
        ("^(red|green)$", "red", "blue"),
        (r"^[\w.+-]+@([a-z]+\.)+[a-z]{2,}$", "me@example.org", "me@example"),
        ("[*+?{(|]", "a+b", "ab"),
        (r"^\(\w\)$", "(a)", "a"),
        ("^é\u2028$", "é\u2028", "e"),
    ],
)
def test_an_honest_pattern_is_checked(pattern: str, good: str, bad: str) -> None:
    tool = one({"type": "string", "pattern": pattern})
    assert faults(tool, {"a": good}) == []
    assert faults(tool, {"a": bad})[1] == f'- a: must keep to pattern: "{shown(pattern)}"'


def shown(pattern: str) -> str:
    return pattern.replace("\\", "\\\\")


def test_which_patterns_are_quick_for_sure() -> None:
    quick = ["", "^abc$", r"^\d{3}-\d{4}$", "^[a-z*+?]+$", "^(?=x)y", "a|b", "^(a|b)$", r"\*\+\?a*"]
    slow = ["a*b*", "(a|b)*", "(a{2}){3}*", "a??", "(a|b)(c|d)", "x{2,3}y?", "(a|b){9}"]
    assert [pattern for pattern in quick if not is_quick(pattern)] == []
    assert [pattern for pattern in slow if is_quick(pattern)] == []
