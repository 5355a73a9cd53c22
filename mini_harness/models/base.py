"""What a model is to the harness: something that is asked for its next turn."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, ClassVar, Protocol

from mini_harness.protocol import Message
from mini_harness.tools.base import ToolSchema


class Model(Protocol):
    """One method. Changing the vendor changes nothing else (SEEDS A05, A19)."""

    def decide(
        self, history: Sequence[Message], tools: Sequence[ToolSchema]
    ) -> Any | Awaitable[Any]:
        """Return the next Decision, directly or awaited.

        That is a ToolCall, a Final, their wire form as a dict, a list of calls, or a Turn. The
        harness checks it. What this method raises ends the run as failed.
        """


def checked(model: Model) -> Model:
    """The model itself. Raises TypeError for what can't be asked for a turn."""
    if not callable(getattr(model, "decide", None)) or isinstance(model, type):
        raise TypeError(f"{model!r} isn't a model: it has no method decide(history, tools).")
    return model


class ModelError(Exception):
    """A model or its service failed. Adapters raise subclasses; the text never holds a key."""

    transient: ClassVar[bool] = False
    """Whether the same request may succeed a little later."""
