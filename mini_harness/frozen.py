"""JSON values that nobody can change any more, and their one canonical text.

What is recorded is frozen at that moment, so that a tool which later changes its own arguments
can't rewrite the record. The canonical text is what gets hashed, approved and validated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

MAX_DEPTH = 64
"""Deeper nesting than this is refused: no honest tool call needs it."""

MAX_INT_BITS = 4096
"""Larger integers are refused: Python itself won't print them beyond 4,300 digits."""


class NotJson(ValueError):
    """A value can't be written as strict JSON."""


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("This value is part of the record and can't be changed.")


class FrozenDict(dict[str, Any]):
    """A dict that compares and serialises like one, and refuses every change."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        # Copying and pickling fill the new one item by item, unless told otherwise.
        return FrozenDict, (dict(self),)


class FrozenList(list[Any]):
    """A list that compares and serialises like one, and refuses every change."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse

    def __reduce__(self) -> tuple[type[FrozenList], tuple[list[Any]]]:
        return FrozenList, (list(self),)


def freeze(value: Any, depth: int = 0) -> Any:
    """Return a frozen copy of a JSON value.

    Raises NotJson for NaN, infinities, huge integers, keys that aren't text, values that
    aren't JSON, and nesting deeper than MAX_DEPTH (which includes cycles).
    """
    kind = type(value)
    if kind is str or value is None or kind is bool or kind is FrozenDict or kind is FrozenList:
        return value
    if depth > MAX_DEPTH:
        raise NotJson(f"The value is nested deeper than {MAX_DEPTH} levels.")
    if kind is dict or isinstance(value, Mapping):
        return _freeze_items(value, depth + 1)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return FrozenList([freeze(item, depth + 1) for item in value])
    return _scalar(value)


def _freeze_items(items: Mapping[Any, Any], depth: int) -> FrozenDict:
    for key, item in items.items():
        if type(key) is not str or type(item) is not str:
            return FrozenDict({_key(key): freeze(item, depth) for key, item in items.items()})
    return FrozenDict(items)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise NotJson(f"The key {key!r:.100} isn't text.")
    return str.__str__(key)


def _scalar(value: Any) -> Any:
    match value:
        case bool() | str():
            # Not str(): that is the name of an enum's member, and not its value.
            return value if isinstance(value, bool) else str.__str__(value)
        case int() if value.bit_length() <= MAX_INT_BITS:
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case int():
            raise NotJson(f"An integer has more than {MAX_INT_BITS} bits.")
        case float():
            raise NotJson(f"{value} isn't a JSON number.")
        case _:
            raise NotJson(f"A {type(value).__name__} isn't a JSON value.")


_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode

_ESCAPES = {code: f"\\u{code:04x}" for code in (0x2028, 0x2029, *range(0xD800, 0xE000))}


def canonical(value: Any) -> str:
    """The one JSON text of a frozen value: sorted keys, no spaces, UTF-8, always one line.

    U+2028, U+2029 and lone surrogates are escaped: some readers take the first two for line
    ends, and UTF-8 has no bytes for the last.
    """
    text: str = _encode(value)
    return text if text.isascii() else text.translate(_ESCAPES)


def shown(value: Any, write: Callable[[Any], str] = repr) -> str:
    """``repr`` or ``str`` of anything at all, for the record and for messages.

    Nesting beyond the stack, integers that Python won't print and a broken ``__repr__`` give a
    text that says so: to describe a fault must not be the next fault.
    """
    try:
        return write(value)
    except Exception as error:  # noqa: BLE001 - the text says what was raised
        return f"<a {type(value).__name__} that can't be shown: {type(error).__name__}>"


def parse_object(text: str) -> dict[str, Any]:
    """Read the text of a JSON object, as a model sends it.

    Raises NotJson, and nothing else, for every bad text: also for nesting that would exhaust
    the stack, integers that Python won't read, and a key that is given twice.
    """
    if not text.strip():
        return {}
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except RecursionError:
        raise NotJson(f"The text is nested deeper than {MAX_DEPTH} levels.") from None
    except ValueError as error:
        raise NotJson(f"The text isn't JSON: {error}") from None
    if not isinstance(value, dict):
        raise NotJson(f"The text is a JSON {type(value).__name__}, not an object.")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotJson(f"The key {twice!r} is given twice.")
    return result


def _no_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} isn't a JSON number.")
