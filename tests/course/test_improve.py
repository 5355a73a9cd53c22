"""The story of v6: improvements that look well, and what the gate says of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from mini_harness.clock import VirtualClock
from mini_harness.corpus import Corpus, Unreadable
from mini_harness.course import cases, comeback, improve
from mini_harness.faults import Faults
from mini_harness.gate import Gate, GateVerdict
from mini_harness.gate_rules import PassRate
from mini_harness.layer import Layer
from mini_harness.loop import Harness
from mini_harness.models.base import ModelError
from mini_harness.models.scripted import ScriptedModel
from mini_harness.regression import World, run_corpus
from mini_harness.results import CaseOutcome, Report

pytestmark = pytest.mark.once


def failed(report: Report) -> set[str]:
    return {each.case_id for each in report.results if each.outcome is not CaseOutcome.PASSED}


def only(*ids: str) -> Corpus:
    whole = improve.with_last_night()
    return replace(whole, cases=tuple(whole[each] for each in ids))


def test_without_a_change_a_measurement_is_what_the_runner_reports() -> None:
    corpus = improve.with_last_night()
    assert improve.measured(corpus, repeats=2) == run_corpus(corpus, repeats=2)


def test_a_file_that_is_no_case_is_measured_as_an_error() -> None:
    corpus = replace(only("proven"), unreadable=(Unreadable("torn", "torn.case.json: no JSON"),))
    outcomes = improve.outcomes(improve.measured(corpus))
    assert outcomes == {"proven": ["passed"], "torn": ["error"]}


def test_nobody_has_mended_last_nights_failure() -> None:
    assert failed(improve.measured(improve.with_last_night())) == {"floods-the-queue"}


def test_the_prompt_breaks_all_cases_that_demand_a_proved_answer_and_no_others() -> None:
    corpus = comeback.shipped()
    demanding = {
        each.id
        for each in corpus.cases
        if (each.expect.status, each.expect.standing) == ("completed", "verified")
    }
    assert len(demanding) == 2
    assert failed(improve.measured(corpus, improve.Prompt(improve.BRIEF))) == demanding


def test_an_answer_that_came_back_is_given_again_where_the_script_has_ended() -> None:
    (found,) = improve.measured(only("proven"), improve.Prompt(improve.BRIEF)).results
    assert (found.status, found.stop_reason) == ("stopped", "rejected")


@pytest.mark.parametrize("layer", [improve.Prompt("x"), improve.Cheaper()])
def test_a_model_that_breaks_breaks_behind_a_changed_one_too(layer: Layer) -> None:
    run = Harness(ScriptedModel([ModelError("it is away")]), layers=[layer]).run_sync("Go.")
    assert isinstance(run.error, ModelError)


def test_the_prompt_is_the_first_thing_that_the_model_sees() -> None:
    seen = []

    def turn(history: object, tools: object) -> dict[str, str]:
        seen.append(history)
        return {"type": "final", "output": "0"}

    Harness(ScriptedModel([turn]), layers=[improve.Prompt("Be brief.")]).run_sync("Go.")
    assert [each["content"] for each in seen[0]] == ["Be brief.", "Go."]  # type: ignore[attr-defined]


def test_what_counts_for_ever_passes_alone_and_breaks_the_next_runs() -> None:
    alone = improve.measured(only("floods-the-queue"), improve.Thrifty("rerun_build", 3))
    assert failed(alone) == set()
    every = improve.measured(improve.with_last_night(), improve.Thrifty("rerun_build", 3))
    assert failed(every) == {
        "killed-after-a-rerun",
        "killed-while-it-waits-for-the-model",
        "queue-loses-its-answer",
    }


def test_a_cheaper_model_varies_and_the_same_seed_gives_the_same_nights() -> None:
    corpus = only("proven", "proven-at-the-second-try")
    first, second = (improve.measured(corpus, improve.Cheaper(), repeats=8) for _ in range(2))
    assert first == second
    assert {len(set(each)) for each in improve.outcomes(first).values()} == {2}


@pytest.mark.parametrize(
    ("ids", "output"),
    [
        (["proven"], None),
        (["floods-the-queue"], "Tool not allowed: merge. Gate FAIL"),
    ],
)
def test_only_what_has_passed_is_asked_about(ids: list[str], output: str | None) -> None:
    result = Gate([PassRate(1)]).judge(improve.measured(only(*ids)))
    run = improve.desk("a change", result).run_sync("Merge it.")
    if output is None:
        assert (result.verdict, run.status) == (GateVerdict.PASS, "paused")
    else:
        assert (result.verdict, run.status) == (GateVerdict.FAIL, "completed")
        assert str(run.output).startswith(output)


def test_the_houses_baseline_passes_at_its_own_gate() -> None:
    assert improve.house_gate().judge(improve.baseline()).verdict is GateVerdict.PASS


def test_layers_are_put_around_the_others_and_the_rest_stays() -> None:
    world = World(ScriptedModel([]), VirtualClock(), Path(), Faults([]), ())
    more = improve.Prompt("x")
    made, plain = improve.around(cases.verified, more)(world), cases.verified(world)
    assert made.layers[0] is more
    assert list(map(type, made.layers[1:])) == list(map(type, plain.layers))
    assert (made.clock, made.cwd, made.model) == (plain.clock, plain.cwd, plain.model)
    assert made.tools.to_api_schema() == plain.tools.to_api_schema()
