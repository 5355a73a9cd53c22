"""Approval with the mouse or the keyboard: a panel for a paused run, and a question in a cell."""

from __future__ import annotations

import asyncio
import contextvars
import html
import json
from collections.abc import Callable
from functools import partial

import ipywidgets
from IPython.display import display

from mini_harness.approval import Approval, ApprovalRequest
from mini_harness.frozen import FrozenDict, NotJson, canonical, parse_object, shown
from mini_harness.loop import Harness
from mini_harness.run import NotWaiting, Run
from mini_harness.views.waiting import NO_BUTTONS, Answer, my_turn, somebody_is_here
from mini_harness.visible import shortened, visible, visible_lines

PAUSE_TO_READ = 0.7
"""Seconds until a question that follows another can be answered. The second click of a double click
was meant for the one before."""

_WIDE = {"width": "95%"}
_TEXT = "white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.4; margin: 0"
# What a static viewer's filter leaves of a style.
_CARD = "white-space: pre-wrap; overflow: auto"


class ApprovalForm:
    """The widgets of a question. Gives every answer to ``answered``, once a question.

    A click may come on another thread than the kernel's own. What was answered stays to be read.
    """

    def __init__(self, answered: Callable[[Approval], None]) -> None:
        self._answered = answered
        self._given: list[str] = []
        self._answers = ipywidgets.HTML()
        self._request: ApprovalRequest | None = None
        self._proposed = ""
        self._question = ipywidgets.HTML()
        self._says = ipywidgets.HTML()
        self.arguments = ipywidgets.Textarea(description="Arguments", rows=4, layout=_WIDE)
        self.reason = ipywidgets.Text(
            description="Reason", placeholder="Why not? The model reads it.", layout=_WIDE
        )
        self.approve = self._button("Approve", "success", lambda request: request.approve())
        self.edited = self._button("Approve edited", "", self._edited)
        self.always = self._button("Always", "", lambda request: request.approve(remember=True))
        self.deny = self._button("Deny", "danger", lambda r: r.deny(self.reason.value))
        self.buttons = [self.approve, self.edited, self.always, self.deny]
        self._answer = ipywidgets.VBox([self.arguments, self.reason, ipywidgets.HBox(self.buttons)])
        self.box = ipywidgets.VBox([self._answers, self._question, self._answer, self._says])

    def ask(self, request: ApprovalRequest) -> None:
        """Show a question and wait for its answer. An edit that didn't fit stays to be mended."""
        proposed = _editable(request.arguments)
        if request.problem:
            # The last answer couldn't be taken.
            del self._given[-1:]
            self._show_given()
        if not (request.problem and self._proposed == proposed):
            self.arguments.value, self.reason.value = proposed, ""
        self._question.value = question_card(request)
        self.always.tooltip = f"Always: {visible(request.always)}"
        follows, self._request, self._proposed = bool(self._proposed), request, proposed
        if follows:
            asyncio.get_running_loop().call_later(PAUSE_TO_READ, self._open, request)
        else:
            self._open(request)

    def _show_given(self) -> None:
        self._answers.value = f'<div style="{_TEXT}">{_escaped(chr(10).join(self._given))}</div>'

    def _open(self, request: ApprovalRequest) -> None:
        if self._request is request:
            self._enable(True)
            self._answer.layout.display = ""
            for widget in (self.arguments, self.edited, self.always):
                widget.layout.display = "none" if request.yes_or_no else ""
            more = "" if request.yes_or_no else f" <i>Always</i> means: {_escaped(request.always)}."
            self.say(f"Waiting for you.{more}")

    def close(self, text: str) -> None:
        """There is nothing to be answered. ``text`` says why."""
        self._request = None
        self._enable(False)
        self._question.value, self._answer.layout.display = "", "none"
        self.say(_escaped(text))

    def say(self, markup: str) -> None:
        self._says.value = f'<div role="status" style="{_TEXT}">{markup}</div>'

    def _button(
        self, name: str, style: str, answer: Callable[[ApprovalRequest], Approval]
    ) -> ipywidgets.Button:
        button = ipywidgets.Button(description=name, button_style=style, tooltip=name)
        button.on_click(lambda _: self._click(button, answer))
        return button

    def _click(
        self, button: ipywidgets.Button, answer: Callable[[ApprovalRequest], Approval]
    ) -> None:
        request = None if button.disabled else self._request
        if request is None:
            return
        self._request = None
        changed = self.arguments.value != self._proposed
        if changed and button in (self.approve, self.always):
            self._request = request
            return self.say(
                "You changed the arguments. Click <b>Approve edited</b>, or put them back."
            )
        try:
            approval = answer(request)
        except NotJson as error:
            self._request = request
            return self.say(f"The arguments can't be read. {_escaped(str(error))}")
        self._enable(False)
        self._given.append(_told(request, approval))
        self._show_given()
        self.say("")
        return self._answered(approval)

    def _edited(self, request: ApprovalRequest) -> Approval:
        return request.approve(parse_object(self.arguments.value))

    def _enable(self, enabled: bool) -> None:
        for widget in (self.arguments, self.reason, *self.buttons):
            widget.disabled = not enabled


class ApprovalPanel:
    """The question that a paused run waits for, with buttons. The click itself resumes the run.

    The panel goes on showing the run: its next question, or how it ended. What the run prints
    appears below the panel. Where no widget lives, it is a card that says what is asked.
    """

    def __init__(self, harness: Harness, run: Run) -> None:
        self._harness = harness
        self._run = run
        self._form = ApprovalForm(self._clicked)
        self._stop = ipywidgets.Button(description="Stop", tooltip="Stop the run")
        self._stop.on_click(lambda _: self._on_loop(self._cancel))
        self._stop.layout.display = "none"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[None] | None = None
        self.box = ipywidgets.VBox([self._form.box, self._stop])
        self._show()

    def __repr__(self) -> str:
        return f"Approval: {self._run}"

    def _ipython_display_(self) -> None:
        # The resumed run belongs to the loop and to the output of the cell that shows the panel.
        self._context = contextvars.copy_context()
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None
        live = self.box._repr_mimebundle_() or {}
        display({**live, "text/html": self._card(), "text/plain": repr(self)}, raw=True)

    def _card(self) -> str:
        try:
            return question_card(ApprovalRequest.of(self._run))
        except NotWaiting:
            return f"<p>{_escaped(str(self._run))}</p>"

    def _show(self) -> None:
        try:
            self._form.ask(ApprovalRequest.of(self._run))
        except NotWaiting:
            self._form.close(str(self._run))

    def _clicked(self, approval: Approval) -> None:
        self._on_loop(partial(self._take, approval))

    def _on_loop(self, what: Callable[[], None]) -> None:
        """Do it where the cell would do it: on its loop, with its output."""
        if self._loop is None:
            return self._form.close("No event loop runs here. Answer with run.approve().")
        self._loop.call_soon_threadsafe(what, context=self._context)
        return None

    def _take(self, approval: Approval) -> None:
        try:
            if ApprovalRequest.of(self._run).digest != approval.digest:
                raise NotWaiting("This question is over. Here is the one that is open now.")
            if approval.approved:
                self._run.approve(approval.arguments, remember=approval.remember)
            else:
                self._run.deny(approval.reason)
        except NotWaiting as error:
            self._show()
            return self._form.say(f"Nothing was done. {_escaped(str(error))}")
        self._stop.layout.display = ""
        self._form.say("Running …")
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._resume(), context=self._context)
        return None

    async def _resume(self) -> None:
        try:
            await self._harness.resume(self._run)
        except asyncio.CancelledError:
            self._form.close(f"Stopped. {self._run}")
        except Exception as error:  # noqa: BLE001 - no cell waits for it, so the panel shows it
            self._form.close(f"{type(error).__name__}: {shown(error, str)}")
        else:
            self._show()
        finally:
            self._stop.layout.display = "none"

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


async def ask_here(request: ApprovalRequest) -> Approval | None:
    """An approver that asks in the cell that is running, and waits: ``Policy(approver=ask_here)``.

    Where buttons don't work it asks with ``input()``. Where no person is, nobody has decided: the
    run pauses.
    """
    if not somebody_is_here():
        return None
    async with my_turn():
        return await _asked(request)


async def _asked(request: ApprovalRequest) -> Approval:
    answer: Answer[Approval] = Answer()
    form = ApprovalForm(answer.give)
    form.ask(request)
    said = "Stopped."
    try:
        if not await answer.shown(form.box, form.approve):
            said = NO_BUTTONS
            return _typed(request)
        given = await answer.waited_for()
        said = ""
        return given
    finally:
        form.close(said)


def question_card(request: ApprovalRequest) -> str:
    """The question as HTML in which nothing can hide."""
    return f'<pre style="{_CARD}">{html.escape(str(request))}</pre>'


def _editable(arguments: FrozenDict) -> str:
    """The arguments as JSON on several lines, in which what can't be seen is an escape."""
    text = json.dumps(arguments, indent=2, ensure_ascii=False)
    return "".join(c if c == "\n" or visible(c) == c else json.dumps(c)[1:-1] for c in text)


def _told(request: ApprovalRequest, approval: Approval) -> str:
    """An answer in a line."""
    arguments = request.arguments if approval.arguments is None else approval.arguments
    call = f"{request.tool} {shortened(canonical(arguments), 200)}"
    if not approval.approved:
        return f"You denied {call}. {approval.reason}".strip()
    return f"You {'always allowed' if approval.remember else 'approved'} {call}"


def _escaped(text: str) -> str:
    return html.escape(visible_lines(text))


def _typed(request: ApprovalRequest) -> Approval:
    print(request)  # noqa: T201
    reply = input("Type yes, or why not: ").strip()
    return request.approve() if reply.casefold() in ("y", "yes") else request.deny(reply)
