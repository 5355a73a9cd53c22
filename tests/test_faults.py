"""Declared faults happen where they are declared, once, and look like the real thing."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.faults import (
    Fault,
    FaultKind,
    Faults,
    InjectedModelError,
    Moment,
    PassingModelError,
    ProcessCut,
)
from mini_harness.layer import Layer
from mini_harness.parallel import ParallelReads
from mini_harness.protocol import Final
from mini_harness.retry import Retry
from mini_harness.run import Run, Status
from mini_harness.timeout import ModelTimedOut, Timeout
from mini_harness.tools.base import TransientError
from mini_harness.tools.function import FunctionTool, function_tool
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

A, B = call("note", "a", text="A"), call("note", "b", text="B")


def noting(effects: list[str], **declared: Any) -> FunctionTool:
    def note(text: str) -> str:
        """Write a note."""
        effects.append(text)
        return f"noted {text}"

    return function_tool(note, **declared)


def one(kind: str, **more: Any) -> Fault:
    return Fault.from_dict({"kind": kind, "tool": "note", "attempt": 1, **more})


def noted(
    turns: Sequence[Any], faults: Faults, *around: Layer, **declared: Any
) -> tuple[Played, list[str]]:
    """A run of these turns with the tool ``note``, and which texts took effect."""
    effects: list[str] = []
    return play(turns, [noting(effects, **declared)], layers=[*around, faults]), effects


def test_a_permanent_fault_is_an_error_of_the_tool_that_has_not_run() -> None:
    played, effects = noted([turn(A), turn(B), DONE], Faults([one("permanent", says="no disk")]))
    first, second = tool_messages(played.run)
    assert first["tool_result"] == "Tool note failed: InjectedError: no disk"
    assert (second["tool_result"], effects) == ("noted B", ["B"])
    assert kinds(played.events)[2:4] == ["tool_start", "tool_error"]


def test_a_fault_afterwards_takes_the_answer_and_not_the_effect() -> None:
    played, effects = noted([turn(A), DONE], Faults([one("transient", moment="after")]), Retry())
    assert effects == ["A"]
    assert outcomes(played.run) == [("a", "unknown")]


def test_a_transient_fault_is_retried_as_any_transient_error_is() -> None:
    fault = one("transient", says="busy", retry_after=7)
    played, effects = noted([turn(A), DONE], Faults([fault]), Retry(), idempotent=True)
    assert (outcomes(played.run), effects) == ([("a", "ok")], ["A"])
    retry = next(each for each in played.events if each.type == "retry")
    assert retry.data["seconds"] == 7
    assert retry.data["because"] == repr(TransientError("busy"))


def test_attempts_count_over_all_calls_and_with_every_retry() -> None:
    faults = Faults([one("transient"), Fault(FaultKind.PERMANENT, "note", 3)])
    played, effects = noted([turn(A), turn(B), DONE], faults, Retry(), idempotent=True)
    # The second attempt was the retry of A, so the third is the first at B.
    assert outcomes(played.run) == [("a", "ok"), ("b", "error")]
    assert (effects, faults.left) == (["A"], ())


def test_a_fault_of_another_tool_or_a_later_attempt_is_left() -> None:
    faults = Faults([Fault(FaultKind.CUT, "other", 1), Fault(FaultKind.CUT, "note", 2)])
    _, effects = noted([turn(A), DONE], faults)
    assert (effects, faults.left) == (["A"], faults.faults)


def test_a_given_text_stands_for_what_the_tool_would_have_said() -> None:
    played, effects = noted([turn(A), DONE], Faults([one("result", says="")]))
    assert (tool_messages(played.run)[0]["tool_result"], effects) == ("", [])
    assert outcomes(played.run) == [("a", "ok")]
    played, effects = noted([turn(A), DONE], Faults([one("result", says="lie", moment="after")]))
    assert (tool_messages(played.run)[0]["tool_result"], effects) == ("lie", ["A"])


@pytest.mark.parametrize(("moment", "effect"), [("before", []), ("after", ["A"])])
def test_a_time_out_is_met_by_the_limit_on_the_clock(moment: str, effect: list[str]) -> None:
    fault = one("time_out", moment=moment)
    played, effects = noted([turn(A), DONE], Faults([fault]), Timeout(30))
    assert (outcomes(played.run), effects) == ([("a", "timed_out")], effect)
    assert played.events[-1].offset == 30


@pytest.mark.parametrize("declared", [{"idempotent": True}, {"read_only": True}])
def test_the_record_says_that_a_call_which_may_be_repeated_failed_in_a_passing_way(
    declared: dict[str, Any],
) -> None:
    played, _ = noted([turn(A), DONE], Faults([one("transient")]), Retry(), **declared)
    failed = next(each for each in played.events if each.type == "tool_error")
    assert failed.data["transient"] is True


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_time_out_without_a_limit_is_a_tool_that_takes_long_and_runs_once(moment: str) -> None:
    fault = one("time_out", seconds=90, moment=moment)
    played, effects = noted([turn(A), DONE], Faults([fault]))
    assert (outcomes(played.run), effects) == ([("a", "ok")], ["A"])
    assert played.events[-1].offset == 90


@pytest.mark.parametrize(("moment", "effect"), [("before", []), ("after", ["A"])])
@pytest.mark.parametrize("around", [(), (Timeout(30),), (ParallelReads(),), (Retry(),)])
def test_a_cut_leaves_a_start_without_an_end_and_the_run_goes_on_elsewhere(
    moment: str, effect: list[str], around: tuple[Layer, ...]
) -> None:
    """DESIGN, write before, write after: in between lies "outcome unknown" """
    effects: list[str] = []
    faults = Faults([one("cut", moment=moment)])
    player, events = harness([turn(A), DONE], [noting(effects)], layers=[*around, faults])
    with pytest.raises(ProcessCut):
        asyncio.run(player.run("go"))
    assert (kinds(events)[-1], effects) == ("tool_start", effect)
    played = go_on(refold(events), [DONE], [noting(effects)], layers=[*around, faults])
    assert (outcomes(played.run), effects) == ([("a", "unknown")], effect)
    assert played.run.output == "done"


def test_a_call_in_doubt_that_does_not_run_is_no_attempt() -> None:
    effects: list[str] = []
    faults = Faults([one("cut"), Fault(FaultKind.PERMANENT, "note", 2)])
    player, events = harness([turn(A), DONE], [noting(effects)], layers=[faults])
    with pytest.raises(ProcessCut):
        asyncio.run(player.run("go"))
    played = go_on(refold(events), [turn(B), DONE], [noting(effects)], layers=[faults])
    assert outcomes(played.run) == [("a", "unknown"), ("b", "error")]


def test_the_model_fails_in_the_turn_that_is_named() -> None:
    fault = Fault.from_dict({"kind": "permanent", "turn": 2, "says": "no such model"})
    played, _ = noted([turn(A), DONE], Faults([fault]), Retry())
    assert played.run.status is Status.FAILED
    assert isinstance(played.run.error, InjectedModelError)
    assert str(played.run.error) == "no such model"


def test_a_transient_fault_of_the_model_passes_and_every_asking_counts() -> None:
    found = [{"kind": "transient", "turn": n, "says": "full", "retry_after": n} for n in (1, 2)]
    played, _ = noted([DONE], Faults(map(Fault.from_dict, found)), Retry())
    waits = [each.data["seconds"] for each in played.events if each.type == "retry"]
    assert (played.run.output, len(waits)) == ("done", 2)
    played, _ = noted([DONE], Faults(map(Fault.from_dict, found)))
    assert isinstance(played.run.error, PassingModelError)
    assert played.run.error.retry_after == 1


def test_a_slow_turn_meets_the_limit_of_the_model() -> None:
    played, _ = noted([DONE], Faults([Fault(FaultKind.TIME_OUT, turn=1)]), Timeout(model=20))
    assert isinstance(played.run.error, ModelTimedOut)
    assert played.events[-1].offset == 20


def test_a_cut_in_a_turn_of_the_model_is_caught_by_nobody() -> None:
    faults = Faults([Fault(FaultKind.CUT, turn=2)])
    player, events = harness([turn(A), DONE], [noting([])], layers=[Retry(), faults])
    with pytest.raises(ProcessCut):
        asyncio.run(player.run("go"))
    played = go_on(refold(events), [Final("later")], layers=[faults])
    assert played.run.output == "later"


def test_what_was_approved_and_said_before_a_call_stays_with_it() -> None:
    class Marks(Layer):
        async def act(self, run: Run, call: Any, next: Any) -> Any:
            call.allowed_by, call.preface = "rule-1", "Mind the gap."
            return await next(run, call)

    played, _ = noted([turn(A), DONE], Faults([one("result", says="ok")]), Marks())
    start = next(each for each in played.events if each.type == "tool_start")
    assert start.data["rule"] == "rule-1"
    assert tool_messages(played.run)[0]["tool_result"] == "Mind the gap.\nok"


def test_runs_with_the_same_faults_are_the_same() -> None:
    """DESIGN, determinism"""

    def lines() -> list[str]:
        faults = Faults([one("transient"), Fault(FaultKind.TIME_OUT, turn=2)])
        played, _ = noted([turn(A), DONE], faults, Retry(), Timeout(9, model=9), idempotent=True)
        return [event.to_json() for event in played.events]

    assert lines() == lines()


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({"kind": "cut", "tool": "note", "attempt": 1, "when": "now"}, "has no when"),
        ({"tool": "note", "attempt": 1}, "needs a kind"),
        ({"kind": "flood", "turn": 1}, "kind is 'flood', but must be one of: transient, perm"),
        ({"kind": ["cut"], "turn": 1}, "must be one of"),
        ({"kind": "cut"}, "a tool and an attempt, or it has a turn"),
        ({"kind": "cut", "tool": "note"}, "a tool and an attempt, or it has a turn"),
        ({"kind": "cut", "attempt": 1}, "a tool and an attempt, or it has a turn"),
        ({"kind": "cut", "tool": "n", "attempt": 1, "turn": 1}, "a tool and an attempt, or"),
        ({"kind": "cut", "turn": 0}, "turn is 0, but counts from 1"),
        ({"kind": "cut", "turn": True}, "turn must be an integer"),
        ({"kind": "cut", "turn": 1.0}, "turn must be an integer"),
        ({"kind": "cut", "tool": 5, "attempt": 1}, "tool must be text"),
        ({"kind": "transient", "turn": 1, "says": 5}, "says must be text"),
        ({"kind": "transient", "turn": 1, "retry_after": -1}, "must be 0 or more"),
        ({"kind": "transient", "turn": 1, "retry_after": float("nan")}, "must be 0 or more"),
        ({"kind": "time_out", "turn": 1, "seconds": "9"}, "seconds must be a number"),
        ({"kind": "time_out", "turn": 1, "says": "slow"}, "says nothing"),
        ({"kind": "cut", "turn": 1, "seconds": 9}, "Only a fault of the kind time_out"),
        ({"kind": "permanent", "turn": 1, "retry_after": 9}, "Only a fault of the kind trans"),
        ({"kind": "result", "turn": 1, "says": "x"}, "Only a tool"),
        ({"kind": "cut", "turn": 1, "moment": "after"}, "Only a tool"),
        ({"kind": "cut", "tool": "n", "attempt": 1, "moment": "during"}, "moment is 'during'"),
        ({"kind": "result", "tool": "n", "attempt": 1}, "needs says"),
        ("cut", "must be an object"),
    ],
)
def test_a_fault_that_says_nothing_clear_is_refused(found: Any, why: str) -> None:
    with pytest.raises((ValueError, TypeError), match=why):
        Fault.from_dict(found)


def test_two_faults_at_one_place_and_what_is_no_fault_are_refused() -> None:
    with pytest.raises(ValueError, match="Two faults can't happen at one place"):
        Faults([one("cut"), one("permanent")])
    with pytest.raises(TypeError, match=r"isn't a fault\. Make one by Fault\.from_dict"):
        Faults([{"kind": "cut", "turn": 1}])  # type: ignore[list-item]


SECONDS = st.floats(0, 1e6) | st.integers(0, 10**6)
NUMBERS = st.integers(1, 50)
TEXTS = st.text(max_size=9)


def built(kind: FaultKind, draw: Callable[[Any], Any]) -> Fault:
    more: dict[str, Any] = {}
    if kind is not FaultKind.RESULT and draw(st.booleans()):
        more["turn"] = draw(NUMBERS)
    else:
        more |= {
            "tool": draw(TEXTS),
            "attempt": draw(NUMBERS),
            "moment": draw(st.sampled_from(Moment)),
        }
    if kind is FaultKind.RESULT or kind in (FaultKind.TRANSIENT, FaultKind.PERMANENT):
        more["says"] = draw(TEXTS)
    if kind is FaultKind.TRANSIENT:
        more["retry_after"] = draw(SECONDS | st.none())
    if kind is FaultKind.TIME_OUT:
        more["seconds"] = draw(SECONDS | st.none())
    return Fault(kind, **more)


@given(st.data(), st.sampled_from(FaultKind))
def test_every_fault_comes_back_from_its_json(data: st.DataObject, kind: FaultKind) -> None:
    fault = built(kind, data.draw)
    text = json.dumps(fault.to_dict())
    assert Fault.from_dict(json.loads(text)) == fault
    assert None not in fault.to_dict().values()


@given(st.sets(st.integers(1, 6)), st.integers(1, 6))
def test_exactly_the_named_attempts_fail(failing: set[int], calls: int) -> None:
    faults = Faults(Fault(FaultKind.PERMANENT, "note", n) for n in failing)
    effects: list[str] = []
    turns = [turn(call("note", f"c{n}", text=str(n))) for n in range(1, calls + 1)]
    played = play([*turns, DONE], [noting(effects)], layers=[faults])
    assert effects == [str(n) for n in range(1, calls + 1) if n not in failing]
    assert {fault.attempt for fault in faults.left} == {n for n in failing if n > calls}
    check(played.run, played.events)
