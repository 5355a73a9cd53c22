"""The story of v5: the fault comes back, the corpus notices, and its cases can be moved."""

import pytest

from mini_harness.course import cases, comeback
from mini_harness.events import Event
from mini_harness.regression import Build, run_corpus
from mini_harness.results import CaseOutcome, Report
from mini_harness.sync import run_sync


@pytest.mark.parametrize(("build", "times"), [(cases.triage, 1), (comeback.simpler, 2)])
def test_with_the_simpler_layer_a_build_is_queued_twice(build: Build, times: int) -> None:
    events: list[Event] = []
    run = run_sync(comeback.night(build, events.append).run(comeback.GOAL))
    assert run.unwrap() == "build-102 runs again."
    assert comeback.queued(events) == times


def test_the_shipped_cases_of_v2_notice_the_simpler_layer() -> None:
    report = run_corpus(comeback.shipped("v2"), harness=comeback.simpler)
    failed = {each.case_id for each in report.results if each.outcome is CaseOutcome.FAILED}
    assert {"queue-loses-its-answer", "come-back-in-a-quarter"} <= failed
    assert comeback.told(report).startswith("4 passed, 5 failed\nfailed  asks-again")


def test_every_shipped_case_runs_against_a_harness_of_the_same_name_elsewhere() -> None:
    shipped = comeback.shipped()
    moved = comeback.moved(shipped, "my_harness")
    assert moved.ids == shipped.ids
    assert {case.harness for case in moved.cases} == {"my_harness:triage", "my_harness:verified"}
    assert [case.script for case in moved.cases] == [case.script for case in shipped.cases]


def test_what_a_plain_case_comes_to_has_an_output_only_if_there_was_an_answer() -> None:
    case = {"goal": "Go.", "script": comeback.TURNS[:1], "faults": []}
    assert run_sync(comeback.seen(case, cases.triage)) == {"calls": ["read_log"]}
    case["script"] = comeback.TURNS[-1:]
    assert run_sync(comeback.seen(case, cases.triage)) == {
        "calls": [],
        "output": "build-102 runs again.",
    }


def test_a_report_without_cases_says_so() -> None:
    assert comeback.told(Report.of([], [])) == "no cases"
