"""Secrets in what is committed: what ``redact`` hides, and what HTTP carries.

A recording is kept and shared. So beside the names and forms that ``redact`` knows, the headers
that carry a credential are masked, in any case and form, cookies, and what an address has behind
``?key=``; and these values wherever else they turn up in the same exchange.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from mini_harness.frozen import FrozenDict, FrozenList
from mini_harness.redact import MASK, Redactor

_COOKIE = r"(?:set-)?cookies?2?"
_HEADER = rf"(?:proxy-)?authorization|x-(?:[\w-]*-)?(?:key|token|secret|signature)|{_COOKIE}"
_NAME = re.compile(_HEADER, re.IGNORECASE)
_HEADER_LINE = re.compile(
    r"((?<![\w-])(?:(?:proxy-)?authorization|x-(?:[\w-]*-)?(?:key|token|secret|signature))"
    r"""["']?\s*:\s*["']?(?:[A-Za-z-]+[ ]+)?)((?!\[secret)[^\s"',;]{8,})""",
    re.IGNORECASE,
)
_COOKIE_LINE = re.compile(rf"(?<![\w-]){_COOKIE}[\"']?\s*:[^\r\n]*=[^\r\n]*", re.IGNORECASE)
_CRUMB = re.compile(
    r"((?:^|[\s;:,\"'])(?!(?:path|domain|expires|max-age|samesite|priority)=)[\w.-]+=)"
    r"((?!\[secret)[^\s;,\"']{6,})",
    re.IGNORECASE,
)
_QUERY = re.compile(
    r"([?&][\w.-]{0,60}?(?<![a-z0-9])(?:(?:(?:api|access|secret|auth|private)[_-]?)?key"
    r"|(?:(?:api|access|auth|refresh|session|id)[_-]?)?token|secret"
    r"|signature|sig|password|passwd|auth|credential|code)=)"
    r"""((?!\[secret)(?=[^&\s"'<>#]*\d|[^&\s"'<>#]{20})[^&\s"'<>#]{6,})""",
    re.IGNORECASE,
)
_HINTS = ("key", "token", "secret", "sig", "auth", "cookie", "pass", "credential", "code")
"""In lower case: one of them is in whatever the patterns find."""


class Scrubber:
    """Hides secrets in JSON values. What it has met once it finds again, by its value alone."""

    def __init__(self) -> None:
        self._redactor = Redactor()

    def look_around(self) -> None:
        """Learn what the environment holds now."""
        self._redactor.look_around()

    def scrubbed(self, value: FrozenDict) -> FrozenDict:
        """An exchange, or a part of one, with every secret replaced that can be found in it."""
        found = FrozenList(dict.fromkeys(_carried(value)))
        about = FrozenDict(secrets=found, value=value)
        hidden: FrozenDict = masked(self._redactor.hidden(about)["value"])
        return hidden

    def schemas(self, tools: FrozenList) -> FrozenList:
        """Tool schemas. Only values are replaced there: a schema may well name a password."""
        hidden: FrozenList = masked_texts(self._redactor.for_answer(tools))
        return hidden

    def finds_in(self, text: str) -> bool:
        """Whether a secret that it has met stands in this text."""
        return bool(self._redactor.for_answer(text) != text)


def _carried(value: Any) -> Iterator[str]:
    """The values of headers, cookies and query parameters that carry a secret."""
    if isinstance(value, str):
        if not _may_carry(value):
            return
        yield from (found[2] for found in _HEADER_LINE.finditer(value))
        yield from (found[2] for found in _QUERY.finditer(value))
        for line in _COOKIE_LINE.finditer(value):
            yield from (found[2] for found in _CRUMB.finditer(line[0]))
        if value[:1] in ("{", "[", '"') and _NAME.search(value):
            yield from _carried(_parsed(value))
        return
    for _, name, item in _headers(value):
        yield from _secret_parts(name, item)
    for item in _items(value):
        yield from _carried(item)


def _parsed(text: str) -> Any:
    """What a text says as JSON, or nothing."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _items(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _headers(value: Any) -> Iterator[tuple[Any, str, Any]]:
    """Where a header's value stands, its name, and the value: in an object by its keys or as
    ``{"name": ..., "value": ...}``, or in a list of two."""
    if isinstance(value, dict):
        yield from ((key, key, item) for key, item in value.items() if _NAME.fullmatch(key))
        name = value.get("name")
        if "value" in value and isinstance(name, str) and _NAME.fullmatch(name):
            yield "value", name, value["value"]
    elif isinstance(value, list) and len(value) == 2 and _NAME.fullmatch(str(value[0])):
        yield 1, value[0], value[1]


def _secret_parts(name: str, item: Any) -> Iterator[str]:
    """What of a header's value must not turn up anywhere else either."""
    if not isinstance(item, str):
        for each in _items(item):
            yield from _secret_parts(name, each)
        return
    yield from (found[2] for found in _CRUMB.finditer(item))
    if "=" not in item:
        yield item
        yield item.rpartition(" ")[2]  # Without the scheme, such as Bearer.


def masked(value: Any) -> Any:
    """A frozen value without what stands in the place of a secret."""
    if isinstance(value, str):
        return _masked_text(value)
    if isinstance(value, list):
        secret = {place for place, _, item in _headers(value) if item}
        return FrozenList([MASK if n in secret else masked(item) for n, item in enumerate(value)])
    if isinstance(value, dict):
        secret = {place for place, _, item in _headers(value) if item}
        return FrozenDict(
            {key: MASK if key in secret else masked(item) for key, item in value.items()}
        )
    return value


def masked_texts(value: Any) -> Any:
    """The same by the forms of its texts alone, whatever its keys are."""
    if isinstance(value, str):
        return _masked_text(value)
    if isinstance(value, list):
        return FrozenList([masked_texts(item) for item in value])
    if isinstance(value, dict):
        return FrozenDict({key: masked_texts(item) for key, item in value.items()})
    return value


def _may_carry(text: str) -> bool:
    """Most texts don't, and this takes a tenth of the time."""
    small = text.lower()
    return any(hint in small for hint in _HINTS)


def _masked_text(text: str) -> str:
    if not _may_carry(text):
        return text
    text = _COOKIE_LINE.sub(lambda line: _CRUMB.sub(_value_masked, line[0]), text)
    return _QUERY.sub(_value_masked, _HEADER_LINE.sub(_value_masked, text))


def _value_masked(found: re.Match[str]) -> str:
    return f"{found[1]}{MASK}"
