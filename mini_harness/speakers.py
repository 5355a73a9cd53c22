"""Who has something to say about a call, besides the rules that are given to a policy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mini_harness.command_line import CommandPattern
from mini_harness.rules import BuiltIn, Choice, Facts, Judgement, Rule, Verdict
from mini_harness.shell_words import Unreadable

_ALLOW, _ASK, _DENY = Verdict.ALLOW, Verdict.REQUIRE_APPROVAL, Verdict.DENY
READS = Judgement(_ALLOW, BuiltIn.READS.value, "It only reads.")
_FULL_AUTO = Judgement(_ALLOW, BuiltIn.FULL_AUTO.value, "In full auto mode it needs no approval.")


class PermissionMode(Choice):
    """What happens to calls that change something: default, plan, full_auto (SEEDS B19).

    Calls that only read may run.
    """

    DEFAULT = "default"
    """Somebody is asked, unless a rule allows the call."""
    PLAN = "plan"
    """They are denied, also where a rule allows them."""
    FULL_AUTO = "full_auto"
    """They run. Rules and what is built in still deny or ask, and a command line that isn't plain
    needs approval. What a plain one starts may do anything: ``python -c``, ``find -delete``."""


class Speaker(Protocol):
    """Something that may have something to say about a call."""

    @property
    def id(self) -> str: ...

    def judge(self, facts: Facts) -> Judgement | None: ...


class NoCredentials:
    """Denies what leads to credentials, in every mode and whatever allows it (SEEDS B20)."""

    id = BuiltIn.CREDENTIALS.value

    def judge(self, facts: Facts) -> Judgement | None:
        for place in facts.places:
            if place.sensitive:
                text = f"Credentials may be kept there: {place.written}"
                return Judgement(_DENY, self.id, text)
        return None


class NeverRun:
    """Denies lines that can't be read, and commands that are never run here (SEEDS C22)."""

    id = BuiltIn.COMMAND_LINE.value

    def judge(self, facts: Facts) -> Judgement | None:
        try:
            objection = "" if facts.line is None else facts.line.objection()
        except Unreadable as error:
            objection = f"The command line can't be read safely: {error}."
        return Judgement(_DENY, self.id, objection) if objection else None


class OnlyPlainLines:
    """Asks about a line of which can't be told what it runs, whatever allows its tool."""

    id = BuiltIn.COMMAND_LINE.value

    def judge(self, facts: Facts) -> Judgement | None:
        if facts.line is None or facts.line.plain:
            return None
        text = "It is more than plain commands, so what it would run can't be told for sure."
        return Judgement(_ASK, self.id, text)


class AllowList:
    """Allows the tools that are named, and denies all others (SEEDS A07)."""

    id = BuiltIn.ALLOWED_TOOLS.value

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def judge(self, facts: Facts) -> Judgement | None:
        if facts.call.name in self._names:
            return Judgement(_ALLOW, self.id, "The tool is on the list of allowed tools.")
        return Judgement(_DENY, self.id, "It isn't on the list of allowed tools.")


class PlanMode:
    """Denies whatever changes something."""

    id = BuiltIn.PLAN_MODE.value

    def judge(self, facts: Facts) -> Judgement | None:
        if facts.read_only:
            return None
        why = f"In plan mode nothing may be changed, and {facts.call.name} may change something."
        return Judgement(_DENY, self.id, why)


class Default:
    """Speaks when nothing else did."""

    id = BuiltIn.DEFAULT.value

    def __init__(self, mode: PermissionMode, patterns: Iterable[CommandPattern]) -> None:
        self._full_auto = mode is PermissionMode.FULL_AUTO
        self._patterns = tuple(patterns)

    def judge(self, facts: Facts) -> Judgement:
        if self._full_auto:
            return _FULL_AUTO
        if facts.read_only:
            return READS
        left = facts.line.uncovered(*self._patterns) if self._patterns and facts.line else ""
        what = f": {left}" if left else ""
        return Judgement(_ASK, self.id, f"It may change something, and no rule allows it{what}.")


class Together:
    """Allows a line of several commands if each of them is allowed by some rule."""

    id = BuiltIn.TOGETHER.value

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)

    def judge(self, facts: Facts) -> Judgement | None:
        line = facts.line
        if line is None or line.uncovered(*patterns_of(self._rules)):
            return None
        used = [rule.id for rule in self._rules if line.uses(*patterns_of([rule]))]
        return Judgement(_ALLOW, "+".join(used), "Each of its commands is allowed by a rule.")


def patterns_of(rules: Iterable[Rule]) -> tuple[CommandPattern, ...]:
    return tuple(rule.command_pattern for rule in rules if rule.command_pattern is not None)
