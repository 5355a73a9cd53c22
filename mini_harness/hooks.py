"""Hooks: your own code, called at fixed moments of a run, that may say no (SEEDS B09, B29).

    def not_on_fridays(given: HookInput) -> Block | None:
        return Block("Not on Fridays.") if given.arguments["day"] == "friday" else None

    Hooks([
        Hook("pre_tool_use", not_on_fridays, matcher="deploy*"),
        Hook("post_tool_use", "ruff check . >&2 || exit 2", matcher="write_file|edit_file"),
        Hook("notification", "notify-send 'The agent needs you'"),
    ])

A hook gives None to let things go on, or ``Block("why")``. A command line says the same by its exit
code, 0 or 2, see ``hook_commands``. Whatever else happens is a failure of the hook. Could not judge
is never yes: a failure blocks as well, where there is something to block.

A hook that changes a file itself, such as a formatter, takes it out of the model's hands: the model
has to read it again before ``write_file`` replaces it.
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mini_harness.approval import Answer, ApprovalRequest, Approver, denied
from mini_harness.events import EventType
from mini_harness.frozen import FrozenDict, freeze, shown
from mini_harness.hook import (
    GUARDS,
    Block,
    Hook,
    HookEvent,
    HookInput,
    HookResult,
    ask,
)
from mini_harness.layer import Act, Decide, Feedback, Finish, Layer, Pause, Proposal, Stop, View
from mini_harness.protocol import Final, Message, Observation, Outcome
from mini_harness.rules import meant_by
from mini_harness.run import Run, StopReason
from mini_harness.tools.base import ToolSchema
from mini_harness.tools.call import Call
from mini_harness.tools.registry import ToolRegistry

__all__ = ["Block", "Hook", "HookEvent", "HookInput", "Hooks", "PromptBlocked"]

RULE = "hook"
"""What a call that a hook blocked names as the rule that denied it."""

T = TypeVar("T")


class PromptBlocked(PermissionError):
    """A hook kept a message of the user from the model."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"A hook blocked the message: {reason}")
        self.reason = reason


@dataclass(eq=False)
class _Acting:
    """What is being done in this task, for an approver who is asked about it."""

    run: Run
    call: Call | None
    announced: set[str] = field(default_factory=set)
    """The digests of the requests of which a person has heard."""
    failure: Exception | None = None
    """What recording raised. The policy would take it for the approver's own failure."""

    def is_about(self, request: ApprovalRequest) -> bool:
        """No, if a run inside the call asks: that one may not have these hooks around it."""
        call = self.call
        return call is not None and (call.call_id, call.name) == (request.call_id, request.tool)


_acting: ContextVar[_Acting | None] = ContextVar("_acting", default=None)


class Hooks(Layer):
    """Calls hooks around what happens, in the order of the list. The first that blocks wins.

    - ``pre_tool_use``: before a call is judged by the layers inside. Blocked, it doesn't run, and
      the model is told why.
    - ``post_tool_use``: after a call ran, failed, was denied or blocked; not when it is paused. It
      undoes nothing: its reason is told to the model after the output. If the process ends between
      a call's end and this hook, the hook isn't called for that call any more.
    - ``user_prompt_submit``: before the model gets a message of the user. Blocked, the run stops.
    - ``notification``: when a person is needed: the run pauses, or an approver is asked that
      ``announcing`` wraps. It can't block. Of calls side by side that all need a person, each is
      announced, and again when its question comes: a run pauses for one at a time.
    - ``stop``: when an answer would be accepted. Blocked, it goes back to the model, and why.

    A call that was paused is judged again when the run is resumed, right before it could run, and
    so is a message whose run was stopped. A call that can't be prepared, because there is no such
    tool or the arguments don't fit, never comes here.

    A hook can't change arguments: an edit would go round the approval. Outside of a policy it
    judges them as the model proposed them. To judge what a person made of them, put another
    ``Hooks`` inside the policy.

    Every hook that ran leaves an event. When reads run side by side, a hook may be called for
    several calls at once.
    """

    def __init__(self, hooks: Iterable[Hook]) -> None:
        """Raises TypeError for what isn't a list of hooks: a guard that isn't there is noticed."""
        if not isinstance(hooks, Iterable):
            raise TypeError(f"Give the hooks as a list: [{shown(hooks):.100}].")
        self.hooks = tuple(hooks)
        for hook in self.hooks:
            if not isinstance(hook, Hook):
                raise TypeError(f"{shown(hook):.100} isn't a Hook.")
        self._at_prompt = self._on(HookEvent.USER_PROMPT_SUBMIT)
        self._at_notice = self._on(HookEvent.NOTIFICATION)
        self._at_stop = self._on(HookEvent.STOP)
        self._compared: Sequence[ToolSchema] | None = None
        self._of_tool: dict[str, tuple[tuple[Hook, ...], tuple[Hook, ...]]] = {}

    def _on(self, event: HookEvent, tool: str = "") -> tuple[Hook, ...]:
        return tuple(hook for hook in self.hooks if hook.on == event and hook.is_for(tool))

    async def decide(self, run: Run, view: View, next: Decide) -> Proposal:
        for message in _unheard(run) if self._at_prompt else ():
            given = _input(run, HookEvent.USER_PROMPT_SUBMIT, prompt=message["content"])
            reason = await self._ask(run, self._at_prompt, given)
            if reason is not None:
                raise Stop(StopReason.DENIED, PromptBlocked(reason), because=reason)
        return await self._watched(run, next(run, view))

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        self._compare(run.driver.tools)
        before, after = self._of_tool.get(call.name) or self._study(call.name)
        if not (before or after or self._at_notice):
            return await next(run, call)
        about: dict[str, Any] = {"call_id": call.call_id, "tool": call.name}
        given = _input(run, HookEvent.PRE_TOOL_USE, **about, arguments=call.arguments)
        reason = await self._ask(run, before, given)
        if reason is None:
            seen = await self._watched(run, next(run, call), call)
        else:
            seen = _blocked(run, call, reason)
        if not after:
            return seen
        # Blocked, it ran with nothing: a person's edits from before count no more.
        arguments = _ran_with(run, call) if reason is None else call.arguments
        about |= {"arguments": arguments, "output": seen.output}
        given = _input(run, HookEvent.POST_TOOL_USE, **about, outcome=seen.outcome)
        reason = await self._ask(run, after, given)
        if reason is None:
            return seen
        said = f"A hook says: {reason}"
        return seen.replaced(output=f"{seen.output}\n\n{said}" if seen.output else said)

    async def finish(self, run: Run, final: Final, next: Finish) -> Any:
        answer = await self._watched(run, next(run, final))
        if not self._at_stop or isinstance(answer, Feedback):
            return answer
        given = _input(run, HookEvent.STOP, answer=freeze(answer))
        reason = await self._ask(run, self._at_stop, given)
        return answer if reason is None else Feedback(reason)

    def announcing(self, approver: Approver) -> Approver:
        """The same approver, but the notification hooks are called before each question.

        For ``Policy(approver=...)``, with this layer outside the policy; elsewhere every question
        is answered with no. A policy's patience begins when the hooks do.
        """
        if not callable(approver):
            raise TypeError(f"The approver can't be called: {shown(approver):.100}.")

        async def announced(request: ApprovalRequest) -> Answer:
            acting = _acting.get()
            if self._at_notice:
                if acting is None or not acting.is_about(request):
                    raise RuntimeError("Its hooks aren't around this policy: put Hooks outside.")
                await self._announce(acting, request)
            answer = approver(request)
            return await answer if isinstance(answer, Awaitable) else answer

        announced.__name__ = str(getattr(approver, "__name__", type(approver).__name__))
        return announced

    async def _announce(self, acting: _Acting, request: ApprovalRequest) -> None:
        try:
            await self._notify(acting.run, str(request), request.call_id, request.tool)
        except Exception as failure:
            acting.failure = failure
            raise
        acting.announced.add(request.digest)

    async def _watched(self, run: Run, step: Awaitable[T], call: Call | None = None) -> T:
        """Take a step, and tell a person if the run pauses in it."""
        if not self._at_notice:
            return await step
        acting = _Acting(run, call)
        token = _acting.set(acting)
        try:
            return await step
        except Pause as pause:
            if pause.details.get("digest") not in acting.announced:
                about = (str(pause.details.get(key, "")) for key in ("call_id", "tool"))
                await self._notify(run, _question(pause), *about)
            raise
        finally:
            _acting.reset(token)
            if acting.failure is not None:
                raise acting.failure

    async def _notify(self, run: Run, message: str, call_id: str, tool: str) -> None:
        about = {"message": message, "call_id": call_id, "tool": tool}
        await self._ask(run, self._at_notice, _input(run, HookEvent.NOTIFICATION, **about))

    async def _ask(self, run: Run, hooks: Iterable[Hook], given: HookInput) -> str | None:
        """Call the hooks until one blocks. Returns its reason, or None if none does."""
        for hook in hooks:
            result, reason = await ask(hook, given)
            about = {name: text for name in ("tool", "call_id") if (text := getattr(given, name))}
            how = {"event": given.event, "hook": hook.name, "result": result, "reason": reason}
            run.driver.record.note(run, EventType.HOOK, **how, **about)
            if result is HookResult.BLOCKED:
                return reason
            failed = result is HookResult.FAILED
            if failed and hook.block_on_failure and given.event in GUARDS:
                return f"{hook.name} failed, so nobody has judged this. {reason}"
        return None

    def _compare(self, tools: ToolRegistry) -> None:
        """Raise ValueError for a hook that misspells the tool which it should watch."""
        schemas = tools.to_api_schema()
        if self._compared is schemas:
            return
        names = tools.names()
        here = f"The tools here are: {', '.join(names)}."
        for hook in self.hooks:
            for pattern in hook.patterns:
                if meant := meant_by(pattern, names) or _longer(pattern, names):
                    raise ValueError(
                        f"Hook {hook.name!r} is for the tool {pattern!r}, which isn't here. Is it "
                        f"{meant!r} that is meant? {here}"
                    )
            if names and not any(map(hook.is_for, names)):
                warnings.warn(
                    f"Hook {hook.name!r} is for {hook.matcher!r}, so it is never called. {here}",
                    stacklevel=2,
                )
        self._compared = schemas

    def _study(self, tool: str) -> tuple[tuple[Hook, ...], tuple[Hook, ...]]:
        """The hooks before and after the calls of one tool."""
        before, after = HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE
        self._of_tool[tool] = found = self._on(before, tool), self._on(after, tool)
        return found


def _longer(pattern: str, names: Iterable[str]) -> str:
    """The tool that other programs call by the first word of its name, as Write for write_file."""
    words = {name.partition("_")[0].casefold(): name for name in names}
    known = "" if pattern in names else words.get(pattern.casefold(), "")
    return known


def _input(run: Run, event: HookEvent, **about: Any) -> HookInput:
    return HookInput(event, run.id, run.driver.cwd, **about)


def _unheard(run: Run) -> Sequence[Message]:
    """What the user said since somebody else spoke: no model has heard it. The first comes first.

    A message that was blocked is among them, if another was added after it.
    """
    messages = run.history.messages
    at = len(messages)
    while at and messages[at - 1]["role"] == "user" and "because" not in messages[at - 1]:
        at -= 1
    return messages[at:]


def _blocked(run: Run, call: Call, reason: str) -> Observation:
    # Whoever was asked before has answered, and it makes no difference any more.
    run.take_answer(call.call_id)
    seen = denied(call, RULE, f"A hook blocked it: {reason}")
    if call.call_id not in run.in_doubt:
        return seen
    text = f"It was started before; whether it took effect is unknown. Now: {seen.output}"
    return seen.replaced(output=text, outcome=Outcome.UNKNOWN)


def _ran_with(run: Run, call: Call) -> FrozenDict:
    """The arguments of a call, or those that a person gave it at the approval."""
    # Marked by the policy that let it through as it is.
    if call.allowed_by:
        return call.arguments
    for note in reversed(run.notes.get(EventType.APPROVAL, ())):
        if note["call_id"] == call.call_id:
            edited: FrozenDict | None = note["arguments"]
            return call.arguments if edited is None else edited
    return call.arguments


def _question(pause: Pause) -> str:
    """What a person has to decide, as far as it is an approval."""
    try:
        return str(ApprovalRequest(**pause.details))
    except TypeError:
        return f"The run is paused: {shown(pause.details):.1000}"
