"""What to do about a case that didn't pass: a receipt for each (SEEDS D26).

An agent that sees a red test tends to run everything again and again. There are three classes of
failure, and each allows one thing, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mini_harness.results import CaseOutcome, CaseResult, Report


class FailureClass(StrEnum):
    """The closed list of what a case that didn't pass can be."""

    ASSERTION = "assertion"
    """It came to something else than expected, each time."""
    INFRA = "infra"
    """It couldn't be judged."""
    FLAKY = "flaky"
    """Its repeats differ, so none of them is evidence."""


_TO_DO = {
    FailureClass.ASSERTION: "Run this case alone, once; then mend what it shows.",
    FailureClass.INFRA: "Look for the cause once. If it stays, say that you are blocked.",
    FailureClass.FLAKY: "Run it again once. A pass then is no stable evidence: find what varies.",
}


@dataclass(frozen=True)
class Receipt:
    """What came of one case, and what may be done about it."""

    case_id: str
    failure: FailureClass
    passed: int
    repeats: int
    reasons: tuple[str, ...]

    @property
    def to_do(self) -> str:
        return _TO_DO[self.failure]

    def __str__(self) -> str:
        """One line: ``<case> [passed=N/M,fail=<class>]: <first reason> <what to do>``."""
        why = self.reasons[0] if self.reasons else "Nobody said why."
        counts = f"passed={self.passed}/{self.repeats},fail={self.failure}"
        return f"{self.case_id} [{counts}]: {why} {self.to_do}"


def advise(report: Report) -> tuple[Receipt, ...]:
    """A receipt for each selected case that didn't pass every time, also if it has no result."""
    found = []
    for case_id in sorted(set(report.selected)):
        results = [each for each in report.results if each.case_id == case_id]
        passed = sum(each.outcome is CaseOutcome.PASSED for each in results)
        if results and passed == len(results) >= report.repeats:
            continue
        reasons = tuple(dict.fromkeys(why for each in results for why in each.reasons))
        repeats = max(report.repeats, len(results))
        found.append(Receipt(case_id, _class(results), passed, repeats, reasons))
    return tuple(found)


def _class(results: list[CaseResult]) -> FailureClass:
    if len({each.outcome for each in results}) > 1:
        return FailureClass.FLAKY
    failed = any(each.outcome is CaseOutcome.FAILED for each in results)
    return FailureClass.ASSERTION if failed else FailureClass.INFRA
