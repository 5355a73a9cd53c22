"""What the lesson asks. The answers come from runs of the package."""

from mini_harness import (
    Case,
    Corpus,
    DuplicateCase,
    Expectation,
    Recorder,
    ReplayModel,
    ScriptedModel,
    run_case,
    run_corpus,
)
from mini_harness.course import cases, comeback
from mini_harness.course.questions import Question
from mini_harness.course.story import final
from mini_harness.results import CaseOutcome, FailureKind
from mini_harness.sync import run_sync

ZERO = Case(
    id="how-many",
    kind=FailureKind.WRONG_ANSWER,
    goal="How many builds wait?",
    harness="mini_harness.course.cases:triage",
    expect=Expectation(output=0),
    script=(final(False),),
)


def outcome_of_false_for_zero() -> str:
    return run_case(ZERO).outcome


def passed_without_a_harness() -> int:
    elsewhere = Case(**{**vars(ZERO), "harness": "no_such_module:triage"})
    report = run_corpus(Corpus((elsewhere,)))
    return sum(each.outcome is CaseOutcome.PASSED for each in report.results)


def status_of_a_miss() -> str:
    recorder = Recorder(ScriptedModel(comeback.TURNS))
    run_sync(comeback.night(cases.triage, model=recorder).run(comeback.GOAL))
    replay = ReplayModel(recorder.cassette)
    return run_sync(comeback.night(cases.triage, model=replay).run("Look after build-103.")).status


def kept_again() -> str:
    expect = Expectation(status="completed")
    again = Case(**{**vars(ZERO), "id": "how-many-builds", "expect": expect})
    try:
        return f"{len(Corpus((ZERO, again)))} cases"
    except DuplicateCase:
        return "refused"


QUESTIONS = (
    Question(
        "A case expects `output=0`, and the model answers `False`. What comes of it?",
        {
            "passed": "No. In Python the two are equal, but an answer is compared as JSON.",
            "failed": "Yes. 0 is an answer that can be expected, and False is another one.",
            "error": "No. It can be judged: there is an answer, and it is the wrong one.",
        },
        outcome_of_false_for_zero,
    ),
    Question(
        "The only case of a corpus names a harness that doesn't exist. How many cases have passed?",
        {
            "0": "Yes. It is an error, and only what passed is a pass.",
            "1": "No. Nothing failed, but nothing was judged either.",
            "-1": "No. An error isn't less than nothing. It is counted as an error.",
        },
        passed_without_a_harness,
    ),
    Question(
        "A replayed model is asked something that was never recorded. What is `run.status`?",
        {
            "completed": "No. Then the nearest answer would have been taken for the right one.",
            "paused": "No. A person couldn't know either what the model would have said.",
            "failed": "Yes. A miss ends the run, and says which recording is the nearest.",
        },
        status_of_a_miss,
    ),
    Question(
        "The same goal and script are kept again, under another id, with another expectation. What "
        "does the corpus do?",
        {
            "2 cases": "No. Both show the same failure. If more must hold, say so in the first.",
            "1 cases": "No. Nothing is dropped in silence: you are told which two they are.",
            "refused": "Yes. What is expected isn't part of what a case shows.",
        },
        kept_again,
    ),
)
