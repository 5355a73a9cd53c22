"""What must be said of each case of a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mini_harness.course.conformance import Check, Subject
from mini_harness.course.conformance.gated import attempt
from mini_harness.course.conformance.stage import wrong
from mini_harness.frozen import shown

P, F, E, S = "passed", "failed", "error", "skipped"
Outcomes = Mapping[str, list[str]]


def told(outcomes: Outcomes) -> str:
    """Outcomes, for people."""
    return "; ".join(f"{case}: {', '.join(each)}" for case, each in outcomes.items()) or "nothing"


def expect(
    subject: Subject, likely: str, wanted: dict[str, str], before: Outcomes, now: Outcomes
) -> None:
    called = f"compare(before, now), where before has {told(before)}, and now {told(now)}"
    got: Any = attempt(called, str(wanted), likely, subject.compare, dict(before), dict(now))
    if not isinstance(got, dict):
        wrong(called, shown(got), "a dictionary: a word for each case", "Return a dictionary.")
    if got != wanted:
        wrong(called, shown(got), str(wanted), likely)


def _same(subject: Subject) -> None:
    likely = "It passed each time, and passes each time now. That is fine."
    expect(subject, likely, {"a": "fine"}, {"a": [P, P]}, {"a": [P, P]})


def _worse(subject: Subject) -> None:
    likely = "It passed then, and fails now: that is worse, however many others got better."
    before, now = {"a": [P], "b": [F]}, {"a": [F], "b": [P]}
    expect(subject, likely, {"a": "worse", "b": "fine"}, before, now)


def _each_time(subject: Subject) -> None:
    likely = "What passed each time then has to pass each time now."
    expect(subject, likely, {"a": "worse"}, {"a": [P, P, P]}, {"a": [P, F, P]})
    expect(subject, likely, {"a": "worse"}, {"a": [P]}, {"a": [P, F, P]})


def _sometimes(subject: Subject) -> None:
    likely = "What passed some of the times owes one pass, and not more."
    expect(subject, likely, {"a": "fine"}, {"a": [P, P, F]}, {"a": [F, F, P]})
    expect(subject, likely, {"a": "worse"}, {"a": [P, F, F]}, {"a": [F, F, F]})


def _never(subject: Subject) -> None:
    likely = "What never passed owes nothing but to be there."
    expect(subject, likely, {"a": "fine"}, {"a": [F, F]}, {"a": [F, F]})
    expect(subject, likely, {"a": "fine"}, {"a": [F, F]}, {"a": [E, F]})


def _gone(subject: Subject) -> None:
    likely = "A case that is gone is worse: nobody looks any more. Go through the baseline's cases."
    expect(subject, likely, {"a": "fine", "b": "worse"}, {"a": [P], "b": [P]}, {"a": [P]})
    expect(subject, likely, {"a": "worse"}, {"a": [F]}, {})


def _new(subject: Subject) -> None:
    likely = "A case that is new has nothing to be compared with: leave it out."
    expect(subject, likely, {"a": "fine"}, {"a": [P]}, {"a": [P], "z": [F]})


def _unclear(subject: Subject) -> None:
    likely = "A run that wasn't judged might have gone either way. If a pass there would make it "
    likely += "fine, it is unclear."
    expect(subject, likely, {"a": "unclear"}, {"a": [P, P]}, {"a": [P, E]})
    expect(subject, likely, {"a": "unclear"}, {"a": [P, F]}, {"a": [F, S]})


def _sure(subject: Subject) -> None:
    likely = "It failed once, and a pass of the run that wasn't judged couldn't mend that: worse."
    expect(subject, likely, {"a": "worse"}, {"a": [P, P]}, {"a": [F, E]})


COMPARED_CHECKS = (
    Check("v6-compare", "What passes as before is fine.", _same),
    Check("v6-compare", "One that got better makes up for none that got worse.", _worse),
    Check("v6-compare", "What passed each time has to pass each time.", _each_time),
    Check("v6-compare", "What passed sometimes has to pass once.", _sometimes),
    Check("v6-compare", "What never passed owes nothing.", _never),
    Check("v6-compare", "A case that is gone is worse.", _gone),
    Check("v6-compare", "A new case is left out.", _new),
    Check("v6-compare", "What wasn't judged is unclear.", _unclear),
    Check("v6-compare", "What no unjudged run could mend is worse.", _sure),
)
