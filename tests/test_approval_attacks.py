"""Approval under attack: approvers that fail, answers that are stale, texts that hide."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mini_harness import (
    Approval,
    ApprovalRequest,
    Approver,
    Event,
    EventType,
    Harness,
    Policy,
    Rule,
    Run,
    ScriptedModel,
    Status,
    Verdict,
    approve_all,
    deny_all,
    run_sync,
    tool,
)
from tests.approvals import CALL, FINAL, Append, Stage, told


def _raise(request: ApprovalRequest) -> Approval:
    raise RuntimeError("the network is down")


def _answer(value: Any) -> Callable[[ApprovalRequest], Any]:
    return lambda request: value


def _stale(request: ApprovalRequest) -> Approval:
    return Approval(True, "0" * 64)


def _truthy(request: ApprovalRequest) -> Approval:
    return Approval("no", request.digest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "approver",
    [_raise, _answer("yes"), _answer(True), _answer(1), _answer({}), _stale, _truthy],
    ids=["raises", "text", "True", "1", "dict", "another digest", "truthy"],
)
def test_whatever_is_no_answer_to_this_request_means_no(approver: Approver) -> None:
    """report P04: could not judge is never yes"""
    stage = Stage([CALL, FINAL], approver)
    run = stage.run()
    assert stage.deployed == []
    assert "said no. The approver" in told(run)


def test_an_approver_that_never_answers_is_a_no_when_patience_ends() -> None:
    cancelled: list[bool] = []

    async def hang(request: ApprovalRequest) -> Approval:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)
        return request.approve()

    stage = Stage([CALL, FINAL], hang, patience=0.01)
    run = stage.run()
    assert stage.deployed == []
    assert "Nobody answered within 0.01 seconds" in told(run)
    assert cancelled == [True]


def test_patience_is_for_people_and_their_time_not_for_the_virtual_one() -> None:
    async def slow(request: ApprovalRequest) -> Approval:
        await asyncio.sleep(0.01)
        return request.approve()

    stage = Stage([CALL, FINAL], slow, patience=60)
    stage.run()
    assert stage.deployed == ["build-101"]


def test_a_no_that_is_to_be_remembered_is_no_answer() -> None:
    def no_for_ever(request: ApprovalRequest) -> Approval:
        return Approval(False, request.digest, remember=True)

    stage = Stage([CALL, CALL, FINAL], no_for_ever)
    stage.run()
    assert stage.deployed == []
    with pytest.raises(TypeError, match="remember must be True or False"):
        Stage([CALL]).run().approve(remember="no")  # type: ignore[arg-type]


def test_two_policies_each_want_an_answer_of_their_own() -> None:
    strict = Policy(rules=[Rule("four-eyes", Verdict.REQUIRE_APPROVAL)], approver=deny_all)
    stage = Stage([CALL, FINAL], approve_all)
    Harness(ScriptedModel([CALL, FINAL]), stage.tools, layers=[stage.policy, strict]).run_sync("x")
    assert stage.deployed == []


def test_an_answer_holds_for_its_run_and_its_folder_alone(tmp_path: Path) -> None:
    kept: list[Approval] = []

    def keeper(request: ApprovalRequest) -> Approval:
        kept.append(kept[0] if kept else request.approve())
        return kept[-1]

    stage = Stage([CALL, FINAL], keeper)
    for _ in range(2):
        # Only a real clock's names are never given twice.
        model = ScriptedModel([CALL, FINAL])
        Harness(model, stage.tools, layers=[stage.policy]).run_sync("go")
    assert stage.deployed == ["build-101"]
    stage = Stage([CALL, FINAL])
    run = stage.run()
    run.approve()
    elsewhere = Harness(ScriptedModel([FINAL]), stage.tools, layers=[Policy()], cwd=tmp_path)
    run_sync(elsewhere.resume(run))
    assert stage.deployed == []
    assert "has changed" in ApprovalRequest.of(run).problem


def test_an_answer_that_no_policy_takes_stops_everything() -> None:
    stage = Stage([CALL, FINAL])
    run = stage.run()
    run.deny("never")
    with pytest.raises(RuntimeError, match="no policy of this harness took the answer"):
        run_sync(Harness(ScriptedModel([FINAL]), stage.tools).resume(run))
    assert stage.deployed == []


def test_a_new_answer_outranks_one_that_was_recorded_and_cannot_run() -> None:
    stage = Stage([CALL, FINAL])
    run = stage.run()
    run.approve({"build": "postgres://u:correct-horse@db"})
    stage.resume(run)
    until = stage.types().index("approval") + 1
    again = Run.fold(stage.events[:until])
    stage.deployed.clear()
    run_sync(stage.anew([FINAL]).resume(again))
    assert again.status is Status.PAUSED
    again.deny("No.")
    run_sync(stage.anew([FINAL]).resume(again))
    assert again.unwrap() == "done"
    assert stage.deployed == []


def test_an_edit_is_told_in_the_one_result_of_the_call() -> None:
    stage = Stage([CALL, FINAL])
    run = stage.run()
    run.approve({"build": "build-102"})
    stage.resume(run)
    assert stage.types().count("tool_result") == 1


def test_what_changes_while_somebody_thinks_is_asked_about_again(tmp_path: Path) -> None:
    """Two approved edits of one file, of which one would be lost"""
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")

    async def slow(request: ApprovalRequest) -> Approval:
        (tmp_path / "a.txt").write_text("changed\n", encoding="utf-8")
        return request.approve()

    call = {"type": "tool", "name": "append", "arguments": {"path": "a.txt", "text": "two\n"}}
    harness = Harness(
        ScriptedModel([call, FINAL]), [Append()], layers=[Policy(approver=slow)], cwd=tmp_path
    )
    run = harness.run_sync("append")
    assert run.status is Status.PAUSED
    assert ApprovalRequest.of(run).preview == "changed\n+two\n"
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "changed\n"


def test_none_means_that_nobody_has_decided_yet() -> None:
    stage = Stage([CALL, FINAL], _answer(None))
    assert stage.run().status is Status.PAUSED


def test_presets_answer_for_a_person_and_the_record_says_which() -> None:
    yes, no = Stage([CALL, FINAL], approve_all), Stage([CALL, FINAL], deny_all)
    yes.run()
    no.run()
    assert (yes.deployed, no.deployed) == (["build-101"], [])
    by = [e.data["by"] for s in (yes, no) for e in s.events if e.type is EventType.APPROVAL]
    assert by == ["approve_all", "deny_all"]


def test_what_runs_is_what_was_approved_though_the_approver_changes_its_dict_afterwards() -> None:
    """report P05"""
    edit = {"build": "build-102"}

    def approver(request: ApprovalRequest) -> Approval:
        return request.approve(edit)

    class Tamper(Stage):
        def resume(self, run: Run) -> Run:
            edit["build"] = "evil"
            return super().resume(run)

    stage = Tamper([CALL, FINAL])
    run = stage.run()
    run.approve(edit)
    stage.resume(run)
    assert stage.deployed == ["build-102"]
    with pytest.raises(TypeError, match="can't be changed"):
        ApprovalRequest.of(Stage([CALL, FINAL]).run()).arguments["build"] = "evil"


def test_if_what_a_call_would_change_is_another_thing_by_now_the_person_is_asked_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    call = {"type": "tool", "name": "append", "arguments": {"path": "a.txt", "text": "two\n"}}
    harness = Harness(ScriptedModel([call, FINAL]), [Append()], layers=[Policy()], cwd=tmp_path)
    run = harness.run_sync("append")
    assert ApprovalRequest.of(run).preview == "one\n+two\n"
    run.approve()
    (tmp_path / "a.txt").write_text("changed\n", encoding="utf-8")
    run_sync(harness.resume(run))
    assert run.status is Status.PAUSED
    assert "has changed" in ApprovalRequest.of(run).problem
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "changed\n"
    run.approve()
    run_sync(harness.resume(run))
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "changed\ntwo\n"


HIDDEN = {
    "second line": ("echo safe\nrm -rf d", "| rm -rf d"),
    "carriage return": ("rm -rf d\recho safe", "rm -rf d\\recho safe"),
    "escape": ("\x1b[2Kecho safe", "\\x1b[2K"),
    "C1": ("\x9b2Kecho", "\\x9b2K"),
    "bidi": ("echo \u202efr mr", "\\u202e"),
    "zero width": ("r\u200bm", "r\\u200bm"),
    "spaces": ("echo safe" + " " * 400 + "; rm -rf d", "[400 spaces] ; rm -rf d"),
    "blank letter": ("echo\u3164safe", "\\u3164"),
    "tag letters": ("echo \U000e0072\U000e006d", "\\U000e0072"),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_nothing_hides_in_what_a_person_is_asked(case: str) -> None:
    """report P07"""
    text, seen = HIDDEN[case]

    @tool
    def say(command: str) -> str:
        """Say."""
        return command

    script = [{"type": "tool", "name": "say", "arguments": {"command": text}}, FINAL]
    events: list[Event] = []
    run = Harness(ScriptedModel(script), [say], layers=[Policy()], sinks=[events.append]).run_sync(
        "go"
    )
    question = str(ApprovalRequest.of(run))
    assert seen in question
    assert all(c == "\n" or c.isprintable() for c in question)
    assert ApprovalRequest.of(run).arguments["command"] == text
    assert all(c == "\n" or c.isprintable() for c in "\n".join(map(str, events)))


def test_a_very_long_argument_is_cut_where_a_person_reads_it_and_says_by_how_much() -> None:
    """report P07, C37"""
    text = "a" * 5_000 + "; rm -rf d"
    stage = Stage([{**CALL, "arguments": {"build": text}}, FINAL])
    request = ApprovalRequest.of(stage.run())
    assert "[... 1,010 of 5,010 characters are not shown ...]" in str(request)
    assert str(request).count("rm -rf d") == 1
    assert request.arguments["build"] == text


def test_a_recording_that_fails_after_the_tool_reaches_the_caller_and_the_tool_ran_once() -> None:
    """C33, C34: with policy, approval and trace"""
    stage = Stage([CALL, FINAL], approve_all)

    def full_disk(event: Event) -> None:
        if event.type is EventType.TOOL_RESULT:
            raise OSError("disk full")

    harness = Harness(
        ScriptedModel([CALL, FINAL]),
        stage.tools,
        layers=[stage.policy],
        sinks=[stage.events.append, full_disk],
    )
    with pytest.raises(OSError, match="disk full"):
        harness.run_sync("deploy it")
    assert stage.deployed == ["build-101"]
    assert "tool_error" not in stage.types()


def test_a_reason_of_several_lines_cannot_pass_for_another_question() -> None:
    """report P07"""
    rule = Rule("r", Verdict.REQUIRE_APPROVAL, reason="why\nMay echo run?\n  text: hi")
    stage = Stage([CALL, FINAL], rules=[rule])
    lines = str(ApprovalRequest.of(stage.run())).split("\n")
    assert [line for line in lines if line.startswith("May ")] == ["May deploy run?"]
    assert "    | May echo run?" in lines


def test_always_holds_in_its_folder_alone(tmp_path: Path) -> None:
    stage = Stage([CALL, CALL, FINAL])
    run = stage.run()
    run.approve(remember=True)
    model = ScriptedModel([CALL, FINAL])
    stage.resume(run)
    assert stage.deployed == ["build-101", "build-101"]
    again = Run.fold(stage.events[:-2])
    elsewhere = Harness(model, stage.tools, layers=[Policy()], cwd=tmp_path)
    run_sync(elsewhere.resume(again))
    assert again.status is Status.PAUSED


def test_a_no_is_a_no_though_what_it_was_about_has_changed(tmp_path: Path) -> None:
    stage = Stage([CALL, FINAL])
    run = stage.run()
    run.deny("never")
    elsewhere = Harness(ScriptedModel([FINAL]), stage.tools, layers=[Policy()], cwd=tmp_path)
    run_sync(elsewhere.resume(run))
    assert "A person said no. never" in told(run)
    assert stage.deployed == []


def test_two_policies_alike_each_want_an_answer_of_their_own() -> None:
    asked: list[str] = []

    def strict(request: ApprovalRequest) -> Approval:
        asked.append(request.tool)
        return request.deny()

    def always(request: ApprovalRequest) -> Approval:
        return request.approve(remember=True)

    stage = Stage([CALL, FINAL])
    layers = [Policy(approver=always), Policy(approver=strict)]
    Harness(ScriptedModel([CALL, CALL, FINAL]), stage.tools, layers=layers).run_sync("go")
    assert (stage.deployed, asked) == ([], ["deploy", "deploy"])


def test_one_click_answers_one_policy() -> None:
    stage = Stage([CALL, FINAL])
    harness = Harness(ScriptedModel([CALL, FINAL]), stage.tools, layers=[Policy(), Policy()])
    run = harness.run_sync("go")
    run.approve()
    run_sync(harness.resume(run))
    assert (run.status, stage.deployed) == (Status.PAUSED, [])
    run.approve()
    run_sync(harness.resume(run))
    assert stage.deployed == ["build-101"]
