"""What trying again and a budget must do together, around a whole run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mini_harness.course.conformance import Check, Subject, Wrong
from mini_harness.course.conformance.gated import Raised, attempt
from mini_harness.course.conformance.spent import AWAY, SPENT, is_spent
from mini_harness.course.conformance.stage import (
    DONE,
    GOAL,
    AskedTooOften,
    Script,
    call,
    short,
    wrong,
)
from mini_harness.frozen import shown
from mini_harness.tools.base import Tool, TransientError

UNKNOWN = "OutcomeUnknown"


class Flaky:
    """Tools that fail so often in a passing way, each call anew."""

    def __init__(self, fails: int) -> None:
        self.fails, self.ran = fails, list[str]()
        self.slept: list[float] = []

    def tools(self) -> dict[str, Tool]:
        return {name: Tool(name, "For a check.", self._handler(name)) for name in ("look", "order")}

    def _handler(self, name: str) -> Callable[[], str]:
        def handler() -> str:
            self.ran.append(name)
            if self.ran.count(name) <= self.fails:
                raise TransientError(AWAY)
            return f"{name}: done"

        return handler


LOOK, ORDER = call("look"), call("order")


def survive(subject: Subject, script: Script, flaky: Flaky, limit: Any = None) -> Any:
    """What the subject's ``survive`` returns, or what it raised."""
    called = survives(script, flaky, limit)
    given = script, flaky.tools(), GOAL, {"look"}, flaky.slept.append, limit

    def run() -> Any:
        try:
            return subject.survive(*given)
        except (NotImplementedError, Wrong):
            raise
        except AskedTooOften:
            likely = "The budget is spent, and the model is asked all the same. Raise then, "
            likely += "instead of asking."
            got, expected = "the model was asked again and again", "the run ends"
            wrong(called, got, expected, likely if limit is not None else "")
        except RuntimeError as error:
            return Raised(error)

    return attempt(called, "the final answer", "", run)


def survives(script: Script, flaky: Flaky, limit: Any) -> str:
    """How a check called ``survive``."""
    turns = ", then ".join(map(short, script.turns[:3]))
    fails = f"each tool fails {flaky.fails} times in a passing way" if flaky.fails else "all works"
    return (
        f"survive(…, {{'look'}}, sleep, max_calls={limit}), where the model says: {turns}; {fails}"
    )


def _unseen(subject: Subject) -> None:
    script, flaky = Script(LOOK, DONE), Flaky(2)
    got = survive(subject, script, flaky)
    if got != DONE["output"]:
        likely = "Return what `pursue` returns."
        wrong(survives(script, flaky, None), shown(got), repr(DONE["output"]), likely)
    if script.results(1) != [("look", "look: done")] or flaky.ran != ["look"] * 3:
        told = f"{flaky.ran} ran, and the model was told {script.results(1)}"
        likely = "look may be repeated: try it again inside the one call, with `retry`."
        expected = "three attempts, and the model sees one result"
        wrong(survives(script, flaky, None), told, expected, likely)


def _once(subject: Subject) -> None:
    script, flaky = Script(ORDER, DONE), Flaky(1)
    survive(subject, script, flaky)
    told = str(script.results(1))
    if flaky.ran != ["order"]:
        likely = "order isn't among the repeatable ones. It may have had its effect."
        wrong(survives(script, flaky, None), f"{flaky.ran} ran", "['order'], once", likely)
    if "unknown" not in told.lower():
        likely = f"Let {UNKNOWN} go up to `act`, with a text that says what is unknown."
        expected = "a text that says that the outcome is unknown"
        wrong(survives(script, flaky, None), f"the model was told {told}", expected, likely)


def _attempts_count(subject: Subject) -> None:
    script, flaky = Script(LOOK, LOOK, LOOK, LOOK, DONE), Flaky(2)
    got = survive(subject, script, flaky, 4)
    called = survives(script, flaky, 4)
    if len(flaky.ran) != 4:
        likely = "The retries aren't counted: put the budget inside of `retry`, so that every "
        likely += "attempt counts."
        wrong(called, f"{len(flaky.ran)} attempts ran", "4, of which two failed", likely)
    if not is_spent(got):
        likely = f"`act` makes a text of {SPENT}, like of any error. Remember that it was raised, "
        likely += "and raise it before the model is asked again."
        wrong(called, shown(got), f"{SPENT} is raised", likely)


def _enough(subject: Subject) -> None:
    script, flaky = Script(LOOK, ORDER, DONE), Flaky(0)
    got = survive(subject, script, flaky, 2)
    if got != DONE["output"]:
        likely = (
            "The last allowed call is a call like any other, and after it the model may answer."
        )
        wrong(survives(script, flaky, 2), shown(got), repr(DONE["output"]), likely)


SURVIVED_CHECKS = (
    Check("v2-survive", "The model doesn't see what passes.", _unseen),
    Check("v2-survive", "What may not be repeated runs once, and the model is told.", _once),
    Check("v2-survive", "Every attempt counts, and a spent budget ends the run.", _attempts_count),
    Check("v2-survive", "A budget that is just enough is enough.", _enough),
)
