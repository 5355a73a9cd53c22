"""A question of the model's, answered in the cell that is running."""

from __future__ import annotations

import html
from collections.abc import Callable

import ipywidgets

from mini_harness.views.waiting import NO_BUTTONS, Answer, my_turn, somebody_is_here
from mini_harness.visible import visible, visible_lines

_CARD = "white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.4; margin: 0"
_WIDE = {"width": "95%"}


class QuestionForm:
    """The widgets of one question: a button a choice, and a field for any other answer."""

    def __init__(
        self, question: str, choices: tuple[str, ...], answered: Callable[[str], None]
    ) -> None:
        self._answered = answered
        self._open = True
        asked = f"The model asks:\n{visible_lines(question)}"
        self.card = ipywidgets.HTML(f'<pre style="{_CARD}">{html.escape(asked)}</pre>')
        self.choices = [self._button(visible(each), each) for each in choices]
        self.text = ipywidgets.Text(description="Answer", layout=_WIDE)
        self.send = ipywidgets.Button(description="Send", button_style="success", tooltip="Send")
        self.send.on_click(lambda _: self._give(self.text.value))
        self.says = ipywidgets.HTML()
        self._answers = ipywidgets.VBox([ipywidgets.HBox(self.choices), self.text, self.send])
        self.box = ipywidgets.VBox([self.card, self._answers, self.says])

    def close(self, said: str) -> None:
        """Nothing can be answered any more. ``said`` stays to be read."""
        self._open = False
        for widget in (*self.choices, self.text, self.send):
            widget.disabled = True
        self._answers.layout.display = "none"
        self.says.value = f'<div role="status" style="{_CARD}">{html.escape(said)}</div>'

    def _button(self, label: str, choice: str) -> ipywidgets.Button:
        button = ipywidgets.Button(description=label, tooltip=label, layout={"width": "auto"})
        button.on_click(lambda _: self._give(choice))
        return button

    def _give(self, answer: str) -> None:
        if self._open:
            self.close(f"You answered: {visible_lines(answer)}")
            self._answered(answer)


async def answer_here(question: str, choices: tuple[str, ...]) -> str | None:
    """An asker for ``AskUser`` that asks in the cell that is running, and waits.

    Where buttons don't work it asks with ``input()``. None where no person is.
    """
    if not somebody_is_here():
        return None
    async with my_turn():
        return await _asked(question, choices)


async def _asked(question: str, choices: tuple[str, ...]) -> str:
    answer: Answer[str] = Answer()
    form = QuestionForm(question, choices, answer.give)
    try:
        if await answer.shown(form.box, form.send):
            return await answer.waited_for()
        form.close(NO_BUTTONS)
        return _typed(question, choices)
    finally:
        if form.send.disabled is False:
            form.close("Stopped.")


def _typed(question: str, choices: tuple[str, ...]) -> str:
    print(f"The model asks:\n{visible_lines(question)}")  # noqa: T201
    for each in choices:
        print(f"- {visible(each)}")  # noqa: T201
    return input("Your answer: ")
