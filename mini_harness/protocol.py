"""What a model may say, what it is told, and the history that pairs the two.

A model turn is a Decision: a tool call or a final answer, on the wire exactly
``{"type": "tool", "name": ..., "arguments": ...}`` or ``{"type": "final", "output": ...}``
(SEEDS A04). Anything else is an UnknownDecision: recorded, shown to the model, never guessed at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, overload

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from mini_harness.frozen import FrozenDict, NotJson, canonical, freeze, shown

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

    def frozen(self) -> ToolCall:
        """A copy that shares nothing changeable with this one. Raises NotJson."""
        return ToolCall(self.name, freeze(self.arguments), self.call_id, defect=self.defect)

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> ToolCall:
        """The call that ``to_wire`` wrote."""
        return cls(wire["name"], wire["arguments"], wire["call_id"], defect=wire.get("defect"))

    def to_wire(self) -> FrozenDict:
        """What the record and the history hold of a call. Raises NotJson."""
        arguments = freeze(self.arguments)
        wire = FrozenDict(type="tool", name=self.name, arguments=arguments, call_id=self.call_id)
        return FrozenDict(wire, defect=self.defect) if self.defect else wire


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


class UnknownDecision(ValueError):
    """The model said something that is neither a tool call nor a final answer (SEEDS A14)."""

    def __init__(self, said: object, reason: str) -> None:
        super().__init__("Unknown decision type")
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
        decision = _read(reply, extra="forbid")
        if isinstance(decision, ToolCall):
            return Turn((decision.frozen(),), decision.thought, decision.usage)
        final: Final = replace(decision, output=freeze(decision.output), raw=freeze(decision.raw))
        return final
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
    thoughts = "\n".join(call.thought for call in calls if call.thought)
    spent = [call.usage for call in calls if call.usage]
    usage = sum(spent, Usage()) if spent else None
    return _turn(calls, Turn((), thoughts or None, usage))


def _turn(calls: Sequence[ToolCall], beside: Turn) -> Turn:
    if not calls:
        raise NotJson("A turn without a call says nothing.")
    copies = [call.frozen() for call in calls]
    return Turn(tuple(copies), beside.thought, beside.usage, freeze(beside.raw))


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
    observation, for instance by ``seen._replace(output=...)``.
    """

    call_id: str
    tool: str
    output: str
    outcome: Outcome = Outcome.OK
    error: BaseException | None = None
    metadata: Mapping[str, Any] = FrozenDict()

    @property
    def is_error(self) -> bool:
        return self.outcome is not Outcome.OK


class HistoryError(RuntimeError):
    """A writer tried to break the pairing of calls and observations."""


class Messages(Sequence[Message]):
    """A read-only window on the messages of a history. It costs nothing to hand out."""

    __slots__ = ("_items",)

    def __init__(self, items: list[Message]) -> None:
        self._items = items

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._items)


def _mark_twins(calls: Sequence[ToolCall], given: Sequence[str]) -> None:
    seen: dict[tuple[str, str, str], str] = {}
    for call, call_id in zip(calls, given, strict=True):
        # As text: in JSON, unlike in Python, 1 isn't true.
        key = (call_id, call.name, canonical(call.arguments))
        if call_id.strip() and key in seen:
            call.defect = f"It is the same call as {seen[key]}, sent twice."
        seen.setdefault(key, call.call_id)


class History:
    """The conversation: append-only, and every call has exactly one observation (SEEDS A17)."""

    def __init__(self) -> None:
        self._items: list[Message] = []
        self._used: set[str] = set()
        self._answers: dict[str, int] = {}
        self.open: dict[str, ToolCall] = {}
        """The calls of this turn that wait for their observation, in call order, by id."""
        self.messages = Messages(self._items)

    def used(self, call_id: str) -> bool:
        return call_id in self._used

    def admit(self, calls: Sequence[ToolCall], new_id: Callable[[str], str]) -> None:
        """Give every call of a turn an id that this history never saw, the same way each time.

        A missing or blank id is made by ``new_id(tool_name)``; a used one gets a suffix. The
        exact twin of a call in the same turn is one proposal sent twice: it is marked, so that it
        doesn't run.
        """
        given = [call.call_id for call in calls] if len(calls) > 1 else []
        taken: set[str] = set()
        for call in calls:
            call_id = call.call_id if call.call_id.strip() else new_id(call.name)
            if call_id in self._used or call_id in taken:
                call_id = self._unused(call_id, taken)
            call.call_id = call_id
            taken.add(call_id)
        if given:
            _mark_twins(calls, given)

    def _unused(self, call_id: str, taken: Collection[str]) -> str:
        candidate, number = call_id, 1
        while candidate in self._used or candidate in taken:
            number += 1
            candidate = f"{call_id}-{number}"
        return candidate

    def add_user(self, message: Message) -> None:
        self._end_turn()
        self._items.append(message)

    def add_final(self, message: Message) -> None:
        """The model's answer, whether it is accepted or sent back."""
        self._end_turn()
        self._items.append(message)

    def add_calls(self, calls: Sequence[ToolCall], message: Message) -> None:
        """A turn that calls tools: its message, and the calls that now wait."""
        self._end_turn()
        for call in calls:
            if not call.call_id or call.call_id in self._used:
                raise HistoryError(f"Call id {call.call_id!r} is empty or was used before.")
            self._used.add(call.call_id)
            self.open[call.call_id] = call
        self._items.append(message)

    def add_observation(self, message: Message) -> None:
        """Answer a call of this turn. A second answer in the turn takes the first one's place."""
        call_id = message["call_id"]
        if self.open.pop(call_id, None) is not None:
            self._answers[call_id] = len(self._items)
            self._items.append(message)
        elif call_id in self._answers:
            self._items[self._answers[call_id]] = message
        else:
            raise HistoryError(f"No call {call_id!r} waits for an observation.")

    def _end_turn(self) -> None:
        if self.open:
            raise HistoryError(f"Calls without an observation: {', '.join(self.open)}.")
        if self._answers:
            self._answers = {}
