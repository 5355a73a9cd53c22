"""One entry of the audit chain, and how it hangs on the one before it (SEEDS C40 to C42).

An entry holds the hash of the entry before it, and a hash of itself. So nobody can change, remove
or move one without all later hashes being wrong. What is checked are the bytes in the file: an
entry that says the same in another spelling isn't the entry that was written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from mini_harness.frozen import freeze, parse_object

GENESIS = "0" * 64
"""What the first entry names as the hash before it."""

_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode
_quoted = lru_cache(maxsize=64)(_encode)
_LONE = {code: f"\\\\u{code:04x}" for code in range(0xD800, 0xE000)}
"""UTF-8 has no bytes for half a pair. Where one stands, its name is written out."""


class AuditDamaged(ValueError):
    """An audit log isn't what was written. ``line`` counts from 1; 0 means the file as a whole."""

    def __init__(self, path: Path, line: int, why: str, advice: str = "") -> None:
        where = f"Line {line} of {path.name}" if line else path.name
        todo = advice or (
            "Don't mend it: keep the files as they are for whoever looks into this, and begin a "
            "new log under another name."
        )
        super().__init__(f"{where} is damaged: {why}. {todo}")
        self.path, self.line, self.why = path, line, why


@dataclass(frozen=True, slots=True)
class Tip:
    """Where a chain ends: how many entries it has, and the hash of the last one."""

    count: int = 0
    hash: str = GENESIS

    def to_json(self) -> str:
        return f'{{"count":{self.count},"head":"{self.hash}"}}'

    @classmethod
    def from_json(cls, text: str) -> Tip:
        """Raises ValueError for what is no head."""
        found = parse_object(text)
        if found.keys() != {"count", "head"} or list(map(type, found.values())) != [int, str]:
            raise ValueError('it isn\'t {"count": a number, "head": a hash}')
        return cls(found["count"], found["head"])


@dataclass(frozen=True, slots=True)
class Entry:
    """``index`` counts from 1, ``timestamp`` is in milliseconds since the Unix epoch."""

    index: int
    timestamp: int
    action: str
    data: dict[str, Any]
    prev_hash: str
    hash: str

    @property
    def tip(self) -> Tip:
        return Tip(self.index, self.hash)

    def __str__(self) -> str:
        """One line for people. It is short, and not for checking anything."""
        return f"{self.index:>4}  {self.hash[:8]}  {self.action:<17} {written(self.data):.80}"


_FIELDS = dict.fromkeys(each.name for each in fields(Entry)).keys()


def written(data: Any) -> str:
    """The one JSON text of a value (SEEDS C41). U+2028 stands in it as it is."""
    return _encode(data)


def speakable(data: Any) -> Any:
    """A frozen copy of the data that UTF-8 has bytes for. Raises NotJson."""
    frozen = freeze(data)
    try:
        (text := _encode(frozen)).encode()
    except UnicodeEncodeError:
        return freeze(json.loads(text.translate(_LONE)))
    return frozen


def forged(before: Tip, timestamp: int, action: str, data: Any) -> tuple[Entry, bytes]:
    """The entry that comes after this tip, and its line."""
    index, prev = before.count + 1, before.hash
    start = f'{{"action":{_quoted(action)},"data":{_encode(data)},'
    end = f'"index":{index},"prev_hash":"{prev}","timestamp":{timestamp}}}'
    # Sorted, the hash stands between these two parts. It is a hash of the text without it.
    found = hashlib.sha256(f"{start}{end}".encode()).hexdigest()
    entry = Entry(index, timestamp, action, data, prev, found)
    return entry, f'{start}"hash":"{found}",{end}\n'.encode()


def read_entry(line: bytes, before: Tip) -> Entry:
    """The entry on a line, if it is the next one after this tip. Raises ValueError that says why
    it isn't."""
    if not line.endswith(b"\n"):
        raise ValueError("it is torn: its line end is missing, so its append never ended")
    found = parse_object(line.decode())
    if found.keys() != _FIELDS:
        raise ValueError(f"its fields are {', '.join(sorted(found)) or 'none'}")
    entry = Entry(**found)
    if [type(found[name]) for name in _FIELDS] != [int, int, str, dict, str, str]:
        raise ValueError("a field has another type than it should")
    if entry.index != before.count + 1:
        raise ValueError(
            f"it has the index {entry.index}, and {before.count + 1} should come here: "
            "an entry was removed, moved or put in"
        )
    if entry.prev_hash != before.hash:
        raise ValueError("it doesn't name the hash of the entry before it")
    same, text = forged(before, entry.timestamp, entry.action, entry.data)
    if same.hash != entry.hash:
        raise ValueError("its hash isn't that of its content, so it was changed")
    if text != line:
        raise ValueError("it says the same in another spelling, so somebody wrote it anew")
    return entry


def chained(lines: Iterable[bytes], path: Path, before: Tip) -> Iterator[tuple[Entry, bytes]]:
    """The entries on these lines, each checked against the one before; and their lines.

    Raises AuditDamaged.
    """
    for line in lines:
        try:
            entry = read_entry(line, before)
        except ValueError as error:
            raise AuditDamaged(path, before.count + 1, str(error)) from None
        yield entry, line
        before = entry.tip
