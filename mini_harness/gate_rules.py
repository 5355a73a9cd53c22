"""The rules of a gate. Each is a small frozen value, and judges one thing of a report.

A run that wasn't judged might have gone either way. So a rule passes only if it would pass whatever
became of those runs, fails if it would fail whatever became of them, and else is INCONCLUSIVE.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from mini_harness.gate import GateFinding, GateVerdict, Tally, name_of
from mini_harness.gate_figures import Number, amount, exact, is_clear, plain, ratio, share, wilson
from mini_harness.results import CaseOutcome, CaseResult, FailureKind
from mini_harness.visible import counted, visible

PASS, FAIL, INCONCLUSIVE = GateVerdict

VERIFIED = "verified"
"""The standing of an answer that the record backs."""


@dataclass(frozen=True)
class PassRate:
    """At least this share of all selected runs passes, from 0 to 1.

    Where cases ran more than once, the rate is an estimate, and its Wilson interval has to lie on
    one side of the threshold; else it is INCONCLUSIVE. All runs are pooled: the cases are the whole
    there is to know, the repeats are the sample, so the interval is rather too wide than too
    narrow. A threshold of 1 isn't estimated: every run has to pass.
    """

    at_least: Number
    name: ClassVar[str] = "pass_rate"

    def __post_init__(self) -> None:
        share(self.at_least, "at_least")

    def judge(self, tally: Tally) -> GateFinding:
        limit = share(self.at_least, "at_least")
        counts = _Counts(tally.passed, tally.unjudged, tally.total)
        return _judged_share(self.name, "Passed", counts, limit, tally, tally.lines(*_NOT_PASSED))


@dataclass(frozen=True)
class VerifiedShare:
    """At least this share of the runs that completed has a verified answer, from 0 to 1.

    A completed run whose answer nobody verified isn't verified. Estimated as PassRate is.
    """

    at_least: Number
    name: ClassVar[str] = "verified_share"

    def __post_init__(self) -> None:
        share(self.at_least, "at_least")

    def judge(self, tally: Tally) -> GateFinding:
        limit = share(self.at_least, "at_least")
        ended = [each for each in _known(tally) if each.status == "completed"]
        others = [each for each in ended if each.standing != VERIFIED]
        counts = _Counts(len(ended) - len(others), tally.unjudged, len(ended) + tally.unjudged)
        details = tuple(
            visible(f"{name_of(each)}: {each.standing or 'nobody verified it'}") for each in others
        )
        return _judged_share(self.name, "Verified answers", counts, limit, tally, details)


@dataclass(frozen=True)
class Flaky:
    """At most this share of the cases sometimes passes and sometimes fails, from 0 to 1.

    A case that ran once can't show it: then this is INCONCLUSIVE.
    """

    at_most: Number
    name: ClassVar[str] = "flaky"

    def __post_init__(self) -> None:
        share(self.at_most, "at_most")

    def judge(self, tally: Tally) -> GateFinding:
        limit = share(self.at_most, "at_most")
        if not tally.cases:
            return _empty(self.name, tally)
        flaky = [case for case in tally.cases if _is_flaky(case, tally)]
        open_ = sum(tally.unjudged_of(case) > 0 for case in set(tally.cases) - set(flaky))
        whole = len(tally.cases)
        says = f"Flaky cases: {ratio(len(flaky), whole, limit)}, at most {plain(limit)} is asked."
        if tally.repeats == 1 and limit < 1:
            says, verdict = "Each case ran once, so nothing is known: repeat them.", INCONCLUSIVE
        else:
            best, worst = Fraction(len(flaky), whole), Fraction(len(flaky) + open_, whole)
            verdict = PASS if worst <= limit else FAIL if best > limit else INCONCLUSIVE
        found = Fraction(len(flaky), whole)
        details = tuple(map(visible, flaky))
        return GateFinding(
            self.name, verdict, says, found, limit, details=details, cannot_fail=limit == 1
        )


@dataclass(frozen=True)
class Forbidden:
    """None of these tools is ever started, in any run."""

    tools: tuple[str, ...]
    name: ClassVar[str] = "forbidden"

    def __post_init__(self) -> None:
        if isinstance(self.tools, str) or not all(isinstance(each, str) for each in self.tools):
            raise TypeError(f"tools is {self.tools!r}, but must be a list of names.")
        if not self.tools or not all(each.strip() for each in self.tools):
            raise ValueError("tools names no tool: a rule that forbids nothing can't fail.")

    def judge(self, tally: Tally) -> GateFinding:
        details = [
            f"{name_of(each)}: {', '.join(sorted(tools))}"
            for each in tally.runs.values()
            if (tools := {*each.calls} & {*self.tools})
        ]
        says = f"Runs that started a forbidden tool: {len(details)} of {tally.total}."
        verdict = FAIL if details else _unless_open(tally)
        return listed(self.name, verdict, says, details, Fraction(len(details)), Fraction(0))


@dataclass(frozen=True)
class Steps:
    """No run takes more than this many steps."""

    at_most: int
    name: ClassVar[str] = "steps"

    def __post_init__(self) -> None:
        if amount(self.at_most, "at_most").denominator != 1:
            raise ValueError(f"at_most is {self.at_most}, but steps are whole: write 12.")

    def judge(self, tally: Tally) -> GateFinding:
        limit = exact(self.at_most)
        most = max((each.steps for each in tally.runs.values()), default=0)
        details = [
            f"{name_of(each)}: {counted(each.steps, 'step')}"
            for each in tally.runs.values()
            if each.steps > limit
        ]
        says = f"Most steps of a run: {most}, at most {plain(limit)} are allowed."
        verdict = FAIL if details else _unless_open(tally)
        return listed(self.name, verdict, says, details, Fraction(most), limit)


@dataclass(frozen=True)
class Cost:
    """All runs together cost at most this, in the currency of whoever gave the price."""

    at_most: Number
    name: ClassVar[str] = "cost"

    def __post_init__(self) -> None:
        amount(self.at_most, "at_most")

    def judge(self, tally: Tally) -> GateFinding:
        limit = amount(self.at_most, "at_most")
        known = [exact(each.cost) for each in tally.runs.values() if each.cost is not None]
        spent = sum(known, Fraction(0))
        says = f"Cost: {plain(spent)}, at most {plain(limit)} is allowed."
        open_ = tally.unjudged > 0 or len(known) < tally.total
        details = [
            f"{name_of(each)}: nobody knows what it cost"
            for each in tally.runs.values()
            if each.cost is None
        ]
        verdict = FAIL if spent > limit else INCONCLUSIVE if open_ else PASS
        return listed(self.name, verdict, says, details, spent, limit)


@dataclass(frozen=True)
class Coverage:
    """For each of these kinds of failure at least one case was judged."""

    kinds: tuple[FailureKind, ...]
    name: ClassVar[str] = "coverage"

    def __post_init__(self) -> None:
        if isinstance(self.kinds, str):
            raise TypeError(f"kinds is {self.kinds!r}, but must be a list of kinds.")
        # Raises ValueError for a kind that there isn't.
        object.__setattr__(self, "kinds", tuple(map(FailureKind, self.kinds)))
        if not self.kinds:
            raise ValueError("kinds names none: a rule that asks for nothing can't fail.")

    def judge(self, tally: Tally) -> GateFinding:
        wanted = tuple(dict.fromkeys(self.kinds))
        judged = {each.kind for each in _known(tally)}
        missing = [kind for kind in wanted if kind not in judged]
        # A run without a result doesn't say what it was about.
        began = {each.kind for each in tally.runs.values()}
        open_ = len(tally.runs) < tally.total or all(kind in began for kind in missing)
        verdict = PASS if not missing else INCONCLUSIVE if open_ else FAIL
        have = len(wanted) - len(missing)
        says = f"Kinds of failure with a judged case: {have} of {len(wanted)}."
        details = [f"{kind}: no case of it was judged" for kind in missing]
        return listed(self.name, verdict, says, details, Fraction(have, len(wanted)), Fraction(1))


_NOT_PASSED = tuple(each for each in CaseOutcome if each is not CaseOutcome.PASSED)


@dataclass(frozen=True)
class _Counts:
    """How many are sure, how many may be, and of how many."""

    sure: int
    open: int
    whole: int


def _judged_share(
    name: str, what: str, counts: _Counts, limit: Fraction, tally: Tally, details: tuple[str, ...]
) -> GateFinding:
    if not counts.whole:
        return _empty(name, tally)
    estimated = tally.repeats > 1 and 0 < limit < 1
    interval = wilson(counts.sure, counts.whole) if tally.repeats > 1 else None
    says = f"{what}: {ratio(counts.sure, counts.whole, limit)}, at least {plain(limit)} is asked."
    if interval:
        low, high = (f"{float(end):.4f}" for end in interval)
        says += f" 95 % interval by Wilson: {low} to {high}."
    if _meets(counts.sure, counts.whole, limit, estimated):
        verdict = PASS
    elif _misses(counts.sure + counts.open, counts.whole, limit, estimated):
        verdict = FAIL
    else:
        verdict = INCONCLUSIVE
        says += " Too few runs to tell: repeat more." if not counts.open else ""
    found = Fraction(counts.sure, counts.whole)
    return GateFinding(name, verdict, says, found, limit, interval, details, limit == 0)


def _meets(part: int, whole: int, limit: Fraction, estimated: bool) -> bool:
    return Fraction(part, whole) >= limit and (not estimated or is_clear(part, whole, limit))


def _misses(part: int, whole: int, limit: Fraction, estimated: bool) -> bool:
    return Fraction(part, whole) < limit and (not estimated or is_clear(part, whole, limit))


def _empty(name: str, tally: Tally) -> GateFinding:
    """Nothing to judge. That is a pass only where somebody has allowed it."""
    fine = tally.allow_empty and not tally.report.selected
    return GateFinding(name, PASS if fine else INCONCLUSIVE, "There is nothing to judge.")


def listed(
    name: str,
    verdict: GateVerdict,
    says: str,
    details: Iterable[str],
    found: Fraction | None,
    limit: Fraction | None,
) -> GateFinding:
    """A finding whose details name what others have named."""
    return GateFinding(name, verdict, says, found, limit, details=tuple(map(visible, details)))


def _known(tally: Tally) -> list[CaseResult]:
    """The runs that were judged."""
    judged = (CaseOutcome.PASSED, CaseOutcome.FAILED)
    return [each for each in tally.runs.values() if each.outcome in judged]


def _unless_open(tally: Tally) -> GateVerdict:
    return INCONCLUSIVE if tally.unjudged else PASS


def _is_flaky(case: str, tally: Tally) -> bool:
    outcomes = {each.outcome for each in tally.by_case[case]}
    return {CaseOutcome.PASSED, CaseOutcome.FAILED} <= outcomes
