"""Reads run side by side, everything else alone, and the history can't tell the difference."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_harness.events import Event, EventType
from mini_harness.layer import Layer, Pause, Stop
from mini_harness.parallel import ParallelReads
from mini_harness.policy import Policy, Rule, Verdict
from mini_harness.protocol import ToolCall
from mini_harness.run import Run, Status, StopReason
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.function import tool
from tests.loops import (
    DONE,
    Played,
    call,
    check,
    go_on,
    harness,
    kinds,
    outcomes,
    play,
    refold,
    tool_messages,
    turn,
)
from tests.naps import Before, Napping, halfway, read, resumed, together, took, write


def test_neighbouring_reads_run_side_by_side_and_the_others_alone_in_their_order() -> None:
    """B24: [r1 r2 w1 r3 r4] is r1 beside r2, then w1, then r3 beside r4"""
    calls = [read("r1", 3), read("r2", 2), write("w1", 5), read("r3", 1), read("r4", 4)]
    (run, events), nap = together(*calls)
    assert nap.beside == {
        "r1": {"r1", "r2"},
        "r2": {"r1", "r2"},
        "w1": {"w1"},
        "r3": {"r3", "r4"},
        "r4": {"r3", "r4"},
    }
    assert took(events) == 3 + 5 + 4
    assert [m["call_id"] for m in tool_messages(run)] == ["r1", "r2", "w1", "r3", "r4"]
    started = [e.data["call_id"] for e in events if e.type is EventType.TOOL_START]
    assert started == ["r1", "r2", "w1", "r3", "r4"]
    ended = [e.data["call_id"] for e in events if e.type is EventType.TOOL_RESULT]
    assert ended == ["r2", "r1", "w1", "r3", "r4"]


def test_at_most_so_many_run_at_once_and_the_next_begins_when_one_ends() -> None:
    (_, events), nap = together(*(read(f"r{n}", n) for n in (4, 1, 1, 1, 1)), limit=2)
    assert (nap.most, took(events)) == (2, 4)
    (_, events), nap = together(*(read(f"r{n}") for n in range(9)))
    assert (nap.most, took(events)) == (8, 2)


def test_a_failing_call_changes_nothing_for_the_others() -> None:
    """B23, B24"""
    how = ["raises", "fine", "transient", "reports", "cancels itself", "exits", "fine"]
    (run, events), nap = together(*(read(f"r{n}", 7 - n, each) for n, each in enumerate(how)))
    expected = ["error", "ok", "error", "error", "error", "error", "ok"]
    assert [outcome for _, outcome in outcomes(run)] == expected
    assert (nap.most, took(events), run.output) == (7, 7, "done")


def test_a_call_that_cant_be_prepared_is_left_to_the_loop() -> None:
    calls = [read("r1"), call("nobody", "x"), call("nap", "y", seconds="long"), read("r2")]
    (run, events), _ = together(*calls)
    expected = [("r1", "ok"), ("x", "unknown_tool"), ("y", "invalid_arguments"), ("r2", "ok")]
    assert outcomes(run) == expected
    assert took(events) == 1


ENDS = ["fine", "raises", "transient", "reports", "cancels itself", "exits"]
ONE = st.builds(
    call,
    st.sampled_from(["nap"] * 9 + ["nobody"]),
    st.sampled_from(["", "a", "b"]),
    seconds=st.integers(0, 5).map(float) | st.just("long"),
    how=st.sampled_from(ENDS),
    writes=st.booleans() | st.just(False),
)
GROUPS = st.lists(st.lists(ONE, min_size=1, max_size=7), min_size=1, max_size=3)


def makespan(calls: Sequence[ToolCall], limit: int) -> float:
    """How long a turn takes: group after group, in each the next one as soon as there is room."""
    total, busy = 0.0, [0.0] * limit
    for one in calls:
        arguments = one.arguments
        if one.name != "nap" or not isinstance(arguments["seconds"], float) or one.defect:
            continue
        if arguments["writes"]:
            total, busy = total + max(busy) + arguments["seconds"], [0.0] * limit
        else:
            busy.sort()
            busy[0] += arguments["seconds"]
    return total + max(busy)


@settings(max_examples=150)
@given(GROUPS, st.integers(1, 4))
def test_the_history_is_that_of_one_call_after_the_other(
    groups: list[list[ToolCall]], limit: int
) -> None:
    """B24: message for message, whatever the calls are; and the same events every time"""

    def played(*layers: Layer) -> Played:
        turns = [turn(*(call(c.name, c.call_id, **c.arguments) for c in g)) for g in groups]
        return play([*turns, DONE], [Napping()], layers=layers)

    alone, side_by_side, again = (
        played(),
        played(ParallelReads(limit)),
        played(ParallelReads(limit)),
    )
    assert list(side_by_side.run.history.messages) == list(alone.run.history.messages)
    assert sorted(map(str, kinds(alone.events))) == sorted(map(str, kinds(side_by_side.events)))
    assert [e.to_json() for e in side_by_side.events] == [e.to_json() for e in again.events]
    turns = [m["calls"] for m in alone.run.history.messages if "calls" in m]
    expected = sum(makespan([ToolCall.from_wire(c) for c in calls], limit) for calls in turns)
    assert took(side_by_side.events) == pytest.approx(expected)
    assert took(side_by_side.events) <= took(alone.events)


def test_the_others_end_before_a_pause_goes_up_and_only_what_is_open_is_resumed() -> None:
    calls = read("r1", 3), read("r2"), read("r3", 2), read("r4", 1)
    layers = [Before(r2=Pause(why="look"))]
    player, run, events = halfway(*calls, layers=layers)
    assert (run.status, list(run.history.open), took(events)) == (Status.PAUSED, ["r2"], 3)
    again = refold(events)
    resumed(player, run, events)
    go_on(again, [DONE], [Napping()], layers=[ParallelReads()])
    for each in (run, again):
        assert outcomes(each) == [("r1", "ok"), ("r2", "ok"), ("r3", "ok"), ("r4", "ok")]
    assert [e.data["call_id"] for e in events if e.type is EventType.TOOL_START][-1] == "r2"
    assert kinds(events).count("tool_start") == 4


def test_what_a_layer_made_of_the_others_is_recorded_before_a_pause_goes_up() -> None:
    """A denial leaves no end of its own: without this it would be forgotten, and judged again"""
    no = Rule("no", Verdict.DENY, "nap", when=lambda arguments: arguments.seconds > 5)
    calls = read("r1"), read("r2"), read("r3", 9)
    player, run, events = halfway(*calls, layers=[Before(r1=Pause()), Policy(rules=[no])])
    assert outcomes(run) == [("r2", "ok"), ("r3", "denied")]
    resumed(player, run, events)
    assert outcomes(run) == [("r1", "ok"), ("r2", "ok"), ("r3", "denied")]
    assert kinds(events).count("verdict") == 1


@pytest.mark.parametrize("last", [Pause(), Stop(StopReason.BUDGET)])
@pytest.mark.parametrize("first", [Pause(), Stop(StopReason.BUDGET)])
def test_of_several_interrupts_a_stop_goes_up_before_a_pause(first: Any, last: Any) -> None:
    """A pause can be taken up again: the stop would be forgotten behind it"""
    calls = read("r1", 3), read("r2"), read("r3")
    _, run, events = halfway(*calls, layers=[Before(r2=first, r3=last)])
    pauses = isinstance(first, Pause) and isinstance(last, Pause)
    assert run.status is (Status.PAUSED if pauses else Status.STOPPED)
    assert outcomes(run)[0] == ("r1", "ok")
    assert took(events) == 3


def test_of_several_pauses_the_first_in_call_order_goes_up() -> None:
    layers = [Before(r2=Pause(n=2), r3=Pause(n=3))]
    _, run, _ = halfway(read("r1"), read("r2", 3), read("r3"), layers=layers)
    assert run.pause == {"n": 2}


def test_a_pause_lets_the_others_begin_and_a_stop_doesnt() -> None:
    five = [read(f"r{n}") for n in range(1, 6)]
    _, run, events = halfway(*five, layers=[Before(r1=Pause())], limit=2)
    assert (list(run.history.open), took(events)) == (["r1"], 2)
    _, run, events = halfway(*five, layers=[Before(r2=Stop(StopReason.BUDGET))], limit=2)
    assert [outcome for _, outcome in outcomes(run)] == ["ok", *["not_run"] * 4]
    assert (run.status, took(events)) == (Status.STOPPED, 1)


class Full(OSError):
    pass


def test_a_recording_failure_goes_up_when_the_others_have_ended_and_before_any_pause() -> None:
    """Rule 4 of the design: it is no tool failure, and no pause hides it"""
    events: list[Event] = []

    def sink(event: Event) -> None:
        if event.type is EventType.TOOL_RESULT and event.data["call_id"] == "r3":
            raise Full("no room")
        events.append(event)

    nap = Napping()
    layers = [ParallelReads(), Before(r1=Pause())]
    four = turn(read("r1"), read("r2", 9), read("r3"), read("r4", 2))
    player, _ = harness([four, DONE], [nap], layers=layers, sinks=[sink])
    run = Run("run-x")
    player.record.message(run, "go")
    with pytest.raises(Full):
        asyncio.run(player.resume(run))
    assert outcomes(run) == [("r2", "ok"), ("r4", "ok")]
    assert (run.status, list(run.in_doubt), nap.under_way) == (Status.RUNNING, ["r3"], [])
    assert EventType.PAUSE not in {event.type for event in events}


def test_what_a_layers_bug_raises_goes_up_untouched_and_the_rest_is_recorded() -> None:
    error = LookupError("a bug")
    layers = [ParallelReads(), Before(r2=error)]
    player, events = harness([turn(read("r1"), read("r2"), read("r3"))], [Napping()], layers=layers)
    run = Run("run-x")
    player.record.message(run, "go")
    with pytest.raises(LookupError) as raised:
        asyncio.run(player.resume(run))
    assert raised.value is error
    assert outcomes(run) == [("r1", "ok")]
    check(run, events)


def test_a_layer_that_returns_nothing_is_named_and_its_call_doesnt_run_twice() -> None:
    nap = Napping()
    layers = [ParallelReads(), Before(r2=lambda call: None)]
    player, _ = harness([turn(read("r1"), read("r2"))], [nap], layers=layers)
    with pytest.raises(TypeError, match="For call r2, a layer returned None"):
        asyncio.run(player.run("go"))
    assert nap.beside == {"r1": {"r1"}}


def cancelled_when(
    kind: EventType, *calls: ToolCall, tools: Sequence[Any]
) -> tuple[Run, list[str]]:
    """The run of one turn that is cancelled at the last event of this kind; and what is left."""
    events: list[Event] = []
    reached = asyncio.Event()
    expected = 1 if kind is EventType.TOOL_RESULT else len(calls)

    def watch(event: Event) -> None:
        events.append(event)
        if kinds(events).count(kind) == expected:
            reached.set()

    player, _ = harness([turn(*calls)], tools, layers=[ParallelReads()], sinks=[watch])
    run = Run("run-x")
    player.record.message(run, "go")

    async def main() -> list[str]:
        task = asyncio.create_task(player.resume(run))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [each.get_name() for each in asyncio.all_tasks() - {asyncio.current_task()}]

    left = asyncio.run(main())
    check(run, events)
    assert run.stop == {"reason": "cancelled"}
    return run, left


def test_cancelling_cancels_all_and_waits_for_them() -> None:
    """No task outlives the call, and what had ended stays recorded"""
    cleaned = []

    @tool(read_only=True)
    async def slow(context: ToolExecutionContext) -> str:
        """Take a while, also to end."""
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            cleaned.append(context.call_id)
        return "never"

    calls = read("r1", 0), call("slow", "s1"), call("slow", "s2"), write("w1")
    run, left = cancelled_when(EventType.TOOL_RESULT, *calls, tools=[Napping(), slow])
    assert (cleaned, left) == (["s1", "s2"], [])
    assert outcomes(run) == [("r1", "ok"), ("s1", "unknown"), ("s2", "unknown"), ("w1", "not_run")]


def test_a_tool_that_swallows_the_cancellation_doesnt_stop_it() -> None:
    @tool(read_only=True)
    async def stubborn() -> str:
        """Won't be cancelled."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "still here"
        return "never"

    calls = call("stubborn", "s1"), call("stubborn", "s2")
    run, left = cancelled_when(EventType.TOOL_START, *calls, tools=[stubborn])
    assert (outcomes(run), left) == ([("s1", "ok"), ("s2", "ok")], [])
