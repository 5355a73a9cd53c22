"""Faults on demand: what the world does wrong once in a while, it does here at a known moment.

A fault names a place (the n-th attempt at a tool, or the n-th time that the model is asked) and
what goes wrong there. It is declared as data, so a case file can carry it, and it happens in every
replay in the same way. To the layers around it, it looks like the real thing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from mini_harness.layer import Act, Decide, Failed, Layer, Proposal, View
from mini_harness.models.base import ModelError
from mini_harness.protocol import Observation
from mini_harness.run import Run
from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult, TransientError
from mini_harness.tools.call import Call

SECONDS = 3600.0
"""How long a fault of the kind ``time_out`` takes, unless it says so: longer than any limit."""


class FaultKind(StrEnum):
    """The closed list of what can go wrong on demand."""

    TRANSIENT = "transient"
    """An error is raised whose class says that it may pass."""
    PERMANENT = "permanent"
    """An error is raised whose class says nothing of that kind."""
    TIME_OUT = "time_out"
    """It takes ``seconds`` longer, on the harness's clock. Whether anybody ends it is up to them.
    """
    RESULT = "result"
    """The tool gives ``says`` as its output, whatever it would have said."""
    CUT = "cut"
    """The process ends, as far as the run can tell: ``ProcessCut`` is raised."""


class Moment(StrEnum):
    """Whether the tool itself has run by the time it goes wrong, and had its effect."""

    BEFORE = "before"
    AFTER = "after"


class InjectedError(Exception):
    """What a tool raises by a permanent fault."""


class InjectedModelError(ModelError):
    """A model's failure, by a permanent fault."""


class PassingModelError(InjectedModelError):
    """A model's failure, by a transient fault."""

    transient: ClassVar[bool] = True

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ProcessCut(BaseException):
    """The process is gone, by a fault. No layer and no loop catches it, and no end is recorded."""


_E = TypeVar("_E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong (``kind``), and where.

    Either at the ``attempt``-th attempt at ``tool``, or in the model's ``turn``: the n-th time that
    it is asked. Both count from 1, over all calls and with every retry. ``says`` is the text of the
    error or of the result. ``retry_after`` is the wait in seconds that a transient error asks for,
    ``seconds`` the length of a ``time_out``. A tool goes wrong before it ran, or after: then it had
    its effect, and only its answer is lost.

    The JSON form has the fields that were given, and no others. Raises ValueError, and TypeError
    for a value of a wrong type.
    """

    kind: FaultKind
    tool: str | None = None
    attempt: int | None = None
    turn: int | None = None
    says: str | None = None
    moment: Moment = Moment.BEFORE
    seconds: float | None = None
    retry_after: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", _member(FaultKind, "kind", self.kind))
        object.__setattr__(self, "moment", _member(Moment, "moment", self.moment))
        if (self.tool is None) != (self.attempt is None) or (self.tool is None) == (
            self.turn is None
        ):
            raise ValueError("A fault has a tool and an attempt, or it has a turn of the model.")
        for name in ("tool", "says"):
            if not isinstance(value := getattr(self, name), str | None):
                raise TypeError(f"{name} must be text, but it is {value!r}.")
        for name in ("attempt", "turn"):
            _check_count(name, getattr(self, name))
        for name in ("seconds", "retry_after"):
            _check_seconds(name, getattr(self, name))
        self._check_fit()

    def _check_fit(self) -> None:
        """What is given has a meaning for this kind, at this place."""
        kind = self.kind
        if self.turn is not None and (kind is FaultKind.RESULT or self.moment is Moment.AFTER):
            raise ValueError("Only a tool can have a result, or go wrong after it has run.")
        if kind is FaultKind.RESULT and self.says is None:
            raise ValueError("A fault of the kind result needs says: the text that is given.")
        if self.seconds is not None and kind is not FaultKind.TIME_OUT:
            raise ValueError("Only a fault of the kind time_out has seconds.")
        if self.retry_after is not None and kind is not FaultKind.TRANSIENT:
            raise ValueError("Only a fault of the kind transient has retry_after.")
        if self.says is not None and kind in (FaultKind.TIME_OUT, FaultKind.CUT):
            raise ValueError(f"A fault of the kind {kind} says nothing.")

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Fault:
        """The fault that ``to_dict`` wrote. Raises ValueError and TypeError, also for a key that
        no fault has."""
        if not isinstance(found, Mapping):
            raise TypeError(f"A fault must be an object, but it is {found!r:.100}.")
        known = {each.name for each in fields(cls)}
        if unknown := [str(key) for key in found if key not in known]:
            raise ValueError(f"A fault has no {', '.join(sorted(unknown))}.")
        if "kind" not in found:
            raise ValueError("A fault needs a kind.")
        return cls(**found)

    def to_dict(self) -> dict[str, Any]:
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        moment = None if self.moment is Moment.BEFORE else self.moment.value
        found |= {"kind": self.kind.value, "moment": moment}
        return {name: value for name, value in found.items() if value is not None}

    def __str__(self) -> str:
        where = f"turn {self.turn}" if self.tool is None else f"attempt {self.attempt} at "
        late = ", after it has run" if self.moment is Moment.AFTER else ""
        return f"{self.kind} in {where}{self.tool or ''}{late}"

    @property
    def _place(self) -> tuple[str | None, int]:
        return self.tool, self.attempt or self.turn or 0


class Faults(Layer):
    """Lets the declared faults happen, each once. Put it innermost: it stands for the world.

    An attempt counts once it begins. The counts belong to this object, so the same one goes on
    where a run was cut and is resumed. ``left`` are the faults that haven't happened (yet): if a
    case ends with one of them, it hasn't shown what it was made for.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        """Raises TypeError for what isn't a fault, and ValueError for two at one place."""
        self.faults = tuple(faults)
        self._due: dict[tuple[str | None, int], Fault] = {}
        self._counts: Counter[str | None] = Counter()
        for fault in self.faults:
            if not isinstance(fault, Fault):
                raise TypeError(f"{fault!r} isn't a fault. Make one by Fault.from_dict.")
            if fault._place in self._due:
                raise ValueError(f"Two faults can't happen at one place: {fault}.")
            self._due[fault._place] = fault

    @property
    def left(self) -> tuple[Fault, ...]:
        return tuple(self._due.values())

    async def decide(self, run: Run, view: View, next: Decide) -> Proposal:
        fault = self._next(None)
        if fault is None:
            return await next(run, view)
        if fault.kind is not FaultKind.TIME_OUT:
            raise _model_error(fault)
        await run.driver.clock.sleep(_length(fault))
        return await next(run, view)

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        if run.in_doubt and run.doubts(call):
            return await next(run, call)  # It isn't going to run, so this is no attempt.
        fault = self._next(call.name)
        return await next(run, call if fault is None else _with_fault(call, fault))

    def _next(self, tool: str | None) -> Fault | None:
        self._counts[tool] += 1
        return self._due.pop((tool, self._counts[tool]), None)


class _Faulty(BaseTool):
    """A tool to which this happens. So the loop records and reports it as it does everything."""

    def __init__(self, tool: BaseTool, fault: Fault) -> None:
        self.name, self.description, self.input_model = (
            tool.name,
            tool.description,
            tool.input_model,
        )
        self.idempotent = tool.idempotent
        self._tool, self._fault = tool, fault

    def is_read_only(self, arguments: Any) -> bool:
        return self._tool.is_read_only(arguments)

    async def execute(self, arguments: Any, context: ToolExecutionContext) -> ToolResult:
        fault, result = self._fault, None
        if fault.moment is Moment.AFTER:
            result = await self._tool.execute(arguments, context)
        if fault.kind is FaultKind.RESULT:
            return ToolResult(fault.says or "")
        if fault.kind is not FaultKind.TIME_OUT:
            raise _tool_error(fault)
        await context.clock.sleep(_length(fault))
        return await self._tool.execute(arguments, context) if result is None else result


def _with_fault(call: Call, fault: Fault) -> Call:
    faulty = Call(_Faulty(call.tool, fault), call.call_id, call.arguments)
    faulty.allowed_by, faulty.preface = call.allowed_by, call.preface
    faulty.is_retried = call.is_retried
    return faulty


def _tool_error(fault: Fault) -> BaseException:
    if fault.kind is FaultKind.CUT:
        return ProcessCut(str(fault))
    said = str(fault) if fault.says is None else fault.says
    if fault.kind is FaultKind.TRANSIENT:
        return TransientError(said, retry_after=fault.retry_after)
    return InjectedError(said)


def _model_error(fault: Fault) -> BaseException:
    """What the loop itself would raise if its model failed in this way."""
    if fault.kind is FaultKind.CUT:
        return ProcessCut(str(fault))
    said = str(fault) if fault.says is None else fault.says
    if fault.kind is FaultKind.TRANSIENT:
        return Failed(PassingModelError(said, retry_after=fault.retry_after))
    return Failed(InjectedModelError(said))


def _length(fault: Fault) -> float:
    return SECONDS if fault.seconds is None else fault.seconds


def _member(kinds: type[_E], name: str, value: Any) -> _E:
    try:
        return kinds(value)
    except ValueError:
        known = ", ".join(each.value for each in kinds)
        raise ValueError(f"{name} is {value!r}, but must be one of: {known}.") from None


def _check_count(name: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, but it is {value!r}.")
    if value < 1:
        raise ValueError(f"{name} is {value}, but counts from 1.")


def _check_seconds(name: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, but it is {value!r}.")
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} is {value}, but must be 0 or more, and finite.")
