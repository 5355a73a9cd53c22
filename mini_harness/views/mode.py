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
    """Offline or real: a box to tick, a card where no widget lives, and one line of text.

    A box, since keyboards and screen readers know one, and it keeps the focus when it springs back.
    Ask it for a model and a clock; switching needs no restart.
    """

    def __init__(self, mode: Mode | None = None) -> None:
        self.mode = mode or choose_mode()
        self._real = ipywidgets.Checkbox(
            self._is_real(), description="use a real model", indent=False
        )
        self._says = ipywidgets.HTML(self._line())
        self._real.observe(self._switched, names="value")
        self._both = ipywidgets.VBox([self._real, self._says])

    def model(self, turns: Iterable[Any]) -> Model:
        """The model in force: offline, the one that plays these turns; else the real one."""
        if not self._is_real():
            return ScriptedModel(turns)
        from mini_harness.models.anthropic import AnthropicModel

        return AnthropicModel(self.mode.model_id, api_key=self.mode.api_key)

    def clock(self) -> Clock:
        """The clock that goes with it: offline it is virtual, so that runs compare."""
        return RealClock() if self._is_real() else VirtualClock()

    def _switched(self, change: dict[str, Any]) -> None:
        if change["new"] == self._is_real():
            return
        try:
            self.mode = choose_mode("real" if change["new"] else "offline")
            says = self._line()
        except ModeError as error:
            says = html.escape(str(error))
        # Where the switch couldn't be made, the box goes back to what is in force.
        self._real.value = self._is_real()
        self._says.value = says

    def _is_real(self) -> bool:
        return self.mode.name == "real"

    def _line(self) -> str:
        return f"<b>Model:</b> {html.escape(str(self.mode))}"

    def __repr__(self) -> str:
        return f"Model: {self.mode}"

    def _ipython_display_(self) -> None:
        live = self._both._repr_mimebundle_() or {}
        display({**live, "text/html": f"<p>{self._line()}</p>", "text/plain": repr(self)}, raw=True)
