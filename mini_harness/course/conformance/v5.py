"""What an expectation must notice, whoever judges by it; what `housed` and `shrunk` add."""

from __future__ import annotations

import copy
from typing import Any

from mini_harness.course.conformance import Check, Subject, Wrong
from mini_harness.course.conformance.gated import Raised, attempt
from mini_harness.course.conformance.housed import HOUSED_CHECKS
from mini_harness.course.conformance.shrunk import SHRUNK_CHECKS
from mini_harness.course.conformance.stage import plain, raised, wrong
from mini_harness.course.trouble import unknown_name
from mini_harness.frozen import shown

CALLS = ["read_log", "rerun_build", "rerun_build"]
FALSY: tuple[Any, ...] = (0, False, "", None)
NOTHING: tuple[Any, ...] = ({}, {"never": []}, {"at_most": {}})


def seen(*output: Any, calls: list[str] | None = None) -> dict[str, Any]:
    """What a run came to: its calls, and its answer if there was one."""
    found: dict[str, Any] = {"calls": list(CALLS if calls is None else calls)}
    return {**found, "output": output[0]} if output else found


def called(expect: Any, found: Any) -> str:
    return f"objections({expect}, {found})"


def objections(subject: Subject, likely: str, expect: Any, found: Any) -> list[str]:
    """What the subject objects to."""
    what, wanted = called(expect, found), "a list of texts, one for each thing that doesn't hold"
    given = copy.deepcopy(expect), copy.deepcopy(found)
    got = attempt(what, wanted, likely, subject.objections, *given)
    if not isinstance(got, list | tuple) or not all(isinstance(each, str) for each in got):
        wrong(what, shown(got), wanted, "Return a list. It is empty if all is as expected.")
    return list(got)


def holds(subject: Subject, likely: str, expect: Any, found: Any) -> None:
    if got := objections(subject, likely, expect, found):
        wrong(called(expect, found), shown(got), "[]: all is as expected", likely)


def fails(subject: Subject, likely: str, expect: Any, found: Any, names: str = "") -> None:
    got = objections(subject, likely, expect, found)
    if not got:
        wrong(called(expect, found), "[]: nothing is objected to", "a text that objects", likely)
    if names and not any(names in each for each in got):
        likely = "Whoever reads it must know which tool it is about: name it in the text."
        wrong(called(expect, found), shown(got), f"a text with {names} in it", likely)


def refused(subject: Subject, likely: str, expect: Any, names: str = "") -> None:
    """The subject raises ValueError for an expectation that makes no sense."""
    what, found = called(expect, seen("ok")), seen("ok")
    try:
        got: Any = plain(what, subject.objections, copy.deepcopy(expect), found)
    except (NotImplementedError, Wrong):
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is looked at
        got = Raised(error)
    if not isinstance(got, Raised) or not isinstance(got.error, ValueError):
        unknown = unknown_name(got.error) if isinstance(got, Raised) else ""
        wrong(what, shown(got), "ValueError is raised", unknown or likely)
    if names not in str(got.error):
        wrong(what, raised(got.error), f"a text that names {names}", "Say what is misspelt.")


def _as_expected(subject: Subject) -> None:
    likely = "All of it is as expected, so there is nothing to object to."
    expect = {"output": "failed", "never": ["deploy_prod"], "at_most": {"rerun_build": 2}}
    holds(subject, likely, expect, seen("failed"))
    likely = "What isn't expected may be anything: here nothing is said about the answer."
    holds(subject, likely, {"at_most": {"rerun_build": 2}}, seen())


def _other_answer(subject: Subject) -> None:
    fails(subject, "The answer isn't the one expected.", {"output": "failed"}, seen("passed"))
    likely = "Keys of an object have no order: the two are one answer."
    holds(subject, likely, {"output": {"a": 1, "b": 2}}, seen({"b": 2, "a": 1}))


def _falsy(subject: Subject) -> None:
    for output in FALSY:
        likely = f"{output!r} is an answer that can be expected. Ask whether the key is there: "
        likely += '`"output" in expect`, not whether its value is true.'
        fails(subject, likely, {"output": output}, seen("failed"))
        holds(subject, likely, {"output": output}, seen(output))


def _no_answer(subject: Subject) -> None:
    likely = "The run ended without an answer. `seen.get` takes that for the answer None."
    for output in (None, "failed"):
        fails(subject, likely, {"output": output}, seen())


def _as_json(subject: Subject) -> None:
    likely = "For Python 1 equals True, and 0 False. In JSON they are two things: compare the "
    likely += "JSON texts."
    for one, other in ((0, False), (True, 1), ({"n": [1]}, {"n": [True]})):
        fails(subject, likely, {"output": one}, seen(other))


def _never(subject: Subject) -> None:
    likely = "A tool that must never begin did."
    fails(subject, likely, {"never": ["deploy_prod", "read_log"]}, seen("ok"), "read_log")


def _at_most(subject: Subject) -> None:
    likely = "Count how often the tool is among the calls: one time too many is one too many."
    fails(subject, likely, {"at_most": {"rerun_build": 1}}, seen("ok"), "rerun_build")
    likely = "At most 0 is never. 0 is a number, not nothing."
    fails(subject, likely, {"at_most": {"read_log": 0}}, seen("ok"), "read_log")
    likely = "As often as it may is not too often."
    holds(subject, likely, {"at_most": {"rerun_build": 2, "deploy_prod": 0}}, seen("ok"))


def _all_of_it(subject: Subject) -> None:
    expect = {"output": "ok", "never": ["read_log"], "at_most": {"rerun_build": 1}}
    likely = "Don't stop at the first: whoever mends it wants to see all that doesn't hold."
    got = objections(subject, likely, expect, seen("no"))
    if len(got) != 3:
        wrong(called(expect, seen("no")), shown(got), "three texts", likely)


def _nothing(subject: Subject) -> None:
    likely = "It expects nothing, so no run could ever fail it. Raise ValueError."
    for expect in NOTHING:
        refused(subject, likely, expect)


def _misspelt(subject: Subject) -> None:
    likely = "A misspelt key is looked at by nobody, so it could never fail. Raise ValueError."
    refused(subject, likely, {"ouput": "ok"}, "ouput")
    refused(subject, likely, {"output": "ok", "nevver": ["deploy_prod"]}, "nevver")


CHECKS = (
    Check("v5-expect", "What is as expected passes.", _as_expected),
    Check("v5-expect", "Another answer is objected to.", _other_answer),
    Check("v5-expect", "Any answer can be expected.", _falsy),
    Check("v5-expect", "No answer is not the answer None.", _no_answer),
    Check("v5-expect", "Answers are compared as JSON.", _as_json),
    Check("v5-expect", "A tool that must never begin is named.", _never),
    Check("v5-expect", "A tool that begins too often is named.", _at_most),
    Check("v5-expect", "All that doesn't hold is told.", _all_of_it),
    Check("v5-expect", "An expectation of nothing is refused.", _nothing),
    Check("v5-expect", "An expectation that nobody knows is refused.", _misspelt),
    *HOUSED_CHECKS,
    *SHRUNK_CHECKS,
)
