"""What the checks of v1 play with: rules, approvers, and tools that a call changes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mini_harness.course.conformance import Subject, Wrong
from mini_harness.course.conformance.stage import (
    DONE,
    GOAL,
    AskedTooOften,
    LogServerError,
    Script,
    plain,
    raised,
    short,
    wrong,
)
from mini_harness.course.trouble import unknown_name
from mini_harness.frozen import shown
from mini_harness.tools.base import Tool

ALLOW, ASK, DENY = VERDICTS = "allow", "require_approval", "deny"
BUILD = {"build_id": "build-102"}
NO_DEPLOY = "Only people deploy."
NO_STEPS = "max_steps exceeded: "

Rule = Callable[[str, dict[str, Any]], Any]


@dataclass(frozen=True, repr=False)
class Raised:
    """An error that a subject raised: to return one is something else."""

    error: BaseException

    def __repr__(self) -> str:
        return f"{shown(self.error)} was raised"


def says(answer: Any) -> Rule:
    """A rule that gives this answer about every call, and is named after what it does."""

    def rule(name: str, arguments: dict[str, Any]) -> Any:
        return answer

    rule.__name__ = str(answer[0]) if answer and isinstance(answer, tuple) else repr(answer)
    return rule


def rule_of(verdict: str) -> Rule:
    return says((verdict, f"reason to {verdict}"))


def broken(name: str, arguments: dict[str, Any]) -> Any:
    raise LogServerError("the rule can't be read")


broken.__name__ = "by raising an error"


class Approver:
    """Answers the same each time, and keeps what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[Any, Any]] = []

    def __call__(self, name: Any, arguments: Any) -> Any:
        self.asked.append((name, copy.deepcopy(arguments)))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(arguments) if callable(self.answer) else self.answer


def tools(ran: list[Any]) -> dict[str, Tool]:
    """The tools of a check. ``ran`` gets what they were called with."""

    def read_build(build_id: str) -> str:
        ran.append(build_id)
        return "failed"

    def deploy_prod(build_id: str) -> str:
        ran.append(f"deploy {build_id}")
        return f"{build_id} is live"

    def rerun_builds(build_ids: list[str]) -> str:
        ran.append(list(build_ids))
        build_ids.append("all of them")
        return "queued"

    def ask_server() -> str:
        ran.append("ask_server")
        raise LogServerError("the log server is away")

    handlers = (read_build, deploy_prod, rerun_builds, ask_server)
    return {each.__name__: Tool(each.__name__, "For a check.", each) for each in handlers}


def attempt(
    called: str, expected: str, likely: str, function: Callable[..., Any], *given: Any
) -> Any:
    """Call a learner's function. Whatever it raises is a finding."""
    try:
        return plain(called, function, *given)
    except (NotImplementedError, Wrong):
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it becomes the finding
        wrong(called, raised(error), expected, unknown_name(error) or likely)


def judge(subject: Subject, rules: Sequence[Rule], likely: str = "") -> tuple[str, str]:
    """The subject's verdict on a call of deploy_prod, and its reason."""
    called, expected = judges(rules), "a pair: the verdict and its reason"
    said = attempt(called, expected, likely, subject.judge, rules, "deploy_prod", dict(BUILD))
    if not isinstance(said, tuple) or len(said) != 2 or said[0] not in VERDICTS:
        not_a_pair = "`judge` returns two things: `return verdict, reason`."
        wrong(called, shown(said), expected, not_a_pair)
    verdict, reason = said
    return str(verdict), str(reason)


def judges(rules: Sequence[Rule]) -> str:
    """How a check called ``judge``."""
    known = [getattr(rule, "__name__", "a rule") for rule in rules]
    names = f"the rules answer: {', then '.join(known)}" if known else "there are no rules"
    return f"judge(rules, 'deploy_prod', {BUILD}), where {names}"


def protect(
    subject: Subject, rules: Sequence[Rule], approver: Any, here: Mapping[str, Tool]
) -> Mapping[str, Any]:
    """The subject's protected tools."""
    called = "protect(tools, rules, approver)"
    expected = "a dictionary with a tool for each name"
    made = attempt(called, expected, "", subject.protect, here, rules, approver)
    if not isinstance(made, Mapping) or set(made) != set(here):
        wrong(called, shown(made), expected, "`protect` returns all tools by the same names.")
    return made


def told(
    protected: Mapping[str, Any], name: str, may_raise: Exception | None = None, /, **arguments: Any
) -> str:
    """What a protected handler returns. What it raises would be told by ``act``.

    Raises ``may_raise`` if the handler lets that very error go.
    """
    try:
        return str(protected[name].handler(**arguments))
    except NotImplementedError:
        raise
    except Exception as error:
        if error is may_raise:
            raise
        if unknown := unknown_name(error):
            wrong(f"the protected {name}", raised(error), "it decides", unknown)
        return f"Tool {name} failed: {error!r}"


def supervise(
    subject: Subject,
    script: Script,
    *more: Any,
    ran: list[Any] | None = None,
    rules: Sequence[Rule] = (),
    approver: Any = None,
) -> tuple[Any, list[dict[str, Any]]]:
    """What the subject's ``supervise`` returns, or a RuntimeError as Raised; and its trace."""
    trace: list[dict[str, Any]] = []
    called, given = supervises(script, *more), (tools([] if ran is None else ran), GOAL)
    rules = rules or [rule_of(ALLOW)]

    def run() -> Any:
        try:
            return subject.supervise(
                script, *given, rules, approver or Approver(False), trace, *more
            )
        except NotImplementedError:
            raise
        except RuntimeError as error:
            return Raised(error)
        except AskedTooOften:
            likely = "There is no limit. Count the turns, and raise before you ask once too often."
            if script.turns[-1] == DONE:
                likely = "The loop doesn't return when there is an answer. Check v0-loop first."
            got, expected = "the model was asked again and again", "the run ends"
            wrong(called, got, expected, likely)

    output = attempt(called, "the output of the final answer", "", run)
    for event in trace:
        if not isinstance(event, Mapping) or not {"type", "step"} <= set(event):
            likely = 'Append dictionaries: {"type": …, "step": …, and what else belongs to it}.'
            wrong(called, f"the event {event!r}", "every event has a type and a step", likely)
    return output, trace


def supervises(script: Script, *more: Any) -> str:
    """How a check called ``supervise``."""
    turns = list(map(short, script.turns))
    if len(turns) > 4:
        turns[2:] = ["so on"]
    limit = f", max_steps={more[0]}" if more else ""
    return f"supervise(…{limit}), where the model says: {', then '.join(turns)}"
