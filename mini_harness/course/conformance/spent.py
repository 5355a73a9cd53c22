"""What a budget must do, whoever wrote it."""

from __future__ import annotations

import math
from typing import Any

from mini_harness.course.conformance import Check, Subject
from mini_harness.course.conformance.gated import Raised, attempt
from mini_harness.course.conformance.stage import (
    LogServerError,
    plain,
    raised,
    wrong,
)
from mini_harness.course.trouble import unknown_name
from mini_harness.frozen import shown
from mini_harness.tools.base import Tool

AWAY = "the log server is away"
SPENT = "BudgetSpent"


def shop(ran: list[str]) -> dict[str, Tool]:
    def look() -> str:
        ran.append("look")
        return "looked"

    def fail() -> str:
        ran.append("fail")
        raise LogServerError(AWAY)

    def order() -> str:
        ran.append("order")
        return "ordered"

    return {
        each.__name__: Tool(each.__name__, "For a check.", each) for each in (look, fail, order)
    }


def limited(subject: Subject, ran: list[str], limit: Any) -> Any:
    called = f"limited(tools, {limit!r})"
    return attempt(called, "the tools again", "", subject.limited, shop(ran), limit)


def use(here: Any, *names: str) -> list[Any]:
    """What each call of these tools came to."""
    told: list[Any] = []
    for name in names:
        try:
            told.append(here[name].handler())
        except NotImplementedError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a check looks at it
            told.append(Raised(error))
    return told


def is_spent(got: Any) -> bool:
    return isinstance(got, Raised) and type(got.error).__name__ == SPENT


def _border(subject: Subject) -> None:
    ran: list[str] = []
    told = use(limited(subject, ran, 2), "look", "order", "look")
    called = "limited(tools, 2), and then look, order, look"
    if len(ran) != 2:
        likely = "The tools share one budget: two calls in all, and not of each."
        if len(ran) == 3 and is_spent(told[-1]):
            likely = "It is counted after the call. Look before anything is spent."
        elif len(ran) < 2:
            likely = "A limit of 2 allows two calls. The third is the first that may not begin."
        wrong(called, f"{ran} ran", "['look', 'order'], and no more", likely)
    if told[:2] != ["looked", "ordered"]:
        wrong(called, shown(told[:2]), "what the tools return", "Return what the handler returns.")
    if not is_spent(told[-1]):
        wrong(called, shown(told[-1]), f"{SPENT} is raised", f"Raise {SPENT}(used, limit).")
    numbers = [getattr(told[-1].error, name, None) for name in ("used", "limit")]
    if numbers != [2, 2]:
        likely = f"Whoever reads it wants to know how far it went: raise {SPENT}(used, limit)."
        wrong(called, f"used and limit are {numbers}", "[2, 2]", likely)


def _none_and_nothing(subject: Subject) -> None:
    ran: list[str] = []
    use(limited(subject, ran, 0), "look")
    if ran:
        likely = "0 is taken for no limit. It is a number like any other: ask `is None`."
        wrong("limited(tools, 0), and then look", "look ran", "nothing runs", likely)
    told = use(limited(subject, ran, None), *["look"] * 30)
    if len(ran) != 30:
        likely = "None means that nobody limits it."
        wrong("limited(tools, None), and then look 30 times", shown(told[-1]), "all run", likely)


def _errors_count(subject: Subject) -> None:
    ran: list[str] = []
    told = use(limited(subject, ran, 2), "fail", "fail", "look")
    if len(ran) != 2:
        likely = "A call that fails isn't counted. It was made, and a loop that only fails would "
        likely += "never end."
        wrong("limited(tools, 2), and then fail, fail, look", f"{ran} ran", "two calls", likely)
    if not isinstance(told[0], Raised) or not isinstance(told[0].error, LogServerError):
        likely = "The tool's own error goes up as it is."
        wrong("limited(tools, 2), and then fail", shown(told[0]), "the tool's error", likely)


def _refused(subject: Subject) -> None:
    for limit in (-1, math.nan, -0.5):
        called = f"limited(tools, {limit})"
        try:
            plain(called, subject.limited, shop([]), limit)
        except ValueError:
            continue
        except NotImplementedError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it becomes the finding
            unknown = unknown_name(error)
            wrong(called, raised(error), "ValueError is raised", unknown or "Raise ValueError.")
        likely = "nan is neither smaller nor larger than anything. Ask `limit >= 0`, and refuse "
        likely += "what doesn't say yes."
        if not math.isnan(limit):
            likely = "A negative limit is a mistake of whoever wrote it. Say so at once."
        wrong(called, "it was taken", "ValueError is raised", likely)


def _reserved(subject: Subject) -> None:
    ran: list[str] = []
    here: dict[str, Any] = {}

    def nested() -> str:
        ran.append("nested")
        if len(ran) < 5:
            here.update(told=use(here["tools"], "nested"))
        return "done"

    tools = {"nested": Tool("nested", "Calls itself.", nested)}
    here["tools"] = attempt("limited(tools, 1)", "the tools again", "", subject.limited, tools, 1)
    use(here["tools"], "nested")
    if len(ran) != 1:
        likely = "It is counted when the call has ended. Until then others see the old number: "
        likely += "count it before the tool runs."
        called = "limited(tools, 1), and a tool that calls itself"
        wrong(called, f"it ran {len(ran)} times", "once", likely)


def _as_they_were(subject: Subject) -> None:
    ran: list[str] = []
    tools = shop(ran)
    plain("limited(tools, 0)", subject.limited, tools, 0)
    use(tools, "look")
    if ran != ["look"]:
        likely = "`limited` changed the tools that it was given. Make new ones."
        wrong("tools['look'] after limited(tools, 0)", "it is limited", "it is as it was", likely)


SPENT_CHECKS = (
    Check("v2-budget", "All tools share one budget, and it is looked at before.", _border),
    Check("v2-budget", "0 allows nothing, and None everything.", _none_and_nothing),
    Check("v2-budget", "A call that fails counts.", _errors_count),
    Check("v2-budget", "What is running counts already.", _reserved),
    Check("v2-budget", "What is no limit is refused.", _refused),
    Check("v2-budget", "The tools themselves stay as they were.", _as_they_were),
)
