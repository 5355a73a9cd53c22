"""The policy: the model proposes a call, and this decides whether it runs (SEEDS A07, A08, B07).

Everything that has something to say about a call is asked, and the strictest verdict counts,
whatever the order: DENY, then REQUIRE_APPROVAL, then ALLOW. If nothing speaks, a call that only
reads may run and any other needs approval. Could not judge is never yes: whatever fails while a
call is judged denies it (report P04).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from mini_harness.approval import (
    Approver,
    Asks,
    ToolDenied,
    denied,
    remembered,
    request_for,
    settle,
)
from mini_harness.events import EventType
from mini_harness.frozen import shown
from mini_harness.layer import Act
from mini_harness.protocol import Observation
from mini_harness.rules import BuiltIn, Facts, Habits, Judgement, Rule, Verdict, filled
from mini_harness.run import Run
from mini_harness.speakers import (
    READS,
    AllowList,
    Default,
    NeverRun,
    NoCredentials,
    OnlyPlainLines,
    PermissionMode,
    PlanMode,
    Speaker,
    Together,
    patterns_of,
)
from mini_harness.tools.base import BaseTool, ToolSchema
from mini_harness.tools.call import Call
from mini_harness.tools.function import FunctionTool
from mini_harness.tools.registry import ToolRegistry

__all__ = ["Facts", "Judgement", "PermissionMode", "Policy", "Rule", "Verdict"]

_ALLOW, _ASK, _DENY = Verdict.ALLOW, Verdict.REQUIRE_APPROVAL, Verdict.DENY


class _Known(NamedTuple):
    """What a policy can know of a tool before there is a call."""

    habits: Habits
    speakers: tuple[Speaker, ...]
    default: Default
    quiet: FunctionTool | None
    """The tool, if nobody speaks about its calls and all of them only read, or none does."""


class Policy(Asks):
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
        self._compared: Sequence[ToolSchema] | None = None
        # Kept by those who wait for it. A run may come to another event loop later.
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

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
            raise ToolDenied(name, AllowList.id, "It isn't on the list of allowed tools.")
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
            return READS
        facts, found = Facts(call, cwd, habits), None
        speaker: Speaker = default
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

    def act(self, run: Run, call: Call, next: Act) -> Coroutine[Any, Any, Observation]:
        tool = call.tool
        known = self._known.get(tool.name)
        # The commonest call by far: it only reads, and nobody has anything to say about it.
        if known is not None and known.quiet is tool and known.quiet.read_only is True:
            compared = not self._strict or self._compared is run.driver.tools.to_api_schema()
            if compared and run.answer is None:
                call.allowed_by = READS.rule
                return next(run, call)
        return self._judge_and_act(run, call, next)

    async def _judge_and_act(self, run: Run, call: Call, next: Act) -> Observation:
        harness = run.driver
        if self._strict:
            self._compare(harness.tools)
        verdict, rule, reason = self.judge(call, harness.cwd)
        # Whoever was asked under another policy has answered, and a no stays a no.
        answered = run.answer is not None and self.was_answered(run, call)
        if verdict is _ALLOW and not answered:
            call.allowed_by = rule
            return await next(run, call)
        if verdict is not _DENY:
            return await self._ask(run, call, next, Judgement(_ASK, rule, reason), answered)
        run.take_answer(call.call_id)
        _note(run, call, _DENY, rule, reason)
        return denied(call, rule, reason)

    async def _ask(
        self, run: Run, call: Call, next: Act, judged: Judgement, answered: bool
    ) -> Observation:
        # Reads of one turn may come together. A person is asked one thing at a time, and what the
        # first answer allows need not be asked again.
        turn = self._turns.get(id(run)) or asyncio.Lock()
        self._turns[id(run)] = turn
        async with turn:
            ready = await self._settled(run, call, judged, answered)
        return ready if isinstance(ready, Observation) else await next(run, ready)

    async def _settled(
        self, run: Run, call: Call, judged: Judgement, answered: bool
    ) -> Call | Observation:
        """The call as it may run, or the observation of its denial. Raises Pause."""
        _, rule, reason = judged
        asker = self.asker(run)
        before = None if answered else remembered(run, call, rule, asker)
        if before is not None:
            call.allowed_by = f"{BuiltIn.ALWAYS}:{before}"
            return call
        request = request_for(run, call, rule, reason, asker)
        if (EventType.VERDICT, request.digest) not in run.named:
            _note(run, call, _ASK, rule, reason, digest=request.digest)
        who, how = self.approver, self._objection(run)
        ready = await settle(run, call, request, who, self.patience, how, answered)
        if isinstance(ready, Call):
            ready.allowed_by = f"{BuiltIn.APPROVED}:{rule}"
        return ready

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
        schemas = tools.to_api_schema()
        if self._compared is schemas:
            return
        names = tools.names()
        for rule in self._strict:
            if meant := rule.misspelt(names):
                raise ValueError(
                    f"Rule {rule.id!r} restricts the tool {rule.tool!r}, which isn't here. Is it "
                    f"{meant!r} that is meant? The tools here are: {', '.join(names)}."
                )
        self._compared = schemas

    def _study(self, tool: BaseTool) -> _Known:
        """All that can ever have something to say about a call of this tool, in order."""
        habits = Habits(tool)
        rules = [rule for rule in self._rules if rule.may_concern(tool.name)]
        lines = [rule for rule in rules if rule.allows_commands]
        speakers: list[Speaker] = [NeverRun()] if habits.runs_commands else []
        if not habits.touches_nothing:
            speakers.append(NoCredentials())
        if self._allowed_tools is not None:
            speakers.append(AllowList(self._allowed_tools))
        speakers += rules
        if len(lines) > 1:
            speakers.append(Together(lines))
        if habits.runs_commands:
            speakers.append(OnlyPlainLines())
        if self._mode is PermissionMode.PLAN:
            speakers.append(PlanMode())
        asks = not speakers and self._mode is PermissionMode.DEFAULT
        quiet = habits.always_same if asks else None
        known = _Known(habits, tuple(speakers), Default(self._mode, patterns_of(lines)), quiet)
        self._known[tool.name] = known
        return known


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
