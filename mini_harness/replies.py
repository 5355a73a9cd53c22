"""What a model answered, as JSON, and back: replies of every kind, and the errors it raised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from importlib import import_module
from typing import Any

from mini_harness.frozen import FrozenDict, NotJson, freeze, shown
from mini_harness.models.base import ModelError
from mini_harness.protocol import Final, ToolCall, Turn, UnknownDecision, Usage, read_turn, usage_of
from mini_harness.tools.base import TransientError, wait_asked_by

_OURS = "mini_harness."
_CLASSES: dict[str, type[Turn | Final | ToolCall]] = {
    "turn": Turn,
    "final": Final,
    "call": ToolCall,
}
_DEPTH = -8
"""What is nested as deep as a turn may be lies a few levels deeper in a recording."""


class RecordedError(ModelError):
    """An error that a model raised when it was recorded, and that is none of this package's.

    Its text is that error's, ``kind`` its class. ``transient`` and ``retry_after`` are as they
    were. It looks like that error in a record.
    """

    def __init__(self, kind: str, text: str, written: str) -> None:
        super().__init__(text)
        self.kind, self._written = kind, written

    def __repr__(self) -> str:
        return self._written


class _Unreadable(ToolCall):
    """Stands for a reply that is no JSON. The harness makes of it what it made of that one."""

    _written: str

    def __repr__(self) -> str:
        return self._written


class _NoJson(Mapping[str, Any]):
    """Arguments that can't be read, for the reason that was recorded."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __getitem__(self, key: str) -> Any:
        raise NotJson(self._reason)

    def __len__(self) -> int:
        raise NotJson(self._reason)

    def __iter__(self) -> Any:
        raise NotJson(self._reason)


def written(reply: object) -> FrozenDict:
    """The JSON form of a reply: an object with one key, which says what it is.

    ``json`` is a reply as it came, ``turn``, ``final`` and ``call`` are the classes of these names,
    and ``list`` has such objects. What can't be written as JSON is ``unknown``: no harness can act
    on it, so what stands there is what it says about it.
    """
    try:
        frozen: FrozenDict = freeze(_tree(reply), _DEPTH)
    except NotJson:
        unknown = read_turn(reply)
        if not isinstance(unknown, UnknownDecision):
            raise
        about: dict[str, Any] = {"said": unknown.said, "reason": unknown.reason}
        if unknown.usage is not None:
            about["usage"] = asdict(unknown.usage)
        frozen = freeze({"unknown": about})
    return frozen


def _tree(reply: object) -> dict[str, Any]:
    for name, kind in _CLASSES.items():
        if isinstance(reply, kind):
            return {name: _fields(reply)}
    if isinstance(reply, list | tuple) and any(
        isinstance(each, (Turn, Final, ToolCall)) for each in reply
    ):
        return {"list": [_tree(each) for each in reply]}
    return {"json": reply}


def _fields(reply: Turn | Final | ToolCall) -> dict[str, Any]:
    """What was given, without what is as it is by default."""
    found: dict[str, Any] = {}
    for field in fields(reply):
        value = getattr(reply, field.name)
        if field.name == "type" or value == field.default:
            continue
        if isinstance(value, Usage):
            value = asdict(value)
        elif field.name == "usage":
            raise NotJson("The usage isn't one.")
        elif field.name == "calls":
            value = [_call_fields(each) for each in value]
        found[field.name] = value
    return found


def _call_fields(call: object) -> dict[str, Any]:
    if not isinstance(call, ToolCall):
        raise NotJson("A turn holds something that isn't a call.")
    return _fields(call)


def written_error(error: Exception) -> FrozenDict:
    """The JSON form of what a model raised, with its class, and whether it may pass."""
    kind = f"{type(error).__module__}:{type(error).__qualname__}"
    about: dict[str, Any] = {"class": kind}
    if _ours(kind) is type(error):
        own = {**vars(error), "args": list(error.args)}
        usage = own.pop("usage", None)
        if isinstance(usage, Usage):
            about["usage"] = asdict(usage)
        try:
            return FrozenDict(error=freeze(about | own, _DEPTH))
        except NotJson:
            pass  # Then it is kept as any other error.
    about |= {"text": shown(error, str), "written": shown(error), "transient": _may_pass(error)}
    if (wait := wait_asked_by(error)) is not None:
        about["retry_after"] = wait
    if (spent := usage_of(error)) is not None:
        about["usage"] = asdict(spent)
    return FrozenDict(error=freeze(about))


def _may_pass(error: Exception) -> bool:
    if isinstance(error, ModelError):
        return error.transient is True
    return isinstance(error, TransientError)


def _ours(kind: str) -> type[Exception] | None:
    """The class of this name, if it is one of this package's errors of models."""
    module, _, name = kind.partition(":")
    if not module.startswith(_OURS):
        return None
    try:
        found = getattr(import_module(module), name, None)
    except ImportError:
        return None
    is_one = isinstance(found, type) and issubclass(found, ModelError | TransientError)
    return found if is_one else None


def read(found: Mapping[str, Any]) -> tuple[Any, Exception | None]:
    """The reply of this JSON form; or None, and the error that was raised instead.

    Raises ValueError, KeyError or TypeError for what ``written`` hasn't written.
    """
    ((name, value),) = found.items()
    if name == "error":
        return None, _error(value)
    return _reply(name, value), None


def _reply(name: str, value: Any) -> Any:
    if name == "json":
        return value
    if name == "list":
        return [_reply(*next(iter(each.items()))) for each in value]
    if name == "unknown":
        usage = Usage(**value["usage"]) if "usage" in value else None
        reply = _Unreadable("", _NoJson(value["reason"]), usage=usage)
        reply._written = value["said"]
        return reply
    if name not in _CLASSES:
        raise ValueError(f"{name!r} is no kind of reply")
    return _made(_CLASSES[name], value)


def _made(kind: type[Turn | Final | ToolCall], value: Mapping[str, Any]) -> Any:
    given = dict(value)
    if "usage" in given:
        given["usage"] = Usage(**given["usage"])
    if "calls" in given:
        given["calls"] = tuple(_made(ToolCall, each) for each in given["calls"])
    return kind(**given)


def _error(value: Mapping[str, Any]) -> Exception:
    about = dict(value)
    usage = Usage(**about.pop("usage")) if "usage" in about else None
    if "written" in about:
        error: Exception = RecordedError(
            about.pop("class"), about.pop("text"), about.pop("written")
        )
    else:
        kind = _ours(about["class"])
        if kind is None:
            raise ValueError(f"{about['class']!r} is no error of this package")
        del about["class"]
        error = kind.__new__(kind)
        error.args = tuple(about.pop("args"))
    if usage is not None:
        about["usage"] = usage
    vars(error).update(about)
    return error
