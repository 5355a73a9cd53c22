"""The toggle between the written-down model and a real one."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

import ipywidgets
from IPython.display import display

from mini_harness.clock import Clock, RealClock, VirtualClock
from mini_harness.models.base import Model
from mini_harness.models.mode import Mode, ModeError, choose_mode
from mini_harness.models.scripted import ScriptedModel


class ModeToggle:
    """Offline or real: shown as buttons, as a card where no widget lives, and as one line of text.

    Ask it for a model and a clock; switching needs no restart.
    """

    def __init__(self, mode: Mode | None = None) -> None:
        self.mode = mode or choose_mode()
        self._buttons = ipywidgets.ToggleButtons(
            options=["offline", "real"], value=self.mode.name, description="Model"
        )
        self._says = ipywidgets.HTML(self._sentence())
        self._buttons.observe(self._switched, names="value")
        self._box = ipywidgets.VBox([self._buttons, self._says])

    def model(self, turns: Iterable[Any]) -> Model:
        """The model in force: offline, the one that plays these turns; else the real one."""
        if self.mode.name == "offline":
            return ScriptedModel(turns)
        from mini_harness.models.anthropic import AnthropicModel

        return AnthropicModel(self.mode.model_id, api_key=self.mode.api_key)

    def clock(self) -> Clock:
        """The clock that goes with it: offline it is virtual, so that runs compare."""
        return VirtualClock() if self.mode.name == "offline" else RealClock()

    def _switched(self, change: dict[str, Any]) -> None:
        if change["new"] == self.mode.name:
            return
        try:
            self.mode = choose_mode(change["new"])
            says = self._sentence()
        except ModeError as error:
            says = html.escape(str(error))
        # Where the switch couldn't be made, the buttons go back to what is in force.
        self._buttons.value = self.mode.name
        self._says.value = says

    def _sentence(self) -> str:
        return html.escape(str(self.mode))

    def __repr__(self) -> str:
        return f"Model: {self.mode}"

    def _ipython_display_(self) -> None:
        card = f"<p><b>Model:</b> {self._sentence()}</p>"
        live = self._box._repr_mimebundle_() or {}
        display({**live, "text/html": card, "text/plain": repr(self)}, raw=True)
