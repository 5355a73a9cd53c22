"""What an examination of claims must find, whoever wrote it; what `linked` and `proved` add."""

from __future__ import annotations

import copy
from typing import Any

from mini_harness.course.conformance import Check, Subject
from mini_harness.course.conformance.gated import attempt
from mini_harness.course.conformance.linked import LINKED_CHECKS
from mini_harness.course.conformance.proved import PROVED_CHECKS
from mini_harness.course.conformance.stage import wrong
from mini_harness.frozen import shown

FOUND = "holds", "no_such_call", "not_ok", "outdated", "not_attributable", "not_quoted"


def entry(call_id: str, output: str = "3 passed", **more: Any) -> dict[str, Any]:
    """A call as a record has it. It has ended well and changed nothing, but for ``more``."""
    plain = {"tool": "run_tests", "ok": True, "output": output, "changes": [], "command": None}
    return {"call_id": call_id, **plain, **more}


def claim(call_id: str = "c-1", **more: Any) -> dict[str, Any]:
    return {"says": "It is so.", "call_id": call_id, **more}


def told(record: list[dict[str, Any]]) -> str:
    """A record in few words: of each call only what is out of the ordinary."""
    lines = []
    for each in record:
        usual = entry(each["call_id"])
        odd = [f"{key}={value!r}" for key, value in each.items() if usual[key] != value]
        lines.append(" ".join([each["call_id"], *odd]))
    return ", ".join(lines)


def expect(
    subject: Subject, wanted: str, likely: str, record: list[dict[str, Any]], **cited: Any
) -> None:
    """The subject finds just this about a claim."""
    about = claim(**cited)
    shown_claim = {key: each for key, each in about.items() if key != "says"}
    called = f"examine(record, {shown_claim}), where the calls are: {told(record) or 'none'}"
    got = attempt(called, repr(wanted), likely, subject.examine, copy.deepcopy(record), about)
    if got not in FOUND:
        words = ", ".join(FOUND)
        wrong(called, shown(got), repr(wanted), f"Return one of these words: {words}.")
    if got != wanted:
        wrong(called, shown(got), repr(wanted), likely)


def _holds(subject: Subject) -> None:
    likely = "The call ended well, and its output says so: nothing speaks against the claim."
    expect(subject, "holds", likely, [entry("c-1")], quote="3 passed")
    expect(subject, "holds", "A claim may do without a quote.", [entry("c-1")])


def _no_such_call(subject: Subject) -> None:
    likely = "The record has no call of this id: another run may have, and that proves nothing."
    expect(subject, "no_such_call", likely, [entry("c-1")], call_id="c-2")
    expect(subject, "no_such_call", likely, [], quote="3 passed")
    expect(subject, "no_such_call", likely, [entry("c-12")], call_id="c-1")


def _not_ok(subject: Subject) -> None:
    likely = "A call that didn't end well proves nothing, whatever it printed before."
    expect(subject, "not_ok", likely, [entry("c-1", ok=False)], quote="3 passed")


def _not_quoted(subject: Subject) -> None:
    record = [entry("c-1", "1 failed"), entry("c-2", "3 passed")]
    likely = "The quote must stand in the output of the call that is cited, and in no other."
    expect(subject, "not_quoted", likely, record, quote="3 passed")
    for blank in ("", "  \n"):
        likely = "A blank quote stands in every output, so it proves nothing."
        expect(subject, "not_quoted", likely, record, quote=blank)


def _outdated(subject: Subject) -> None:
    edit = entry("c-2", "done", tool="edit", changes=["a.py"])
    likely = "A later call has changed what the claim is about: what was seen before may be over."
    expect(subject, "outdated", likely, [entry("c-1"), edit], about=["b.py", "a.py"])
    before = [{**edit, "call_id": "c-0"}, entry("c-1")]
    likely = "Only what comes after the cited call outdates it."
    expect(subject, "holds", likely, before, about=["a.py"])
    likely = "What was changed isn't what the claim is about."
    expect(subject, "holds", likely, [entry("c-1"), edit], about=["b.py"])


def _about_all(subject: Subject) -> None:
    edit = entry("c-2", "done", tool="edit", changes=["a.py"])
    likely = "A claim that doesn't say what it is about speaks of everything: any change after it "
    likely += "outdates it."
    expect(subject, "outdated", likely, [entry("c-1"), edit])
    expect(subject, "outdated", likely, [entry("c-1"), edit], about=[])


def _changes_all(subject: Subject) -> None:
    line = entry("c-2", "done", tool="bash", changes=None)
    likely = "changes is None: nobody can say what it changed, so it may have changed everything."
    expect(subject, "outdated", likely, [entry("c-1"), line], about=["a.py"])
    expect(subject, "outdated", likely, [entry("c-1"), line])


def _failed_change(subject: Subject) -> None:
    torn = entry("c-2", "disk full", tool="edit", ok=False, changes=["a.py"])
    likely = "A change that failed may have changed half of it: it counts like any other."
    expect(subject, "outdated", likely, [entry("c-1"), torn], about=["a.py"])


def _own_changes(subject: Subject) -> None:
    likely = "A call doesn't outdate itself: look at those after it."
    edit = entry("c-1", "done", changes=["a.py"])
    expect(subject, "holds", likely, [edit, entry("c-2")], about=["a.py"])


def _whose_code(subject: Subject) -> None:
    likely = "That it ended well is the exit code of another program. Ask `attributable(line)`."
    for line in ("pytest | tail -5", "pytest || true"):
        expect(subject, "not_attributable", likely, [entry("c-1", command=line)], quote="3 passed")
    likely = "This line ends well only if its program did."
    expect(subject, "holds", likely, [entry("c-1", command="pytest")], quote="3 passed")


def _standing(subject: Subject) -> None:
    likely = {
        "unverified": "No claim holds, so nothing is verified. Mind that all() of nothing is True.",
        "verified": "All claims hold, and there is one.",
        "partly": "Some claims hold, and some don't.",
    }
    rows: list[tuple[list[str], str]] = [
        ([], "unverified"),
        (["not_ok"], "unverified"),
        (["holds"], "verified"),
        (["holds", "holds"], "verified"),
        (["holds", "outdated"], "partly"),
        (["no_such_call", "holds", "holds"], "partly"),
    ]
    for findings, wanted in rows:
        called = f"standing({findings})"
        got = attempt(called, repr(wanted), "", subject.standing, list(findings))
        if got != wanted:
            wrong(called, shown(got), repr(wanted), likely[wanted])


CHECKS = (
    Check("v4-examine", "A claim that the record bears out holds.", _holds),
    Check("v4-examine", "A call that this run never made proves nothing.", _no_such_call),
    Check("v4-examine", "A call that failed proves nothing.", _not_ok),
    Check("v4-examine", "What is quoted stands in the output.", _not_quoted),
    Check("v4-examine", "A later change outdates what it concerns, and only that.", _outdated),
    Check("v4-examine", "A claim about everything is outdated by any change.", _about_all),
    Check("v4-examine", "A call that may change anything outdates everything.", _changes_all),
    Check("v4-examine", "A change that failed is one, too.", _failed_change),
    Check("v4-examine", "A call doesn't outdate itself.", _own_changes),
    Check("v4-examine", "An exit code belongs to its program.", _whose_code),
    Check("v4-examine", "The standing is computed, and nothing isn't verified.", _standing),
    *LINKED_CHECKS,
    *PROVED_CHECKS,
)
