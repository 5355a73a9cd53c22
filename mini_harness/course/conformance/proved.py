"""What a run must do whose answers have to be borne out by its own record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mini_harness.course.conformance import Check, Subject, Wrong
from mini_harness.course.conformance.gated import Raised, attempt
from mini_harness.course.conformance.stage import GOAL, AskedTooOften, LogServerError, call, wrong
from mini_harness.frozen import shown
from mini_harness.tools.base import Tool

MOST = 3
"""How often an answer goes back."""
ANSWER = "Mended, and the tests pass."
CHANGES = {"check": [], "edit": ["a.py"], "break_off": ["a.py"]}
"""Of ``tidy`` nobody says what it changes."""
CHECK, EDIT, TIDY, BREAK_OFF = (call(name) for name in ("check", "edit", "tidy", "break_off"))

Turn = Any


def ids(history: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """The ids of the calls of a tool, as the model sees them."""
    return [each.get("call_id") for each in history if each.get("tool") == name]


class Model:
    """Plays its turns. A turn may be a function of the history."""

    def __init__(self, *turns: Turn) -> None:
        self.turns, self.asked = list(turns), 0
        self.history: list[Mapping[str, Any]] = []

    def decide(self, history: Sequence[Mapping[str, Any]], tools: object) -> Any:
        if self.asked == len(self.turns):
            raise AskedTooOften
        turn = self.turns[self.asked]
        self.asked += 1
        self.history = [dict(each) for each in history]
        return turn(self.history) if callable(turn) else dict(turn)

    @property
    def told(self) -> str:
        """The last thing that it was told."""
        return str(self.history[-1].get("content")) if self.history else ""


def answering(name: str = "check", quote: str = "3 passed", *more: Any, at: int = -1) -> Turn:
    """An answer that cites a call of that tool, by default the last one; and claims ``more``."""

    def turn(history: list[Mapping[str, Any]]) -> dict[str, Any]:
        called = ids(history, name)
        cited = called[at] if called else None
        if called and not cited:
            likely = "A model can cite only what it sees: put the call's `call_id` into its entry "
            likely += "of the history."
            wrong("model.decide(history, tools)", f"the entry {history[-1]}", "a call_id", likely)
        cites = {"says": "It is so.", "call_id": cited, "quote": quote}
        return _answer(cites, *more)

    return turn


def claiming(*claims: Any) -> Turn:
    return lambda history: _answer(*claims)


def _answer(*claims: Any) -> dict[str, Any]:
    return {"type": "final", "output": {"answer": ANSWER, "claims": list(claims)}}


def tools() -> dict[str, Tool]:
    def break_off() -> str:
        raise LogServerError("disk full, after 3 passed")

    handlers: dict[str, Callable[[], str]] = {
        "check": lambda: "3 passed",
        "edit": lambda: "done",
        "tidy": lambda: "done",
        "break_off": break_off,
    }
    return {name: Tool(name, "For a check.", each) for name, each in handlers.items()}


def pursue(subject: Subject, model: Model, what: str, likely: str = "") -> Any:
    """What the subject's ``pursue_proved`` returns; a RuntimeError as Raised."""
    called = f"pursue_proved(…), where the model {what}"

    def run() -> Any:
        try:
            return subject.pursue_proved(model, tools(), GOAL, dict(CHANGES))
        except (NotImplementedError, Wrong):
            raise
        except AskedTooOften:
            got, expected = "the model was asked again and again", f"the answer {ANSWER!r}"
            wrong(called, got, expected, likely)
        except RuntimeError as error:
            return Raised(error)

    return attempt(called, f"the answer {ANSWER!r}", likely, run)


def goes_back(
    subject: Subject, what: str, finding: str, likely: str, *turns: Turn, end: Turn = None
) -> None:
    """The last of these turns is an answer that goes back, with its finding. Then comes a good
    one."""
    model = Model(*turns, CHECK, end or answering())
    called = f"pursue_proved(…), where the model {what}"
    got = pursue(subject, model, what, likely)
    if model.asked < len(model.turns):
        wrong(called, shown(got), "the answer goes back to the model", likely)
    if got != ANSWER:
        wrong(called, shown(got), f"at last the answer {ANSWER!r}", "Return the answer alone.")
    reasons = [str(each.get("content")) for each in model.history if each.get("role") == "user"]
    if len(reasons) != 2 or finding not in reasons[1]:
        known = 'Tell the model why, as {"role": "user", "content": …} with its findings.'
        wrong(called, f"the user's entries are {reasons}", f"a reason with {finding!r}", known)


def _accepted(subject: Subject) -> None:
    what = "calls check, and quotes its output"
    got = pursue(subject, Model(CHECK, answering()), what, "All claims hold: return the answer.")
    if got != ANSWER:
        likely = "Return the answer alone: what was claimed is no part of it."
        wrong(f"pursue_proved(…), where the model {what}", shown(got), repr(ANSWER), likely)


def _without_claims(subject: Subject) -> None:
    likely = "An answer without claims is unverified, and goes back."
    for output in ("All tests pass.", {"answer": ANSWER}, {"answer": ANSWER, "claims": []}):
        turn = {"type": "final", "output": output}
        goes_back(subject, f"answers {output!r}", "", likely, CHECK, turn)


def _misshapen(subject: Subject) -> None:
    likely = "A model may say anything. What can't be read as a claim doesn't hold."
    for odd in ("Trust me.", None, {"says": "It is so."}):
        goes_back(subject, f"claims [{odd!r}]", "", likely, CHECK, claiming(odd))


def _said_standing(subject: Subject) -> None:
    said = {"answer": ANSWER, "standing": "verified", "verified": True, "claims": []}
    likely = "What the model says of its own standing counts for nothing."
    turn = {"type": "final", "output": said}
    goes_back(subject, f"answers {said!r}", "", likely, CHECK, turn)


def _lies(subject: Subject) -> None:
    likely = "The quote doesn't stand in what the call gave."
    what = "calls check, and quotes '4 passed'"
    goes_back(subject, what, "not_quoted", likely, CHECK, answering(quote="4 passed"))
    likely = "A call that failed is no proof. Record that it did: act's text alone doesn't tell."
    what = "cites a call that raised an error"
    goes_back(subject, what, "not_ok", likely, BREAK_OFF, answering("break_off", "passed"))


def _partly(subject: Subject) -> None:
    likely = "One claim of two holds: that is partly, and must be verified."
    more = {"says": "And it is live.", "call_id": "call-99"}
    turn = answering("check", "3 passed", more)
    goes_back(subject, "claims two things, one of them true", "no_such_call", likely, CHECK, turn)


def _outdated(subject: Subject) -> None:
    likely = "It was changed after it was checked. Record of each call what `changes` says."
    what = "calls check, then edit, and cites the check"
    goes_back(subject, what, "outdated", likely, CHECK, EDIT, answering())
    likely = "Of tidy nobody says what it changes, so that is None: it may be everything."
    what = "calls check, then tidy, and cites the check"
    goes_back(subject, what, "outdated", likely, CHECK, TIDY, answering())
    likely = "edit failed, and may have changed half of it."
    what = "calls check, then break_off, and cites the check"
    goes_back(subject, what, "outdated", likely, CHECK, BREAK_OFF, answering())


def _bounded(subject: Subject) -> None:
    model, what = Model(*[answering(quote="4 passed")] * (MOST + 4)), "lies, again and again"
    likely = f"An answer goes back {MOST} times. Then the run ends with RuntimeError."
    got = pursue(subject, model, what, likely)
    called = f"pursue_proved(…), where the model {what}"
    if not isinstance(got, Raised):
        wrong(called, shown(got), "RuntimeError is raised", likely)
    if model.asked != MOST + 1:
        got = f"the model was asked {model.asked} times"
        wrong(called, got, f"{MOST + 1} times: an answer, and {MOST} more", likely)


def _other_run(subject: Subject) -> None:
    first = Model(CHECK, CHECK, answering())
    pursue(subject, first, "calls check twice, and quotes the second")
    stolen = claiming({"says": "It is so.", "call_id": ids(first.history, "check")[-1]})
    likely = "That call was made in another run. Begin each run with a record of its own."
    goes_back(subject, "cites a call of an earlier run", "no_such_call", likely, stolen)


PROVED_CHECKS = (
    Check("v4-prove", "An answer that is borne out is accepted.", _accepted),
    Check("v4-prove", "An answer without claims goes back.", _without_claims),
    Check("v4-prove", "What is no claim doesn't hold.", _misshapen),
    Check("v4-prove", "Nobody can claim to be verified.", _said_standing),
    Check("v4-prove", "A lie goes back, and the model is told what was found.", _lies),
    Check("v4-prove", "Partly isn't enough.", _partly),
    Check("v4-prove", "What was seen before a change goes back.", _outdated),
    Check("v4-prove", "A model that lies for ever comes to an end.", _bounded),
    Check("v4-prove", "Evidence of another run is none.", _other_run),
)
