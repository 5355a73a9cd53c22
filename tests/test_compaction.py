"""Compaction: what the model sees is short enough and whole, and the record is as ever."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.budget import Budget
from mini_harness.clock import VirtualClock
from mini_harness.compaction import Compaction, DropOldOutputs, Strategy, Summary
from mini_harness.events import Event
from mini_harness.frozen import canonical
from mini_harness.layer import Feedback, Layer
from mini_harness.loop import Harness
from mini_harness.models.anthropic_request import to_messages
from mini_harness.models.base import ModelError
from mini_harness.protocol import Final, Message, Usage
from mini_harness.run import Run, Status, StopReason
from mini_harness.session import Session
from mini_harness.tools.base import ToolSchema
from mini_harness.tools.function import function_tool
from tests.loops import DONE, call, check, turn
from tests.sessions import new
from tests.wire_rules import check_rules


def read(part: str, size: int = 200) -> str:
    """Read a part."""
    return f"{part}:" + "x" * size


READ = function_tool(read)


class Watching:
    """Plays a script, and keeps what it was shown. Asked for a summary it gives one."""

    def __init__(self, turns: Sequence[Any], summary: Any = "All is well.") -> None:
        self.turns, self.summary = list(turns), summary
        self.shown: list[list[Message]] = []
        self.asked_to_sum: list[str] = []

    def decide(self, history: Sequence[Message], tools: Sequence[ToolSchema]) -> Any:
        if len(history) == 1 and history[0]["content"].startswith("Summarise"):
            self.asked_to_sum.append(history[0]["content"])
            if isinstance(self.summary, Exception):
                raise self.summary
            return self.summary if isinstance(self.summary, Final) else Final(self.summary)
        self.shown.append(list(history))
        return self.turns[len(self.shown) - 1]


def bytes_of(messages: Sequence[Message]) -> int:
    return sum(len(canonical(each).encode()) for each in messages)


def play(
    turns: Sequence[Any], compaction: Layer, summary: Any = "All is well.", **parts: Any
) -> tuple[Run, list[Event], Watching]:
    model, events = Watching(turns, summary), list[Event]()
    layers = [compaction, *parts.pop("inside", ())]
    sinks = [events.append, *parts.pop("sinks", ())]
    harness = Harness(model, [READ], layers=layers, sinks=sinks, clock=VirtualClock(), **parts)
    run = asyncio.run(harness.run("The goal."))
    check(run, events)
    return run, events, model


MANY = [call("read", part=f"part-{number}") for number in range(20)]


def compactions(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [dict(event.data) for event in events if event.type == "compaction"]


@pytest.mark.parametrize("strategies", [[DropOldOutputs()], [Summary()], None])
def test_a_view_stays_below_the_limit_and_keeps_the_goal_and_the_latest_turn(
    strategies: list[Strategy] | None,
) -> None:
    """A25"""
    run, events, model = play([*MANY, DONE], Compaction(7_000, strategies))
    assert run.status is Status.COMPLETED
    assert bytes_of(run.history.messages) > 8_000
    for shown in model.shown:
        assert bytes_of(shown) <= 7_000
        assert shown[0] == run.history.messages[0]
    assert model.shown[-1][-1] == run.history.messages[-2]
    assert compactions(events)


def test_the_record_is_that_of_a_run_without_compaction() -> None:
    long, events, _ = play([*MANY, DONE], Compaction(3_000))
    plain, _, _ = play([*MANY, DONE], Layer())
    assert list(long.history.messages) == list(plain.history.messages)
    kinds = [event.type for event in events if event.type != "compaction"]
    assert kinds == [event.type for event in play([*MANY, DONE], Layer())[1]]


def test_after_a_compaction_there_is_room_for_a_while() -> None:
    _, events, _ = play([*MANY, DONE], Compaction(6_000, [Summary()]))
    assert 1 <= len(compactions(events)) <= 3
    assert all(each["after"] <= 4_000 and each["before"] > 6_000 for each in compactions(events))


def test_a_dropped_output_says_how_long_it_was_and_the_call_stays() -> None:
    _, _, model = play([*MANY, DONE], Compaction(8_000, [DropOldOutputs()]))
    last = model.shown[-1]
    assert len(last) == 2 * len(MANY) + 1
    assert last[2]["tool_result"] == "[207 bytes were left out here.]"
    assert last[1]["calls"][0]["arguments"] == {"part": "part-0"}


def test_a_summary_is_made_of_the_one_before_and_what_came_since() -> None:
    _, events, model = play([*MANY, DONE], Compaction(3_000, [Summary()]))
    assert len(model.asked_to_sum) > 1
    assert "All is well." in model.asked_to_sum[1]
    assert "part-0:" in model.asked_to_sum[0]
    assert "part-0:" not in model.asked_to_sum[1]
    assert compactions(events)[-1]["summary"] == "All is well."
    assert model.shown[-1][1]["content"].endswith("All is well.")


def test_what_the_user_said_last_is_always_shown() -> None:
    """report S08"""
    model = Watching([*MANY[:2], DONE, *MANY, DONE])
    harness = Harness(model, [READ], layers=[Compaction(3_000, [Summary()])], clock=VirtualClock())
    run = asyncio.run(harness.run("The goal."))
    harness.record.message(run, "And now this.")
    asyncio.run(harness.resume(run))
    said = [each["content"] for each in model.shown[-1] if each["role"] == "user"]
    assert (said[0], said[-1]) == ("The goal.", "And now this.")
    assert len(said) == 3


@pytest.mark.parametrize(
    "summary", ["", "  ", "long " * 2_000, ModelError("down"), Final({"a": 1})]
)
def test_a_summary_that_brings_nothing_isnt_used_and_isnt_asked_for_at_every_step(
    summary: Any,
) -> None:
    run, _, model = play([*MANY, DONE], Compaction(3_000, [Summary()]), summary)
    assert run.status is Status.COMPLETED
    if summary != Final({"a": 1}):
        assert len(model.shown[-1]) == len(run.history.messages) - 1
    assert len(model.asked_to_sum) <= 8


def test_what_a_summary_costs_counts_and_a_budget_sees_it() -> None:
    spent = Usage(input_tokens=900, output_tokens=100)
    budget = Budget(tokens=1_500)
    summary = Final("Short.", usage=spent)
    run, _, _ = play([*MANY, DONE], Compaction(3_000, [Summary()]), summary, inside=[budget])
    assert run.stop is not None
    assert run.stop["reason"] == StopReason.BUDGET
    assert run.usage == spent + spent
    unused = Final("long " * 2_000, usage=spent)
    run, events, _ = play([*MANY, DONE], Compaction(6_000, [Summary()]), unused)
    assert run.usage.input_tokens == 900 * len(compactions(events)) > 0


def test_one_turn_that_is_too_long_by_itself_goes_through_as_it_is() -> None:
    run, events, model = play([call("read", part="a", size=9_000), DONE], Compaction(1_000))
    assert run.status is Status.COMPLETED
    assert list(model.shown[-1]) == list(run.history.messages)[:-1]
    assert not compactions(events)


def test_a_resumed_run_shows_the_same_without_asking_again(tmp_path: Path) -> None:
    session = new(tmp_path)
    model = Watching([*MANY, DONE])
    parts: dict[str, Any] = {"layers": [Compaction(3_000)], "clock": VirtualClock()}
    harness = Harness(model, [READ], sinks=[session], **parts)
    run = asyncio.run(harness.run("The goal."))
    harness.record.message(run, "More.")
    again = Session.open("s1", tmp_path)
    later = [Watching([DONE], ModelError("no summary")) for _ in range(2)]
    for each, who in zip(later, (run, again.run()), strict=True):
        layers = parts["layers"] if who is run else [Compaction(3_000)]
        asyncio.run(Harness(each, [READ], layers=layers, clock=VirtualClock()).resume(who))
    assert later[0].shown == later[1].shown
    assert not later[1].asked_to_sum


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "9", None])
def test_what_is_no_limit_is_refused(limit: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="The limit of a view"):
        Compaction(limit)


# --- whatever the history is (report S08) ------------------------------------------------------


class SendBack(Layer):
    async def finish(self, run: Run, final: Final, next: Any) -> Any:
        return Feedback("not yet") if run.rejections < 1 else await next(run, final)


CALLS = st.lists(st.sampled_from(["read", "missing", "fails"]), min_size=1, max_size=3)
TURNS = st.lists(CALLS.map(tuple) | st.just("unknown") | st.just("rejected"), max_size=12)


@given(TURNS, st.integers(200, 4_000), st.sampled_from([[DropOldOutputs()], [Summary()], None]))
def test_no_view_of_any_history_breaks_a_rule_of_the_wire(
    plan: list[Any], limit: int, strategies: list[Strategy] | None
) -> None:
    """report S08: every cut, parallel calls, errors, unknown decisions, rejected answers"""
    turns: list[Any] = []
    for kind in plan:
        if isinstance(kind, tuple):
            turns.append(turn(*(call(name, part="a") for name in kind)))
        else:
            turns.append({"type": "nonsense"} if kind == "unknown" else Final("early"))
    model = Watching([*turns, *[DONE] * 9])

    def fails(part: str) -> str:
        """Fail."""
        raise ValueError(part)

    layers = [Compaction(limit, strategies), SendBack()]
    harness = Harness(model, [READ, function_tool(fails)], layers=layers, clock=VirtualClock())
    run = asyncio.run(harness.run("The goal."))
    harness.record.message(run, "Once more.")
    asyncio.run(harness.resume(run))
    for shown in model.shown:
        assert shown[0] == run.history.messages[0]
        assert paired(shown)
        wire = {"model": "m", "max_tokens": 1, "messages": to_messages(shown)}
        assert check_rules(wire) is None
    assert any(each.get("content") == "Once more." for each in model.shown[-1])


def paired(shown: Sequence[Message]) -> bool:
    """Each result comes right after its own turn, each call has one, and no id comes twice."""
    waiting: list[str] = []
    seen: set[str] = set()
    for message in shown:
        if message["role"] == "tool":
            if not waiting or waiting.pop(0) != message["call_id"]:
                return False
            continue
        if waiting:
            return False
        waiting = [each["call_id"] for each in message.get("calls", ())]
        if seen & set(waiting):
            return False
        seen.update(waiting)
    return not waiting
