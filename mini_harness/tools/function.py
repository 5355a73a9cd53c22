"""Make a tool of a typed function: the input model is generated from its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any, NamedTuple, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_json

from mini_harness.frozen import FrozenDict, shown
from mini_harness.protocol import Observation, Outcome
from mini_harness.sync import in_own_thread
from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult

_NOTHING = FrozenDict()
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class FunctionTool(BaseTool):
    """A tool made of a function. Build one with ``@tool`` or ``function_tool``."""

    def __init__(
        self,
        handler: Callable[..., Any],
        name: str,
        description: str,
        *,
        read_only: bool = False,
        idempotent: bool = False,
        blocking: bool = False,
        paths: Sequence[str] | None = None,
        command: str | None = None,
    ) -> None:
        """``paths`` names the parameters that hold a path or several; None doesn't say.
        ``command`` names the one that holds a shell line.

        Raises TypeError for a type that no schema can be made of, ValueError for an unknown name.
        """
        self.handler = handler
        self.name = name
        self.description = description
        self.read_only = read_only
        self.idempotent = idempotent
        self.blocking = blocking
        try:
            self._context_name, parameters = _parameters(handler, name)
            self.input_model = _input_model(name, parameters)
        except (NameError, PydanticUserError) as error:
            why = str(error).splitlines()[0]
            raise TypeError(
                f"Tool {name!r} has a type that no schema can be made of: {why}"
            ) from error
        self._renamed = [p for p in parameters if p.field != p.name]
        fields = {p.name: p.field for p in parameters}
        if unknown := [each for each in paths or () if each not in fields]:
            raise ValueError(f"Tool {name!r} has no parameter {unknown[0]!r} to hold a path.")
        self.path_fields = None if paths is None else [fields[each] for each in paths]
        """The fields of the input model that hold paths. None if the tool doesn't say."""
        if command is not None and command not in fields:
            raise ValueError(f"Tool {name!r} has no parameter {command!r} to hold a command.")
        self.command_field = None if command is None else fields[command]
        """The field of the input model that holds a shell line. None if the tool runs none."""

    def paths(self, arguments: Any) -> list[str] | None:
        if self.path_fields is None:
            return None
        return [
            path
            for field in self.path_fields
            for path in _paths_in(getattr(arguments, field), self.name)
        ]

    def command(self, arguments: Any) -> str | None:
        if self.command_field is None:
            return None
        line: str | None = getattr(arguments, self.command_field)
        return line

    def is_read_only(self, arguments: Any) -> bool:
        return self.read_only

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the plain function, with no harness in between."""
        return self.handler(*args, **kwargs)

    async def execute(self, arguments: BaseModel, context: ToolExecutionContext) -> ToolResult:
        given = dict(arguments.__dict__)
        for parameter in self._renamed:
            given[parameter.name] = given.pop(parameter.field)
        if self._context_name:
            given[self._context_name] = context
        if self.blocking:
            value = await in_own_thread(self.handler, partial(self._late, context), **given)
        else:
            value = self.handler(**given)
        if type(value) is str:
            return ToolResult(value, False, _NOTHING)
        if hasattr(value, "__await__"):
            value = await value
        return value if isinstance(value, ToolResult) else ToolResult(_text(value))

    def _late(self, context: ToolExecutionContext, ended: Future[Any]) -> None:
        """The thread has ended, and nobody waited any more: the record keeps what it gave."""
        run, harness, error = context.run, context.harness, ended.exception()
        if run is None or harness is None:
            return
        given = error if error is not None else ended.result()
        is_text = isinstance(given, str)
        text = given if is_text else given.output if isinstance(given, ToolResult) else shown(given)
        outcome = Outcome.OK if error is None else Outcome.ERROR
        seen = Observation(context.call_id, self.name, str(text), outcome, error)
        harness.record.late(run, seen)


@overload
def tool(handler: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    blocking: bool = False,
    paths: Sequence[str] | None = None,
    command: str | None = None,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(handler: Callable[..., Any] | None = None, /, **declared: Any) -> Any:
    """Make a tool of a typed function, sync or async: ``@tool`` or ``@tool(read_only=True)``.

    Name and description come from the function unless given. A parameter annotated with
    ``ToolExecutionContext`` gets the context and isn't shown to the model. Declare
    ``blocking=True`` for a sync function that waits: it then runs in a thread of its own. Name the
    parameters that hold a path in ``paths``, and the one that holds a shell line in ``command``, so
    that a policy can judge them. A path is text, a path object or None, or a flat list, tuple or
    set of these; of anything else a policy denies the call.

    Raises TypeError for a parameter without a type, ``*args`` and ``**kwargs``, and ValueError
    for a missing description.
    """
    if handler is None:
        return lambda function: function_tool(function, **declared)
    return function_tool(handler, **declared)


def function_tool(
    handler: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    **declared: Any,
) -> FunctionTool:
    """The plain call behind ``@tool``."""
    name = name or str(getattr(handler, "__name__", type(handler).__name__))
    described = description or (inspect.getdoc(handler) or "").split("\n\n")[0].replace("\n", " ")
    if not described:
        raise ValueError(f"Tool {name!r} needs a description: give the function a docstring.")
    return FunctionTool(handler, name, described, **declared)


def _paths_in(value: Any, tool_name: str) -> list[str]:
    """The paths in one argument. Raises TypeError for what may hold them in another form."""
    several = value if isinstance(value, list | tuple | set | frozenset) else [value]
    found = []
    for path in several:
        if isinstance(path, str):
            found.append(str.__str__(path))
        elif isinstance(path, PurePath):
            found.append(str(path))
        elif path is not None:
            raise TypeError(f"Tool {tool_name!r} declares a {type(path).__name__} as a path.")
    # A set has another order in each process, and the reason of a verdict must not.
    return found if isinstance(several, list | tuple) else sorted(found)


class _Parameter(NamedTuple):
    """One parameter that the model fills in. ``field`` is its attribute in the input model."""

    name: str
    field: str
    annotation: Any
    default: Any


def _parameters(handler: Callable[..., Any], tool_name: str) -> tuple[str | None, list[_Parameter]]:
    """The name of the context parameter, if there is one, and all others."""
    hints = get_type_hints(handler, include_extras=True)
    context_name, found = None, []
    parameters = inspect.signature(handler).parameters
    for parameter in parameters.values():
        name = parameter.name
        if parameter.kind not in _NAMED:
            raise TypeError(f"Tool {tool_name!r}: parameter '{parameter}' has no fixed name.")
        if name not in hints:
            raise TypeError(f"Tool {tool_name!r}: give parameter {name!r} a type.")
        if hints[name] is ToolExecutionContext:
            context_name = name
            continue
        annotation, default = hints[name], parameter.default
        if isinstance(default, FieldInfo):
            annotation, default = Annotated[annotation, default], parameter.empty
        default = PydanticUndefined if default is parameter.empty else default
        found.append(_Parameter(name, _field_name(name, parameters), annotation, default))
    return context_name, found


def _field_name(name: str, names: Collection[str]) -> str:
    """The name itself, unless it would hide an attribute of the model, like "schema" or "copy".

    Such a parameter would validate and then reach the function as something else. Its field gets
    another name, and the alias keeps the real one on the wire.
    """
    if not name.startswith(("_", "model_")) and not hasattr(BaseModel, name):
        return name
    field = f"parameter_{name}"
    while field in names:
        field = f"parameter_{field}"
    return field


def _input_model(name: str, parameters: list[_Parameter]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        p.field: (p.annotation, Field(p.default, alias=p.name)) for p in parameters
    }
    return create_model(name, __config__=ConfigDict(extra="forbid", title=name), **fields)


def _text(value: Any) -> str:
    """Text as it is, nothing as nothing, anything else as JSON."""
    if isinstance(value, str):
        return str.__str__(value)
    return "" if value is None else to_json(value).decode()
