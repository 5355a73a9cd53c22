"""A call that may have had its effect before the process died: a person looks, and decides."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mini_harness.approval import ApprovalRequest, approve_all, deny_all
from mini_harness.doubt import AskInDoubt
from mini_harness.events import Event, Sink
from mini_harness.layer import Layer
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.policy import Policy
from mini_harness.retry import Retry
from mini_harness.run import Run, Status
from mini_harness.session import Session
from mini_harness.sync import run_sync
from mini_harness.tools.base import BaseTool, ToolExecutionContext
from mini_harness.tools.function import function_tool
from tests.loops import DONE, call
from tests.sessions import new


class Farm:
    """The builds that were started, each with the key under which it was asked for."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def rerun(self, build: str, context: ToolExecutionContext) -> str:
        """Start a build again."""
        self.keys.append(context.idempotency_key)
        return f"{build} runs"

    def tool(self, **declared: Any) -> BaseTool:
        return function_tool(self.rerun, **declared)


class Died(Exception):
    """The process ended here."""


def dies(event: Event) -> None:
    """As the first sink: after the effect, and before anybody has recorded it."""
    if event.type == "tool_result":
        raise Died


def live(
    session: Session,
    farm: Farm,
    layers: Sequence[Layer],
    *,
    first: Sequence[Sink] = (),
    **declared: Any,
) -> Run:
    """Begin a run, or take up the one that there is."""
    begun = session.run() if session.runs else None
    harness = Harness(
        ScriptedModel([call("rerun", build="b-1"), DONE], asked=begun.step if begun else 0),
        [farm.tool(**declared)],
        layers=layers,
        sinks=[*first, session],
        clock=session.clock(),
    )
    return run_sync(harness.resume(begun) if begun else harness.run("go"))


def died(root: Path, farm: Farm, layers: Sequence[Layer] = (), **declared: Any) -> Session:
    """A session whose process ended right after the effect."""
    session = Session.open("s1", root) if (root / "sessions").exists() else new(root)
    with pytest.raises(Died):
        live(session, farm, layers, first=[dies], **declared)
    session.close()
    return Session.open("s1", root)


def told(run: Run) -> str:
    return str(next(m["tool_result"] for m in run.history.messages if m["role"] == "tool"))


def test_without_an_approver_the_run_pauses_and_says_what_to_look_at(tmp_path: Path) -> None:
    session, farm = died(tmp_path, Farm()), Farm()
    run = live(session, farm, [AskInDoubt()])
    assert run.status is Status.PAUSED
    question = str(ApprovalRequest.of(run))
    assert "started 1 time and nobody recorded its end" in question
    assert "Look first." in question
    assert ApprovalRequest.of(run).yes_or_no
    assert not farm.keys


def test_yes_runs_it_again_under_the_same_key(tmp_path: Path) -> None:
    """A22, report S10"""
    farm = Farm()
    run = live(died(tmp_path, farm), farm, [AskInDoubt(approve_all)])
    assert run.status is Status.COMPLETED
    assert len(farm.keys) == 2
    assert len(set(farm.keys)) == 1
    assert told(run) == "b-1 runs"


def test_no_tells_the_model_that_it_is_unknown_and_what_the_person_said(tmp_path: Path) -> None:
    """report S10"""
    farm = Farm()
    session = died(tmp_path, farm)
    paused = live(session, farm, [AskInDoubt()])
    paused.deny("It runs already: I looked.")
    run = resumed(session, farm, [AskInDoubt()], paused)
    assert run.status is Status.COMPLETED
    assert len(farm.keys) == 1
    assert "Whether it took effect is unknown" in told(run)
    assert "It runs already: I looked." in told(run)
    assert next(m["outcome"] for m in run.history.messages if m["role"] == "tool") == "unknown"


def resumed(session: Session, farm: Farm, layers: Sequence[Layer], run: Run) -> Run:
    harness = Harness(
        ScriptedModel([DONE]), [farm.tool()], layers=layers, sinks=[session], clock=session.clock()
    )
    return run_sync(harness.resume(run))


def test_an_answer_that_waits_when_the_process_dies_is_asked_for_again(tmp_path: Path) -> None:
    farm = Farm()
    session = died(tmp_path, farm)
    live(session, farm, [AskInDoubt()]).approve()
    again = Session.open("s1", tmp_path).run()
    assert (again.status, again.answer) == (Status.PAUSED, None)
    again.approve()
    assert resumed(Session.open("s1", tmp_path), farm, [AskInDoubt()], again).output == "done"
    assert len(farm.keys) == 2


def test_each_time_it_is_in_doubt_wants_an_answer_of_its_own(tmp_path: Path) -> None:
    farm, layers = Farm(), [AskInDoubt(approve_all)]
    died(tmp_path, farm, layers)
    session = died(tmp_path, farm, layers)
    assert len(farm.keys) == 2
    run = live(session, farm, [AskInDoubt()])
    assert run.status is Status.PAUSED
    assert "started 2 times" in str(ApprovalRequest.of(run))


@pytest.mark.parametrize("declared", [{"idempotent": True}, {"read_only": True}])
def test_what_may_be_repeated_is_repeated_without_a_question(
    tmp_path: Path, declared: dict[str, Any]
) -> None:
    farm = Farm()
    run = live(died(tmp_path, farm, **declared), farm, [AskInDoubt(deny_all)], **declared)
    assert told(run) == "b-1 runs"
    assert len(set(farm.keys)) == 1


def test_other_arguments_make_no_sense_and_the_question_says_so(tmp_path: Path) -> None:
    farm = Farm()
    session = died(tmp_path, farm)
    run = live(session, farm, [AskInDoubt()])
    run.approve({"build": "b-2"})
    run = resumed(session, farm, [AskInDoubt()], run)
    assert run.status is Status.PAUSED
    assert "Say yes or no to those." in str(ApprovalRequest.of(run))
    assert len(farm.keys) == 1


def test_the_policys_question_and_this_one_are_two_and_their_answers_arent_mixed(
    tmp_path: Path,
) -> None:
    """The policy's yes was recorded before the process died, so only this question is open"""
    farm, layers = Farm(), [Policy(approver=approve_all), AskInDoubt(), Retry()]
    session = died(tmp_path, farm, layers)
    layers = [Policy(), AskInDoubt(), Retry()]
    run = live(session, farm, layers)
    assert run.status is Status.PAUSED
    assert "nobody recorded its end" in str(ApprovalRequest.of(run))
    run.approve()
    run = resumed(session, farm, layers, run)
    assert run.status is Status.COMPLETED
    assert len(farm.keys) == 2


def test_what_a_policy_denies_by_now_is_told_as_denied_and_nobody_is_asked(tmp_path: Path) -> None:
    farm = Farm()
    session = died(tmp_path, farm, [Policy(approver=approve_all), AskInDoubt()])
    run = live(session, farm, [Policy(["read_build"]), AskInDoubt()])
    assert run.status is Status.COMPLETED
    assert len(farm.keys) == 1
    assert "not allowed" in told(run)
