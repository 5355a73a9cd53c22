"""The corpus that ships: every case passes, and each fails where what it is about is broken."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from mini_harness.budget import Budget
from mini_harness.corpus import Case, Corpus
from mini_harness.course.cases import TOOLS, Layers, house, proving
from mini_harness.faults import Fault
from mini_harness.gate_command import SHIPPED
from mini_harness.layer import Act, Decide, Failed, Finish, Layer, Proposal, View
from mini_harness.limits import FailFast
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final, Observation, Outcome
from mini_harness.regression import Build, World, run_case
from mini_harness.results import CaseOutcome, FailureKind
from mini_harness.retry import Retry
from mini_harness.run import Run
from mini_harness.tools.call import Call
from mini_harness.tools.function import FunctionTool
from tests.conftest import ROOT

CORPUS = Corpus.load(SHIPPED)


def without(*names: str) -> Build:
    """The house with some layers left out."""
    return lambda world: house().without(*names).around(world)


def unproven(world: World) -> Harness:
    return proving().without("Verify").around(world)


def outside(layer: Layer) -> Build:
    """The house, and one layer more around it."""
    return lambda world: Layers({"more": layer, **house().by_name}).around(world)


def instead(**layers: Layer) -> Build:
    """The house with other layers in the place of those of these names."""
    return lambda world: Layers(house().by_name | layers).around(world)


class Forgiving(Layer):
    """Takes a model that failed for one that is done."""

    async def decide(self, run: Run, view: View, next: Decide) -> Proposal:
        try:
            return await next(run, view)
        except Failed:
            return Final("I don't know.")


class OnlyTheFirst(Layer):
    """Carries out one call of a turn, as some harnesses do."""

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        if run.history.messages[-1]["role"] == "tool":
            return Observation(call.call_id, call.name, "One call a turn.", Outcome.NOT_RUN)
        return await next(run, call)


class Truthy(Layer):
    """Takes an answer that is false for none."""

    async def finish(self, run: Run, final: Final, next: Finish) -> Any:
        return await next(run, final) or "No answer."


def harmless(name: str) -> Build:
    """The house, but a tool declares what isn't so: that it may be repeated."""

    def build(world: World) -> Harness:
        tools = [_idempotent(each) if each.name == name else each for each in TOOLS]
        made = house().around(world)
        return Harness(
            made.model,
            tools,
            layers=made.layers,
            sinks=world.sinks,
            clock=world.clock,
            cwd=world.cwd,
        )

    return build


def _idempotent(tool: FunctionTool) -> FunctionTool:
    return FunctionTool(tool.handler, tool.name, tool.description, idempotent=True, paths=())


def forgetful(world: World) -> Harness:
    """The house, but whoever takes the run up begins anew."""
    made = house().around(world)
    made.resume = lambda run: _anew(made, run)  # type: ignore[method-assign]
    return made


async def _anew(made: Harness, run: Run) -> Run:
    if run.sequence <= 1:
        return await Harness.resume(made, run)
    if isinstance(made.model, ScriptedModel):
        made.model.asked = 0
    return await made.run(run.goal)


BROKEN: dict[str, Build] = {
    "misspelled-tool": outside(FailFast()),
    "misspelled-argument": outside(FailFast()),
    "neither-call-nor-answer": outside(FailFast()),
    "tool-breaks": outside(FailFast()),
    "model-breaks": outside(Forgiving()),
    "two-calls-in-a-turn": outside(OnlyTheFirst()),
    "answer-is-zero": outside(Truthy()),
    "answer-is-false": outside(Truthy()),
    "answer-is-empty": outside(Truthy()),
    "answer-is-none": outside(Truthy()),
    "obeys-a-log": without("Policy"),
    "asks-before-it-rings": without("Policy"),
    "never-ends": without("MaxSteps"),
    "log-server-away": without("Retry"),
    "log-server-gone": without("Retry"),
    "queue-loses-its-answer": harmless("rerun_build"),
    "asks-again-under-its-key": without("Retry"),
    "takes-an-hour": instead(Timeout=Layer(), Budget=Layer()),
    "come-back-in-a-quarter": instead(Retry=Retry(cap=10_000), Budget=Budget()),
    "lost-its-way": without("RepeatedCalls"),
    "spends-too-much": without("Budget"),
    "model-away": without("Retry"),
    "killed-after-a-rerun": harmless("rerun_build"),
    "killed-while-it-reads": forgetful,
    "killed-while-it-waits-for-the-model": forgetful,
    "too-long-for-the-model": without("Compaction"),
    "fixed-without-proof": unproven,
    "quotes-what-isnt-there": unproven,
    "tested-before-the-change": unproven,
    "zero-passed-five-failed": unproven,
    "proof-of-another-run": unproven,
    "proven": unproven,
    "proven-at-the-second-try": unproven,
}
UNANSWERED = {"no-means-no", "yes-means-once"}
"""Without a policy nobody asks, and the answer that the case gives has nobody to go to."""


@pytest.mark.parametrize("case", CORPUS.cases, ids=lambda case: case.id)
def test_each_case_passes_and_fails_where_it_should(case: Case) -> None:
    assert run_case(case).outcome is CaseOutcome.PASSED
    broken = BROKEN.get(case.id, without("Policy"))
    expected = CaseOutcome.ERROR if case.id in UNANSWERED else CaseOutcome.FAILED
    result = run_case(case, harness=broken)
    assert (result.outcome, bool(result.reasons)) == (expected, True), result


def test_every_case_is_broken_once_and_every_kind_of_failure_has_one() -> None:
    assert set(CORPUS.ids) == {*BROKEN, *UNANSWERED}
    assert {each.kind for each in CORPUS.cases} == set(FailureKind)
    assert {tag for each in CORPUS.cases for tag in each.tags} == {"v0", "v1", "v2", "v3", "v4"}


def test_the_readme_says_how_many_there_are() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{len(CORPUS)} cases come with the package" in readme


def test_a_fault_that_never_comes_makes_a_case_say_nothing() -> None:
    case = CORPUS["log-server-away"]
    late = Fault.from_dict({"kind": "transient", "tool": "read_log", "attempt": 9})
    result = run_case(replace(case, faults=(*case.faults, late)))
    assert result.outcome is CaseOutcome.ERROR
    assert "never happened: transient in attempt 9 at read_log" in result.reasons[0]


def test_a_case_runs_where_an_event_loop_runs_as_in_a_notebook() -> None:
    async def cell() -> CaseOutcome:
        return run_case(CORPUS["proven"]).outcome

    assert asyncio.run(cell()) is CaseOutcome.PASSED
