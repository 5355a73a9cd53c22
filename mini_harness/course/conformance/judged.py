"""What must be said of each call when a run is taken up again."""

from __future__ import annotations

from typing import Any

from mini_harness.course.conformance import Check, Subject
from mini_harness.course.conformance.gated import attempt
from mini_harness.course.conformance.stage import wrong
from mini_harness.frozen import shown

SAFE = {"look"}


def happened(*steps: str) -> list[dict[str, str]]:
    """Events from short words, such as "start page c-1"."""
    return [dict(zip(("type", "tool", "call"), step.split(), strict=True)) for step in steps]


def judge(subject: Subject, likely: str, *steps: str) -> dict[str, Any]:
    called = f"what_to_do(events, {SAFE}), where the events are: {', '.join(steps) or 'none'}"
    got = attempt(called, "a word for each call", "", subject.what_to_do, happened(*steps), SAFE)
    if not isinstance(got, dict):
        wrong(called, shown(got), "a dictionary: a word for each call", "Return a dictionary.")
    return got


def expect(subject: Subject, likely: str, wanted: dict[str, str], *steps: str) -> None:
    got = judge(subject, likely, *steps)
    if got != wanted:
        called = f"what_to_do(events, {SAFE}), where the events are: {', '.join(steps)}"
        wrong(called, shown(got), str(wanted), likely)


def _done(subject: Subject) -> None:
    likely = "Its end is recorded: use the recorded result, and don't run it again."
    steps = ("proposed page c-1", "start page c-1", "end page c-1")
    expect(subject, likely, {"c-1": "done"}, *steps)


def _not_begun(subject: Subject) -> None:
    likely = "Nobody has recorded a start, and that is written before the tool runs. So it hasn't "
    likely += "begun: run it."
    expect(subject, likely, {"c-1": "run"}, "proposed page c-1")


def _in_doubt(subject: Subject) -> None:
    likely = "It was started, and nobody recorded its end. It may have had its effect: ask."
    expect(subject, likely, {"c-1": "ask"}, "proposed page c-1", "start page c-1")


def _repeatable(subject: Subject) -> None:
    likely = "Its tool may be repeated, so nobody needs to be asked: run it again."
    steps = ("proposed look c-1", "start look c-1")
    expect(subject, likely, {"c-1": "run again"}, *steps)


def _several(subject: Subject) -> None:
    likely = "Each call is judged by its own events."
    steps = ("proposed page c-1", "proposed page c-2", "proposed look c-3", "start page c-1",
             "end page c-1", "start page c-2")  # fmt: skip
    expect(subject, likely, {"c-1": "done", "c-2": "ask", "c-3": "run"}, *steps)


def _twice(subject: Subject) -> None:
    likely = "What counts is the last that is known of it: the second start has no end."
    steps = ("proposed page c-1", "start page c-1", "end page c-1", "start page c-1")
    expect(subject, likely, {"c-1": "ask"}, *steps)


JUDGED_CHECKS = (
    Check("v3-resume", "What has ended is done.", _done),
    Check("v3-resume", "What has no start is run.", _not_begun),
    Check("v3-resume", "What has a start and no end is asked about.", _in_doubt),
    Check("v3-resume", "What may be repeated is run again.", _repeatable),
    Check("v3-resume", "Each call is judged by itself.", _several),
    Check("v3-resume", "The last that is known counts.", _twice),
)
