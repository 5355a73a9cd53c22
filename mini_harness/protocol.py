"""What a model may say, what it is told, and the history that pairs the two.

A model turn is a Decision: a tool call or a final answer, on the wire exactly
``{"type": "tool", "name": ..., "arguments": ...}`` or ``{"type": "final", "output": ...}``
(SEEDS A04). Anything else is an UnknownDecision: recorded, shown to the model, never guessed at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from mini_harness.frozen import FrozenDict, NotJson, freeze, shown

Message = Mapping[str, Any]
"""One entry of the history: a frozen mapping with a ``role`` of user, assistant or tool."""

_CHECKED = ConfigDict(revalidate_instances="always")
"""An instance is checked like its wire form: an adapter may have filled it with anything."""


@dataclass(slots=True)
class Usage:
    """What one model turn cost, in tokens. Input counts cached tokens too."""

    __pydantic_config__ = _CHECKED
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(sum, zip(astuple(self), astuple(other), strict=True)))


@dataclass(slots=True)
class ToolCall:
    """The proposal to run one tool. ``arguments`` should be an object; the harness checks that.

    A ``defect`` is the reason why an adapter already knows that this call must not run, for
    instance that the output limit cut it off. The model is told, and nothing runs.
    """

    __pydantic_config__ = _CHECKED
    name: str
    arguments: Any
    call_id: str = ""
    thought: str | None = None
    usage: Usage | None = None
    defect: str | None = None
    type: Literal["tool"] = "tool"

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> ToolCall:
        """The call that ``to_wire`` wrote."""
        call_id, defect = wire["call_id"], wire.get("defect")
        return cls(wire["name"], wire["arguments"], call_id, None, None, defect)

    def to_wire(self) -> FrozenDict:
        """What the record and the history hold of a call. Raises NotJson."""
        arguments = self.arguments
        if type(arguments) is not FrozenDict:
            arguments = freeze(arguments)
        call_id, defect = self.call_id, self.defect
        wire = FrozenDict(type="tool", name=self.name, arguments=arguments, call_id=call_id)
        return FrozenDict(wire, defect=defect) if defect else wire


@dataclass(slots=True)
class Final:
    """The final answer: any JSON value; ``0``, ``""`` and ``False`` are answers too.

    ``note`` says what is unusual about it ("cut off by the output limit"); ``raw`` is the
    adapter's own form of the turn, given back to it unchanged.
    """

    __pydantic_config__ = _CHECKED
    output: Any
    thought: str | None = None
    usage: Usage | None = None
    note: str | None = None
    raw: Any = None
    type: Literal["final"] = "final"


@dataclass(slots=True)
class Turn:
    """One or several tool calls that a model made in one turn, with what came beside them."""

    __pydantic_config__ = _CHECKED
    calls: tuple[ToolCall, ...]
    thought: str | None = None
    usage: Usage | None = None
    raw: Any = None


Decision = Annotated[ToolCall | Final, Field(discriminator="type")]
"""What a model may say. On the wire the type must be named, and other keys are refused."""

_DECISION: TypeAdapter[ToolCall | Final] = TypeAdapter(Decision)
_read = _DECISION.validator.validate_python
_DECISIONS: TypeAdapter[list[ToolCall | Final]] = TypeAdapter(list[Decision])
_TURN: TypeAdapter[Turn] = TypeAdapter(Turn)


_USAGE: TypeAdapter[Usage] = TypeAdapter(Usage)


def usage_of(source: object) -> Usage | None:
    """What a turn or an error says it cost, if it says so in a form that can be counted."""
    if not isinstance(source, (Turn, Final, ToolCall, BaseException)):
        return None
    try:
        return _USAGE.validate_python(getattr(source, "usage", None), strict=True)
    except ValidationError:
        return None


class UnknownDecision(ValueError):
    """The model said something that is neither a tool call nor a final answer (SEEDS A14)."""

    def __init__(self, said: object, reason: str) -> None:
        super().__init__("Unknown decision type")
        self.usage = usage_of(said)
        self.said = shown(said)[:500]
        self.reason = reason


class UnknownTool(KeyError):
    """A tool was called that nobody registered (SEEDS A15)."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown tool: {name}")
        self.name = name


def read_turn(reply: object) -> Turn | Final | UnknownDecision:
    """Make a turn of whatever a model returned: a Decision, its wire form, a list, or a Turn.

    The turn shares nothing changeable with the model that made it.
    """
    try:
        if isinstance(reply, Turn):
            turn = _TURN.validate_python(reply)
            return _turn(turn.calls, turn)
        if isinstance(reply, (list, tuple)):
            return _listed(_DECISIONS.validate_python(reply, extra="forbid"))
        decision: ToolCall | Final = _read(reply, extra="forbid")
        if isinstance(decision, ToolCall):
            decision.arguments = freeze(decision.arguments)
            return Turn((decision,), decision.thought, decision.usage)
        decision.output, decision.raw = freeze(decision.output), freeze(decision.raw)
        return decision
    except ValidationError as error:
        return UnknownDecision(reply, _fault(reply, error))
    except NotJson as error:
        return UnknownDecision(reply, str(error))


def _fault(reply: object, error: ValidationError) -> str:
    if not isinstance(reply, (Mapping, list, tuple, ToolCall, Final, Turn)):
        return f"a {type(reply).__name__}, not an object"
    found = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in found["loc"])
    return f"{place}: {found['msg']}" if place else found["msg"]


def _listed(decisions: Sequence[ToolCall | Final]) -> Turn:
    calls = [decision for decision in decisions if isinstance(decision, ToolCall)]
    if len(calls) < len(decisions):
        raise NotJson("A final answer can't stand beside other decisions.")
    return _turn(calls, Turn(()))


def _turn(calls: Sequence[ToolCall], beside: Turn) -> Turn:
    if not calls:
        raise NotJson("A turn without a call says nothing.")
    for call in calls:
        call.arguments = freeze(call.arguments)
    parts: list[Turn | ToolCall] = [beside, *calls]
    thoughts = "\n".join(part.thought for part in parts if part.thought)
    spent = [part.usage for part in parts if part.usage is not None]
    usage = sum(spent, Usage()) if spent else None
    return Turn(tuple(calls), thoughts or None, usage, freeze(beside.raw))


class Outcome(StrEnum):
    """How a tool call ended. Only OK is a success."""

    OK = "ok"
    ERROR = "error"
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    DENIED = "denied"
    TIMED_OUT = "timed_out"
    NOT_RUN = "not_run"
    UNKNOWN = "unknown"
    """It started, and nobody knows whether it took effect."""


class Observation(NamedTuple):
    """What the model is told about one call. Every ``call_id`` gets exactly one.

    It is recorded the moment it exists. A layer that wants another text returns another
    observation, for instance ``seen.replaced(output=...)``.
    """

    call_id: str
    tool: str
    output: str
    outcome: Outcome = Outcome.OK
    error: BaseException | None = None
    metadata: Mapping[str, Any] = FrozenDict()

    def replaced(self, **changes: Any) -> Observation:
        """The same observation with some of its fields changed."""
        return self._replace(**changes)

    @property
    def is_error(self) -> bool:
        return self.outcome is not Outcome.OK
