"""A call is looked up, validated, frozen and hashed before anyone judges it."""

import asyncio
import datetime
import hashlib
import json
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel

from mini_harness.frozen import FrozenDict
from mini_harness.protocol import Outcome, ToolCall, UnknownTool
from mini_harness.tools.base import BaseTool, ToolExecutionContext
from mini_harness.tools.builds import TOOLS, add
from mini_harness.tools.call import Call, InvalidArguments, prepare
from mini_harness.tools.function import tool
from mini_harness.tools.registry import ToolRegistry
from tests.loops import DONE, call, outcomes, play, turn


class Config(BaseModel):
    a: int


@tool
def save(cfg: Config, tags: list[str] = []) -> str:  # noqa: B006 - pydantic copies it
    """Save the configuration."""
    return f"{cfg.a}"


@tool
def read_doc(topic: str = "") -> str:
    """Read a document."""
    return topic


@tool
def rm(path: str, force: bool, depth: int) -> str:
    """Remove files."""
    return f"{path} {force} {depth}"


@tool
def take(
    ratio: float = 0.0,
    day: datetime.date | None = None,
    pair: tuple[int, str] | None = None,
    mode: Literal["a", "b"] = "a",
    names: set[str] = set(),  # noqa: B006 - pydantic copies it
    anything: Any = None,
) -> str:
    """Take it."""
    return repr((ratio, day, pair, mode, names, anything))


def refused(made: BaseTool, arguments: Any) -> str:
    with pytest.raises(InvalidArguments) as raised:
        Call(made, "c", arguments)
    return str(raised.value)


def test_an_object_given_as_json_text_is_refused_by_name_every_time() -> None:
    """report T01: nothing is decoded twice, and the rule is the same on every call"""
    text = '{"a": 1}'
    script = [call("save", cfg=text), call("save", cfg=text), call("save", cfg={"a": 1}), DONE]
    run, _ = play(script, [save])
    assert [outcome for _, outcome in outcomes(run)] == ["invalid_arguments"] * 2 + ["ok"]
    assert "- cfg: Input should be an object" in refused(save, {"cfg": text})
    assert "- tags: Input should be a valid array" in refused(
        save, {"cfg": {"a": 1}, "tags": '["x"]'}
    )


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ('{"cfg": {"a": 1}}', "text"),
        (None, "NoneType"),
        ([], "list"),
        (7, "int"),
        (True, "bool"),
    ],
)
def test_arguments_that_are_no_object_are_refused(arguments: Any, kind: str) -> None:
    """report T01"""
    assert refused(save, arguments) == (
        f"The arguments must be a JSON object, but they are {kind}."
    )


@pytest.mark.parametrize(
    ("made", "arguments", "place"),
    [
        (read_doc, {"path": "x"}, "path"),
        (save, {"cfg": {"a": 1, "forse": True}}, "cfg.forse"),
        (save, {"cfg": {"a": 1}, "": 1}, ""),
        (save, {"cfg": {"a": 1}, "Cfg": {}}, "Cfg"),
    ],
)
def test_an_unknown_argument_is_named_with_those_there_are(
    made: BaseTool, arguments: Any, place: str
) -> None:
    """report T04"""
    text = refused(made, arguments)
    assert f"- {place or 'arguments'}: unknown argument" in text or f"- {place}" in text
    known = "topic" if made is read_doc else "cfg, tags"
    assert text.endswith(f"Known arguments: {known}.")


def test_every_field_at_fault_has_a_line_of_its_own() -> None:
    text = refused(rm, {"force": "NO", "depth": 1.5, "other": 1})
    assert [line.split(":")[0] for line in text.splitlines()] == [
        *["Invalid arguments", "- path", "- force", "- depth", "- other"],
        "Known arguments",
    ]


NO = "refused"
STRICT: list[tuple[str, Any, Any]] = [
    # argument, what the model sends, what the tool gets
    ("force", True, True),
    ("force", False, False),
    ("force", "NO", NO),
    ("force", "off", NO),
    ("force", "true", NO),
    ("force", "", NO),
    ("force", 1, NO),
    ("force", 0, NO),
    ("force", None, NO),
    ("depth", 3, 3),
    ("depth", -(2**70), -(2**70)),
    ("depth", True, NO),
    ("depth", 3.0, NO),
    ("depth", 3.5, NO),
    ("depth", "7", NO),
    ("depth", None, NO),
    ("path", "x", "x"),
    ("path", "", ""),
    ("path", 7, NO),
    ("path", True, NO),
    ("path", ["x"], NO),
    ("path", None, NO),
    ("ratio", 0.5, 0.5),
    ("ratio", 1, 1.0),
    ("ratio", True, NO),
    ("ratio", "0.5", NO),
    ("day", "2026-02-28", datetime.date(2026, 2, 28)),
    ("day", "2026-02-30", NO),
    ("day", 0, NO),
    ("pair", [1, "x"], (1, "x")),
    ("pair", [1], NO),
    ("pair", ["1", "x"], NO),
    ("mode", "b", "b"),
    ("mode", "B", NO),
    ("names", ["x", "x"], {"x"}),
    ("names", "x", NO),
    ("anything", {"a": [None, 1.5]}, {"a": [None, 1.5]}),
]


@pytest.mark.parametrize(("name", "sent", "got"), STRICT)
def test_the_fixed_table_of_conversions(name: str, sent: Any, got: Any) -> None:
    """report T07: validation is strict in JSON's own terms"""
    made = rm if name in ("path", "force", "depth") else take
    others = {"path": "p", "force": False, "depth": 0} if made is rm else {}
    arguments = {**others, name: sent}
    if got is NO:
        assert f"- {name}" in refused(made, arguments)
        return
    value = getattr(Call(made, "c", arguments).fresh(), name)
    assert value == got
    assert type(value) is type(got)


@pytest.mark.parametrize(
    "value",
    ["\ud800", {"\ud800": 1}, ["\udfff"], math.nan, math.inf, 10**5000, {1: 2}, object()],
    ids=lambda value: type(value).__name__,
)
def test_values_that_no_json_text_can_hold_are_refused(value: Any) -> None:
    """report T13"""
    assert "The arguments can't be" in refused(take, {"anything": value})


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"in": value}
    return value


def test_deep_arguments_are_refused_and_those_at_the_limit_arrive_whole() -> None:
    """report T13"""
    assert "nested deeper than 64 levels" in refused(take, {"anything": nested(100)})
    kept = Call(take, "c", {"anything": nested(63)})
    assert getattr(kept.fresh(), "anything") == nested(63)  # noqa: B009 - a generated model


@pytest.mark.parametrize("name", ["read_fil", "Read_Build", " read_build ", "", "\ud800", "a\nb"])
def test_an_unknown_tool_is_told_the_real_names(name: str) -> None:
    """A15, C20, report T11"""
    seen = prepare(ToolRegistry(TOOLS), ToolCall(name, {}, "c"))
    assert not isinstance(seen, Call)
    assert seen.outcome is Outcome.UNKNOWN_TOOL
    assert isinstance(seen.error, UnknownTool)
    assert seen.error.args == (f"Unknown tool: {name}",)
    assert seen.output.endswith(
        "The tools here are: add, read_build, read_log, rerun_build, deploy_prod."
    )


def test_without_tools_the_list_says_so() -> None:
    seen = prepare(ToolRegistry(), ToolCall("add", {}, "c"))
    assert not isinstance(seen, Call)
    assert seen.output == "Unknown tool: add. The tools here are: none."


def test_a_call_with_a_defect_never_runs_and_the_model_is_told() -> None:
    """report T10: what an adapter knows to be cut off"""
    cut = ToolCall("add", {"a": 1, "b": 2}, "c1", defect="The output limit cut it off.")
    run, events = play([turn(cut), DONE], [add])
    assert outcomes(run) == [("c1", "not_run")]
    assert "was not run. The output limit cut it off." in run.history.messages[2]["tool_result"]
    assert "tool_start" not in [event.type for event in events]


def crash(value: int) -> int:
    return {1: value}[value]


def forget(value: int) -> int:
    raise AttributeError


def too_small(value: int) -> int:
    raise ValueError("too small")


@pytest.mark.parametrize(
    ("validator", "said"),
    [
        (crash, "KeyError(7)"),
        (forget, "AttributeError()"),
        (too_small, "x: Value error, too small"),
    ],
)
def test_what_a_tools_own_validator_raises_becomes_an_observation(
    validator: Callable[[int], int], said: str
) -> None:
    """A16: the tool's own code, though it isn't its execute"""

    @tool
    def checked(x: Annotated[int, AfterValidator(validator)]) -> str:
        """Check it."""
        return "ran"

    run, _ = play([call("checked", x=7), DONE], [checked])
    assert outcomes(run)[0][1] == "invalid_arguments"
    assert said in run.history.messages[2]["tool_result"]


def test_the_arguments_are_frozen_at_once_and_as_the_model_sent_them() -> None:
    """Rule 2"""
    sent: dict[str, Any] = {"cfg": {"a": 1}, "tags": ["x"]}
    made = Call(save, "c", sent)
    sent["cfg"]["a"] = 2
    sent["tags"].append("y")
    assert made.arguments == {"cfg": {"a": 1}, "tags": ["x"]}
    assert isinstance(made.arguments, FrozenDict)
    assert isinstance(made.arguments["cfg"], FrozenDict)


def test_the_digest_names_the_tool_and_exactly_these_arguments() -> None:
    """Rule 2: what an approval names"""
    text = 'add\n{"a":1,"b":2}'
    digest = Call(add, "c1", {"a": 1, "b": 2}).digest
    assert digest == hashlib.sha256(text.encode()).hexdigest()
    assert digest == Call(add, "c2", {"b": 2, "a": 1}).digest
    others = [Call(add, "c1", {"a": 2, "b": 1}), Call(take, "c", {}), Call(read_doc, "c", {})]
    assert len({digest, *[other.digest for other in others]}) == 4


def test_everyone_who_asks_gets_validated_arguments_of_their_own() -> None:
    """Rule 2: neither a judge nor the tool can change what another one sees"""
    made = Call(save, "c", {"cfg": {"a": 1}, "tags": ["x"]})
    judge: Callable[[], Any] = lambda: made.parsed  # noqa: E731 - beside made.fresh
    for give in (judge, made.fresh, judge, made.fresh, made.fresh):
        arguments: Any = give()
        assert (arguments.cfg.a, arguments.tags) == (1, ["x"])
        arguments.cfg.a = 99
        arguments.tags.append("changed")


def test_edited_arguments_are_prepared_again_under_the_same_id() -> None:
    """Rule 2, DESIGN: a layer that edits arguments has them prepared again"""
    made = Call(add, "c1", {"a": 1, "b": 2})
    edited = made.with_arguments({"a": 10, "b": 2})
    assert (edited.call_id, edited.tool) == ("c1", add)
    assert edited.arguments == {"a": 10, "b": 2}
    assert edited.digest != made.digest
    assert made.arguments == {"a": 1, "b": 2}
    with pytest.raises(InvalidArguments, match="b: Field required"):
        made.with_arguments({"a": 10})


def test_the_model_reads_the_fault_and_can_mend_it() -> None:
    """B23"""
    run, events = play([call("add", a=1, b="2"), call("add", a=1, b=2), DONE], [add])
    assert json.loads(events[2].to_json())["data"]["outcome"] == "invalid_arguments"
    assert [m["tool_result"] for m in run.history.messages if m["role"] == "tool"] == [
        "Invalid arguments:\n- b: Input should be a valid integer\nKnown arguments: a, b.",
        "3",
    ]


def test_a_tool_gets_an_instance_of_its_own_at_every_attempt() -> None:
    made = Call(save, "c", {"cfg": {"a": 1}})
    first, second = made.fresh(), made.fresh()
    assert first == second
    assert first is not second
    assert asyncio.run(save.execute(second, ToolExecutionContext())).output == "1"
