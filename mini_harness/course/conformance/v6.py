"""What a pass rate must be, whoever counts; what `compared` and `decided` add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from mini_harness.course.conformance import Check, Subject
from mini_harness.course.conformance.compared import COMPARED_CHECKS
from mini_harness.course.conformance.decided import DECIDED_CHECKS
from mini_harness.course.conformance.gated import attempt
from mini_harness.course.conformance.stage import wrong
from mini_harness.frozen import shown

Outcomes = Mapping[str, str]


def expect(
    subject: Subject, likely: str, wanted: Any, outcomes: Outcomes, selected: Sequence[str]
) -> None:
    called = f"rate({dict(outcomes)}, {list(selected)})"
    expected = "None" if wanted is None else repr(wanted)
    got = attempt(called, expected, likely, subject.rate, dict(outcomes), list(selected))
    if got is not None and not isinstance(got, Fraction):
        wrong(called, shown(got), expected, "Return a Fraction, or None: a float is rounded.")
    if got != wanted:
        wrong(called, shown(got), expected, likely)


def _counts(subject: Subject) -> None:
    likely = "It is the passes among all selected cases."
    expect(subject, likely, Fraction(2, 3), {"a": "passed", "b": "failed", "c": "passed"}, "abc")


def _exactly(subject: Subject) -> None:
    likely = "Don't round: Fraction(passed, total) is exact."
    outcomes = {f"case-{number}": "failed" if number < 3 else "passed" for number in range(150)}
    called = "rate(outcomes, selected), where 147 of 150 cases passed"
    got = attempt(called, "49/50", likely, subject.rate, outcomes, list(outcomes))
    if not isinstance(got, Fraction) or got != Fraction(49, 50):
        wrong(called, shown(got), "Fraction(49, 50)", likely)


def _errors(subject: Subject) -> None:
    likely = "A case that ended in an error, or was skipped, counts: it was selected, and it is no "
    likely += "pass."
    outcomes = {"a": "passed", "b": "error"}
    expect(subject, likely, Fraction(1, 2), outcomes, "ab")
    expect(subject, likely, Fraction(1, 3), {**outcomes, "c": "skipped"}, "abc")


def _missing(subject: Subject) -> None:
    likely = "A selected case without a result counts, too: divide by the selected ones."
    expect(subject, likely, Fraction(1, 3), {"a": "passed"}, "abc")


def _others(subject: Subject) -> None:
    likely = "Only what was selected counts: look the selected cases up, one by one."
    expect(subject, likely, Fraction(1, 2), {"a": "passed", "b": "failed", "z": "passed"}, "ab")


def _twice(subject: Subject) -> None:
    likely = "A case that is selected twice is one case: set(selected)."
    expect(subject, likely, Fraction(1, 2), {"a": "passed", "b": "failed"}, "aab")


def _none_selected(subject: Subject) -> None:
    likely = "No case was selected, so there is no rate. Return None, before you divide."
    expect(subject, likely, None, {}, "")


def _none_ran(subject: Subject) -> None:
    likely = "None of them ran: all were skipped, or have no result. That is no rate either: "
    likely += "return None."
    expect(subject, likely, None, {"a": "skipped", "b": "skipped"}, "ab")
    expect(subject, likely, None, {}, "ab")


def _all_failed(subject: Subject) -> None:
    likely = "They ran, and none passed. That is a rate of 0, and something else than None."
    expect(subject, likely, Fraction(0), {"a": "failed", "b": "error"}, "ab")


CHECKS = (
    Check("v6-rate", "The passes are counted among the selected cases.", _counts),
    Check("v6-rate", "The rate is exact.", _exactly),
    Check("v6-rate", "Errors and skipped cases count, and are no passes.", _errors),
    Check("v6-rate", "A case without a result counts.", _missing),
    Check("v6-rate", "What wasn't selected doesn't count.", _others),
    Check("v6-rate", "A case that is selected twice counts once.", _twice),
    Check("v6-rate", "Where none was selected, there is no rate.", _none_selected),
    Check("v6-rate", "Where none ran, there is no rate.", _none_ran),
    Check("v6-rate", "Where all failed, the rate is 0.", _all_failed),
    *COMPARED_CHECKS,
    *DECIDED_CHECKS,
)
