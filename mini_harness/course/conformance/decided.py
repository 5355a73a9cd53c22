"""What a whole gate must say: pass, fail, or that it can't tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from itertools import groupby
from operator import itemgetter

from mini_harness.course.conformance import Check, Subject
from mini_harness.course.conformance.compared import E, F, P, S
from mini_harness.course.conformance.gated import attempt
from mini_harness.course.conformance.stage import wrong
from mini_harness.frozen import shown

Outcomes = Mapping[str, list[str]]
WORDS = PASS, FAIL, UNCLEAR = "pass", "fail", "inconclusive"
ALL, MOST, HALF = Fraction(1), Fraction(9, 10), Fraction(1, 2)
ONE_EACH = 1


def many(passed: int, failed: int = 0, error: int = 0) -> dict[str, list[str]]:
    """So many cases that ran once each."""
    ends = [P] * passed + [F] * failed + [E] * error
    return {f"case-{number}": [end] for number, end in enumerate(ends, start=1)}


def brief(outcomes: Outcomes) -> str:
    """Outcomes, for people: neighbours of which the same came together."""
    parts = []
    for ends, found in groupby(outcomes.items(), key=itemgetter(1)):
        cases = [case for case, _ in found]
        last = f" to {cases[-1]}" if len(cases) > 1 else ""
        parts.append(f"{cases[0]}{last}: {_several(ends)}")
    return "; ".join(parts) or "nothing"


def _several(ends: list[str]) -> str:
    if len(ends) < 4:
        return ", ".join(ends)
    return ", ".join(f"{count} {each}" for each, count in Counter(ends).items())


def expect(
    subject: Subject,
    likely: str,
    wanted: str,
    now: Outcomes,
    *,
    at_least: Fraction = ALL,
    before: Outcomes | None,
    repeats: int = ONE_EACH,
    selected: list[str] | None = None,
) -> None:
    chosen = list(now) if selected is None else selected
    had = "there is no baseline" if before is None else f"before has {brief(before)}"
    called = f"gate(now, selected, {repeats}, {at_least}, before), where selected "
    called += f"holds {len(chosen)}, now has {brief(now)}, and {had}"
    given = (dict(now), chosen, repeats, at_least, None if before is None else dict(before))
    got = attempt(called, repr(wanted), likely, subject.gate, *given)
    if got not in WORDS:
        wrong(called, shown(got), repr(wanted), f"It says one of {', '.join(WORDS)}.")
    if got != wanted:
        wrong(called, shown(got), repr(wanted), likely)


def _good(subject: Subject) -> None:
    likely = "All were judged, all passed, and nothing is worse than before: that is a pass."
    expect(subject, likely, PASS, many(3), before=many(3))


def _too_few(subject: Subject) -> None:
    likely = "Too few passed: 1 of 10, where 9 of 10 are asked."
    expect(subject, likely, FAIL, many(1, 9), at_least=MOST, before=many(0, 10))


def _border(subject: Subject) -> None:
    likely = "Where each case ran once, nothing is estimated. 19 of 20 is at least 95 %; as a "
    likely += "float, 0.95 is less than that, so compare fractions."
    limit = Fraction(95, 100)
    expect(subject, likely, PASS, many(19, 1), at_least=limit, before=many(0, 20))
    likely = "946 of 1000 is less than 95 %. Don't round."
    expect(subject, likely, FAIL, many(946, 54), at_least=limit, before=many(0, 1000))


def _empty(subject: Subject) -> None:
    likely = "No case was selected, or none ran. Nothing failed, and nothing is known: that is no "
    likely += "pass, also if there is a baseline."
    expect(subject, likely, UNCLEAR, {}, before=many(3))
    expect(subject, likely, UNCLEAR, {"case-1": [S]}, at_least=HALF, before=many(2))


def _open(subject: Subject) -> None:
    likely = "A run wasn't judged, so it is no pass of the whole, however many others passed. It "
    likely += "ended in an error, was skipped, or has no result."
    expect(subject, likely, UNCLEAR, many(9, 0, 1), at_least=HALF, before=many(9))
    expect(subject, likely, UNCLEAR, {**many(9), "z": [S]}, at_least=HALF, before=many(9))
    chosen = [*many(10)]
    expect(subject, likely, UNCLEAR, many(9), at_least=HALF, before=many(9), selected=chosen)


def _lost(subject: Subject) -> None:
    likely = "Had all the others passed, too, it would still be too few. So it is a fail, and not "
    likely += "inconclusive."
    now, before = many(2, 7, 1), many(0, 10)
    expect(subject, likely, FAIL, now, at_least=HALF, before=before)


def _regression(subject: Subject) -> None:
    likely = "One case is worse than before. That is a fail, however high the rate is."
    before = {**many(9), "case-10": [F]}
    now = {**many(10), "case-1": [F]}
    expect(subject, likely, FAIL, now, at_least=HALF, before=before)
    expect(subject, likely, FAIL, many(9), at_least=HALF, before=many(10))


def _no_baseline(subject: Subject) -> None:
    likely = "There is no baseline, so nobody knows whether something got worse: inconclusive."
    expect(subject, likely, UNCLEAR, many(3), before=None)


def _sampled(subject: Subject) -> None:
    likely = "Where cases run more than once, the rate is an estimate: the threshold lies within "
    likely += "its interval, so nobody can tell yet."
    before = {"a": [F] * 10}
    now = {"a": [P] * 9 + [F]}
    expect(subject, likely, UNCLEAR, now, at_least=Fraction(17, 20), before=before, repeats=10)
    now = {"a": [P] * 8 + [F] * 2}
    expect(subject, likely, UNCLEAR, now, at_least=Fraction(17, 20), before=before, repeats=10)


def _enough(subject: Subject) -> None:
    likely = "The threshold lies outside of the interval, so the repeats are enough to tell."
    before = {"a": [F] * 100}
    now = {"a": [P] * 95 + [F] * 5}
    expect(subject, likely, PASS, now, at_least=Fraction(17, 20), before=before, repeats=100)
    now = {"a": [P] * 70 + [F] * 30}
    expect(subject, likely, FAIL, now, at_least=Fraction(17, 20), before=before, repeats=100)


def _all_of_them(subject: Subject) -> None:
    likely = "A threshold of 1 isn't estimated: every run has to pass, and no interval is asked."
    twice = {"a": [P, P], "b": [P, P]}
    expect(subject, likely, PASS, twice, before=twice, repeats=2)
    before = {"a": [P, F]}
    expect(subject, likely, FAIL, {"a": [P, F]}, before=before, repeats=2)


DECIDED_CHECKS = (
    Check("v6-gate", "What is good passes.", _good),
    Check("v6-gate", "Too few passes are a fail.", _too_few),
    Check("v6-gate", "At the border it is exact.", _border),
    Check("v6-gate", "Nothing is no pass.", _empty),
    Check("v6-gate", "What wasn't judged is no pass.", _open),
    Check("v6-gate", "What can't be saved is a fail.", _lost),
    Check("v6-gate", "A regression is a fail at any rate.", _regression),
    Check("v6-gate", "Without a baseline it can't tell.", _no_baseline),
    Check("v6-gate", "Few repeats can't tell.", _sampled),
    Check("v6-gate", "Many repeats can.", _enough),
    Check("v6-gate", "A threshold of 1 is no estimate.", _all_of_them),
)
