"""Every call has a limit, and what comes after it is late."""

import asyncio
import contextlib
import contextvars
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from mini_harness.clock import RealClock, VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.layer import Act, Layer, Stop
from mini_harness.parallel import ParallelReads
from mini_harness.protocol import Final, Observation, Usage
from mini_harness.retry import Retry
from mini_harness.run import Run, Status, StopReason
from mini_harness.timeout import ModelTimedOut, Timeout, ToolAbandoned, ToolTimedOut
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.call import Call
from mini_harness.tools.function import tool
from mini_harness.tools.shell import Bash
from tests.loops import (
    DONE,
    call,
    check,
    harness,
    kinds,
    outcomes,
    play,
    refold,
    tool_messages,
    turn,
)

WHO = contextvars.ContextVar("WHO", default="nobody")
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


# --- in time, and out of it -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "outcome", "end"), [(29.9, "ok", 29.9), (30, "ok", 30), (30.1, "timed_out", 30)]
)
def test_every_call_has_a_limit(seconds: float, outcome: str, end: float) -> None:
    """A21"""
    run, events = play([call("look", "a", seconds=seconds), DONE], [look], layers=[Timeout()])
    assert (outcomes(run), events[-1].offset) == ([("a", outcome)], end)


def test_a_tool_may_have_a_limit_of_its_own() -> None:
    """A21"""
    layers = [Timeout(5, tools={"look": 60})]
    turns = [call("look", "a", seconds=50), call("pay", "b", seconds=50), DONE]
    run, events = play(turns, [look, pay], layers=layers)
    assert outcomes(run) == [("a", "ok"), ("b", "timed_out")]
    assert events[-1].offset == 55


def test_the_model_is_told_the_limit_and_whether_there_may_be_an_effect() -> None:
    """report R01: time-out instead of raise"""
    turns = [call("look", "a", seconds=9), call("pay", "b", seconds=9), DONE]
    run, _ = play(turns, [look, pay], layers=[Timeout(5)])
    reading, paying = texts(run)
    assert "limit of 5 seconds" in reading and "effect" not in reading
    assert "limit of 5 seconds" in paying and "may have had its effect" in paying
    assert tool_messages(run)[1]["metadata"] == {"limit_seconds": 5, "abandoned": False}
    seen = run.observed
    assert seen == {}, "they belong to turns that are over"


def test_a_call_that_may_do_harm_is_not_repeated_after_its_time() -> None:
    """report R01"""
    run, events = play([call("pay", "a", seconds=9), DONE], [pay], layers=[Retry(), Timeout(5)])
    assert kinds(events).count("tool_start") == 1
    assert outcomes(run) == [("a", "unknown")]
    assert "wasn't tried again" in texts(run)[0]


def test_what_nobody_waits_for_on_the_clock_ends_in_real_time() -> None:
    """Rule 5: a tool that hangs for ever, offline"""

    @tool(read_only=True)
    async def hang() -> str:
        """Hang."""
        await asyncio.Event().wait()
        return ""

    clock = VirtualClock(hung=0.01)
    run, _ = play([call("hang", "a"), DONE], [hang], layers=[Timeout(0.001)], clock=clock)
    assert outcomes(run) == [("a", "timed_out")]


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf")])
@pytest.mark.parametrize("where", ["seconds", "model", "grace", "tools"])
def test_what_is_no_limit_is_refused(bad: float, where: str) -> None:
    """A21: every call has one"""
    with pytest.raises(ValueError, match="more than 0"):
        Timeout(**{where: {"bash": bad} if where == "tools" else bad})  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Timeout(**{where: {"bash": True} if where == "tools" else True})  # type: ignore[arg-type]


def test_what_the_caller_has_set_is_seen_inside() -> None:
    @tool(read_only=True)
    async def who() -> str:
        """Who asks?"""
        return WHO.get()

    @tool(read_only=True, blocking=True)
    def who_blocking() -> str:
        """Who asks?"""
        return WHO.get()

    def asked() -> Run:
        WHO.set("the cell")
        turns = [call("who", "a"), call("who_blocking", "b"), DONE]
        return play(turns, [who, who_blocking], layers=[Timeout(model=5)]).run

    assert texts(contextvars.copy_context().run(asked)) == ["the cell", "the cell"]


def test_what_a_layer_or_the_record_raises_goes_up_as_it_is() -> None:
    """Rule 4"""

    class Broken(Layer):
        async def act(self, run: Run, call: Call, next: Act) -> Observation:
            raise KeyError("bug")

    made, _ = harness([call("look", "a", seconds=1)], [look], layers=[Timeout(), Broken()])
    with pytest.raises(KeyError, match="bug"):
        asyncio.run(made.run("go"))

    def full(event: Event) -> None:
        if event.type is EventType.TOOL_RESULT:
            raise OSError("disk full")

    made, _ = harness([call("look", "a", seconds=1)], [look], layers=[Timeout()], sinks=[full])
    with pytest.raises(OSError, match="disk full"):
        asyncio.run(made.run("go"))


def test_what_is_raised_while_a_call_is_ended_goes_up_too() -> None:
    class Enough(Layer):
        async def act(self, run: Run, call: Call, next: Act) -> Observation:
            try:
                return await next(run, call)
            except asyncio.CancelledError:
                raise Stop(StopReason.DENIED) from None

    run, _ = play(
        [call("pay", "a", seconds=9), DONE], [pay], layers=[Retry(), Timeout(5), Enough()]
    )
    assert run.stop == {"reason": "denied"}


# --- real work --------------------------------------------------------------------------------


def test_a_real_command_does_not_run_into_a_virtual_limit() -> None:
    """A command that takes a while, beside a call that sleeps for long on the virtual clock"""
    turns = [
        turn(call("bash", "a", command="sleep 0.1; echo hi"), call("look", "b", seconds=20)),
        DONE,
    ]

    class Reads(Bash):
        def is_read_only(self, arguments: Any) -> bool:
            return True

    run, events = play(turns, [Reads(), look], layers=[ParallelReads(), Timeout(15)])
    assert outcomes(run) == [("a", "ok"), ("b", "timed_out")]
    assert events[-1].offset == 15


def children_named(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(mark in word for word in process.info["cmdline"] or ()):
            found.append(process)
    return found


def test_the_processes_of_a_command_end_with_its_time(tmp_path: Path) -> None:
    """A21, rule 5: the whole tree, also what ignores TERM"""
    script = "trap '' TERM; (sleep 71.5731 & sleep 71.5731)& sleep 71.5731"
    made, events = harness(
        [call("bash", "a", command=script), DONE],
        [Bash()],
        layers=[Timeout(0.3)],
        clock=RealClock(),
        cwd=tmp_path,
    )
    run = asyncio.run(made.run("go"))
    check(run, events)
    assert outcomes(run) == [("a", "timed_out")]
    assert not tool_messages(run)[0]["metadata"]["abandoned"]
    assert children_named("71.5731") == []


def test_the_limit_of_a_command_itself_keeps_what_it_printed(tmp_path: Path) -> None:
    """C23: the nearer of both limits ends it, and its own one shows more"""
    command = {"command": "echo so far; sleep 60", "timeout_seconds": 1}
    layers = [Timeout(10, tools={"bash": 610})]
    run, _ = play([call("bash", "a", **command), DONE], [Bash()], layers=layers, cwd=tmp_path)
    assert outcomes(run) == [("a", "error")]
    assert "so far" in texts(run)[0]


# --- the model --------------------------------------------------------------------------------


def test_a_model_that_takes_too_long_is_asked_again() -> None:
    """A20, A21, report R04"""
    clock = VirtualClock()
    naps = iter([60.0, 60.0, 3.0])

    async def say(history: Any, tools: Any) -> Final:
        await clock.sleep(next(naps))
        return DONE

    layers = [Retry(jitter=0), Timeout(model=10)]
    run, events = play([say] * 3, layers=layers, clock=clock)
    assert run.unwrap() == "done"
    assert [event.offset for event in events if event.type == "retry"] == [10, 21]
    assert events[-1].offset == 26


def test_a_model_without_an_answer_fails_and_says_why() -> None:
    clock = VirtualClock()
    model_call = lambda history, tools: clock.sleep(60)  # noqa: E731
    run, events = play([model_call], layers=[Timeout(model=10)], clock=clock)
    assert (run.status, events[-1].offset) == (Status.FAILED, 10)
    with pytest.raises(ModelTimedOut, match="within 10 seconds"):
        run.unwrap()


def test_what_an_answer_cost_that_came_too_late_is_counted() -> None:
    clock = VirtualClock()

    async def say(history: Any, tools: Any) -> Final:
        with contextlib.suppress(asyncio.CancelledError):
            await clock.sleep(60)
        return Final("late", usage=Usage(100, 7))

    run, events = play([say, DONE], layers=[Retry(), Timeout(model=10)], clock=clock)
    assert run.unwrap() == "done"
    assert run.usage == Usage(100, 7) == refold(events).usage


def test_the_errors_say_what_they_are() -> None:
    """C23: a time-out is a TimeoutError"""
    for error in (ToolTimedOut("look", 5), ToolAbandoned("look", 5)):
        assert isinstance(error, TimeoutError)
        assert (error.tool, error.limit) == ("look", 5)
        assert "look took longer than 5 seconds" in str(error)
