"""What differs between two runs of the same thing, and means nothing: the list, and its use.

A recorded request is found again by its whole text. Only what matches one of the patterns in
``VOLATILE`` is left out of it: a placeholder such as ``⟦uuid 1⟧`` stands there instead. What a user
said is taken literally.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

from mini_harness.frozen import FrozenDict, FrozenList, canonical, freeze
from mini_harness.protocol import Message
from mini_harness.redact import Redactor
from mini_harness.scrub import masked, masked_texts

_BEGIN, _END = "⟦", "⟧"
_LITERAL = f"{_BEGIN}literal{_END}"
"""Stands for a real ``⟦``, so that no text can be taken for a placeholder."""
_PLACEHOLDER = re.compile(rf"{_BEGIN}(?:literal|\w+ \d+){_END}")
_CALL = "call"
_SHORTEST_ID = 8
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_Parts = tuple[tuple[str, str, str], ...]
_DEPTH = -8
"""What is nested as deep as an argument may be lies a few levels deeper here."""


@dataclass(frozen=True)
class Volatile:
    """One kind of text that differs from run to run.

    ``pattern`` is a regular expression without named groups. Numbered by ``value``, equal texts
    have equal placeholders, so that it is seen if one of them is mistaken for another. Numbered by
    ``place``, each has its own: two times may be the same in one run and not in another.
    """

    name: str
    pattern: str
    why: str
    numbered_by: Literal["value", "place"] = "value"

    def __post_init__(self) -> None:
        """Raises ValueError for a name that is no word, and for a pattern that can't be used."""
        if not self.name.isidentifier() or self.name == "literal":
            raise ValueError(f"{self.name!r} can't be the name of something volatile.")
        try:
            is_empty = re.compile(self.pattern).search("") is not None
        except re.error as error:
            raise ValueError(f"The pattern of {self.name} can't be read: {error}.") from None
        if is_empty:
            raise ValueError(f"The pattern of {self.name} is found in an empty text.")


_PART = r"[\w.+@%=~-]*[\w+@%=~-]"
_TEMPORARY = "|".join(
    [
        r"(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)",
        r"[A-Za-z]:\\(?:Users\\[^\\\s]+\\AppData\\Local|Windows)\\Temp",
        re.escape(tempfile.gettempdir()),
    ]
)
_FOLDER = rf"(?<![\w.~-])(?:{_TEMPORARY})(?:[/\\]{_PART})+"
_FILE = r"[/\\](?!tmp)\w[\w.-]*\.[A-Za-z]\w{0,4}(?![\w/\\-])"

VOLATILE: tuple[Volatile, ...] = (
    Volatile(
        "time",
        r"(?<!\d)\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?"
        r"(?: ?(?:Z|UTC|[+-]\d\d:?\d\d)\b)?"
        r"|\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\b"
        r"|(?<![\d:])\d\d:\d\d:\d\d(?:\.\d+)?(?![\d:])"
        r"|(?<![\w.])1\d{9}\.\d+",
        "A moment: a date with a time of day, a time of day, seconds since the Unix epoch.",
        "place",
    ),
    Volatile(
        "duration",
        r"(?<=\bin )\d+(?:\.\d+)?s\b",
        "How long something took, as test runners say it: 5 passed in 0.12s.",
        "place",
    ),
    Volatile(
        "uuid",
        r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
        "A random name.",
    ),
    Volatile("run", r"\brun-[0-9a-f]{12}\b", "The id of a run, as the real clock gives it."),
    Volatile(
        _CALL,
        r"\bcall_\w{1,24}_\d+_\d+\b|\btoolu_\w{10,}|\bcall_[A-Za-z0-9]{20,}\b",
        "The id of a call. What stands in the field call_id is one, whatever it looks like.",
    ),
    Volatile(
        "folder",
        rf"{_FOLDER}(?={_FILE})|{_FOLDER}",
        "A temporary folder, as a whole. The name of a file in it stays, if it has an extension.",
    ),
)
"""All that is left out when a recorded request is looked for. Nothing else is."""


class Reader:
    """Makes Requests. What it has read of a history once it needn't read again."""

    def __init__(self, volatile: Iterable[Volatile] = VOLATILE) -> None:
        """Raises ValueError for two of the same name."""
        given = tuple(volatile)
        self.volatile = {each.name: each for each in given}
        self._find = _finder(given)
        self._redactor = Redactor()
        self._known: dict[int, tuple[FrozenDict, FrozenDict]] = {}
        self._tools = self._clean_tools = FrozenList()

    def message(self, message: Message) -> FrozenDict:
        """A message without the secrets that can be found in it alone."""
        if (found := self._known.get(id(message))) is not None:
            return found[1]
        frozen: FrozenDict = freeze(message, _DEPTH)
        clean: FrozenDict = masked(self._redactor.for_people(frozen))
        if frozen is message:  # Nobody can change it, and while it is kept, its id is its own.
            self._known[id(message)] = frozen, clean
        return clean

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> FrozenList:
        """The schemas, in which only values are masked: a schema may well name a password."""
        frozen: FrozenList = freeze(list(tools), _DEPTH)
        if canonical(frozen) != canonical(self._tools):
            self._clean_tools = masked_texts(self._redactor.for_answer(frozen))
            self._tools = frozen
        return self._clean_tools

    def parts(self, text: str) -> _Parts:
        """The text in pieces: what stands before something volatile, its name, and itself. The last
        one has no name."""
        return _parts(self._find, text)


@lru_cache(maxsize=1024)
def _parts(find: re.Pattern[str], text: str) -> _Parts:
    found, at = [], 0
    for match in find.finditer(text):
        before = text[at : match.start()].replace(_BEGIN, _LITERAL)
        found.append((before, str(match.lastgroup), match[0]))
        at = match.end()
    return (*found, (text[at:].replace(_BEGIN, _LITERAL), "", ""))


class Request:
    """What a model was asked, with placeholders for what is volatile.

    ``messages`` and ``tools`` are that form of it. ``key`` is the SHA-256 of their JSON text,
    in hex: equal for requests that differ in nothing else. Raises NotJson.
    """

    def __init__(
        self,
        history: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        reader: Reader | None = None,
    ) -> None:
        self._reader = Reader() if reader is None else reader
        self._values: dict[str, str] = {}
        """What each placeholder stands for here."""
        self._numbers: dict[tuple[str, str], str] = {}
        self._counts: Counter[str] = Counter()
        known = [self._reader.message(each) for each in history]
        self.messages = FrozenList(map(self._message, known))
        self.tools = self._reader.tools(tools)

    @cached_property
    def key(self) -> str:
        return key_of(self.messages, self.tools)

    def with_placeholders(self, reply: Any) -> Any:
        """The reply, with a placeholder wherever it says again what is volatile in the request."""
        placeholders: dict[str, str] = {}
        for placeholder, value in self._values.items():
            # An id that a model made up may be as short as a word. It gives the same one again.
            if len(value) >= _SHORTEST_ID or not placeholder.startswith(f"{_BEGIN}{_CALL} "):
                placeholders.setdefault(value, placeholder)
        values = sorted(map(re.escape, placeholders), key=len, reverse=True)
        find = re.compile(rf"(?<![\w-])(?:{'|'.join(values)})(?![\w-])") if values else None

        def write(text: str) -> str:
            text = text.replace(_BEGIN, _LITERAL)
            return text if find is None else find.sub(lambda found: placeholders[found[0]], text)

        return texts_replaced(reply, write)

    def filled(self, reply: Any) -> Any:
        """A recorded reply, with what its placeholders stand for in this request."""
        values = {**self._values, _LITERAL: _BEGIN}
        return texts_replaced(
            reply, lambda text: _PLACEHOLDER.sub(lambda found: values.get(found[0], found[0]), text)
        )

    def _message(self, message: FrozenDict) -> FrozenDict:
        if message.get("role") == "user" and "because" not in message:
            said: FrozenDict = texts_replaced(message, lambda text: text.replace(_BEGIN, _LITERAL))
            return said
        pairs = {}
        for key in sorted(message):
            pairs[key] = self._field(key, message[key])
        return FrozenDict(pairs)

    def _field(self, key: str, value: Any) -> Any:
        if key == "call_id" and isinstance(value, str):
            return self._placeholder(_CALL, value)
        if key == "calls" and isinstance(value, list):
            return FrozenList(
                [self._message(each) if type(each) is FrozenDict else each for each in value]
            )
        return texts_replaced(value, self._text)

    def _text(self, text: str) -> str:
        pieces = [
            before + (self._placeholder(name, value) if name else "")
            for before, name, value in self._reader.parts(text)
        ]
        return "".join(pieces)

    def _placeholder(self, name: str, value: str) -> str:
        kind = self._reader.volatile.get(name)
        is_new = kind is not None and kind.numbered_by == "place"
        placeholder = None if is_new else self._numbers.get((name, value))
        if placeholder is None:
            self._counts[name] += 1
            placeholder = f"{_BEGIN}{name} {self._counts[name]}{_END}"
            self._numbers[name, value] = placeholder
            self._values[placeholder] = value
        return placeholder


def key_of(messages: FrozenList, tools: FrozenList) -> str:
    """By which a request is found, in its form with placeholders."""
    # Not by ``canonical``: placeholders aren't ASCII, and escaped they take a tenth of the time.
    text = _encode({"messages": messages, "tools": tools})
    return hashlib.sha256(text.encode()).hexdigest()


def texts_replaced(value: Any, write: Callable[[str], str]) -> Any:
    """A frozen value with every text in it written anew, but for its keys.

    Keys are taken in their order in the alphabet: what counts texts mustn't depend on another.
    """
    if type(value) is str:
        return write(value)
    if isinstance(value, list):
        return FrozenList([texts_replaced(item, write) for item in value])
    if isinstance(value, dict):
        return FrozenDict({key: texts_replaced(value[key], write) for key in sorted(value)})
    return value


@lru_cache(maxsize=16)
def _finder(volatile: tuple[Volatile, ...]) -> re.Pattern[str]:
    names = [each.name for each in volatile]
    if len(set(names)) < len(names):
        raise ValueError(f"Names of what is volatile must differ: {', '.join(names)}.")
    return re.compile("|".join(f"(?P<{each.name}>{each.pattern})" for each in volatile) or r"(?!)")


def names_of(volatile: Iterable[Volatile]) -> list[str]:
    return [each.name for each in volatile]
