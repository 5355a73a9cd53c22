"""A run is what its events say: it can be read back, and resumed."""

import asyncio
from typing import Any

import pytest

from mini_harness.clock import VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.frozen import FrozenDict
from mini_harness.layer import Layer, Pause, Stop
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final, Observation, ToolCall, Usage
from mini_harness.run import Run, RunNotCompleted, Status, StopReason
from mini_harness.tools.base import BaseTool, ToolExecutionContext, TransientError
from mini_harness.tools.call import Call
from mini_harness.tools.function import function_tool, tool
from tests.loops import (
    DONE,
    call,
    check,
    go_on,
    kinds,
    outcomes,
    play,
    refold,
    reread,
    state,
    tool_messages,
    turn,
)

THREE = turn(call("note", "a", n=1), call("note", "b", n=2), call("note", "c", n=3))


class Notes:
    """A tool that writes down how it was called."""

    def __init__(self, **declared: Any) -> None:
        self.seen: list[tuple[int, str, int]] = []
        self.tool: BaseTool = function_tool(self.note, **declared)

    def note(self, n: int, context: ToolExecutionContext) -> str:
        """Write it down."""
        self.seen.append((n, context.idempotency_key, context.attempt))
        return f"noted {n}"


def answer(history: Any, tools: Any) -> Any:
    """What a model says that makes three notes and is done: whatever it is asked."""
    return DONE if any(message["role"] == "tool" for message in history) else THREE


def test_a_run_is_the_fold_of_its_events() -> None:
    """DESIGN, sinks: a run is resumed by folding its events"""
    run, events = play([THREE, "junk", call("nobody"), DONE], [Notes().tool])
    assert state(Run.fold(events)) == state(refold(events)) == state(run)


def event(sequence: int, run_id: str = "r", type: EventType = EventType.MESSAGE) -> Event:
    data = FrozenDict(role="user", content="go")
    return Event(run_id, sequence, 0, type, 0.0, 0.0, data)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], "no events"),
        ([event(2)], "After r:0 comes r:2"),
        ([event(1), event(3)], "After r:1 comes r:3"),
        ([event(1), event(1)], "After r:1 comes r:1"),
        ([event(2), event(1)], "After r:0 comes r:2"),
        ([event(1), event(2, "s")], "After r:1 comes s:2"),
    ],
)
def test_a_gap_or_a_foreign_event_is_refused(events: list[Event], said: str) -> None:
    """C10"""
    with pytest.raises(ValueError, match=said):
        Run.fold(events)


def test_an_event_without_a_meaning_only_counts() -> None:
    run = Run.fold([event(1), event(2, type=EventType.HOOK), event(3, type=EventType.CHECKPOINT)])
    assert (run.sequence, run.status, len(run.history.messages)) == (3, Status.RUNNING, 1)


@pytest.mark.parametrize("cut", range(1, 11))
def test_a_run_that_crashed_after_any_event_can_be_resumed_to_its_end(cut: int) -> None:
    """A24, C35, DESIGN: calls without observation are pending, started ones are in doubt"""
    _, events = play([answer, answer], [Notes().tool])
    assert len(events) == 10
    events = events[:cut]
    started = {e.data["call_id"] for e in events if e.type is EventType.TOOL_START}
    ended = {e.data["call_id"] for e in events if e.type is EventType.TOOL_RESULT}
    notes = Notes()
    run, more = go_on(refold(events), [answer, answer], [notes.tool])
    assert run.unwrap() == "done"
    check(run, [*events, *more])
    assert {key.split(":")[1] for _, key, _ in notes.seen} == {"a", "b", "c"} - started
    assert {call_id for call_id, how in outcomes(run) if how == "unknown"} == started - ended


def crashed(notes: Notes) -> Run:
    """A run that was cut off while its second call was running."""
    _, events = play([THREE, DONE], [notes.tool])
    cut = next(
        number
        for number, event in enumerate(events)
        if event.type is EventType.TOOL_START and event.data["call_id"] == "b"
    )
    return refold(events[: cut + 1])


def test_a_call_in_doubt_that_may_do_harm_is_not_run_again() -> None:
    """Rule 3, A22: nothing may conclude that it ran, or that it didn't"""
    notes = Notes()
    run = crashed(notes)
    assert set(run.in_doubt) == {"b"}
    notes.seen.clear()
    resumed, events = go_on(run, [DONE], [notes.tool])
    assert outcomes(resumed) == [("a", "ok"), ("b", "unknown"), ("c", "ok")]
    assert [n for n, _, _ in notes.seen] == [3]
    assert "Whether it took effect is unknown" in tool_messages(resumed)[1]["tool_result"]
    assert kinds(events)[:2] == ["tool_error", "tool_start"]


@pytest.mark.parametrize("declared", ["read_only", "idempotent"])
def test_a_call_in_doubt_that_is_harmless_runs_again_under_the_same_key(declared: str) -> None:
    """Rule 3, A22"""
    notes = Notes(**{declared: True})
    run = crashed(notes)
    notes.seen.clear()
    resumed, events = go_on(run, [DONE], [notes.tool])
    assert outcomes(resumed) == [("a", "ok"), ("b", "ok"), ("c", "ok")]
    assert notes.seen == [(2, f"{run.id}:b", 2), (3, f"{run.id}:c", 1)]
    assert events[0].data["attempt"] == 2
    assert not resumed.in_doubt
    assert not resumed.attempts


@pytest.mark.parametrize("tools", [[], [function_tool(lambda: "", name="note", description="N.")]])
def test_a_call_in_doubt_stays_in_doubt_where_its_tool_is_gone_or_another_one(tools: Any) -> None:
    """C35: nothing may conclude that the tool did not run"""
    run = crashed(Notes())
    resumed, _ = go_on(run, [DONE], tools)
    assert [how for _, how in outcomes(resumed)][:2] == ["ok", "unknown"]
    assert "It was started before" in tool_messages(resumed)[1]["tool_result"]
    assert outcomes(resumed)[2][1] in ("unknown_tool", "invalid_arguments")


def test_a_call_that_failed_before_a_stop_is_not_told_that_it_did_not_run() -> None:
    """C35, DESIGN: between two attempts"""

    @tool
    def flaky() -> str:
        """Fails."""
        raise TransientError("busy")

    class GiveUp(Layer):
        async def act(self, run: Run, call: Call, next: Any) -> Observation:
            await next(run, call)
            raise Stop(StopReason.BUDGET)

    run, _ = play([turn(call("flaky", "a"), call("flaky", "b"))], [flaky], layers=[GiveUp()])
    assert outcomes(run) == [("a", "error"), ("b", "not_run")]


def test_a_transient_failure_leaves_the_call_open_for_another_attempt() -> None:
    """A20, DESIGN: once per attempt, same idempotency key, attempt number"""
    seen: list[tuple[str, int]] = []

    @tool(idempotent=True)
    def flaky(context: ToolExecutionContext) -> str:
        """Fails once."""
        seen.append((context.idempotency_key, context.attempt))
        if context.attempt == 1:
            raise TransientError("busy")
        return "fine"

    class Again(Layer):
        async def act(self, run: Run, call: Call, next: Any) -> Observation:
            first: Observation = await next(run, call)
            return await next(run, call) if first.is_error else first

    run, events = play([call("flaky", "a"), DONE], [flaky], layers=[Again()])
    assert kinds(events)[2:6] == ["tool_start", "tool_error", "tool_start", "tool_result"]
    assert events[3].data["transient"]
    assert seen == [(f"{run.id}:a", 1), (f"{run.id}:a", 2)]
    assert outcomes(run) == [("a", "ok")]


def test_a_transient_failure_that_nobody_retries_is_the_calls_last_word() -> None:
    """A20"""

    @tool(idempotent=True)
    def flaky() -> str:
        """Fails."""
        raise TransientError

    run, events = play([call("flaky", "a"), DONE], [flaky])
    assert outcomes(run) == [("a", "error")]
    assert kinds(events)[2:5] == ["tool_start", "tool_error", "tool_error"]
    assert ["transient" in event.data for event in events[3:5]] == [True, False]


@pytest.mark.parametrize("output", ["text", "", 0, False, None, [1]])
def test_unwrap_gives_the_output_whatever_it_is(output: Any) -> None:
    """Rule 1: 0, "" and False are values"""
    run, events = play([Final(output)])
    assert run.status is Status.COMPLETED
    assert run.unwrap() == refold(events).unwrap() == output


def test_unwrap_raises_the_very_error_here_and_says_which_it_was_elsewhere() -> None:
    """DESIGN, Run: unwrap returns the output or raises the typed error"""
    error = ConnectionError("no route")
    run, events = play([error])
    with pytest.raises(ConnectionError) as raised:
        run.unwrap()
    assert raised.value is error
    again = refold(events)
    with pytest.raises(RunNotCompleted, match=r"error.*ConnectionError\('no route'\)") as other:
        again.unwrap()
    assert other.value.run is again
    assert isinstance(other.value, RuntimeError)


def test_a_run_that_is_not_over_has_no_answer() -> None:
    with pytest.raises(RunNotCompleted, match="r has no answer, it is running"):
        Run("r").unwrap()


@pytest.mark.parametrize("goal", ["go", "", "\ud800", "line\u2028line"])
def test_the_goal_is_the_first_message_even_if_it_is_empty(goal: str) -> None:
    """A17, rule 1"""
    events: list[Event] = []
    harness = Harness(ScriptedModel(["junk", DONE]), sinks=[events.append])
    run = asyncio.run(harness.run(goal))
    assert run.goal == refold(events).goal == goal
    assert run.history.messages[0] == {"role": "user", "content": goal}


def test_every_run_of_a_harness_is_its_own() -> None:
    """Two at once: ids, sequence and usage don't mix."""
    events: list[Event] = []
    notes = Notes()
    script = [call("note", n=1), call("note", n=2), Final("x", usage=Usage(1)), DONE]
    harness = Harness(ScriptedModel(script), [notes.tool], sinks=[events.append])

    async def both() -> tuple[Run, Run]:
        return await asyncio.gather(harness.run("one"), harness.run("two"))

    runs = asyncio.run(both())
    assert len({run.id for run in runs}) == 2
    for run in runs:
        check(run, [event for event in events if event.run_id == run.id])
    assert len({key for _, key, _ in notes.seen}) == 2


class PauseOnce(Layer):
    def __init__(self) -> None:
        self.asked = 0

    async def act(self, run: Run, call: Call, next: Any) -> Observation:
        self.asked += 1
        if self.asked == 1:
            raise Pause(tool=call.name)
        seen: Observation = await next(run, call)
        return seen


def test_time_that_a_run_spends_paused_is_not_its_own() -> None:
    clock = VirtualClock()
    events: list[Event] = []
    script = ScriptedModel([call("note", n=1), DONE], clock=clock, latency=1.0)
    harness = Harness(
        script, [Notes().tool], layers=[PauseOnce()], sinks=[events.append], clock=clock
    )

    async def story() -> Run:
        run = await harness.run("go")
        assert run.status is Status.PAUSED
        await clock.sleep(3600)
        return await harness.resume(run)

    run = asyncio.run(story())
    check(run, events)
    assert run.offset == 2.0
    assert events[-1].time == 3602.0


def test_a_run_that_was_stopped_or_failed_goes_on_when_it_is_resumed() -> None:
    """DESIGN: a run stopped by a limit can be resumed with a higher one"""
    run, events = play([ConnectionError()])
    assert (run.status, run.stop) == (
        Status.FAILED,
        {"reason": "error", "error": "ConnectionError()"},
    )
    resumed, more = go_on(run, [DONE])
    assert kinds(more) == ["resume", "model_decision", "final"]
    assert resumed.unwrap() == "done"
    assert (resumed.stop, resumed.error) == (None, None)
    check(resumed, [*events, *more])


def test_resuming_a_run_that_is_over_does_nothing() -> None:
    run, _ = play([DONE])
    resumed, more = go_on(run, [])
    assert resumed is run
    assert more == []
    assert resumed.unwrap() == "done"


def test_the_step_counts_the_turns_of_the_model() -> None:
    """A12"""
    _, events = play([THREE, "junk", DONE], [Notes().tool])
    turns = [event.step for event in events if event.type is EventType.MODEL_DECISION]
    assert turns == [1, 2, 3]
    assert [event.step for event in events] == sorted(event.step for event in events)


@pytest.mark.parametrize("raised", [Stop(StopReason.BUDGET, usage=0.93), Pause(usage="high")])
def test_a_layer_may_call_a_number_of_its_own_usage(raised: Stop | Pause) -> None:
    """DESIGN, Run: what a layer records can't make a record that nobody reads back"""

    class Limit(Layer):
        async def act(self, run: Run, call: Call, next: Any) -> Observation:
            raise raised

    said = turn(call("note", "a", n=1))
    said.usage = Usage(1, 2)
    run, events = play([said], [Notes().tool], layers=[Limit()])
    assert "usage" in events[-1].data
    assert run.usage == refold(events).usage == Usage(1, 2)


def test_the_reasons_to_stop_are_a_closed_list() -> None:
    """Rule 1, SEEDS: every way to stop has a closed reason"""
    assert {reason.value for reason in StopReason} == {
        *["max_steps", "budget", "denied", "rejected", "repeated_call", "cancelled", "error"]
    }


@pytest.mark.parametrize("pending", [THREE.calls, Final({"a": 1})])
def test_what_is_pending_can_be_read_back(pending: tuple[ToolCall, ...] | Final) -> None:
    """DESIGN: a paused run and a run read back go through the same door"""

    class Halt(Layer):
        async def act(self, run: Run, call: Call, next: Any) -> Observation:
            raise Pause

        async def finish(self, run: Run, final: Final, next: Any) -> Any:
            raise Pause

    said = turn(*pending) if isinstance(pending, tuple) else pending
    run, events = play([said], [Notes().tool], layers=[Halt()])
    assert run.status is Status.PAUSED
    assert refold(events).pending == run.pending == pending
    assert reread(events[-1]).type is EventType.PAUSE
    assert go_on(refold(events), [DONE], [Notes().tool]).run.status is Status.COMPLETED
