"""The package's gate behind the functions that a learner writes in v6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from mini_harness.gate import Gate, GateRule, GateVerdict, Tally
from mini_harness.gate_baseline import NoRegression
from mini_harness.gate_rules import PassRate
from mini_harness.results import CaseOutcome, CaseResult, Report

_WORDS = {
    GateVerdict.PASS: "fine",
    GateVerdict.FAIL: "worse",
    GateVerdict.INCONCLUSIVE: "unclear",
}
_Outcomes = Mapping[str, Sequence[str]]


def rate(outcomes: Mapping[str, str], selected: Sequence[str]) -> Fraction | None:
    return Tally(_report({case: [each] for case, each in outcomes.items()}, selected, 1)).rate


def compare(before: _Outcomes, now: _Outcomes) -> dict[str, str]:
    return {case: _WORDS[_compared(case, before, now)] for case in before}


def gate(
    now: _Outcomes,
    selected: Sequence[str],
    repeats: int,
    at_least: Fraction,
    before: _Outcomes | None,
) -> str:
    baseline = _report(before, list(before), repeats) if before else None
    rules: list[GateRule] = [PassRate(at_least), NoRegression(baseline)]
    return Gate(rules).judge(_report(now, selected, repeats)).verdict.value


def _compared(case: str, before: _Outcomes, now: _Outcomes) -> GateVerdict:
    rule = NoRegression(_report({case: before[case]}, [case], len(before[case])))
    there = {case: now[case]} if case in now else {}
    repeats = len(there.get(case, [1]))
    return rule.judge(Tally(_report(there, list(there), repeats))).verdict


def _report(found: _Outcomes, selected: Sequence[str], repeats: int) -> Report:
    results = [
        CaseResult(case, CaseOutcome(each), repeat=number)
        for case, several in found.items()
        for number, each in enumerate(several)
    ]
    return Report.of(results, selected, repeats=repeats)
