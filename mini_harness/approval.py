"""Approval: somebody decides about one call, and exactly that call is what runs.

A request names a digest of the tool, its arguments, the call and what the person was shown. An
answer names the same digest, counts for that one call, and is recorded before the call runs. So
it survives a restart, and nothing else can ride on it.

An approver is asked with the request and answers ``request.approve()``, ``request.deny("why")``,
or None: nobody has decided yet. Then the run pauses. Answer with ``run.approve()`` or
``run.deny("why")`` and resume it. Whatever else an approver does means no.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from mini_harness.events import EventType
from mini_harness.frozen import FrozenDict, canonical, shown
from mini_harness.layer import Layer, Pause
from mini_harness.protocol import Observation, Outcome
from mini_harness.run import NotWaiting, Run, Status
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.call import Call, InvalidArguments, let_cancellation_pass
from mini_harness.visible import undisguised, visible


class ToolDenied(PermissionError):
    """A call wasn't allowed to run (SEEDS A07)."""

    def __init__(self, name: str, rule: str = "", reason: str = "") -> None:
        super().__init__(f"Tool not allowed: {name}")
        self.name = name
        self.rule = rule
        self.reason = reason


def denied(call: Call, rule: str, reason: str) -> Observation:
    """What the model is told about a call that was refused."""
    error = ToolDenied(call.name, rule, reason)
    text = f"{error}. {reason}" if reason else f"{error}."
    return Observation(call.call_id, call.name, text, Outcome.DENIED, error, {"rule": rule})


@dataclass(frozen=True)
class Approval:
    """The answer to one request. ``arguments`` are those to run instead of the proposed ones."""

    approved: bool
    digest: str
    arguments: Mapping[str, Any] | None = None
    remember: bool = False
    reason: str = ""
    by: str = "A person"

    def said_by(self, by: str) -> Approval:
        """The same answer, with the name of who gave it."""
        return replace(self, by=by)


@dataclass(frozen=True)
class ApprovalRequest:
    """What somebody is asked. ``str`` of it is the question, in which nothing can hide."""

    call_id: str
    tool: str
    arguments: FrozenDict
    digest: str
    """Names all of this: an answer with another digest answers another question."""
    rule: str
    reason: str
    preview: str = ""
    """What the call would change: for a file, the diff."""
    problem: str = ""
    """Why the last answer couldn't be taken."""
    asker: str = ""
    """Which of the harness's layers asks: each policy wants an answer of its own."""
    yes_or_no: bool = False
    """Whether nothing else can be said: no other arguments, and no yes for always."""

    @classmethod
    def of(cls, run: Run) -> ApprovalRequest:
        """What a paused run waits for. Raises NotWaiting if it waits for no approval."""
        if run.status is not Status.PAUSED or not run.pause or "digest" not in run.pause:
            raise NotWaiting(f"{run.id} isn't waiting for an approval: it is {run.status}.")
        return cls(**run.pause)

    def approve(
        self, arguments: Mapping[str, Any] | None = None, *, remember: bool = False
    ) -> Approval:
        """Yes: as proposed or with these arguments instead, and always in this run if so."""
        return Approval(True, self.digest, arguments, remember)

    def deny(self, reason: str = "") -> Approval:
        """No. The model is told the reason."""
        return Approval(False, self.digest, reason=reason)

    @property
    def always(self) -> str:
        """What ``remember`` would allow from then on, and nothing else. After an edit, these are
        the edited arguments."""
        if self.yes_or_no:
            return "this once: next time it is asked again"
        return f"{self.tool} with exactly these arguments, until this run ends"

    def __str__(self) -> str:
        lines = [f"May {visible(self.tool)} run?"]
        for name, value in self.arguments.items():
            text = value if isinstance(value, str) else canonical(value)
            lines.append(_field(visible(name), text))
        if self.preview:
            lines.append(_field("It would change", self.preview))
        lines.append(_field("Asked because", f"{self.reason} (rule {self.rule})"))
        if self.problem:
            lines.append(_field("Not done yet", self.problem))
        return "\n".join(lines)


def _field(name: str, text: str) -> str:
    """A bar before each line of a longer text: it can't pass for a line of the question."""
    shown_text = undisguised(text)
    if "\n" not in shown_text:
        return f"  {name}: {shown_text}"
    return "\n".join([f"  {name}:", *(f"    | {line}" for line in shown_text.split("\n"))])


Answer = Approval | None
Approver = Callable[[ApprovalRequest], Answer | Awaitable[Answer]]
"""Decides about a request at once, or when awaited. None: nobody has decided yet."""


def approve_all(request: ApprovalRequest) -> Approval:
    """The preset that says yes to whatever may be approved: for tests and headless runs."""
    return request.approve()


def deny_all(request: ApprovalRequest) -> Approval:
    """The preset that says no."""
    return request.deny("Nobody is here to approve it.")


class Asks(Layer):
    """A layer that asks a person. Each wants an answer of its own."""

    def asker(self, run: Run) -> str:
        """Its place among the layers: so it is known again after a restart."""
        return str(run.driver.layers.index(self))

    def was_answered(self, run: Run, call: Call) -> bool:
        """Whether a person answered this layer; or one that isn't among the layers any more."""
        others = {str(n) for n, each in enumerate(run.driver.layers) if isinstance(each, Asks)}
        others.discard(self.asker(run))
        return run.has_answer(call.call_id) and run.asked_by not in others


async def settle(
    run: Run,
    call: Call,
    request: ApprovalRequest,
    approver: Approver | None,
    patience: float | None,
    objection: Callable[[Call], str],
    answered: bool,
) -> Call | Observation:
    """The call as it was approved, or the observation of its denial. Raises Pause without either.

    ``patience`` is in seconds; after that, no answer is no. ``objection`` says why an edited call
    may not run, or nothing. ``answered`` is whether a person's answer that waits is for this asker.
    """
    recorded = _recorded(run, request)
    answer = (_given(run, request) if answered else None) or recorded
    if answer is None:
        answer = await _heard(run, call, request, approver, patience)
    ready = _edited(call, request, answer, objection)
    if answer is not recorded:
        _note(run, request, answer, call, ready)
    if answer.approved:
        return ready
    return denied(call, request.rule, f"{answer.by} said no. {answer.reason}".strip())


def remembered(run: Run, call: Call, rule: str, asker: str) -> str | None:
    """The id of the call with which somebody allowed this tool, this rule and exactly these
    arguments for the rest of the run; None if nobody did."""
    note = run.named.get((EventType.APPROVAL, _scope(run, call, rule, asker)))
    return None if note is None else str(note["call_id"])


def _scope(run: Run, call: Call, rule: str, asker: str) -> str:
    """Names what ``remember`` allows: this tool, these arguments, this folder, as to this rule of
    this policy."""
    about = canonical((call.digest, str(run.driver.cwd), rule, asker))
    return hashlib.sha256(about.encode()).hexdigest()


def request_for(run: Run, call: Call, rule: str, reason: str, asker: str) -> ApprovalRequest:
    """The question about a call, with what the tool says it would change.

    Secrets of the environment don't show. Nothing else is hidden from who has to decide.
    """
    harness = run.driver
    context = ToolExecutionContext(
        harness.cwd, clock=harness.clock, call_id=call.call_id, run=run, harness=harness
    )
    try:
        preview = str(call.tool.preview(call.parsed, context))
    except Exception as error:  # noqa: BLE001 - the person reads it, and decides
        preview = f"{call.name} couldn't say what it would change: {shown(error)}"
    about = (run.id, call.call_id, call.digest, str(harness.cwd), rule, reason, preview, asker)
    digest = hashlib.sha256(canonical(about).encode()).hexdigest()
    arguments, preview = map(harness.record.redactor.for_people, (call.arguments, preview))
    named = (call.call_id, call.name, arguments, digest, rule, reason)
    return ApprovalRequest(*named, preview, asker=asker)


def _recorded(run: Run, request: ApprovalRequest) -> Approval | None:
    note = run.named.get((EventType.APPROVAL, request.digest))
    if note is None:
        return None
    return Approval(**{field.name: note[field.name] for field in fields(Approval)})


def _given(run: Run, request: ApprovalRequest) -> Approval | None:
    """What a person said while the run was paused, if it answers this very request."""
    given = run.take_answer(request.call_id)
    if given is None:
        return None
    answer = Approval(**given)
    if answer.approved and answer.digest != request.digest:
        raise _changed(request)
    return answer


def _changed(now: ApprovalRequest) -> Pause:
    """What was decided about isn't what would happen now."""
    problem = "Since you were asked, what the call would do has changed. Look again."
    return Pause(**vars(replace(now, problem=problem)))


async def _heard(
    run: Run,
    call: Call,
    request: ApprovalRequest,
    approver: Approver | None,
    patience: float | None,
) -> Approval:
    """The approver's answer. Raises Pause if there is none, or if it is about something else by
    now: others may have acted while somebody thought about it."""
    answer = None if approver is None else await _asked(request, approver, patience)
    if answer is None:
        raise Pause(**vars(request))
    now = request_for(run, call, request.rule, request.reason, request.asker)
    if answer.approved and now.digest != request.digest:
        raise _changed(now)
    return answer


async def _asked(
    request: ApprovalRequest, approver: Approver, patience: float | None
) -> Approval | None:
    """What the approver says. Whatever isn't an answer to this very request is a no."""
    by = getattr(approver, "__name__", type(approver).__name__)
    try:
        answer: Any = approver(request)
        if hasattr(answer, "__await__"):
            answer = await _in_time(answer, patience)
    # Could not judge is never yes, and the reason says what happened.
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001
        let_cancellation_pass(error)
        return request.deny(f"The approver failed: {shown(error)}").said_by(by)
    if answer is None:
        return None
    if not _answers(answer, request):
        text = (
            f"The approver didn't answer this request: {shown(answer):.200}. "
            'Its answer must be request.approve() or request.deny("why").'
        )
        return request.deny(text).said_by(by)
    said: Approval = answer
    return said.said_by(by)


def _answers(answer: object, request: ApprovalRequest) -> bool:
    """Whether this is a yes or a no to this request. Truth is not enough: "no" is true."""
    return (
        type(answer) is Approval
        and answer.digest == request.digest
        and isinstance(answer.approved, bool)
        and isinstance(answer.remember, bool)
        and isinstance(answer.reason, str)
        and (answer.approved or not answer.remember)
    )


async def _in_time(answer: Awaitable[Any], patience: float | None) -> Any:
    """People live on real time, whatever the clock of the harness is."""
    if patience is None:
        return await answer
    asked = asyncio.ensure_future(answer)
    try:
        await asyncio.wait({asked}, timeout=patience)
        if asked.done():
            return asked.result()
        raise TimeoutError(f"Nobody answered within {patience:g} seconds.")
    finally:
        asked.cancel()


def _edited(
    call: Call, request: ApprovalRequest, answer: Approval, objection: Callable[[Call], str]
) -> Call:
    """The call with the arguments that were approved. What doesn't fit goes back to the person."""
    if answer.arguments is None or not answer.approved:
        return call
    try:
        ready = call.with_arguments(answer.arguments)
        if ready.digest == call.digest:
            return call
        problem = objection(ready)
    except InvalidArguments as error:
        problem = str(error)
    if problem:
        raise Pause(**vars(replace(request, problem=f"Your arguments can't run. {problem}")))
    ready.preface = f"The arguments were changed before it ran: {canonical(ready.arguments)}"
    return ready


def _note(run: Run, request: ApprovalRequest, answer: Approval, call: Call, ready: Call) -> None:
    edited = None if ready is call else ready.arguments
    said = {**vars(answer), "arguments": edited}
    about = {"call_id": request.call_id, "tool": request.tool, "rule": request.rule}
    if answer.remember:
        about["scope"] = _scope(run, ready, request.rule, request.asker)
    run.driver.record.note(run, EventType.APPROVAL, **about, **said)
