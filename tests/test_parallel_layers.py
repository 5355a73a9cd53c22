"""Reads side by side, with all the other layers around them and inside."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from mini_harness.clock import VirtualClock
from mini_harness.deferred import DeferredTools
from mini_harness.events import Event, EventType
from mini_harness.hooks import Block, Hook, HookInput, Hooks
from mini_harness.layer import Act, Layer, Pause
from mini_harness.limits import FailFast, MaxSteps
from mini_harness.outputs import LargeOutput
from mini_harness.parallel import ParallelReads
from mini_harness.policy import Policy, Rule, Verdict
from mini_harness.protocol import Observation
from mini_harness.run import Run, Status
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.call import Call
from mini_harness.tools.function import tool
from mini_harness.tools.search import ToolSearch
from tests.loops import (
    DONE,
    call,
    check_history,
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

ASK = Rule("ask", Verdict.REQUIRE_APPROVAL, "nap", when=lambda arguments: arguments.seconds > 5)


def test_of_two_calls_that_wait_for_a_person_one_is_answered_at_a_time() -> None:
    """A24: each answer counts for its own call, and what needs none has run meanwhile"""
    calls = read("r1", 6), read("r2"), read("r3", 7), read("r4")
    player, run, events = halfway(*calls, layers=[Policy(rules=[ASK])])
    assert list(run.history.open) == ["r1", "r3"]
    assert run.pause is not None
    assert run.pause["call_id"] == "r1"
    run.approve()
    asyncio.run(player.resume(run))
    assert run.status is Status.PAUSED
    assert run.pause is not None
    assert run.pause["call_id"] == "r3"
    assert list(run.history.open) == ["r3"]
    run.deny("Not now.")
    resumed(player, run, events)
    assert outcomes(run) == [("r1", "ok"), ("r2", "ok"), ("r3", "denied"), ("r4", "ok")]
    assert [kinds(events).count(kind) for kind in ("verdict", "approval", "tool_start")] == [
        2,
        2,
        3,
    ]


def test_an_answer_waits_for_its_own_call_also_if_another_of_its_group_is_first() -> None:
    calls = read("r1", 6), read("r2", 7)
    _, run, events = halfway(*calls, layers=[policy := Policy(rules=[ASK])])
    again = refold(events)
    again.approve()
    _, more = go_on(again, [DONE], [Napping()], layers=[ParallelReads(), policy])
    assert again.pause is not None
    assert (again.pause["call_id"], outcomes(again)) == ("r2", [("r1", "ok")])
    assert run.status is Status.PAUSED
    assert kinds(more) == ["resume", "approval", "tool_start", "tool_result", "pause"]


def test_a_call_that_a_person_edited_runs_alone() -> None:
    """What was a read when it was proposed may write by now"""
    nap = Napping()
    layers = [ParallelReads(), Before(r2=Pause()), Policy(rules=[ASK])]
    player, _ = harness([turn(read("r1", 6), read("r2")), DONE], [nap], layers=layers)
    run = asyncio.run(player.run("go"))
    assert list(run.history.open) == ["r1", "r2"]
    run.approve({"seconds": 3, "writes": True})
    asyncio.run(player.resume(run))
    assert outcomes(run) == [("r1", "ok"), ("r2", "ok")]
    assert nap.beside == {"r1": {"r1"}, "r2": {"r2"}}
    assert "The arguments were changed" in tool_messages(run)[0]["tool_result"]


def test_an_approver_who_is_asked_about_several_calls_answers_each() -> None:
    async def slowly(request: Any) -> Any:
        await asyncio.sleep(0)
        return request.deny("no") if request.call_id == "r2" else request.approve()

    policy = Policy(rules=[ASK], approver=slowly)
    (run, events), nap = together(*(read(f"r{n}", 5 + n) for n in (1, 2, 3)), layers=[policy])
    assert outcomes(run) == [("r1", "ok"), ("r2", "denied"), ("r3", "ok")]
    assert (nap.most, took(events)) == (2, 8)


def test_fail_fast_stops_after_the_group_in_which_a_call_failed() -> None:
    """A16"""
    calls = read("r1", 2, "raises"), read("r2", 1), write("w1")
    (run, events), nap = together(*calls, layers=[FailFast(), MaxSteps(1)])
    assert outcomes(run) == [("r1", "error"), ("r2", "ok"), ("w1", "not_run")]
    assert (nap.most, took(events)) == (2, 2)
    with pytest.raises(ValueError, match="r1"):
        run.unwrap()


def test_a_step_limit_counts_a_group_as_one_step() -> None:
    """A12"""
    (run, _), _ = together(read("r1"), read("r2"), layers=[MaxSteps(1)])
    assert run.stop == {"reason": "max_steps", "limit": 1, "used": 1, **_error_of(run)}
    assert outcomes(run) == [("r1", "ok"), ("r2", "ok")]


def _error_of(run: Run) -> dict[str, Any]:
    assert run.stop is not None
    return {"error": run.stop["error"]}


def test_calls_that_a_crash_left_in_doubt_run_again_if_they_only_read() -> None:
    """Rule 3 of the design: under the same key, as the second attempt"""
    calls = read("r1", 2), read("r2", 3), write("w1")
    _, events = play([turn(*calls), DONE], [Napping()], layers=[ParallelReads()])
    starts = [n for n, event in enumerate(events) if event.type is EventType.TOOL_START]
    crashed = refold(events[: starts[1] + 1])
    assert list(crashed.in_doubt) == ["r1", "r2"]
    _, more = go_on(crashed, [DONE], [Napping()], layers=[ParallelReads()])
    assert outcomes(crashed) == [("r1", "ok"), ("r2", "ok"), ("w1", "ok")]
    attempts = [e.data["attempt"] for e in more if e.type is EventType.TOOL_START]
    assert (attempts, took(more) - events[0].offset) == ([2, 2, 1], 3 + 1)


class Bounded(ParallelReads):
    """Ends a loop that would never end."""

    asked = 0

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        self.asked += 1
        assert self.asked < 10
        return await super().act(run, call, next)


class Twice(Layer):
    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        await next(run, call)
        return await next(run, call)


def test_what_was_observed_of_an_earlier_attempt_is_never_handed_out() -> None:
    """Rule 4 of the design: recording fails in the second attempt, and the run is taken up again"""
    events: list[Event] = []
    todo = [None, OSError("no room")]

    def sink(event: Event) -> None:
        error = todo.pop(0) if event.type is EventType.TOOL_RESULT and todo else None
        if error is not None:
            raise error
        events.append(event)

    layers = [Bounded(), Twice()]
    player, _ = harness([read("r1"), DONE], [Napping()], layers=layers, sinks=[sink])
    run = Run("run-x")
    player.record.message(run, "go")
    with pytest.raises(OSError, match="no room"):
        asyncio.run(player.resume(run))
    assert list(run.observed) == list(run.history.open) == ["r1"]
    asyncio.run(player.resume(run))
    assert (run.output, kinds(events).count("tool_start")) == ("done", 4)


def test_two_harnesses_share_one_layer_and_one_of_them_runs_in_a_tool_of_the_other() -> None:
    layer, clock, nap = ParallelReads(), VirtualClock(), Napping()

    @tool(read_only=True)
    async def inside(context: ToolExecutionContext) -> str:
        """Run a harness of its own."""
        turns = [turn(read("r1", 2), read("r2", 3)), DONE]
        player, _ = harness(turns, [nap], layers=[layer], clock=clock)
        run = await player.run("inner")
        check_history(run)
        return f"{run.output} {len(tool_messages(run))}"

    turns = [turn(call("inside", "r1"), read("r2", 3)), turn(read("r1"), read("r2")), DONE]
    run, events = play(turns, [nap, inside], layers=[layer], clock=clock)
    assert [m["tool_result"] for m in tool_messages(run)[:1]] == ["done 2"]
    assert took(events) == 3 + 1


@pytest.mark.parametrize("outside", [Policy(), Hooks([])])
def test_a_layer_that_judges_calls_cant_be_outside(outside: Layer) -> None:
    """It wouldn't see what is started here: a policy there would be got round"""
    player, events = harness([read("r1")], [Napping()], layers=[outside, ParallelReads()])
    with pytest.raises(ValueError, match=f"before {type(outside).__name__}"):
        asyncio.run(player.run("go"))
    assert "tool_start" not in kinds(events)


def test_layers_that_judge_no_calls_may_be_outside() -> None:
    run, events = play(
        [turn(read("r1"), read("r2")), DONE], [Napping()], layers=[MaxSteps(), ParallelReads()]
    )
    assert (run.output, took(events)) == ("done", 1)


@pytest.mark.parametrize("same", [True, False])
def test_it_cant_stand_twice(same: bool) -> None:
    layer = ParallelReads()
    layers = [layer, layer if same else ParallelReads()]
    player, _ = harness([read("r1")], [Napping()], layers=layers)
    with pytest.raises(ValueError, match="twice"):
        asyncio.run(player.run("go"))


def test_what_a_search_finds_the_call_after_it_may_use_also_side_by_side() -> None:
    """C26: as it is without this layer, however long somebody judges the search"""

    async def ponder(given: HookInput) -> None:
        for _ in range(50):
            await asyncio.sleep(0)

    hooks = Hooks([Hook("pre_tool_use", ponder, matcher="tool_search")])
    layers = [ParallelReads(), hooks, DeferredTools(["nap"])]
    turns = [turn(call("tool_search", "s", query="sleep"), read("r1"), read("r2")), DONE]
    nap = Napping()
    run, _ = play(turns, [ToolSearch(), nap], layers=layers)
    assert outcomes(run) == [("s", "ok"), ("r1", "ok"), ("r2", "ok")]
    assert nap.most == 2


@pytest.mark.parametrize("limit", [True, 1.5, "8", None, 0, -1])
def test_a_limit_that_is_no_positive_integer_is_refused(limit: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="limit of calls"):
        ParallelReads(limit)


def test_every_call_goes_through_every_layer_inside(tmp_path: Path) -> None:
    """B09, B24: hooks, policy and large outputs, each call with its own"""
    seen: list[str] = []

    def look(given: HookInput) -> Block | None:
        seen.append(f"{given.event} {given.call_id}")
        return Block("not r2") if given.call_id == "r2" and given.event == "pre_tool_use" else None

    @tool(read_only=True, paths=[])
    def long(letter: str) -> str:
        """Say much."""
        return letter * 2_000

    layers: list[Layer] = [
        Hooks([Hook("pre_tool_use", look), Hook("post_tool_use", look)]),
        Policy(),
        LargeOutput(1_000, preview=1_000),
    ]
    calls = [call("long", f"r{n}", letter=str(n)) for n in (1, 2, 3)]
    layers = [ParallelReads(), *layers]
    run, events = play([turn(*calls), DONE], [long], layers=layers, cwd=tmp_path)
    assert outcomes(run) == [("r1", "ok"), ("r2", "denied"), ("r3", "ok")]
    assert sorted(seen) == sorted(f"{e}_tool_use r{n}" for e in ("pre", "post") for n in (1, 2, 3))
    assert all(len(m["tool_result"]) <= 1_000 for m in tool_messages(run))
    assert kinds(events).count("hook") == 6


def test_an_async_hook_takes_no_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Determinism: while a thread answers, the virtual clock may go on or not"""

    async def look(given: HookInput) -> None:
        await asyncio.sleep(0)

    monkeypatch.delattr(threading, "Thread")
    hooks = Hooks([Hook("pre_tool_use", look), Hook("post_tool_use", look)])
    turns = [turn(read("r1"), read("r2", 2)), DONE]
    player, events = harness(turns, [Napping()], layers=[ParallelReads(), hooks])
    asyncio.run(player.run("go"))
    assert [e.data["result"] for e in events if e.type is EventType.HOOK] == ["passed"] * 4
    assert took(events) == 2
