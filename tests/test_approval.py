"""Approval: what was approved is what runs, once, and whatever isn't a yes means no."""

from typing import Any

import pytest

from mini_harness import (
    Approval,
    ApprovalRequest,
    Event,
    EventType,
    Harness,
    NotWaiting,
    Rule,
    Run,
    ScriptedModel,
    Status,
    Trace,
    Verdict,
    approve_all,
    run_sync,
)
from tests.approvals import CALL, FINAL, Stage, told


def test_without_an_approver_the_run_pauses_and_nothing_runs() -> None:
    stage = Stage([CALL, FINAL])
    run = stage.run()
    assert run.status is Status.PAUSED
    assert stage.deployed == []
    assert "deploy waits for your answer" in str(run)
    run.approve()
    assert str(run) == f"{run.id} is paused, and you have answered. Resume it."


def test_an_approved_call_runs_as_it_was_proposed() -> None:
    stage = Stage([CALL, FINAL])
    run = stage.run()
    run.approve()
    assert stage.resume(run).unwrap() == "done"
    assert stage.deployed == ["build-101"]
    approval = next(e for e in stage.events if e.type is EventType.APPROVAL)
    assert stage.types().index("approval") < stage.types().index("tool_start")
    assert approval.data["by"] == "A person"


def test_an_approval_with_other_arguments_runs_these_and_the_model_is_told() -> None:
    stage = Stage([CALL, FINAL])
    run = stage.run()
    run.approve({"build": "build-102"})
    stage.resume(run)
    assert stage.deployed == ["build-102"]
    assert 'changed before it ran: {"build":"build-102"}' in told(run)


def test_an_edit_that_changes_nothing_is_a_plain_yes() -> None:
    stage = Stage([CALL, FINAL])
    run = stage.run()
    run.approve({"build": "build-101"})
    stage.resume(run)
    assert told(run) == "build-101 is live"
    approval = next(e for e in stage.events if e.type is EventType.APPROVAL)
    assert approval.data["arguments"] is None


def test_time_never_runs_backwards_in_the_record() -> None:
    """report R10"""
    trace = Trace()
    Harness(ScriptedModel([FINAL]), sinks=[trace]).run_sync("go")
    offsets = [event.offset for event in trace.events]
    assert offsets == sorted(offsets)
    assert offsets[0] >= 0


def test_a_no_is_told_to_the_model_with_its_reason() -> None:
    stage = Stage([CALL, FINAL])
    run = stage.run()
    run.deny("It is Friday.")
    assert stage.resume(run).unwrap() == "done"
    assert stage.deployed == []
    assert told(run) == "Tool not allowed: deploy. A person said no. It is Friday."


@pytest.mark.parametrize("bad", [{"build": 7}, {}, {"build": "b", "more": 1}])
def test_an_edit_that_does_not_fit_goes_back_to_the_person_and_loses_nothing(bad: Any) -> None:
    stage = Stage([CALL, FINAL])
    run = stage.run()
    run.approve(bad)
    stage.resume(run)
    assert run.status is Status.PAUSED
    assert "Your arguments can't run" in ApprovalRequest.of(run).problem
    assert "approval" not in stage.types()
    run.approve()
    stage.resume(run)
    assert stage.deployed == ["build-101"]


def test_an_edit_cannot_reach_what_is_denied() -> None:
    forbidden = Rule(
        "no-102", Verdict.DENY, when=lambda a: a.build == "build-102", reason="It failed."
    )
    stage = Stage([CALL, FINAL], rules=[forbidden])
    run = stage.run()
    run.approve({"build": "build-102"})
    stage.resume(run)
    assert run.status is Status.PAUSED
    assert "It failed." in ApprovalRequest.of(run).problem
    assert stage.deployed == []


def test_what_is_denied_never_reaches_an_approver() -> None:
    asked: list[str] = []

    def approver(request: ApprovalRequest) -> Approval:
        asked.append(request.tool)
        return request.approve()

    stage = Stage([CALL, FINAL], approver, rules=[Rule("no", Verdict.DENY, tool="deploy")])
    stage.run()
    assert (asked, stage.deployed) == ([], [])


def test_always_counts_for_the_same_tool_with_the_same_arguments_and_for_nothing_else() -> None:
    other = {**CALL, "arguments": {"build": "build-102"}}
    stage = Stage([CALL, CALL, other, FINAL])
    run = stage.run()
    run.approve(remember=True)
    stage.resume(run)
    assert stage.deployed == ["build-101", "build-101"]
    assert run.status is Status.PAUSED
    assert ApprovalRequest.of(run).arguments == {"build": "build-102"}


def test_always_ends_with_the_run() -> None:
    stage = Stage([CALL, FINAL, CALL])
    run = stage.run()
    run.approve(remember=True)
    stage.resume(run)
    assert stage.run().status is Status.PAUSED


def test_an_answer_counts_once() -> None:
    """report P05: the same call again is another question"""
    stage = Stage([CALL, CALL, FINAL])
    run = stage.run()
    run.approve()
    stage.resume(run)
    assert run.status is Status.PAUSED
    assert stage.deployed == ["build-101"]


def test_a_second_answer_is_refused_and_the_first_one_counts() -> None:
    """report N02: approve then deny"""
    stage = Stage([CALL, FINAL])
    run = stage.run()
    run.approve()
    with pytest.raises(NotWaiting, match="has an answer already"):
        run.deny()
    stage.resume(run)
    assert stage.deployed == ["build-101"]


def test_an_answer_to_a_finished_run_does_nothing_and_says_so() -> None:
    stage = Stage([CALL, FINAL], approve_all)
    run = stage.run()
    with pytest.raises(NotWaiting, match="waits for no answer: it is completed"):
        run.approve()
    with pytest.raises(NotWaiting, match="isn't waiting for an approval"):
        ApprovalRequest.of(run)
    assert stage.deployed == ["build-101"]


def test_resuming_without_an_answer_asks_again_and_notes_the_verdict_once() -> None:
    stage = Stage([CALL, FINAL])
    run = stage.run()
    stage.resume(run)
    assert run.status is Status.PAUSED
    assert stage.types().count("verdict") == 1
    run.approve()
    stage.resume(run)
    assert stage.deployed == ["build-101"]


def test_a_question_survives_a_restart() -> None:
    stage = Stage([CALL, FINAL])
    stage.run()
    again = Run.fold(Event.from_json(event.to_json()) for event in stage.events)
    again.approve()
    run_sync(stage.anew([FINAL]).resume(again))
    assert again.unwrap() == "done"
    assert stage.deployed == ["build-101"]


def test_an_answer_that_was_recorded_survives_a_restart() -> None:
    """The process died between the answer and the start of the tool: nobody is asked again."""
    stage = Stage([CALL, FINAL])
    run = stage.run()
    run.approve({"build": "build-102"})
    stage.resume(run)
    until = stage.types().index("approval") + 1
    again = Run.fold(stage.events[:until])
    run_sync(stage.anew([FINAL]).resume(again))
    assert again.unwrap() == "done"
    assert stage.deployed == ["build-102", "build-102"]


def test_an_approved_call_that_was_started_is_not_run_again_after_a_restart() -> None:
    stage = Stage([CALL, FINAL])
    run = stage.run()
    run.approve()
    stage.resume(run)
    until = stage.types().index("tool_start") + 1
    again = Run.fold(stage.events[:until])
    run_sync(stage.anew([FINAL]).resume(again))
    assert stage.deployed == ["build-101"]
    assert "outcome is unknown" in told(again) or "took effect is unknown" in told(again)
