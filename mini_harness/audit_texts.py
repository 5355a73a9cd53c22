"""Texts that can be erased later, without a break in the chain.

A person may ask that what they wrote is deleted. In a chain nothing can be: each hash rests on all
before it. So such a text never enters the chain. There stands a digest of it, and the text lies
in a file beside. Whoever erases it takes it out of that file, and says so in the chain: a text that
is missing without such an entry is damage, and so is one that was changed.

A digest alone would give a short text away: one could try all phone numbers. So each is made with
random salt, which lies beside the text and goes with it.

Erased means: no longer in this file. Copies of the file, and what a disk keeps of old blocks, are
out of its reach.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mini_harness.audit_entry import AuditDamaged, Entry, written
from mini_harness.audit_file import explaining, lines, replace
from mini_harness.frozen import parse_object
from mini_harness.transcript import write

SEALED = "sealed"
"""The key under which an entry's data hold the digests, by the names of what lies apart."""

ERASED = "erased"
"""The action that says of which entry the texts were erased."""

GONE = "[erased]"
"""Stands where a text was, for people."""

_SAFE = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class Ledger:
    """Which digests the chain names, and which of those were erased."""

    def __init__(self) -> None:
        self.live: dict[str, int] = {}
        """The index of its entry, by digest."""
        self.erased: set[str] = set()
        self._named: dict[int, tuple[str, ...]] = {}

    def take(self, entry: Entry) -> None:
        """Take an entry in. They must come in their order."""
        if entry.action == ERASED:
            for digest in self._named.pop(entry.data["index"], ()):
                del self.live[digest]
                self.erased.add(digest)
        elif sealed := entry.data.get(SEALED):
            self._named[entry.index] = tuple(sealed.values())
            self.live.update(dict.fromkeys(sealed.values(), entry.index))

    def has(self, index: int) -> bool:
        """Whether something of this entry can be erased."""
        return index in self._named


class Texts:
    """The file of the texts. Only who holds the lock of the log may use it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def seal(self, data: Mapping[str, Any], names: Iterable[str]) -> tuple[dict[str, Any], bytes]:
        """The data with digests for what has one of these names; and the lines for this file."""
        apart = {name: data[name] for name in names if data.get(name) is not None}
        if not apart:
            return dict(data), b""
        salts = {name: secrets.token_hex(16) for name in apart}
        sealed = {name: _digest(salts[name], value) for name, value in apart.items()}
        found = "".join(
            written({"digest": sealed[name], "salt": salts[name], "value": value}) + "\n"
            for name, value in apart.items()
        )
        return {**data, **dict.fromkeys(apart), SEALED: sealed}, found.encode()

    def add(self, found: bytes) -> None:
        """Write such lines; they would survive a power failure. Raises OSError."""
        with explaining(self.path, "written to"):
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _SAFE, 0o600)
            try:
                size = os.fstat(descriptor).st_size
                *_, last = (b"\n", *lines(descriptor, max(0, size - 1), size))
                # A process that died in the middle has left a part of a line.
                write(descriptor, found if last == b"\n" else b"\n" + found)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def read(self) -> dict[str, Any]:
        """The texts by their digests. Raises OSError.

        What was torn or changed is left out. Whether it matters, the chain says.
        """
        lines_by_digest = {_digest_on(line): line for line in self._lines()}
        lines_by_digest.pop("", None)
        return {
            digest: parse_object(line.decode())["value"] for digest, line in lines_by_digest.items()
        }

    def keep(self, live: Mapping[str, int]) -> int:
        """Take out all other lines, if there are any. How many that were.

        Raises OSError; then all is as before.
        """
        found = self._lines()
        kept = [line for line in found if _digest_on(line) in live]
        if len(kept) < len(found):
            replace(self.path, b"".join(kept))
        return len(found) - len(kept)

    def objection(self, ledger: Ledger) -> AuditDamaged | None:
        """What is wrong between the chain and the texts, if anything is."""
        found = self.read()
        for digest, index in ledger.live.items():
            if digest not in found:
                why = f"the text of entry {index} is missing or was changed, and nobody erased it"
                return AuditDamaged(self.path, 0, why)
        if not ledger.erased.isdisjoint(found):
            why = "it still holds a text that was to be erased"
            return AuditDamaged(self.path, 0, why, "log.start() takes it out.")
        return None

    def _lines(self) -> list[bytes]:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | _SAFE)
        except FileNotFoundError:
            return []
        try:
            return list(lines(descriptor, 0, os.fstat(descriptor).st_size))
        finally:
            os.close(descriptor)


def _digest_on(line: bytes) -> str:
    """The digest that a line has, if it is that of its text; else nothing."""
    try:
        said = parse_object(line.decode())
        digest = _digest(said["salt"], said["value"])
        return digest if digest == said["digest"] else ""
    except (ValueError, KeyError):
        return ""


def _digest(salt: str, value: Any) -> str:
    return hashlib.sha256(f"{salt}:{written(value)}".encode()).hexdigest()
