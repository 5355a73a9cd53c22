"""A case that didn't pass gets one receipt, which says what may be done about it (D26)."""

import pytest

from mini_harness.advice import FailureClass, advise
from mini_harness.results import CaseOutcome, CaseResult, Report

P, F, E, S = CaseOutcome.PASSED, CaseOutcome.FAILED, CaseOutcome.ERROR, CaseOutcome.SKIPPED


def report(*outcomes: CaseOutcome, repeats: int | None = None) -> Report:
    results = [
        CaseResult("x", outcome, repeat=n, reasons=() if outcome is P else (f"Why {outcome}.",))
        for n, outcome in enumerate(outcomes)
    ]
    return Report.of(results, ["x"], repeats=repeats or len(outcomes) or 1)


@pytest.mark.parametrize(
    ("outcomes", "failure"),
    [
        ((F,), FailureClass.ASSERTION),
        ((F, F), FailureClass.ASSERTION),
        ((E,), FailureClass.INFRA),
        ((S,), FailureClass.INFRA),
        ((P, F), FailureClass.FLAKY),
        ((E, P, P), FailureClass.FLAKY),
        ((F, E), FailureClass.FLAKY),
        ((), FailureClass.INFRA),
    ],
)
def test_each_failure_has_one_class_and_says_what_may_be_done(
    outcomes: tuple[CaseOutcome, ...], failure: FailureClass
) -> None:
    """D26"""
    (receipt,) = advise(report(*outcomes))
    assert receipt.failure is failure
    line = str(receipt)
    assert f"x [passed={outcomes.count(P)}/{len(outcomes) or 1},fail={failure}]: " in line
    assert line.endswith(receipt.to_do) and " once" in receipt.to_do


def test_what_passed_needs_no_receipt_and_a_missing_repeat_does() -> None:
    assert advise(report(P, P)) == ()
    (receipt,) = advise(report(P, repeats=2))
    assert receipt.failure is FailureClass.INFRA and receipt.passed == 1
