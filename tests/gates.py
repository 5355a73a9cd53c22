"""Reports for the gate's tests, written as one would tell them."""

from decimal import Decimal
from typing import Any

from mini_harness.results import CaseOutcome, CaseResult, Report

OUTCOMES = {
    "P": CaseOutcome.PASSED,
    "F": CaseOutcome.FAILED,
    "E": CaseOutcome.ERROR,
    "S": CaseOutcome.SKIPPED,
}


def report(*cases: str, source: str = "cases/*.case.json", **about: Any) -> Report:
    """``report("PP", "PF")``: case-0 passed twice, case-1 once. A ``-`` is a run without a result.

    ``about`` goes into every result.
    """
    names = [f"case-{number}" for number in range(len(cases))]
    results = [
        CaseResult(name, OUTCOMES[letter], repeat=repeat, **about)
        for name, letters in zip(names, cases, strict=True)
        for repeat, letter in enumerate(letters)
        if letter != "-"
    ]
    return Report.of(results, names, source, repeats=max(map(len, cases), default=1))


def one(outcome: str = "P", name: str = "case-0", **about: Any) -> CaseResult:
    return CaseResult(name, OUTCOMES[outcome], **about)


def of(*results: CaseResult, repeats: int = 1) -> Report:
    """A report of just these results, all of them selected."""
    return Report.of(results, sorted({each.case_id for each in results}), repeats=repeats)


def costing(*costs: str | None) -> Report:
    return of(
        *(
            one(name=f"case-{number}", cost=None if cost is None else Decimal(cost))
            for number, cost in enumerate(costs)
        )
    )
