"""The program that searches for ``grep``. It runs on its own and knows only the standard library.

A hopeless expression holds Python's lock and never gives it back, so the search has a process of
its own that can be ended. One JSON object comes in: the request. JSON lines go out: the number of
the file that is looked at, the lines to show, and at the end what there was in all.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, Any

BINARY_LOOK = 8_192
"""A NUL byte in the first so many bytes makes a file binary, and so does one further on."""

MEMORY = 1024 * 1024 * 1024
"""How many bytes this process may ask for."""

PIECE = 16 * 1024 * 1024
"""So many bytes are read at once; of a longer line each piece is searched for itself."""

WIDTH = 300
"""How many characters of a line are shown."""

LEAD = 60
COUNTED = 10_000
"""With so many matching lines, or some more, a search is over."""

_NOT_PLAIN = frozenset("\\^$.|?*+()[]{}\n\r\ufeff\ufffd")
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Binary(Exception):
    """The file is no text."""


class Enough(Exception):
    """So much was found that nobody wants to know how much more there is."""


class Folders:
    """Opens files below a folder, part by part, and never through a link."""

    def __init__(self, root: str) -> None:
        self._held = [("", os.open(root, _OPEN | os.O_DIRECTORY))]

    def open(self, parts: list[str]) -> IO[bytes]:
        """The files come in order, so the folders of the last one are mostly those of the next."""
        *folders, name = parts
        kept = 0
        for (held, _), wanted in zip(self._held[1:], folders, strict=False):
            if held != wanted:
                break
            kept += 1
        while len(self._held) > kept + 1:
            os.close(self._held.pop()[1])
        for folder in folders[kept:]:
            inner = os.open(folder, _OPEN | os.O_DIRECTORY, dir_fd=self._held[-1][1])
            self._held.append((folder, inner))
        return self._file(name)

    def _file(self, name: str) -> IO[bytes]:
        descriptor = os.open(name, _OPEN, dir_fd=self._held[-1][1])
        file = os.fdopen(descriptor, "rb")
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            file.close()
            raise OSError(f"{name} is no regular file")
        return file


class Search:
    """One search through many files. ``found`` is what is told at the end."""

    def __init__(self, request: dict[str, Any]) -> None:
        """Raises re.error, OverflowError, RecursionError and MemoryError for a bad pattern."""
        text, ignore_case = request["pattern"], request["ignore_case"]
        self._search = re.compile(text, re.IGNORECASE if ignore_case else 0).search
        # Most patterns are plain words, and most files don't have them.
        plain = not ignore_case and _NOT_PLAIN.isdisjoint(text)
        self._needle: bytes = text.encode() if plain else b""
        self._context: int = request["context"]
        self._room: int = request["lines"]
        self._folders = Folders(request["root"])
        self.found = {"lines": 0, "files": 0, "binary": 0, "unread": 0}

    def through(self, files: list[list[str]]) -> None:
        """Raises Enough."""
        for number, parts in enumerate(files):
            say(at=number)
            before = self.found["lines"]
            try:
                with self._folders.open(parts) as file:
                    self._through(file)
            except Binary:
                self.found["binary"] += 1
            except OSError:
                self.found["unread"] += 1
            self.found["files"] += self.found["lines"] > before
            if self.found["lines"] >= COUNTED:
                raise Enough

    def _through(self, file: IO[bytes]) -> None:
        first = 1
        for block in blocks(file):
            if self._needle in block:
                self._look(first, lines_of(block))
            first += block.count(b"\n")
            if self.found["lines"] >= COUNTED:
                break

    def _look(self, first: int, lines: list[str]) -> None:
        matches = ((at, match) for at, line in enumerate(lines) if (match := self._search(line)))
        hits = {at: match.start() for at, match in islice(matches, COUNTED)}
        for at in sorted(self._around(islice(hits, self._room))):
            if at < len(lines):
                show(first + at, lines[at], hits.get(at))
        self._room -= min(self._room, len(hits))
        self.found["lines"] += len(hits)

    def _around(self, hits: Iterable[int]) -> set[int]:
        reach = self._context
        return {near for at in hits for near in range(max(0, at - reach), at + reach + 1)}


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    """A file in pieces of whole lines, as far as these are no longer than PIECE. Raises Binary."""
    if b"\0" in file.read(BINARY_LOOK):
        raise Binary
    file.seek(0)
    while block := file.read(PIECE):
        if not block.endswith(b"\n"):
            block += file.readline(PIECE)
        if b"\0" in block:
            raise Binary
        yield block


def lines_of(block: bytes) -> list[str]:
    """The lines as text, without their ends. A CR that stands alone ends no line."""
    text = block.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def show(number: int, text: str, start: int | None) -> None:
    """One line for the answer, ``start`` being where it matches. Of a long one what matters."""
    first = max(0, (start or 0) - LEAD) if len(text) > WIDTH else 0
    part = text[first : first + WIDTH]
    left = "[...]" if first else ""
    right = "[...]" if first + WIDTH < len(text) else ""
    say(line=number, text=f"{left}{part}{right}", match=start is not None)


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def bound(seconds: int) -> None:
    """Bounds that hold even if nobody is there any more who would end this process."""
    # Some systems have no such limits, or refuse to set them.
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main() -> None:
    # Whatever the pattern is warned about would come out between the lines.
    warnings.simplefilter("ignore")
    request = json.load(sys.stdin.buffer)
    bound(request["seconds"])
    try:
        search = Search(request)
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        say(fault=f"{error}" or type(error).__name__)
        return
    try:
        search.through(request["files"])
        say(**search.found, all=True)
    except Enough:
        say(**search.found, all=False)


if __name__ == "__main__":
    main()
