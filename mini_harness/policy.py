"""The policy: the model proposes a call, and this decides whether it runs (SEEDS A07, A08, B07).

Everything that has something to say about a call is asked, and the strictest verdict counts,
whatever the order: DENY, then REQUIRE_APPROVAL, then ALLOW. If nothing speaks, a call that only
reads may run and any other needs approval. Could not judge is never yes: whatever fails while a
call is judged denies it (report P04).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

from mini_harness.approval import Approver, ToolDenied, denied, remembered, request_for, settle
from mini_harness.command_line import CommandPattern
from mini_harness.events import EventType
from mini_harness.frozen import shown
from mini_harness.layer import Act, Layer
from mini_harness.protocol import Observation
from mini_harness.rules import BuiltIn, Facts, Habits, Judgement, Rule, Verdict, filled
from mini_harness.run import Run
from mini_harness.shell_words import Unreadable
from mini_harness.tools.base import BaseTool
from mini_harness.tools.call import Call
from mini_harness.tools.function import FunctionTool
from mini_harness.tools.registry import ToolRegistry

__all__ = ["Facts", "Judgement", "PermissionMode", "Policy", "Rule", "Verdict"]

_ALLOW, _ASK, _DENY = Verdict.ALLOW, Verdict.REQUIRE_APPROVAL, Verdict.DENY
_READS = Judgement(_ALLOW, BuiltIn.READS.value, "It only reads.")
_FULL_AUTO = Judgement(_ALLOW, BuiltIn.FULL_AUTO.value, "In full auto mode it needs no approval.")


class PermissionMode(StrEnum):
    """What happens to calls that change something (SEEDS B19). Calls that only read may run."""

    DEFAULT = "default"
    """Somebody is asked, unless a rule allows the call."""
    PLAN = "plan"
    """They are denied, also where a rule allows them."""
    FULL_AUTO = "full_auto"
    """They run. Rules and what is built in still deny or ask, and a command line that isn't plain
    needs approval. What a plain one starts may do anything: ``python -c``, ``find -delete``."""


class _Speaker(Protocol):
    """Something that may have something to say about a call."""

    @property
    def id(self) -> str: ...

    def judge(self, facts: Facts) -> Judgement | None: ...


class _Credentials:
    """Denies what leads to credentials, in every mode and whatever allows it (SEEDS B20)."""

    id = BuiltIn.CREDENTIALS.value

    def judge(self, facts: Facts) -> Judgement | None:
        for place in facts.places:
            if place.sensitive:
                text = f"Credentials may be kept there: {place.written}"
                return Judgement(_DENY, self.id, text)
        return None


class _CommandLine:
    """Denies lines that can't be read, and commands that are never run here (SEEDS C22)."""

    id = BuiltIn.COMMAND_LINE.value

    def judge(self, facts: Facts) -> Judgement | None:
        try:
            objection = "" if facts.line is None else facts.line.objection()
        except Unreadable as error:
            objection = f"The command line can't be read safely: {error}."
        return Judgement(_DENY, self.id, objection) if objection else None


class _Unforeseen:
    """Asks about a line of which can't be told what it runs, whatever allows its tool."""

    id = BuiltIn.COMMAND_LINE.value

    def judge(self, facts: Facts) -> Judgement | None:
        if facts.line is None or facts.line.plain:
            return None
        text = "It is more than plain commands, so what it would run can't be told for sure."
        return Judgement(_ASK, self.id, text)


class _AllowList:
    """Allows the tools that are named, and denies all others (SEEDS A07)."""

    id = BuiltIn.ALLOWED_TOOLS.value

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def judge(self, facts: Facts) -> Judgement | None:
        if facts.call.name in self._names:
            return Judgement(_ALLOW, self.id, "The tool is on the list of allowed tools.")
        return Judgement(_DENY, self.id, "It isn't on the list of allowed tools.")


class _Plan:
    """Denies whatever changes something."""

    id = BuiltIn.PLAN_MODE.value

    def judge(self, facts: Facts) -> Judgement | None:
        if facts.read_only:
            return None
        return Judgement(_DENY, self.id, "In plan mode nothing may be changed.")


class _Default:
    """Speaks when nothing else did."""

    id = BuiltIn.DEFAULT.value

    def __init__(self, mode: PermissionMode, patterns: Iterable[CommandPattern]) -> None:
        self._full_auto = mode is PermissionMode.FULL_AUTO
        self._patterns = tuple(patterns)

    def judge(self, facts: Facts) -> Judgement:
        if self._full_auto:
            return _FULL_AUTO
        if facts.read_only:
            return _READS
        left = facts.line.uncovered(*self._patterns) if self._patterns and facts.line else ""
        what = f": {left}" if left else ""
        return Judgement(_ASK, self.id, f"It may change something, and no rule allows it{what}.")


class _Together:
    """Allows a line of several commands if each of them is allowed by some rule."""

    id = BuiltIn.TOGETHER.value

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)

    def judge(self, facts: Facts) -> Judgement | None:
        line = facts.line
        if line is None or line.uncovered(*_patterns(self._rules)):
            return None
        used = [rule.id for rule in self._rules if line.uses(*_patterns([rule]))]
        return Judgement(_ALLOW, "+".join(used), "Each of its commands is allowed by a rule.")


class _Known(NamedTuple):
    """What a policy can know of a tool before there is a call."""

    habits: Habits
    speakers: tuple[_Speaker, ...]
    default: _Default
    quiet: FunctionTool | None
    """The tool, if nobody speaks about its calls and all of them only read, or none does."""


class Policy(Layer):
    """Decides about every call before it runs.

    ``allowed_tools`` is a list of names: these may run, and no other tool (SEEDS A07). An empty
    one allows nothing; None is no list. ``approver`` is asked about what needs approval, and has
    ``patience`` seconds; without one the run pauses.
    """

    def __init__(
        self,
        allowed_tools: Iterable[str] | None = None,
        *,
        rules: Iterable[Rule] = (),
        mode: PermissionMode | str = PermissionMode.DEFAULT,
        approver: Approver | None = None,
        patience: float | None = None,
    ) -> None:
        """Raises TypeError and ValueError for what can't be meant: a policy never guesses."""
        self._mode = PermissionMode(mode)
        self._rules = _checked(rules)
        self._allowed_tools = None if allowed_tools is None else _names(allowed_tools)
        if approver is not None and not callable(approver):
            raise TypeError(f"The approver can't be called with a request: {shown(approver):.100}.")
        if patience is not None and not patience > 0:
            raise ValueError(f"The patience is {patience} seconds, but must be more than 0.")
        self.approver = approver
        self.patience = patience
        self._strict = [rule for rule in self._rules if rule.verdict is not _ALLOW]
        self._known: dict[str, _Known] = {}
        self._compared: WeakKeyDictionary[ToolRegistry, int] = WeakKeyDictionary()

    @property
    def mode(self) -> PermissionMode:
        """What it says doesn't change. For another mode or other rules make another policy."""
        return self._mode

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self._rules

    @property
    def allowed_tools(self) -> frozenset[str] | None:
        return self._allowed_tools

    def check(self, name: str) -> None:
        """Raise ToolDenied if no call of this tool can run, whatever its arguments (SEEDS A07)."""
        if self._allowed_tools is not None and name not in self._allowed_tools:
            raise ToolDenied(name, _AllowList.id, "It isn't on the list of allowed tools.")
        for rule in self._rules:
            if rule.verdict is _DENY and rule.unconditional and rule.may_concern(name):
                raise ToolDenied(name, rule.id, rule.reason)

    def judge(self, call: Call, cwd: Path | str) -> Judgement:
        """The strictest of all that is said about a call; of equally strict ones the first."""
        known = self._known.get(call.tool.name)
        if known is None or known[0].tool is not call.tool:
            known = self._study(call.tool)
        habits, speakers, default, quiet = known
        if quiet is not None and quiet.read_only is True:
            return _READS
        facts, found = Facts(call, cwd, habits), None
        speaker: _Speaker = default
        try:
            for speaker in speakers:
                said = speaker.judge(facts)
                if said is None:
                    continue
                if said.verdict is _DENY:
                    return said
                if found is None or (found.verdict is _ALLOW and said.verdict is _ASK):
                    found = said
            speaker = default
            return found or default.judge(facts)
        except Exception as error:  # noqa: BLE001 - could not judge is never yes
            return Judgement(_DENY, speaker.id, f"policy failed: {shown(error)}")

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        harness = run.driver
        if self._strict:
            self._compare(harness.tools)
        verdict, rule, reason = self.judge(call, harness.cwd)
        # Whoever was asked under another policy has answered, and a no stays a no.
        if verdict is _ALLOW and not run.has_answer(call.call_id):
            call.allowed_by = rule
            return await next(run, call)
        if verdict is not _DENY:
            return await self._ask(run, call, next, rule, reason)
        run.take_answer(call.call_id)
        _note(run, call, _DENY, rule, reason)
        return denied(call, rule, reason)

    async def _ask(self, run: Run, call: Call, next: Act, rule: str, reason: str) -> Observation:
        before = None if run.has_answer(call.call_id) else remembered(run, call, rule)
        if before is not None:
            call.allowed_by = f"{BuiltIn.ALWAYS}:{before}"
            return await next(run, call)
        request = request_for(run, call, rule, reason)
        notes = run.notes.get(EventType.VERDICT, ())
        if not any(note.get("digest") == request.digest for note in notes):
            _note(run, call, _ASK, rule, reason, digest=request.digest)
        ready = await settle(run, call, request, self.approver, self.patience, self._objection(run))
        if isinstance(ready, Observation):
            return ready
        ready.allowed_by = f"{BuiltIn.APPROVED}:{rule}"
        return await next(run, ready)

    def _objection(self, run: Run) -> Callable[[Call], str]:
        """Why an edited call can't run: what is denied stays denied, whoever wrote it."""

        def objection(edited: Call) -> str:
            verdict, _, reason = self.judge(edited, run.driver.cwd)
            return reason if verdict is _DENY else ""

        return objection

    def _compare(self, tools: ToolRegistry) -> None:
        """Raise ValueError for a rule that misspells the tool which it should restrict.

        A policy may serve several harnesses, so a tool that isn't there is no fault by itself.
        """
        names = tools.names()
        if self._compared.get(tools) == len(names):
            return
        for rule in self._strict:
            if meant := rule.misspelt(names):
                raise ValueError(
                    f"Rule {rule.id!r} restricts the tool {rule.tool!r}, which isn't here. Is it "
                    f"{meant!r} that is meant? The tools here are: {', '.join(names)}."
                )
        self._compared[tools] = len(names)

    def _study(self, tool: BaseTool) -> _Known:
        """All that can ever have something to say about a call of this tool, in order."""
        habits = Habits(tool)
        rules = [rule for rule in self._rules if rule.may_concern(tool.name)]
        lines = [rule for rule in rules if rule.allows_commands]
        speakers: list[_Speaker] = [_CommandLine()] if habits.runs_commands else []
        if not habits.touches_nothing:
            speakers.append(_Credentials())
        if self._allowed_tools is not None:
            speakers.append(_AllowList(self._allowed_tools))
        speakers += rules
        if len(lines) > 1:
            speakers.append(_Together(lines))
        if habits.runs_commands:
            speakers.append(_Unforeseen())
        if self._mode is PermissionMode.PLAN:
            speakers.append(_Plan())
        asks = not speakers and self._mode is PermissionMode.DEFAULT
        quiet = habits.always_same if asks else None
        known = _Known(habits, tuple(speakers), _Default(self._mode, _patterns(lines)), quiet)
        self._known[tool.name] = known
        return known


def _patterns(rules: Iterable[Rule]) -> tuple[CommandPattern, ...]:
    return tuple(rule.command_pattern for rule in rules if rule.command_pattern is not None)


def _note(run: Run, call: Call, verdict: Verdict, rule: str, reason: str, **more: str) -> None:
    about = {"call_id": call.call_id, "tool": call.name}
    said = {"verdict": verdict.value, "rule": rule, "reason": reason}
    run.driver.record.note(run, EventType.VERDICT, **about, **said, **more)


def _checked(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    found = tuple(rules)
    for rule in found:
        if not isinstance(rule, Rule):
            raise TypeError(f"{shown(rule):.100} isn't a Rule.")
    ids = [rule.id for rule in found]
    if twice := [each for each in ids if ids.count(each) > 1]:
        raise ValueError(f"Two rules have the id {twice[0]!r}. A verdict names its rule by it.")
    return found


def _names(names: Iterable[str]) -> frozenset[str]:
    if isinstance(names, str):
        raise TypeError(f"Give the names of the allowed tools as a list: [{names!r}].")
    return frozenset(filled("The name of an allowed tool", name) for name in names)
