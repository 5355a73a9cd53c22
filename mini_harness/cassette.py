"""Recorded exchanges with a model, as one file that a person can review (SEEDS A27).

A line of JSON each. The first says what the file is; each of the others is one request and what
came of it. A request mostly begins as the one before it did: ``keep`` says how many of its messages
are the same, and ``messages`` are those that follow. ``tools`` stands where they change.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from mini_harness.frozen import FrozenDict, FrozenList, canonical, freeze, parse_object
from mini_harness.protocol import Message
from mini_harness.replies import read
from mini_harness.scrub import Scrubber
from mini_harness.volatile import VOLATILE, Request, Volatile, key_of, names_of

SCHEMA_VERSION = 1
_DEPTH = -8
_NOTHING = FrozenList()


class DamagedCassette(ValueError):
    """A cassette isn't as it was written. ``line`` counts from 1, the head's line included."""

    def __init__(self, place: str, line: int, why: str) -> None:
        super().__init__(
            f"Line {line} of {place} is damaged: {why}. Put it right by hand, or record again."
        )
        self.line = line


@dataclass(frozen=True)
class Exchange:
    """A request, in its form with placeholders, and what came of it, as ``replies`` writes it.

    ``number`` is its place in the cassette, from 1.
    """

    messages: FrozenList
    tools: FrozenList
    reply: FrozenDict
    key: str
    number: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"recording {self.number} ({len(self.messages)} messages, {next(iter(self.reply))})"


class Cassette:
    """Exchanges in the order in which they were recorded. ``volatile`` are the names of what was
    left out of their requests."""

    def __init__(
        self, exchanges: Iterable[Exchange] = (), volatile: Iterable[Volatile] = VOLATILE
    ) -> None:
        self.volatile = names_of(volatile)
        self._exchanges = [replace(each, number=n) for n, each in enumerate(exchanges, 1)]
        self._lock = Lock()
        self._last: tuple[FrozenList, Sequence[Message]] = _NOTHING, ()
        """Of the latest recording, the messages before anything was hidden, and as they came."""
        self._written: list[str] = []

    @cached_property
    def _scrubber(self) -> Scrubber:
        """To replay needs none, and to look through the environment takes time."""
        return Scrubber()

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        return tuple(self._exchanges)

    def __len__(self) -> int:
        return len(self._exchanges)

    def record(
        self,
        history: Sequence[Message],
        request: Request,
        reply: FrozenDict,
        path: Path | None = None,
    ) -> None:
        """Keep one more exchange, and append its line to the file. Raises OSError.

        If it gives a secret away that was taken for ordinary text before, the file is written anew.
        """
        with self._lock:
            before, asked = self._last
            new = [each for n, each in enumerate(history) if asked[n : n + 1] != (each,)]
            self._scrubber.scrubbed(freeze({"asked": new, "reply": reply}, 2 * _DEPTH))
            keep = _same(before, request.messages)
            old = self._exchanges[-1] if self._exchanges else None
            whole = [*(old.messages[:keep] if old else ()), *request.messages[keep:]]
            # What is kept is clean already. So a long run costs no more than what is new in it.
            entry = {"keep": keep, "messages": whole[keep:], "tools": request.tools}
            entry |= {"reply": request.with_placeholders(reply), "key": request.key}
            exchange = replace(_exchange(self._clean(entry), old), number=len(self) + 1)
            self._exchanges.append(exchange)
            self._last = request.messages, tuple(history)
            self._write(exchange, old, path)

    def _write(self, exchange: Exchange, old: Exchange | None, path: Path | None) -> None:
        self._written.append(_line(_entry(exchange, old)))
        if any(map(self._scrubber.finds_in, self._written)):
            self._exchanges = self._without_secrets()
            self._written = [_line(each) for each in _entries(self._exchanges)]
            if path is not None:
                self._replace(path, self._written)
        elif path is not None:
            with path.open("ab") as file:
                file.write(f"{self._written[-1]}\n".encode())

    def _clean(self, entry: Mapping[str, Any]) -> FrozenDict:
        tools = {"tools": self._scrubber.schemas(entry["tools"])} if "tools" in entry else {}
        said = {name: entry[name] for name in ("messages", "reply")}
        hidden = self._scrubber.scrubbed(freeze(said, 2 * _DEPTH))
        return FrozenDict({**entry, **hidden, **tools})

    def _without_secrets(self) -> list[Exchange]:
        """All exchanges, with hidden in them what is known to be secret by now.

        The keys stay, so each is found again also if something was hidden in its request that only
        its reply gave away, or another exchange.
        """
        self._scrubber.look_around()
        entries = _entries(self._exchanges)
        for entry in entries:
            self._clean(entry)  # To know them all, look at it all first.
        found: list[Exchange] = []
        for entry, exchange in zip(entries, self._exchanges, strict=True):
            clean = _exchange(self._clean(entry), found[-1] if found else None)
            found.append(replace(clean, key=exchange.key, number=exchange.number))
        return found

    def only(self, numbers: Container[int]) -> Cassette:
        """A cassette with the exchanges of these numbers alone."""
        kept = Cassette(each for each in self._exchanges if each.number in numbers)
        kept.volatile = self.volatile
        return kept

    # --- as JSON

    def to_list(self) -> list[dict[str, Any]]:
        """The lines of the file, as dicts, to be held inline. Secrets are hidden once more."""
        return [self.head, *_entries(self._without_secrets())]

    @property
    def head(self) -> dict[str, Any]:
        return {"cassette": "mini_harness", "schema_version": SCHEMA_VERSION} | {
            "volatile": list(self.volatile)
        }

    @classmethod
    def from_list(cls, lines: Sequence[Mapping[str, Any]], place: str = "a cassette") -> Cassette:
        """What ``to_list`` gave. Raises DamagedCassette."""
        made = cls()
        with _blaming(place, 1):
            if not lines:
                raise ValueError("nothing stands there")
            made.volatile = _volatile(lines[0])
        before = None
        for number, line in enumerate(lines[1:], 2):
            with _blaming(place, number):
                before = replace(_exchange(line, before), number=number - 1)
            made._exchanges.append(before)
        return made

    def save(self, path: Path | str) -> None:
        """Write the file, in the place of one that is there. Raises OSError."""
        self._replace(Path(path), [_line(each) for each in self.to_list()[1:]])

    def _replace(self, path: Path, lines: Iterable[str]) -> None:
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with beside.open("wb") as file:
                file.writelines(f"{line}\n".encode() for line in (_line(self.head), *lines))
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path | str) -> Cassette:
        """Raises DamagedCassette, which names the line, and OSError."""
        path = Path(path)
        return cls.from_list(list(_parsed(path)), path.name)


def begin(path: Path, cassette: Cassette) -> None:
    """Make the file, with its first line. Raises FileExistsError, and OSError."""
    try:
        with path.open("xb") as file:
            file.write(f"{_line(cassette.head)}\n".encode())
    except FileExistsError:
        raise FileExistsError(
            f"There is a recording already: {path.name}. Delete it to record anew, or choose "
            "another name."
        ) from None


def _line(entry: Mapping[str, Any]) -> str:
    return canonical(freeze(entry, 2 * _DEPTH))


def _same(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many messages are the same in both, from the first on."""
    keep = 0
    for here, there in zip(one, other, strict=False):
        # As text: in JSON, unlike in Python, 1 isn't true.
        if here is not there and canonical(here) != canonical(there):
            break
        keep += 1
    return keep


def _entries(exchanges: Sequence[Exchange]) -> list[dict[str, Any]]:
    return [_entry(*pair) for pair in zip(exchanges, [None, *exchanges], strict=False)]


def _entry(exchange: Exchange, before: Exchange | None) -> dict[str, Any]:
    old, old_tools = (before.messages, before.tools) if before else (_NOTHING, _NOTHING)
    keep = _same(old, exchange.messages)
    found: dict[str, Any] = {"messages": exchange.messages[keep:], "reply": exchange.reply}
    if keep:
        found["keep"] = keep
    if canonical(exchange.tools) != canonical(old_tools):
        found["tools"] = exchange.tools
    if exchange.key != key_of(exchange.messages, exchange.tools):
        found["key"] = exchange.key  # It was taken before a secret was hidden.
    return found


def _exchange(line: Mapping[str, Any], before: Exchange | None) -> Exchange:
    if not isinstance(line, Mapping):
        raise TypeError("it is no object")
    if unknown := set(line) - {"keep", "messages", "tools", "reply", "key"}:
        raise ValueError(f"it has {', '.join(sorted(map(str, unknown)))}, which is unknown")
    found = freeze(line, 2 * _DEPTH)
    keep, old = found.get("keep", 0), before.messages if before else _NOTHING
    if type(keep) is not int or not 0 <= keep <= len(old):
        raise ValueError(f"keep is {keep!r}, and there are {len(old)} messages before")
    tools = found.get("tools", before.tools if before else _NOTHING)
    messages = found["messages"]
    reply: FrozenDict = found["reply"]
    if not (_are_objects(messages) and _are_objects(tools) and type(reply) is FrozenDict):
        raise TypeError("messages and tools must be lists of objects, and reply an object")
    read(reply)
    whole = FrozenList([*old[:keep], *messages])
    key = found.get("key") or key_of(whole, tools)
    if not isinstance(key, str):
        raise TypeError("its key must be text")
    return Exchange(whole, tools, reply, key)


def _are_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _volatile(head: Mapping[str, Any]) -> list[str]:
    if not isinstance(head, Mapping) or head.get("cassette") != "mini_harness":
        raise ValueError("it isn't the head of a cassette")
    if head.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(f"its schema_version is {head.get('schema_version')!r}, not 1")
    names = head.get("volatile")
    if not isinstance(names, list) or len(head) > 3:
        raise ValueError("a head has cassette, schema_version and a list volatile, and no more")
    return [str(name) for name in names]


def _parsed(path: Path) -> Iterator[dict[str, Any]]:
    data = path.read_bytes()
    lines = data.split(b"\n")
    if lines.pop():
        raise DamagedCassette(path.name, len(lines) + 1, "it was never written to its end")
    for number, line in enumerate(lines, 1):
        with _blaming(path.name, number):
            text = line.decode()
            if not text.strip():
                raise ValueError("it is empty")
            yield parse_object(text)


@contextmanager
def _blaming(place: str, line: int) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise DamagedCassette(place, line, why.rstrip(".")) from error
