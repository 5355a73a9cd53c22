"""The step limit, and stopping at the first error."""

import asyncio
from typing import Any

import pytest

from mini_harness.approval import ToolDenied
from mini_harness.limits import FailFast, MaxSteps, MaxStepsExceeded
from mini_harness.policy import Policy, Rule, Verdict
from mini_harness.protocol import Final, UnknownDecision, UnknownTool
from mini_harness.run import Status, StopReason
from mini_harness.tools.base import ToolResult
from mini_harness.tools.builds import TOOLS
from mini_harness.tools.call import InvalidArguments
from mini_harness.tools.function import tool
from tests.loops import DONE, call, check, go_on, harness, kinds, outcomes, play, refold, turn

FARM = list(TOOLS.values())
LOOK = call("read_build", build_id="build-102")


class Broken(RuntimeError):
    pass


@tool
def breaks() -> str:
    """Raise."""
    raise Broken("as always")


@tool
def exits() -> ToolResult:
    """Report a failure that is no exception."""
    return ToolResult("exit code 1", is_error=True)


def test_the_default_limit_is_eight_steps() -> None:
    """A12, A13"""
    run, events = play([LOOK] * 9, FARM, layers=[MaxSteps()])
    assert (run.status, run.step) == (Status.STOPPED, 8)
    assert run.stop is not None
    assert (run.stop["reason"], run.stop["limit"], run.stop["used"]) == ("max_steps", 8, 8)
    assert kinds(events)[-1] == "stop"
    with pytest.raises(RuntimeError, match=r"^max_steps exceeded: 8$"):
        run.unwrap()


def test_an_answer_in_the_last_allowed_step_counts() -> None:
    """A12, report R05"""
    run, _ = play([LOOK, DONE], FARM, layers=[MaxSteps(2)])
    assert (run.status, run.output) == (Status.COMPLETED, "done")


def test_a_run_that_was_stopped_goes_on_under_a_higher_limit() -> None:
    player, events = harness([LOOK, LOOK, DONE], FARM, layers=[limit := MaxSteps(2)])
    run = asyncio.run(player.run("go"))
    assert isinstance(run.error, MaxStepsExceeded)
    limit.limit = 3
    asyncio.run(player.resume(run))
    check(run, events)
    assert (run.status, run.output, run.step) == (Status.COMPLETED, "done", 3)


@pytest.mark.parametrize("limit", [True, 1.5, "8", None])
def test_a_limit_that_is_no_integer_is_refused(limit: Any) -> None:
    with pytest.raises(TypeError, match="integer"):
        MaxSteps(limit)


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        MaxSteps(-1)


@pytest.mark.parametrize(
    ("proposed", "error", "text"),
    [
        (call("deploy_prod", build_id="build-102"), ToolDenied, "Tool not allowed: deploy_prod"),
        (call("fly"), UnknownTool, "Unknown tool: fly"),
        (call("read_build", number=1), InvalidArguments, "unknown argument"),
        (call("breaks"), Broken, "as always"),
        ({"type": "sing"}, UnknownDecision, "Unknown decision type"),
    ],
)
def test_fail_fast_stops_at_the_first_error_and_unwrap_raises_it(
    proposed: Any, error: type[Exception], text: str
) -> None:
    """A07, A14, A15, A16"""
    layers = [FailFast(), MaxSteps(), Policy({"read_build", "breaks"})]
    run, events = play([proposed, LOOK, DONE], [*FARM, breaks], layers=layers)
    with pytest.raises(error, match=text) as raised:
        run.unwrap()
    assert raised.value is run.error
    assert run.step == 1
    assert run.stop is not None
    denied = error is ToolDenied
    assert run.stop["reason"] == (StopReason.DENIED if denied else StopReason.ERROR)
    assert run.status is (Status.STOPPED if denied else Status.FAILED)
    assert kinds(events)[-1] == "stop"


def test_what_comes_after_the_error_in_a_turn_does_not_run() -> None:
    turns = [turn(call("breaks", "a"), call("add", "b", a=1, b=1)), DONE]
    run, events = play(turns, [*FARM, breaks], layers=[FailFast()])
    assert outcomes(run) == [("a", "error"), ("b", "not_run")]
    assert kinds(events).count("tool_start") == 1


def test_an_error_counts_also_after_a_pause() -> None:
    """A16: in the same process or in another."""
    both = turn(call("breaks", "a"), call("add", "b", a=1, b=1))
    rules = Rule("ok", Verdict.ALLOW, "breaks"), Rule("ask", Verdict.REQUIRE_APPROVAL, "add")
    layers = [Policy(rules=rules), FailFast()]
    player, events = harness([both, DONE], [*FARM, breaks], layers=layers)
    run = asyncio.run(player.run("go"))
    assert run.status is Status.PAUSED
    again = refold(events)
    for each in (run, again):
        each.approve()
        go_on(each, [DONE], [*FARM, breaks], layers=layers)
        assert outcomes(each) == [("a", "error"), ("b", "not_run")]
        assert each.status is Status.FAILED
        with pytest.raises(RuntimeError, match="as always"):
            each.unwrap()


@pytest.mark.parametrize(
    ("proposed", "error", "reason"),
    [
        (call("deploy_prod", build_id="build-102"), ToolDenied, StopReason.DENIED),
        (call("fly"), UnknownTool, StopReason.ERROR),
        (call("read_build", number=1), InvalidArguments, StopReason.ERROR),
        (call("breaks"), RuntimeError, StopReason.ERROR),
    ],
)
def test_an_error_that_was_only_read_back_stops_a_run(
    proposed: Any, error: type[Exception], reason: StopReason
) -> None:
    """A07, A15, A16"""
    tools = [*FARM, breaks]
    _, events = play([proposed, DONE], tools, layers=[Policy({"read_build", "breaks"})])
    end = next(at for at, event in enumerate(events) if event.type == "tool_error")
    run, later = go_on(refold(events[: end + 1]), [DONE], tools, layers=[FailFast()])
    assert run.stop is not None
    assert run.stop["reason"] == reason
    assert kinds(later)[-1] == "stop"
    with pytest.raises(error) as raised:
        run.unwrap()
    assert type(raised.value) is error
    if isinstance(raised.value, ToolDenied):
        assert raised.value.rule == "allowed-tools"


def test_an_error_of_an_earlier_turn_is_over() -> None:
    _, events = play([call("breaks"), LOOK, DONE], [*FARM, breaks])
    seen = next(at for at, event in enumerate(events) if event.type == "tool_result")
    run, _ = go_on(refold(events[: seen + 1]), [DONE], FARM, layers=[FailFast()])
    assert run.output == "done"


def test_a_failure_that_a_tool_only_reports_stops_nothing() -> None:
    run, _ = play([call("exits"), Final("seen")], [exits], layers=[FailFast()])
    assert run.output == "seen"


def test_without_an_error_fail_fast_changes_nothing() -> None:
    """A11"""
    layers = [FailFast(), MaxSteps(), Policy({"read_build"})]
    run, events = play([LOOK, DONE], FARM, layers=layers)
    assert run.unwrap() == "done"
    assert kinds(events)[1:] == [
        "model_decision",
        "tool_start",
        "tool_result",
        "model_decision",
        "final",
    ]
