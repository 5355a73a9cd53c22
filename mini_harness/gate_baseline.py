"""The rules that compare with a baseline, which is a report that somebody has accepted."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from mini_harness.gate import GateFinding, GateVerdict, Tally
from mini_harness.gate_figures import Number, amount, exact, plain
from mini_harness.gate_rules import listed
from mini_harness.results import CaseOutcome, Report
from mini_harness.visible import counted, visible

PASS, FAIL, INCONCLUSIVE = GateVerdict


@dataclass(frozen=True)
class NoRegression:
    """What passed in the baseline passes still, and no case of it is gone. New cases are fine.

    A case that always passed then has to pass each time now, one that passed sometimes has to pass
    at least once, and one that never passed owes nothing but to be there. ``missing`` says why
    there is no baseline, if there is none: then this is INCONCLUSIVE.
    """

    baseline: Report | None
    missing: str = "none was given"
    name: ClassVar[str] = "no_regression"

    def judge(self, tally: Tally) -> GateFinding:
        before = _baseline(self.baseline)
        if before is None:
            return _no_baseline(self.name, self.baseline, self.missing)
        found = [(case, *_compared(case, before, tally)) for case in before.cases]
        worse = [case for case, verdict, _ in found if verdict is FAIL]
        verdicts = {verdict for _, verdict, _ in found}
        verdict = FAIL if worse else INCONCLUSIVE if INCONCLUSIVE in verdicts else PASS
        says = f"Worse than in the baseline: {len(worse)} of {counted(len(before.cases), 'case')}."
        details = [f"{case}: {why}" for case, each, why in found if each is not PASS]
        return listed(self.name, verdict, says, details, Fraction(len(worse)), Fraction(0))


@dataclass(frozen=True)
class CostRise:
    """The cases of the baseline cost at most this much more than they did there.

    Of each case counts what one run costs on average, so the number of repeats is no matter.
    """

    baseline: Report | None
    at_most: Number
    missing: str = "none was given"
    name: ClassVar[str] = "cost_rise"

    def __post_init__(self) -> None:
        amount(self.at_most, "at_most")

    def judge(self, tally: Tally) -> GateFinding:
        before = _baseline(self.baseline)
        if before is None:
            return _no_baseline(self.name, self.baseline, self.missing)
        limit = amount(self.at_most, "at_most")
        then = [_mean_cost(case, before) for case in before.cases]
        now = [_mean_cost(case, tally) for case in before.cases]
        if None in then or None in now:
            unknown = [
                f"{case}: nobody knows what it cost, then or now"
                for case, *costs in zip(before.cases, then, now, strict=True)
                if None in costs
            ]
            says = "What the cases cost isn't known of all."
            return listed(self.name, INCONCLUSIVE, says, unknown, None, limit)
        rise = sum(filter(None, now), Fraction(0)) - sum(filter(None, then), Fraction(0))
        says = f"Dearer than the baseline by {plain(rise)}, at most {plain(limit)} is allowed."
        return listed(self.name, FAIL if rise > limit else PASS, says, [], rise, limit)


def _baseline(report: Report | None) -> Tally | None:
    """The baseline, if there is one to compare with."""
    found = None if report is None else Tally(report)
    return None if found is None or found.no_cases or found.problems else found


def _no_baseline(name: str, report: Report | None, missing: str) -> GateFinding:
    why = missing if report is None else "the one given has no cases, or contradicts itself"
    says = f"There is no baseline to compare with: {visible(why)}."
    return GateFinding(name, INCONCLUSIVE, says)


def _compared(case: str, before: Tally, now: Tally) -> tuple[GateVerdict, str]:
    """What has become of one case of the baseline, and a word about it."""
    if case not in now.by_case:
        return FAIL, "it is in the baseline, and wasn't run now"
    passed, open_ = now.count(CaseOutcome.PASSED, case=case), now.unjudged_of(case)
    then = before.count(CaseOutcome.PASSED, case=case)
    counts = f"it passed {then} of {before.repeats} then, and {passed} of {now.repeats} now"
    if passed == now.repeats:
        return PASS, counts
    if before.unjudged_of(case):
        return INCONCLUSIVE, f"{counts}; in the baseline it wasn't judged"
    owed = now.repeats if then == before.repeats else min(then, 1)
    if passed >= owed:
        return PASS, counts
    return (INCONCLUSIVE if passed + open_ >= owed else FAIL), counts


def _mean_cost(case: str, tally: Tally) -> Fraction | None:
    runs = tally.by_case.get(case, ())
    costs = [exact(each.cost) for each in runs if each.cost is not None]
    return sum(costs, Fraction(0)) / len(costs) if len(costs) == tally.repeats else None
