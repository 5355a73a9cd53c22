"""Prepare, then act: a call is looked up, validated, frozen and hashed before anyone judges it.

What was approved is what runs: the arguments are frozen from here on, the hash is taken of
them, and the tool gets an instance made from them that nobody else has held.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Collection, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from mini_harness.frozen import FrozenDict, NotJson, canonical, freeze, shown
from mini_harness.protocol import Observation, Outcome, ToolCall, UnknownTool
from mini_harness.redact import MASK
from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult, TransientError
from mini_harness.tools.registry import ToolRegistry

_MASK = MASK.encode()
_BRACKET = _MASK[0]
_MOST_FAULTS = 20
"""How many faults of the arguments the model is told."""
_LONGEST_PART = 200
"""How many characters of a name or a value that a model made up are told."""
IN_DOUBT = "Whether it took effect is unknown, so it wasn't tried again. Look before you decide."
"""What is told of a call that may not be repeated, and failed in a way that passes."""
_OK = Outcome.OK
_NOTHING = FrozenDict()
_new = tuple.__new__


class InvalidArguments(ValueError):
    """The arguments don't fit the tool's input model. The text names every field at fault."""


class Call:
    """One tool call that is ready to run.

    ``arguments`` is what the model sent, frozen. Nobody can change it, so what was judged,
    hashed and approved is what runs. ``allowed_by`` names the rule by which it may, if a policy
    judged it; the record keeps that beside the start. ``preface`` is what the model is told before
    the output, if there is something to tell. ``is_retried`` says that somebody tries again what
    failed in a passing way: if that may not be done with this call, its outcome is then unknown.
    """

    __slots__ = ("_unheld", "allowed_by", "arguments", "call_id", "is_retried", "preface", "tool")

    def __init__(self, tool: BaseTool, call_id: str, arguments: Any) -> None:
        """Raises InvalidArguments."""
        self.tool = tool
        self.call_id = call_id
        self.allowed_by = self.preface = ""
        self.is_retried = False
        self.arguments = arguments if type(arguments) is FrozenDict else _object(arguments)
        try:
            self._unheld: BaseModel | None = self._validated()
        except InvalidArguments:
            raise
        except ValidationError as error:
            raise InvalidArguments(_explain(tool, error)) from None
        except PydanticSerializationError as error:
            raise InvalidArguments(f"The arguments can't be written as UTF-8: {error}") from None
        except Exception as error:
            text = f"Tool {tool.name} failed to check its arguments: {shown(error)}"
            raise InvalidArguments(text) from error

    def _validated(self) -> BaseModel:
        # JSON mode is strict in JSON's own terms: a list may fill a tuple, text a date,
        # but 1 is no bool and "7" is no int.
        validator = self.tool.input_model.__pydantic_validator__
        text = to_json(dict(self.arguments))
        # One byte is looked for first, which takes a fifth of the time.
        if _BRACKET in text and _MASK in text:
            raise InvalidArguments(
                f"An argument holds {MASK!r}, which stands for a secret that isn't kept. "
                "Give the secret itself, or do without it."
            )
        parsed: BaseModel = validator.validate_json(text, strict=True, extra="forbid")
        if _may_change(self.tool.input_model):
            _refuse_changed(self.arguments, parsed.model_dump(by_alias=True))
        return parsed

    @property
    def parsed(self) -> BaseModel:
        """The validated arguments, for those who judge the call: to each an instance of its own."""
        # A copy of what will run. To validate once more could give another default.
        return self._validated() if self._unheld is None else self._unheld.model_copy(deep=True)

    def fresh(self) -> BaseModel:
        """The validated arguments, for the tool: an instance that nobody else has ever held."""
        unheld, self._unheld = self._unheld, None
        return self._validated() if unheld is None else unheld

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def digest(self) -> str:
        """SHA-256 of tool name and canonical arguments, in hex: what an approval names."""
        text = f"{self.name}\n{canonical(self.arguments)}"
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def read_only(self) -> bool:
        """Whether the tool says so. A tool that can't tell hasn't said yes."""
        try:
            return self.tool.is_read_only(self.parsed) is True
        except Exception:  # noqa: BLE001 - could not judge is never yes
            return False

    @property
    def repeatable(self) -> bool:
        """Whether running it a second time does no harm."""
        return self.tool.idempotent or self.read_only

    def with_arguments(self, arguments: Any) -> Call:
        """The same call with edited arguments, prepared again. Raises InvalidArguments."""
        return Call(self.tool, self.call_id, arguments)


def _object(arguments: Any) -> FrozenDict:
    try:
        frozen = freeze(arguments)
    except NotJson as error:
        raise InvalidArguments(f"The arguments can't be read: {error}") from None
    if not isinstance(frozen, FrozenDict):
        kind = "text" if isinstance(frozen, str) else type(arguments).__name__
        raise InvalidArguments(f"The arguments must be a JSON object, but they are {kind}.")
    return frozen


@lru_cache(maxsize=1024)
def _may_change(model: type[BaseModel]) -> bool:
    """Whether pydantic's strict mode may make another value of one that it takes.

    2**53 + 1 becomes another number as a float, and True is 1 to a Literal or an enum.
    """
    schema = json.dumps(model.model_json_schema())
    return any(word in schema for word in ('"number"', '"enum"', '"const"'))


def _refuse_changed(sent: Any, got: Any) -> None:
    """Raise InvalidArguments for a value that would reach the tool as another one."""
    got = got.value if isinstance(got, Enum) else got
    if isinstance(sent, Mapping) and isinstance(got, Mapping):
        for key in sent.keys() & got.keys():
            _refuse_changed(sent[key], got[key])
    elif isinstance(sent, list) and isinstance(got, list | tuple):
        for one, other in zip(sent, got, strict=False):
            _refuse_changed(one, other)
    elif (isinstance(sent, bool) or isinstance(got, bool)) and type(sent) is not type(got):
        raise InvalidArguments(f"An argument is {shown(sent):.40}, which isn't {shown(got):.40}.")
    elif type(sent) is int and type(got) is float and sent != got:
        raise InvalidArguments(f"{shown(sent):.40} has more digits than a float can hold.")


def _explain(tool: BaseTool, error: ValidationError) -> str:
    """One line a fault: the field, what is wrong, and the known keys where one is unknown."""
    lines = ["Invalid arguments:"]
    faults = error.errors(include_url=False, include_input=False)
    for fault in faults[:_MOST_FAULTS]:
        place = ".".join(str(part) for part in fault["loc"]) or "arguments"
        unknown = fault["type"] in ("extra_forbidden", "unexpected_keyword_argument")
        said = "unknown argument" if unknown else fault["msg"]
        lines.append(f"- {_cut(place)}: {_cut(said)}")
    if (more := len(faults) - _MOST_FAULTS) > 0:
        lines.append(f"- and {more:,} more")
    properties = tool.input_model.model_json_schema().get("properties", {})
    return "\n".join([*lines, f"Known arguments: {', '.join(properties) or 'none'}."])


def _cut(text: str) -> str:
    """What a model made up can be of any length, and goes into the history."""
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART]}…"


def prepare(
    tools: ToolRegistry, call: ToolCall, in_doubt: Collection[str] = ()
) -> Call | Observation:
    """Make a proposal ready to run, or say at once why it can't.

    ``in_doubt`` are the ids of the calls that were started before: whatever is wrong with one of
    them now, it may have had its effect.
    """
    tool = tools.get(call.name)
    try:
        if tool is None:
            raise UnknownTool(_cut(call.name))
        if not call.defect:
            return Call(tool, call.call_id, call.arguments)
        text = f"This call was not run. {call.defect}"
        seen = Observation(call.call_id, call.name, text, Outcome.NOT_RUN)
    except InvalidArguments as error:
        seen = Observation(call.call_id, call.name, str(error), Outcome.INVALID_ARGUMENTS, error)
    except UnknownTool as error:
        text = f"{error.args[0]}. The tools here are: {', '.join(tools.names()) or 'none'}."
        seen = Observation(call.call_id, call.name, text, Outcome.UNKNOWN_TOOL, error)
    if call.call_id not in in_doubt:
        return seen
    text = f"It was started before; whether it took effect is unknown. Now: {seen.output}"
    return seen.replaced(output=text, outcome=Outcome.UNKNOWN)


async def execute(call: Call, context: ToolExecutionContext) -> Observation:
    """Run the tool. Whatever it raises becomes an observation; only a cancellation goes on up."""
    try:
        seen = _observed(call, await call.tool.execute(call.fresh(), context))
    # Nothing is hidden: the model and the record see it. A tool's exit isn't the program's.
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001
        let_cancellation_pass(error)
        seen = _failed(call, error)
    return seen.replaced(output=f"{call.preface}\n{seen.output}") if call.preface else seen


def let_cancellation_pass(error: BaseException) -> None:
    """Raise the error if somebody cancelled this task. Else a CancelledError is one of many."""
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error


def in_doubt(call: Call) -> Observation:
    """The call was started before, its end was never recorded, and repeating it may do harm."""
    text = (
        f"Not run again: {call.name} was started before and nobody recorded its end. "
        "Whether it took effect is unknown. Look before you decide."
    )
    return Observation(call.call_id, call.name, text, Outcome.UNKNOWN)


def _observed(call: Call, result: ToolResult) -> Observation:
    if not isinstance(result, ToolResult) or not isinstance(result.output, str):
        raise TypeError(f"Tool {call.name} returned {shown(result):.200}, not a ToolResult.")
    if not result.is_error and not result.metadata:
        # Half the cost of Observation(...), in every step.
        return _new(Observation, (call.call_id, call.tool.name, result.output, _OK, None, _NOTHING))
    outcome = Outcome.ERROR if result.is_error else Outcome.OK
    metadata = freeze(result.metadata)
    return Observation(call.call_id, call.name, result.output, outcome, None, metadata)


def _failed(call: Call, error: BaseException) -> Observation:
    said = shown(error, str)
    text = f"Tool {call.name} failed: {type(error).__name__}" + (f": {said}" if said else "")
    if not (call.is_retried and isinstance(error, TransientError)) or call.repeatable:
        return Observation(call.call_id, call.name, text, Outcome.ERROR, error)
    # Said at once: whoever reads the record after a crash must not take it for "didn't happen".
    return Observation(call.call_id, call.name, f"{text}\n{IN_DOUBT}", Outcome.UNKNOWN, error)
