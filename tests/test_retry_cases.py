"""Cases out of other people's reports: at the last step, at the last cent, with a wrong clock."""

import asyncio
from itertools import chain, repeat

import pytest

from mini_harness.budget import Budget
from mini_harness.clock import VirtualClock
from mini_harness.limits import MaxSteps
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final, ToolCall, Turn, Usage
from mini_harness.run import Run, Status
from mini_harness.spans import tell
from mini_harness.timeout import Timeout
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.function import function_tool, tool
from mini_harness.trace import Trace
from tests.loops import DONE, call, kinds, outcomes, play, turn
from tests.views.test_timeline import widths

PRICE = 0.1


@tool(read_only=True, paths=())
def look() -> str:
    """Look."""
    return "seen"


# --- the last step (report R05) ------------------------------------------------------------------


def test_an_answer_in_the_only_step_counts() -> None:
    """report R05 (a)"""
    run, _ = play([DONE], [look], layers=[MaxSteps(1)])
    assert (run.status, run.output, run.step) == (Status.COMPLETED, "done", 1)


def test_what_was_proposed_in_the_only_step_is_done_and_nobody_is_asked_again() -> None:
    """report R05 (b): the text is kept, and every call has its observation"""
    proposed = Turn((call("look", "a"), call("look", "b")), thought="Let me look.")
    run, events = play([proposed, DONE], [look], layers=[MaxSteps(1)])
    assert run.stop is not None
    assert (run.status, run.stop["reason"]) == (Status.STOPPED, "max_steps")
    assert kinds(events).count("model_decision") == 1
    assert run.history.messages[1]["content"] == "Let me look."
    assert outcomes(run) == [("a", "ok"), ("b", "ok")]


def test_no_step_at_all_means_that_no_model_is_asked() -> None:
    """report R05"""
    run, events = play([DONE], layers=[MaxSteps(0)])
    assert run.stop is not None
    assert (run.stop["reason"], run.stop["limit"], run.stop["used"]) == ("max_steps", 0, 0)
    assert kinds(events) == ["message", "stop"]


# --- the last cent (report R07) ------------------------------------------------------------------


class Specialist:
    """Answers after a while, for 1.00."""

    async def decide(self, history: object, tools: object) -> Final:
        await asyncio.sleep(0.001)
        return Final("part", usage=Usage(10, 0))


def test_five_who_begin_together_share_what_is_left() -> None:
    """report R07: the limit is 10, 9.90 are spent, and each of five costs 1"""
    runs: list[Run] = []

    @tool(read_only=True, paths=())
    async def team() -> str:
        """Ask all."""
        inner = [Harness(Specialist(), layers=[Budget()]) for _ in range(5)]
        runs.extend(await asyncio.gather(*(each.run("part") for each in inner)))
        return "all"

    budget = Budget(cost=10.0, price=lambda usage: usage.input_tokens * PRICE)
    model = ScriptedModel([ToolCall("team", {}, usage=Usage(99, 0)), DONE])
    outer = asyncio.run(Harness(model, [team], layers=[budget]).run("go"))
    assert [each.status for each in runs].count(Status.COMPLETED) == 1
    assert [each.stop["reason"] for each in runs if each.stop] == ["budget"] * 4
    assert outer.stop is not None
    assert outer.stop["used"] == pytest.approx(10.9), "one overshoot, counted once"


# --- a clock that is wrong (report R10) ----------------------------------------------------------


class SetBack(VirtualClock):
    """The wall says 100, 101, 99, 99, and so on; the other clock goes on as it should."""

    def __init__(self) -> None:
        super().__init__()
        self.walls = chain([100.0, 101.0], repeat(99.0))

    def time(self) -> float:
        return next(self.walls)


@pytest.mark.parametrize(("seconds", "outcome"), [(4.9, "ok"), (5.0, "ok"), (5.1, "timed_out")])
def test_a_limit_is_reached_when_it_is_whatever_the_wall_says(seconds: float, outcome: str) -> None:
    """report R10: it neither fires early nor never"""

    async def wait(context: ToolExecutionContext) -> str:
        """Wait."""
        await context.clock.sleep(seconds)
        return "waited"

    run, events = play(
        [call("wait", "a"), DONE], [function_tool(wait)], layers=[Timeout(5)], clock=SetBack()
    )
    assert outcomes(run) == [("a", outcome)]
    assert run.offset == pytest.approx(min(seconds, 5.0))
    assert [each.sequence for each in events] == list(range(1, len(events) + 1))


def test_no_bar_has_a_negative_length_and_equal_times_keep_their_order() -> None:
    """report R10: in the spans and in the picture"""
    turns = [turn(call("look", "a"), call("look", "b")), call("look", "c"), DONE]
    trace = Trace(play(turns, [look], clock=SetBack()).events)
    assert len({each.time for each in trace.events}) < len(trace.events)
    spans = tell(trace.events).spans
    assert all(each.end >= each.start for each in spans)
    assert [each.call_id for each in spans if each.call_id] == ["a", "b", "c"]
    assert min(widths(trace.timeline())) > 0
