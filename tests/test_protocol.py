"""What a model may say, and the history that pairs calls with observations."""

import itertools
import math
import string
from collections.abc import Callable
from typing import Any

import pytest

from mini_harness.frozen import FrozenDict, freeze
from mini_harness.history import History, HistoryError
from mini_harness.protocol import (
    Final,
    Observation,
    Outcome,
    ToolCall,
    Turn,
    UnknownDecision,
    UnknownTool,
    Usage,
    read_turn,
)
from tests.loops import DONE, call, kinds, outcomes, play, tool_messages, turn

TOOL = {"type": "tool", "name": "add", "arguments": {"a": 1}}
FINAL = {"type": "final", "output": "done"}


class Unfriendly:
    """Whatever is done with it goes wrong."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError("nothing to show")


def deep() -> Any:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    return value


def calls_of(reply: object) -> tuple[ToolCall, ...]:
    read = read_turn(reply)
    assert isinstance(read, Turn), read
    return read.calls


@pytest.mark.parametrize(
    "reply", [TOOL, [TOOL], ToolCall("add", {"a": 1}), turn(ToolCall("add", {"a": 1}))]
)
def test_a_tool_call_may_be_said_in_four_ways(reply: object) -> None:
    """A04, A05"""
    assert calls_of(reply) == (ToolCall("add", {"a": 1}),)


@pytest.mark.parametrize("output", ["text", "", 0, False, None, [], {}, 1.5, {"a": [1]}])
def test_any_json_value_is_a_final_answer(output: object) -> None:
    """A04, rule 1: 0, "" and False are values"""
    for reply in ({"type": "final", "output": output}, Final(output)):
        read = read_turn(reply)
        assert isinstance(read, Final)
        assert read.output == output
        assert type(play([reply]).run.unwrap()) is type(freeze(output))


@pytest.mark.parametrize(
    "reply",
    [
        None,
        True,
        42,
        "done",
        '{"type": "final", "output": "done"}',
        '```json\n{"type": "tool", "name": "add", "arguments": {}}\n```',
        b"bytes",
        {},
        [],
        (),
        {"type": "tool"},
        {"type": "tool", "name": "add"},
        {"type": "tool", "name": None, "arguments": {}},
        {"type": "tool", "name": ["add"], "arguments": {}},
        {"type": "Tool", "name": "add", "arguments": {}},
        {"type": "finish", "output": 1},
        {"type": None, "output": 1},
        {"type": ["final"], "output": 1},
        {"name": "add", "arguments": {}},
        {"output": 1},
        {**TOOL, "extra": 1},
        dict([*TOOL.items(), (1, 2)]),
        {**TOOL, "\ud800": 2},
        {**TOOL, "call_id": 7},
        {**TOOL, "thought": 7},
        {**TOOL, "usage": {"tokens": 7}},
        {**TOOL, "arguments": {"a": math.nan}},
        {**TOOL, "arguments": {"a": 10**5000}},
        {**TOOL, "arguments": deep()},
        {**FINAL, "extra": 1},
        {**FINAL, "output": object()},
        [TOOL, FINAL],
        [TOOL, None],
        [{"name": "add", "arguments": {}}],
        deep(),
        object(),
        Unfriendly(),
        ToolCall,
        iter([TOOL]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_else_a_model_says_is_an_unknown_decision(reply: object) -> None:
    """A04, A14"""
    read = read_turn(reply)
    assert isinstance(read, UnknownDecision)
    assert str(read) == "Unknown decision type"
    assert isinstance(read, ValueError)
    assert read.reason
    assert len(read.said) <= 500


@pytest.mark.parametrize(
    "reply",
    [
        ToolCall(None, {}),  # type: ignore[arg-type]
        ToolCall([], {}),  # type: ignore[arg-type]
        ToolCall("add", {}, 7),  # type: ignore[arg-type]
        ToolCall("add", {}, ["id"]),  # type: ignore[arg-type]
        ToolCall("add", {}, thought=object()),  # type: ignore[arg-type]
        ToolCall("add", {}, usage=7),  # type: ignore[arg-type]
        ToolCall("add", {}, usage=Usage(math.nan)),  # type: ignore[arg-type]
        ToolCall("add", {}, defect=7),  # type: ignore[arg-type]
        ToolCall("add", {}, type="final"),  # type: ignore[arg-type]
        ToolCall("add", object()),
        Final(1, thought=object()),  # type: ignore[arg-type]
        Final(1, usage=Usage("many")),  # type: ignore[arg-type]
        Final(1, raw=object()),
        Final(Unfriendly()),
        Turn(()),
        Turn(None),  # type: ignore[arg-type]
        Turn(7),  # type: ignore[arg-type]
        Turn(("add",)),  # type: ignore[arg-type]
        Turn((Final(1),)),  # type: ignore[arg-type]
        Turn((ToolCall(None, {}),)),  # type: ignore[arg-type]
        Turn((ToolCall("add", {}),), thought=object()),  # type: ignore[arg-type]
        Turn((ToolCall("add", {}),), usage=7),  # type: ignore[arg-type]
        Turn((ToolCall("add", {}),), raw=math.nan),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_instance_is_checked_like_its_wire_form(reply: object) -> None:
    """A04, A14: an adapter's fault ends neither the run nor the record"""
    assert isinstance(read_turn(reply), UnknownDecision)
    run, _ = play([reply, DONE])
    assert run.unwrap() == "done"


def test_an_unknown_decision_is_recorded_and_shown_to_the_model() -> None:
    """A14, DESIGN Decision: recorded, shown to the model, never guessed at"""
    run, events = play(["just text", {"type": "finish", "output": 1}, DONE])
    unknown = ["model_decision", "message"]
    assert kinds(events) == ["message", *unknown, *unknown, "model_decision", "final"]
    assert events[1].data == {"decision": "'just text'", "unknown": "a str, not an object"}
    told = run.history.messages[1]
    assert told["role"] == "user"
    assert "just text" in told["content"]
    assert '{"type": "final", "output": ...}' in told["content"]
    assert run.step == 3


def test_an_unknown_tool_is_a_key_error_with_exactly_this_text() -> None:
    """A15"""
    error = UnknownTool("frobnicate")
    assert isinstance(error, KeyError)
    assert error.args == ("Unknown tool: frobnicate",)


def test_a_turn_shares_nothing_changeable_with_its_model() -> None:
    """DESIGN, Event"""
    reply: dict[str, Any] = {"type": "tool", "name": "nobody", "arguments": {"a": [1]}}
    answer: dict[str, Any] = {"type": "final", "output": {"a": [1]}}

    def change(history: object, tools: object) -> object:
        reply["name"] = "changed"
        reply["arguments"]["a"].append(2)
        return answer

    run, events = play([reply, change])
    answer["output"]["a"].append(2)
    proposal = run.history.messages[1]
    assert proposal["calls"][0]["name"] == "nobody"
    assert proposal["calls"][0]["arguments"] == {"a": [1]}
    assert events[1].data["calls"][0]["arguments"] == {"a": [1]}
    assert run.unwrap() == {"a": [1]}


def test_usage_is_added_up_over_calls_and_turns() -> None:
    listed = [
        ToolCall("nobody", {}, usage=Usage(1, 2), thought="first"),
        ToolCall("nobody", {}, usage=Usage(10, 20, 30, 40), thought="second"),
    ]
    run, _ = play([listed, Turn((call("nobody"),), usage=Usage(100)), Final(1, usage=Usage(0, 5))])
    assert run.usage == Usage(111, 27, 30, 40)
    assert run.history.messages[1]["content"] == "first\nsecond"


ADMITTED = [
    # what the model sends: id, argument -> what is admitted: id, whether it runs
    ([("d1", "A"), ("d1", "B")], [("d1", True), ("d1-2", True)]),
    ([("d1", "A"), ("d1", "A")], [("d1", True), ("d1-2", False)]),
    ([("d1", "A"), ("d1", "B"), ("d1", "A")], [("d1", True), ("d1-2", True), ("d1-3", False)]),
    ([("d1", "A"), ("d1", "B"), ("d1", "B")], [("d1", True), ("d1-2", True), ("d1-3", False)]),
    ([("d1", "A"), ("d1", "A"), ("d1", "A")], [("d1", True), ("d1-2", False), ("d1-3", False)]),
    ([("d1", "A"), ("d2", "A")], [("d1", True), ("d2", True)]),
    ([("d1", "A"), ("d1", "B"), ("d1-2", "B")], [("d1", True), ("d1-2", True), ("d1-2-2", True)]),
    ([("d1-2", "A"), ("d1", "B"), ("d1", "C")], [("d1-2", True), ("d1", True), ("d1-3", True)]),
    ([("d1", 1), ("d1", True)], [("d1", True), ("d1-2", True)]),
    ([("d1", 1), ("d1", 1.0)], [("d1", True), ("d1-2", True)]),
    ([("", "A"), ("", "A")], [("made-1", True), ("made-2", True)]),
    ([(" ", "A"), ("\t", "A")], [("made-1", True), ("made-2", True)]),
    ([("made-1", "A"), ("", "B")], [("made-1", True), ("made-1-2", True)]),
]


@pytest.mark.parametrize(("sent", "admitted"), ADMITTED, ids=lambda value: type(value).__name__)
def test_every_call_gets_an_id_of_its_own_and_a_twin_does_not_run(
    sent: list[tuple[str, Any]], admitted: list[tuple[str, bool]]
) -> None:
    """report T08"""
    calls = [ToolCall("write", FrozenDict(x=x), call_id) for call_id, x in sent]
    numbers = itertools.count(1)
    History().admit(calls, lambda tool: f"made-{next(numbers)}")
    assert [(made.call_id, made.defect is None) for made in calls] == admitted


def test_an_id_of_an_earlier_turn_is_not_used_again() -> None:
    """report T08"""
    run, _ = play([call("nobody", "d1"), call("nobody", "d1"), call("nobody", "d1"), DONE])
    assert [seen["call_id"] for seen in tool_messages(run)] == ["d1", "d1-2", "d1-3"]


def test_the_twin_is_told_whose_twin_it_is() -> None:
    """report T08"""
    run, _ = play([turn(call("nobody", "x"), call("add", "d1"), call("add", "d1")), DONE])
    assert outcomes(run)[2] == ("d1-2", "unknown_tool")
    assert run.history.messages[1]["calls"][2]["defect"] == "It is the same call as d1, sent twice."


def answered(*calls: ToolCall) -> History:
    history = History()
    history.add_calls(calls, FrozenDict(role="assistant"))
    for made in calls:
        history.add_observation(FrozenDict(role="tool", call_id=made.call_id))
    return history


@pytest.mark.parametrize(
    "wrong",
    [
        lambda h: h.add(FrozenDict()),
        lambda h: h.add_calls([call("add", "b")], FrozenDict()),
    ],
)
def test_nothing_comes_between_a_call_and_its_observation(wrong: Callable[[History], None]) -> None:
    """DESIGN, Observation: no writer can break the pair"""
    history = History()
    history.add_calls([call("add", "a")], FrozenDict(role="assistant"))
    with pytest.raises(HistoryError, match="without an observation: a"):
        wrong(history)
    assert len(history.messages) == 1


@pytest.mark.parametrize("call_id", ["a", ""])
def test_a_used_or_empty_id_is_refused(call_id: str) -> None:
    with pytest.raises(HistoryError, match="empty or was used"):
        answered(call("add", "a")).add_calls([call("add", call_id)], FrozenDict())


def test_an_observation_needs_a_call() -> None:
    history = answered(call("add", "a"))
    history.add(FrozenDict(role="user"))
    for call_id in ("a", "nobody"):
        with pytest.raises(HistoryError, match="of this turn"):
            history.add_observation(FrozenDict(role="tool", call_id=call_id))


def test_a_second_observation_in_the_turn_takes_the_place_of_the_first() -> None:
    history = answered(call("add", "a"), call("add", "b"))
    history.add_observation(FrozenDict(role="tool", call_id="a", tool_result="new"))
    assert [m.get("tool_result") for m in history.messages] == [None, "new", None]


def test_the_messages_are_a_window_that_nobody_can_write_through() -> None:
    messages = answered(call("add", "a")).messages
    for name in ("append", "insert", "pop", "clear", "__setitem__", "__delitem__", "__iadd__"):
        assert not hasattr(messages, name)
    with pytest.raises(TypeError, match="part of the record"):
        messages[0]["role"] = "user"  # type: ignore[index]
    assert messages == list(messages)
    assert messages[-1]["role"] == "tool"
    assert list(messages[:1]) == [{"role": "assistant"}]


def test_an_observation_cannot_be_changed_only_replaced() -> None:
    """What was recorded is what the caller holds."""
    seen = Observation("a", "add", "3")
    with pytest.raises(AttributeError):
        seen.output = "4"  # type: ignore[misc]
    assert seen._replace(output="4").output == "4"


def test_only_ok_is_a_success() -> None:
    """Rule 1"""
    for outcome in Outcome:
        assert Observation("a", "add", "", outcome).is_error is (outcome is not Outcome.OK)


def test_two_hundred_fast_calls_have_two_hundred_ids_that_are_file_names() -> None:
    """C21"""
    names = ["add", "../../etc/passwd", "größe", "a b", "x" * 300, "\ud800", ""]
    script = [turn(*[call(name) for name in names]) for _ in range(30)]
    run, _ = play([*script, DONE])
    ids = [seen["call_id"] for seen in tool_messages(run)]
    assert len(ids) == len(set(ids)) == 210
    safe = set(string.ascii_letters + string.digits + "_-")
    assert all(set(made) <= safe and len(made) < 100 for made in ids)
    assert ids[0].startswith("call_add_")
