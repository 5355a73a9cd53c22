"""The quality gate: rules judge a report, and only a clear yes of all of them is a pass.

There are three answers. What couldn't be judged is INCONCLUSIVE, which is no pass: a case that
broke, a baseline that isn't there, a rule that raised, and above all a report of no cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Protocol

from mini_harness.frozen import shown
from mini_harness.gate_figures import amount, ratio
from mini_harness.redact import Redactor
from mini_harness.results import CaseOutcome, CaseResult, Report
from mini_harness.visible import counted, shortened, visible

LONGEST = 300
"""How many characters of one reason a finding repeats."""


class GateVerdict(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    """It couldn't be judged, which is no pass."""

    @property
    def exit_code(self) -> int:
        """0, 1 and 2, so that ``mini-harness gate && deploy`` deploys after a pass only."""
        return list(GateVerdict).index(self)


@dataclass(frozen=True)
class GateFinding:
    """What one rule says. ``found`` and ``limit`` are its figures, exactly; ``details`` name the
    cases to blame, a line each. ``cannot_fail`` marks a rule that no report could break."""

    rule: str
    verdict: GateVerdict
    says: str
    found: Fraction | None = None
    limit: Fraction | None = None
    interval: tuple[Fraction, Fraction] | None = None
    details: tuple[str, ...] = ()
    cannot_fail: bool = False


class GateRule(Protocol):
    """A rule of one's own needs a name and this method; whatever it raises is INCONCLUSIVE."""

    @property
    def name(self) -> str: ...

    def judge(self, tally: Tally) -> GateFinding: ...


class Tally:
    """A report, counted. Every selected case counts as often as it was to run, whatever became of
    it (report G05), and results that contradict each other count as not judged."""

    def __init__(self, report: Report, *, allow_empty: bool = False) -> None:
        self.report = report
        self.allow_empty = allow_empty
        self._redactor = Redactor()
        self.cases = tuple(dict.fromkeys(report.selected))
        repeats = report.repeats
        known = isinstance(repeats, int) and not isinstance(repeats, bool) and repeats >= 1
        self.repeats = repeats if known else 1
        problems = [] if known else [f"repeats is {shown(repeats)}, and not 1 or more"]
        if len(self.cases) < len(report.selected):
            problems.append("a case is selected twice")
        self.runs = self._checked(problems)
        self.problems = tuple(problems)

    def _checked(self, problems: list[str]) -> Mapping[tuple[str, int], CaseResult]:
        """The results that can be relied on, by case and repeat."""
        keys = [(each.case_id, each.repeat) for each in self.report.results]
        often = Counter(keys)
        selected = set(self.cases)
        found: dict[tuple[str, int], CaseResult] = {}
        for key, result in zip(keys, self.report.results, strict=True):
            if problem := self._problem(result, selected, often[key]):
                problems.append(f"{name_of(result)}: {problem}")
            else:
                found[key] = result
        return found

    def _problem(self, result: CaseResult, selected: set[str], often: int) -> str | None:
        if result.case_id not in selected:
            return "it has a result, but wasn't selected"
        if not (_is_count(result.repeat) and result.repeat < self.repeats):
            return f"it was to run {counted(self.repeats, 'time')}, and not more"
        if often > 1:
            return "it has more than one result"
        if not _is_count(result.steps):
            return f"its steps are {shown(result.steps)}, which is no number of steps"
        if result.cost is not None and not _is_cost(result.cost):
            return f"its cost is {shown(result.cost)}, which is no sum of money"
        return None

    @property
    def total(self) -> int:
        """How many runs there should be."""
        return len(self.cases) * self.repeats

    @cached_property
    def by_case(self) -> Mapping[str, Sequence[CaseResult]]:
        found: dict[str, list[CaseResult]] = {case: [] for case in self.cases}
        for (case, _), result in self.runs.items():
            found[case].append(result)
        return found

    def count(self, *outcomes: CaseOutcome, case: str | None = None) -> int:
        """How many runs ended so, of all cases or of one."""
        among = self.runs.values() if case is None else self.by_case[case]
        return sum(each.outcome in outcomes for each in among)

    @property
    def passed(self) -> int:
        return self.count(CaseOutcome.PASSED)

    def unjudged_of(self, case: str) -> int:
        return self.repeats - self.count(CaseOutcome.PASSED, CaseOutcome.FAILED, case=case)

    @cached_property
    def unjudged(self) -> int:
        """How many runs neither passed nor failed, or aren't there at all."""
        return self.total - self.count(CaseOutcome.PASSED, CaseOutcome.FAILED)

    @property
    def no_cases(self) -> bool:
        """Nothing was selected, or nothing of it ran."""
        return all(each.outcome is CaseOutcome.SKIPPED for each in self.runs.values())

    @property
    def rate(self) -> Fraction | None:
        """Passes among all runs that were to be; None where nothing ran."""
        return None if self.no_cases else Fraction(self.passed, self.total)

    def lines(self, *outcomes: CaseOutcome) -> tuple[str, ...]:
        """A line for each run that ended so, with its reasons."""
        return tuple(self.told(each) for each in self.runs.values() if each.outcome in outcomes)

    def told(self, result: CaseResult) -> str:
        """One line about one run, fit to be shown: no secret, no control character, not long."""
        why = f": {'; '.join(map(str, result.reasons))}" if result.reasons else ""
        return self.fit(f"{name_of(result)}: {result.outcome}{why}")

    def fit(self, text: str) -> str:
        """Words of others on one line that can be shown to anybody."""
        # Cut twice: a reason may be a whole output, and to look for secrets in it takes long. The
        # filter knows how a secret looks that the first cut went through.
        safe = visible(str(self._redactor.hidden(shortened(text, 4 * LONGEST))))
        if len(safe) <= LONGEST:
            return safe
        return f"{safe[: LONGEST * 3 // 4]} [...] {safe[-LONGEST // 4 :]}"


@dataclass(frozen=True)
class GateResult:
    """What the gate says: a verdict, and a finding of each rule."""

    verdict: GateVerdict
    findings: tuple[GateFinding, ...]
    tally: Tally

    @property
    def exit_code(self) -> int:
        return self.verdict.exit_code

    @property
    def rate(self) -> Fraction | None:
        return self.tally.rate

    @property
    def no_cases(self) -> bool:
        return self.tally.no_cases

    @property
    def summary(self) -> str:
        """One line: the verdict, how many passed, and which rules didn't."""
        tally = self.tally
        how = "no case ran"
        if not tally.no_cases:
            how = f"{ratio(tally.passed, tally.total)} of the runs passed"
        blame = [
            f"{visible(each.rule)} {'failed' if each.verdict is GateVerdict.FAIL else 'is unclear'}"
            for each in self.findings
            if each.verdict is not GateVerdict.PASS
        ]
        return f"Gate {self.verdict.upper()}: {'; '.join([how, *blame])}."

    def __repr__(self) -> str:
        return self.summary


class Gate:
    """Rules, all of which have to pass. Beside them every selected case has to be judged.

    ``allow_empty`` lets a report through for which no case was selected: only where that is right,
    since a mistyped path selects none either (report G01).
    """

    def __init__(self, rules: Iterable[GateRule], *, allow_empty: bool = False) -> None:
        """Raises ValueError for no rules, and TypeError for an ``allow_empty`` that isn't a
        boolean."""
        self.rules = tuple(rules)
        if not self.rules:
            raise ValueError("A gate without rules would let everything through: give it one.")
        if not isinstance(allow_empty, bool):
            raise TypeError(f"allow_empty is {allow_empty!r}, but must be True or False.")
        self.allow_empty = allow_empty

    def judge(self, report: Report) -> GateResult:
        tally = Tally(report, allow_empty=self.allow_empty)
        findings = [_all_judged(tally)]
        if tally.no_cases:
            findings.insert(0, _no_cases(tally))
        if not tally.no_cases or findings[0].verdict is GateVerdict.PASS:
            findings += [_asked(rule, tally) for rule in self.rules]
        return GateResult(_worst(each.verdict for each in findings), tuple(findings), tally)


def _worst(verdicts: Iterable[GateVerdict]) -> GateVerdict:
    found = set(verdicts)
    if GateVerdict.FAIL in found:
        return GateVerdict.FAIL
    return GateVerdict.PASS if found == {GateVerdict.PASS} else GateVerdict.INCONCLUSIVE


def _asked(rule: GateRule, tally: Tally) -> GateFinding:
    try:
        found = rule.judge(tally)
        if isinstance(found, GateFinding) and isinstance(found.verdict, GateVerdict):
            return found
        said = f"answered {shown(found)}, which is no finding"
    except Exception as error:  # noqa: BLE001 - what couldn't be judged is its own answer
        said = f"raised {type(error).__name__}: {shown(error, str)}"
    name = str(getattr(rule, "name", type(rule).__name__))
    says = f"The rule itself is broken: it {tally.fit(said)}."
    return GateFinding(name, GateVerdict.INCONCLUSIVE, says)


def _no_cases(tally: Tally) -> GateFinding:
    report = tally.report
    source = visible(report.source) or "nobody said where from"
    if not report.selected and tally.allow_empty:
        return GateFinding("no_cases", GateVerdict.PASS, "No case was selected. That is allowed.")
    says = f"No case was selected ({source}). Look at the path and the filters."
    if report.selected:
        says = f"None of {counted(len(tally.cases), 'selected case')} ran ({source})."
    return GateFinding("no_cases", GateVerdict.INCONCLUSIVE, says)


def _all_judged(tally: Tally) -> GateFinding:
    """The one rule that no gate can leave out."""
    details = (*map(visible, tally.problems), *tally.lines(CaseOutcome.ERROR, CaseOutcome.SKIPPED))
    runs = f"{counted(tally.total, 'run')} of {counted(len(tally.cases), 'case')}"
    if not tally.unjudged and not tally.problems:
        return GateFinding("judged", GateVerdict.PASS, f"Judged: all of {runs}.")
    parts = {
        "ended in an error": tally.count(CaseOutcome.ERROR),
        "skipped": tally.count(CaseOutcome.SKIPPED),
        "without a result": tally.total - len(tally.runs),
    }
    how = [f"{number} {what}" for what, number in parts.items() if number]
    how += [counted(len(tally.problems), "contradiction")] if tally.problems else []
    says = f"Not judged: {tally.unjudged} of {runs} ({', '.join(how)})."
    return GateFinding("judged", GateVerdict.INCONCLUSIVE, says, details=details)


def name_of(result: CaseResult) -> str:
    """The case, and which of its repeats, counted from 1, if there are more."""
    which = f" (repeat {result.repeat + 1})" if _is_count(result.repeat) and result.repeat else ""
    return f"{result.case_id}{which}"


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _is_cost(number: Decimal) -> bool:
    try:
        return amount(number, "cost") >= 0
    except (TypeError, ValueError):
        return False
