"""What a house must do: all cases that ship are run against it, each in a world of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from mini_harness.corpus import Case, Corpus
from mini_harness.course.comeback import shipped
from mini_harness.course.conformance import Check, Subject
from mini_harness.course.conformance.stage import raised, wrong
from mini_harness.course.trouble import unknown_name
from mini_harness.loop import Harness
from mini_harness.regression import World, run_case
from mini_harness.results import CaseOutcome

INNERMOST = "world.faults stands for the world: it belongs among the layers, as the innermost one."


@cache
def corpus() -> Corpus:
    return shipped()


def _run(likely: str, ids: tuple[str, ...], subject: Subject) -> None:
    for case_id in ids:
        _run_one(subject, corpus()[case_id], likely)


def _run_one(subject: Subject, case: Case, likely: str) -> None:
    name = case.harness.partition(":")[2]
    build, errors, misplaced = getattr(subject, name), list[Exception](), set[bool]()

    def made(world: World) -> Any:
        try:
            harness = build(world)
        except Exception as error:
            errors.append(error)
            raise
        misplaced.add(isinstance(harness, Harness) and world.faults not in harness.layers[-1:])
        return harness

    result = run_case(case, harness=made)
    called = f"{name}(world), in the case {case.id}: {case.title}"
    expected = "a harness with which the case passes"
    if errors and isinstance(errors[0], NotImplementedError):
        raise errors[0]
    if errors:
        wrong(called, raised(errors[0]), expected, unknown_name(errors[0]))
    if result.outcome is not CaseOutcome.PASSED:
        got = f"{result.outcome}: {result.reasons[0]}"
        wrong(called, got, expected, INNERMOST if True in misplaced else likely)


def _cases(title: str, likely: str, *ids: str) -> Check:
    run: Callable[[Subject], None] = partial(_run, likely, ids)
    return Check("v5-house", title, run)


HOUSED_CHECKS = (
    _cases(
        "What goes well isn't hindered, and mistakes are told.",
        "Something refuses or ends what is in order. In `triage` nobody has to prove an answer.",
        "answer-is-zero", "answer-is-false", "answer-is-empty", "answer-is-none",
        "two-calls-in-a-turn", "misspelled-tool", "misspelled-argument", "tool-breaks",
        "neither-call-nor-answer", "model-breaks",
    ),
    _cases(
        "What has no end is ended.",
        "MaxSteps ends a run after 8 turns, and RepeatedCalls one that makes no progress.",
        "never-ends", "lost-its-way",
    ),
    _cases(
        "Nobody deploys, and a person is asked before the phone rings.",
        "Nobody asked whether it may. Policy does, with the rules of the night.",
        "obeys-a-log", "asks-before-it-rings", "no-means-no", "yes-means-once",
    ),
    _cases(
        "What passes is tried again, and an effect is not.",
        "Retry tries again what may be repeated, and knows when not to.",
        "log-server-away", "log-server-gone", "come-back-in-a-quarter", "model-away",
        "queue-loses-its-answer", "asks-again-under-its-key",
    ),
    _cases(
        "What costs too much is ended.",
        "Budget looks before anything is spent: 5,000 tokens are allowed.",
        "spends-too-much",
    ),
    _cases(
        "What takes too long is ended.",
        "Timeout ends a call after 30 seconds of the world's clock.",
        "takes-an-hour",
    ),
    _cases(
        "A long night fits the model's window.",
        "Compaction leaves old output out once the model sees more than 2,000 tokens.",
        "too-long-for-the-model",
    ),
    _cases(
        "A run that was killed is taken up.",
        "The world's session is one of its sinks: give the harness world.sinks and world.clock.",
        "killed-while-it-reads", "killed-while-it-waits-for-the-model", "killed-after-a-rerun",
    ),
    _cases(
        "An answer is proved, or goes back.",
        "In `verified` Verify looks at each answer, with run_tests for a check.",
        "proven", "proven-at-the-second-try", "fixed-without-proof", "zero-passed-five-failed",
        "quotes-what-isnt-there", "tested-before-the-change", "proof-of-another-run",
    ),
)  # fmt: skip
