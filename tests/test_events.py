"""What an event is as JSON and as a line for people."""

import json
from collections.abc import Callable

import pytest

from mini_harness.events import WIDTH, Event, EventType
from mini_harness.frozen import FrozenDict, freeze


def event(type: EventType, **data: object) -> Event:
    return Event("run-1", 3, 2, type, 0.5, 1.5, freeze(data))


def test_an_event_is_one_line_of_strict_json() -> None:
    text = event(EventType.MESSAGE, content="a\nb\u2028c\u2029d\ud800 é \U0001f600").to_json()
    assert len(text.splitlines()) == 1
    text.encode("utf-8")
    read = json.loads(text)
    assert read["data"]["content"] == "a\nb\u2028c\u2029d\ud800 é \U0001f600"
    assert (read["event_id"], read["sequence"], read["type"]) == ("run-1:3", 3, "message")


def test_its_data_refuses_every_change() -> None:
    data = event(EventType.TOOL_START, arguments={"a": [1]}).data
    changes: list[Callable[[], object]] = [
        lambda: data.update(x=1),
        lambda: data["arguments"].pop("a"),
        lambda: data["arguments"]["a"].append(2),
        lambda: data.__setitem__("x", 1),
    ]
    for change in changes:
        with pytest.raises(TypeError, match="part of the record"):
            change()


@pytest.mark.parametrize(
    ("shown", "what"),
    [
        (event(EventType.TOOL_START, tool="add", arguments={"b": 2, "a": 1}), 'add {"a":1,"b":2}'),
        (event(EventType.TOOL_RESULT, tool="t", tool_result="\n a  b\nc\n"), "t -> (+2 lines)"),
        (event(EventType.TOOL_ERROR, tool="t", tool_result="no"), "t -> no"),
        (event(EventType.MODEL_DECISION, content="x", final=True), "final answer"),
        (event(EventType.MODEL_DECISION, calls=[{"name": "a"}, {"name": "b"}]), "call a and b"),
        (event(EventType.MODEL_DECISION, decision="'?'", unknown="why"), "unknown: '?'"),
        (event(EventType.FINAL, output=0), "0"),
        (event(EventType.STOP, reason="budget", used=3), 'budget: {"used":3}'),
        (event(EventType.STOP, reason="error", error="KeyError('x')"), "error: KeyError('x')"),
        (
            event(EventType.TOOL_ERROR, tool="t", tool_result="Bad:\n- a: b\nc"),
            "t -> Bad: a: b (+1 lines)",
        ),
        (
            event(EventType.VERDICT, verdict="deny", tool="t", rule="r", reason="Why."),
            "deny t by rule r: Why.",
        ),
        (event(EventType.APPROVAL, approved=True, tool="t", by="A person"), "A person approved t"),
        (event(EventType.APPROVAL, approved=False, tool="t", by="deny_all"), "deny_all denied t"),
        (event(EventType.PAUSE, tool="t", digest="d"), "t waits for an answer"),
        (event(EventType.PAUSE, why="w"), '{"why":"w"}'),
        (event(EventType.RESUME), ""),
    ],
)
def test_the_line_for_people_says_what_matters(shown: Event, what: str) -> None:
    assert str(shown) == f"  3  step 2   {shown.type:<14}  {what}".rstrip()


def test_the_line_for_people_is_never_long() -> None:
    line = str(event(EventType.MESSAGE, content="x" * 500 + "\ny"))
    assert line.endswith("x … (+1 lines)")
    assert len(line) <= 31 + WIDTH
    assert isinstance(event(EventType.MESSAGE, content="").data, FrozenDict)
