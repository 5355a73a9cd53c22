"""What goes around the loop: layers that may change what happens, and the ways they interrupt it.

A layer wraps one or more of three seams, like the skins of an onion. It does its part and calls
the next one in:

    class Shout(Layer):
        async def finish(self, run, final, next):
            return str(await next(run, final)).upper()
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from mini_harness.protocol import Final, Message, Observation, Turn, UnknownDecision, usage_of
from mini_harness.run import Run, StopReason
from mini_harness.tools.base import ToolSchema
from mini_harness.tools.call import Call


@dataclass(slots=True)
class View:
    """What the model gets to see. A layer may shorten it; the record stays whole."""

    messages: Sequence[Message]
    tools: Sequence[ToolSchema]


@dataclass(frozen=True)
class Feedback:
    """What ``finish`` returns instead of an output: the answer goes back with this reason."""

    reason: str


Proposal = Turn | Final | UnknownDecision
Decide = Callable[[Run, View], Coroutine[Any, Any, Proposal]]
Act = Callable[[Run, Call], Coroutine[Any, Any, Observation]]
Finish = Callable[[Run, Final], Coroutine[Any, Any, Any]]


class Layer:
    """Override the seams you need. The others cost nothing."""

    async def decide(self, run: Run, view: View, next: Decide) -> Proposal:
        """Ask the model for its next turn."""
        return await next(run, view)

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        """Carry out one tool call. Returning without ``next`` means that it doesn't run."""
        return await next(run, call)

    async def finish(self, run: Run, final: Final, next: Finish) -> Any:
        """Accept the final answer: return the output, or Feedback to send it back."""
        return await next(run, final)

    if not TYPE_CHECKING:  # A type checker says it by itself.

        def __iter__(self) -> NoReturn:
            """Raises TypeError: whoever gives one layer for a list of them is told so."""
            raise TypeError(f"Give the layers as a list: [{self!r}].")


class Interrupt(Exception):
    """Raised by a layer, obeyed by the loop."""


class Stop(Interrupt):
    """End the run. Calls that haven't run are observed as "not run".

    ``unwrap()`` raises ``error`` if there is one.
    """

    def __init__(
        self, reason: StopReason, error: BaseException | None = None, **numbers: Any
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error
        self.numbers = numbers


class Failed(Stop):
    """End the run because of an error. What the failed turn cost all the same is counted."""

    def __init__(self, error: BaseException) -> None:
        usage = usage_of(error)
        spent = {} if usage is None else {"usage": asdict(usage)}
        super().__init__(StopReason.ERROR, error, **spent)


class Pause(Interrupt):
    """Leave the run as it is until somebody resumes it. Pending calls stay pending."""

    def __init__(self, **details: Any) -> None:
        super().__init__("paused")
        self.details = details


_Inner = TypeVar("_Inner", bound=Callable[..., Any])


def chain(layers: Sequence[Layer], seam: str, innermost: _Inner) -> _Inner:
    """Wrap one seam in all layers that override it. The first layer becomes the outermost.

    Raises TypeError for what isn't a layer: a guard that isn't there must be noticed.
    """
    wrapped: Any = innermost
    for layer in reversed(layers):
        if not isinstance(layer, Layer):
            raise TypeError(f"{layer!r} isn't a layer: give an instance of a subclass of Layer.")
        method = getattr(layer, seam)
        if getattr(method, "__func__", method) is not getattr(Layer, seam):
            wrapped = _around(method, wrapped)
    result: _Inner = wrapped
    return result


def _around(method: Callable[..., Any], inner: Any) -> Callable[..., Any]:
    return lambda run, subject: method(run, subject, inner)
