"""What comes after its time is dropped, and recorded."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mini_harness.clock import VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.layer import Act, Layer
from mini_harness.protocol import Observation
from mini_harness.retry import Retry
from mini_harness.run import Run
from mini_harness.timeout import Timeout
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.call import Call
from mini_harness.tools.function import function_tool, tool
from mini_harness.trace import Trace
from tests.loops import (
    DONE,
    call,
    check,
    harness,
    kinds,
    outcomes,
    play,
    refold,
    state,
    tool_messages,
)

PATIENCE = 20.0
"""Real seconds, as a bound only."""


@tool(read_only=True)
async def look(seconds: float, context: ToolExecutionContext) -> str:
    """Look for a while."""
    await context.clock.sleep(seconds)
    return "seen"


@tool
async def pay(seconds: float, context: ToolExecutionContext) -> str:
    """Pay, after a while."""
    await context.clock.sleep(seconds)
    return "paid"


def texts(run: Run) -> list[str]:
    return [message["tool_result"] for message in tool_messages(run)]


def late(events: Sequence[Event]) -> list[Any]:
    return [event.data["tool_result"] for event in events if event.type is EventType.LATE_RESULT]


class Stuck:
    """A blocking tool that waits until it is let go."""

    def __init__(self, **declared: Any) -> None:
        self.go_on, self.entered = threading.Event(), threading.Semaphore(0)
        self.begun = 0

        def stuck() -> str:
            self.begun += 1
            self.entered.release()
            assert self.go_on.wait(PATIENCE)
            return "at last"

        self.tool = function_tool(stuck, description="Wait.", blocking=True, **declared)


async def until(found: Callable[[], Any]) -> None:
    """Wait for what a thread does: asked again and again, up to a bound."""
    async with asyncio.timeout(PATIENCE):
        while not found():  # noqa: ASYNC110 - a thread sets no asyncio.Event
            await asyncio.sleep(0.001)


def test_what_an_abandoned_thread_gives_is_dropped_and_recorded() -> None:
    """A21, rule 5: abandoned, and its late result dropped"""
    stuck = Stuck()
    clock = VirtualClock(hung=0.05)
    made, events = harness(
        [call("stuck", "a"), DONE], [stuck.tool], layers=[Timeout(0.01)], clock=clock
    )

    async def story() -> Run:
        run = await made.run("go")
        assert late(events) == []
        stuck.go_on.set()
        await until(lambda: late(events))
        return run

    run = asyncio.run(story())
    assert late(events) == ["at last"], "although the run was over"
    assert str(events[-1]).endswith("late_result     stuck -> at last")
    assert "late_result     stuck -> at last" in str(Trace(events).table())
    assert outcomes(run) == [("a", "timed_out")]
    assert tool_messages(run)[0]["metadata"]["abandoned"]
    assert "goes on" in texts(run)[0]
    assert state(refold(events)) == state(run)


def test_a_late_result_goes_to_whoever_drives_the_run_by_then() -> None:
    """One record, in order, and the time in which nobody drove the run isn't counted."""
    stuck = Stuck()
    clock = VirtualClock(hung=0.05)
    first, old = harness(
        [call("stuck", "a"), DONE], [stuck.tool], layers=[Timeout(0.01)], clock=clock
    )

    @tool(read_only=True)
    async def meanwhile() -> str:
        """Let the thread of the other call go, and see what comes of it."""
        stuck.go_on.set()
        await until(lambda: late([*old, *new]))
        return "seen"

    second, new = harness([call("meanwhile", "b"), DONE], [meanwhile], clock=clock)

    async def story() -> Run:
        run = await first.run("go")
        await clock.sleep(100)
        second.record.message(run, "And now?")
        return await second.resume(run)

    run = asyncio.run(story())
    assert (late(old), late(new)) == ([], ["at last"])
    check(run, [*old, *new])


def test_a_late_result_of_a_run_that_nobody_drives_takes_none_of_its_time() -> None:
    stuck = Stuck()
    clock = VirtualClock(hung=0.05)
    made, events = harness(
        [call("stuck", "a"), DONE], [stuck.tool], layers=[Timeout(0.01)], clock=clock
    )

    async def story() -> Run:
        run = await made.run("go")
        await clock.sleep(100)
        stuck.go_on.set()
        await until(lambda: late(events))
        return run

    check(asyncio.run(story()), events)
    assert [event.offset for event in events] == [0] * len(events)


def test_in_a_dead_event_loop_nothing_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    stuck = Stuck()
    raised: list[Any] = []
    made, events = harness(
        [call("stuck", "a"), DONE],
        [stuck.tool],
        layers=[Timeout(0.01)],
        clock=VirtualClock(hung=0.05),
    )
    before = set(threading.enumerate())
    asyncio.run(made.run("go"))
    (thread,) = set(threading.enumerate()) - before
    hook, threading.excepthook = threading.excepthook, raised.append
    try:
        stuck.go_on.set()
        thread.join(PATIENCE)
    finally:
        threading.excepthook = hook
    assert (raised, late(events), thread.is_alive()) == ([], [], False)
    assert caplog.records == [], "a future logs what its callbacks raise"


@pytest.mark.parametrize(
    ("declared", "begun", "outcome"),
    [
        ({}, 1, "unknown"),
        ({"idempotent": True}, 1, "timed_out"),
        ({"read_only": True}, 3, "timed_out"),
    ],
)
def test_no_two_attempts_act_side_by_side(declared: Any, begun: int, outcome: str) -> None:
    """reports R01, R02: the first one still runs, and only reading is harmless beside it"""
    stuck = Stuck(**declared)
    layers = [Retry(), Timeout(0.01)]
    made, events = harness(
        [call("stuck", "a"), DONE], [stuck.tool], layers=layers, clock=VirtualClock(hung=0.05)
    )

    async def story() -> Run:
        run = await made.run("go")
        stuck.go_on.set()
        await until(lambda: len(late(events)) == begun)
        return run

    run = asyncio.run(story())
    assert (stuck.begun, outcomes(run)) == (begun, [("a", outcome)])
    assert state(refold(events)) == state(run)


def test_a_tool_that_swallows_its_cancellation_is_abandoned_and_that_is_said() -> None:
    """report R08"""
    let_go = asyncio.Event()

    @tool(read_only=True)
    async def stubborn(context: ToolExecutionContext) -> str:
        """Go on, whatever happens."""
        if context.attempt > 1:
            return "second"
        try:
            await context.clock.sleep(60)
        except asyncio.CancelledError:
            await let_go.wait()
        return "first"

    made, events = harness(
        [call("stubborn", "a"), call("look", "b", seconds=1), DONE],
        [stubborn, look],
        layers=[Retry(jitter=0), Timeout(5, grace=0.05)],
    )

    async def story() -> Run:
        run = await made.run("go")
        let_go.set()
        await until(lambda: late(events))
        return run

    run = asyncio.run(story())
    assert texts(run) == ["second", "seen"], "the end of the first attempt isn't the second's"
    assert late(events) == ["first"]
    first = next(event.data for event in events if event.type is EventType.TOOL_ERROR)
    assert first["metadata"]["abandoned"] and "goes on" in first["tool_result"]
    assert state(refold(events)) == state(run)


def test_a_tool_that_ends_after_its_limit_is_late_even_if_it_gives_something() -> None:
    @tool
    async def tidy(context: ToolExecutionContext) -> str:
        """Clean up when ended."""
        try:
            await context.clock.sleep(60)
        except asyncio.CancelledError:
            await context.clock.sleep(2)
        return "half of it"

    run, events = play([call("tidy", "a"), DONE], [tidy], layers=[Timeout(5)])
    assert outcomes(run) == [("a", "timed_out")]
    assert (late(events), events[-1].offset) == (["half of it"], 7)


def test_nothing_begins_after_its_time_was_over() -> None:
    """A layer inside that swallows its cancellation starts no tool behind the run's back."""
    goes_on = asyncio.Event()

    class Deaf(Layer):
        async def act(self, run: Run, call: Call, next: Act) -> Observation:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await goes_on.wait()
            return await next(run, call)

    made, events = harness(
        [call("pay", "a", seconds=0), DONE],
        [pay],
        layers=[Timeout(0.01, grace=0.01), Deaf()],
        clock=VirtualClock(hung=0.01),
    )
    complaints: list[Any] = []

    async def story() -> Run:
        asyncio.get_running_loop().set_exception_handler(lambda _, about: complaints.append(about))
        run = await made.run("go")
        (left,) = asyncio.all_tasks() - {asyncio.current_task()}
        goes_on.set()
        with pytest.raises(RuntimeError, match="after its time was over"):
            await left
        return run

    run = asyncio.run(story())
    assert "tool_start" not in kinds(events)
    assert "had not begun" in texts(run)[0] and "goes on" not in texts(run)[0]
