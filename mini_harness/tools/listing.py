"""Looking for files by their names: what a folder holds, and which paths fit a pattern.

A folder is opened by its descriptor, below one that is held, and no link is followed. So nothing
outside the workspace folder is looked at, whatever somebody swaps meanwhile. Everything has a
bound: how many names are looked at, how deep, how many are shown and in how many bytes. The order
is that of the paths, part by part.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from fnmatch import translate
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult
from mini_harness.tools.files import as_opened, quoted_path, resolve_inside, shown_path
from mini_harness.tools.places import enter, open_folder
from mini_harness.visible import counted

MAX_SHOWN = 500
"""How many paths an answer has."""

MAX_BYTES = 30_000
"""The longest answer, in UTF-8 bytes, its closing note included."""

MAX_LOOKED = 200_000
"""How many names one call looks at."""

MAX_DEPTH = 64
"""How many folders below the first one are looked into."""

SECONDS = 20.0
"""For how long one call looks."""

SKIPPED = frozenset({".git", ".mini_harness"})
"""Folders that are shown and not looked into, unless one of them is asked for."""

MAX_ALTERNATIVES = 64
"""What the braces in a part of a pattern may come to."""

_NOTE_ROOM = 256
_BRACES = re.compile(r"(\{[^{}]*\}|\[[{}]\])")


class Entry(NamedTuple):
    """Something in a folder: its path as seen from the workspace folder, in parts."""

    parts: tuple[str, ...]
    is_folder: bool
    is_link: bool
    size: int | None
    """In bytes; None for what isn't a regular file."""

    @property
    def path(self) -> str:
        return "/".join(self.parts)


class Walk:
    """What lies below a folder, in order, as long as the bounds allow.

    ``place`` is the folder, resolved. ``into`` says of a folder below, by its parts from there on,
    whether to look into it. ``cut`` turns true if something isn't looked at: it comes after too
    many names, too deep, too late, or may not be read.
    """

    def __init__(self, root: Path, place: Path, into: Callable[[tuple[str, ...]], bool]) -> None:
        self._root, self._place, self._into = root, place, into
        self._base = place.relative_to(os.path.realpath(root)).parts
        self._until = time.monotonic() + SECONDS
        self._room = MAX_LOOKED
        self.cut = False

    def __iter__(self) -> Iterator[Entry]:
        """Raises OSError if the folder itself can't be read."""
        with open_folder(self._root, self._place) as folder:
            yield from self._inside(folder, self._base)

    def below(self, entry: Entry) -> tuple[str, ...]:
        """The parts of a path as they are seen from the folder."""
        return entry.parts[len(self._base) :]

    def _inside(self, folder: int, parts: tuple[str, ...]) -> Iterator[Entry]:
        with os.scandir(folder) as names:
            found = sorted(islice(names, self._room), key=lambda each: each.name)
            self.cut |= next(names, None) is not None
        self._room -= len(found)
        for each in found:
            if time.monotonic() > self._until:
                self.cut = True
                return
            entry = _entry(each, parts)
            yield entry
            if entry.is_folder and each.name not in SKIPPED and self._into(self.below(entry)):
                yield from self._entered(each.name, folder, entry)

    def _entered(self, name: str, folder: int, entry: Entry) -> Iterator[Entry]:
        try:
            if len(self.below(entry)) > MAX_DEPTH:
                raise RecursionError
            inner = enter(name, folder)
        except (OSError, RecursionError):
            self.cut = True
            return
        try:
            yield from self._inside(inner, entry.parts)
        finally:
            os.close(inner)


def _entry(found: os.DirEntry[str], parents: tuple[str, ...]) -> Entry:
    parts = (*parents, found.name)
    try:
        status = found.stat(follow_symlinks=False)
    except OSError:
        # It has just vanished.
        return Entry(parts, False, False, None)
    mode = status.st_mode
    size = status.st_size if stat.S_ISREG(mode) else None
    return Entry(parts, stat.S_ISDIR(mode), stat.S_ISLNK(mode), size)


class PathPattern:
    """A pattern of paths: ``*`` and ``?`` stay within a part, ``**`` stands for any folders.

    ``*.{py,md}`` is each of its alternatives.

    Each part of a path is compared once with each part of the pattern at most, so no pattern is
    slow. At its end, ``**`` means all that lies below.
    """

    def __init__(self, text: str) -> None:
        """Raises ValueError for one that leads out of the folder it is seen from, or bad braces."""
        parts = [part for part in text.split("/") if part not in ("", ".")]
        if text.startswith("/") or ".." in parts or not parts:
            raise ValueError(
                f"A pattern is seen from its folder: {text!r} must name something in there, and "
                "can't be absolute or hold '..'"
            )
        parts += ["*"] if parts[-1] == "**" else []
        parts = [one for one, other in pairwise([*parts, ""]) if (one, other) != ("**", "**")]
        self._parts = [None if each == "**" else _compiled(each) for each in parts]
        # How far into the pattern a path may lead; asked for each folder again and again.
        self._reached = lru_cache(1024)(self._reach)

    def fits(self, path: tuple[str, ...]) -> bool:
        """Whether a path is meant, by its parts."""
        return len(self._parts) in self._reached(path)

    def leads_into(self, path: tuple[str, ...]) -> bool:
        """Whether something in this folder may be meant."""
        return any(at < len(self._parts) for at in self._reached(path))

    def _reach(self, path: tuple[str, ...]) -> frozenset[int]:
        if not path:
            return self._with_gaps({0})
        reached = set()
        for at in self._reached(path[:-1]):
            if at < len(self._parts):
                part = self._parts[at]
                reached |= {at} if part is None else {at + 1} if part.match(path[-1]) else set()
        return self._with_gaps(reached)

    def _with_gaps(self, reached: set[int]) -> frozenset[int]:
        """``**`` may stand for no folder at all."""
        found = set()
        for start in reached:
            at = start
            while at < len(self._parts) and self._parts[at] is None:
                found.add(at)
                at += 1
            found.add(at)
        return frozenset(found)


def _compiled(part: str) -> re.Pattern[str]:
    """A part of a pattern, its braces taken apart. Raises ValueError."""
    found = [""]
    for piece in _BRACES.split(part):
        whole = _BRACES.fullmatch(piece)
        if not whole and not {*"{}"}.isdisjoint(piece):
            raise ValueError(
                f"The braces in {part!r} can't be understood. Write them as in *.{{py,md}}, within "
                "a part and not within each other, or [{] for one that is in a name"
            )
        choices = piece[1:-1].split(",") if piece[:1] == "{" else [piece]
        if len(found) * len(choices) > MAX_ALTERNATIVES:
            raise ValueError(f"In {part!r} there are more than {MAX_ALTERNATIVES} alternatives")
        found = [start + choice for start in found for choice in choices]
    return re.compile("|".join(map(translate, found)))


class Listing:
    """Lines of an answer, as many as its bounds allow; the others are counted."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._room = MAX_BYTES - _NOTE_ROOM
        self._left_out = 0

    def add(self, line: str) -> None:
        size = len(line.encode(errors="replace")) + 1
        if self._left_out or len(self._lines) == MAX_SHOWN or size > self._room:
            self._left_out += 1
            return
        self._room -= size
        self._lines.append(line)

    def text(self, cut: bool, nothing: str, advice: str) -> str:
        """All of it. ``nothing`` is what is said if there is nothing."""
        lines = list(self._lines)
        if self._left_out:
            least = "At least " if cut else ""
            lines.append(f"[{least}{self._left_out:,} more are not shown. {advice}]")
        elif cut:
            lines.append(
                f"[Not everything was looked at: it is too much, or may not be read. {advice}]"
            )
        return "\n".join(lines) or nothing


def folder_inside(root: Path, path: str) -> Path:
    """A folder, resolved. Raises OSError for a place outside, or for what is no folder."""
    place = resolve_inside(root, path)
    with open_folder(root, place):
        return place


def explained(path: str, error: OSError | ValueError) -> str:
    """What the model is told about a folder that can't be looked into."""
    shown = quoted_path(path)
    match error:
        case FileNotFoundError():
            return f"Folder not found: {shown_path(path)}"
        case NotADirectoryError():
            return f"It is no folder: {shown}. Name the folder it lies in."
        case OSError():
            return f"Cannot look into folder: {shown}. {error.strerror or error}."
        case _:
            return f"{error}."


class _NameTool(BaseTool):
    """What the two tools here share."""

    idempotent = True

    def is_read_only(self, arguments: Any) -> bool:
        return True

    def paths(self, arguments: Any) -> list[str]:
        return [as_opened(arguments.path)]

    async def execute(self, arguments: Any, context: ToolExecutionContext) -> ToolResult:
        """Every failure is an error result that names the path."""
        try:
            return ToolResult(await asyncio.to_thread(self._found, context.cwd, arguments))
        except (OSError, ValueError) as error:
            return ToolResult(explained(arguments.path, error), is_error=True)

    @abstractmethod
    def _found(self, root: Path, wanted: Any) -> str:
        """The answer. Raises OSError and ValueError."""


class ListFilesInput(BaseModel):
    path: str = Field(".", description="The folder, relative to the workspace folder.")
    depth: int = Field(1, ge=1, le=10, description="How many levels of folders to show.")


class ListFiles(_NameTool):
    """Show what lies in a folder: files with their size in bytes, folders with a "/" at the end.

    An answer has at most MAX_SHOWN lines and MAX_BYTES bytes.
    """

    name = "list_files"
    description = "List what lies in a folder of the workspace folder, hidden files included."
    input_model = ListFilesInput

    def _found(self, root: Path, wanted: ListFilesInput) -> str:
        place = folder_inside(root, wanted.path)
        walk = Walk(root, place, lambda below: len(below) < wanted.depth)
        answer = Listing()
        for entry in walk:
            answer.add(_line(entry))
        advice = "List a folder further down, or find names with glob."
        return answer.text(walk.cut, f"(nothing in {shown_path(wanted.path)})", advice)


def _line(entry: Entry) -> str:
    path = shown_path(entry.path)
    if entry.is_folder:
        return f"{path}/"
    if entry.size is None:
        return f"{path} ({'a link' if entry.is_link else 'no regular file'})"
    return f"{path} ({counted(entry.size, 'byte')})"


class GlobInput(BaseModel):
    pattern: str = Field(
        min_length=1,
        max_length=300,
        description="A pattern like src/**/*.py, seen from path: * and ? stand for something "
        "within a name, [ab] for one of these letters, {py,md} for one of these words, ** for any "
        "number of folders.",
    )
    path: str = Field(".", description="The folder to search, relative to the workspace folder.")


class Glob(_NameTool):
    """Find files and folders whose path fits a pattern; a folder has a "/" at the end.

    An answer has at most MAX_SHOWN lines and MAX_BYTES bytes. Capital letters count.
    """

    name = "glob"
    description = (
        "Find files and folders in the workspace folder by a pattern of their path. "
        "The paths in the answer are relative to the workspace folder. What lies in .git and "
        ".mini_harness is found only if path names that folder."
    )
    input_model = GlobInput

    def _found(self, root: Path, wanted: GlobInput) -> str:
        pattern = PathPattern(wanted.pattern)
        walk = Walk(root, folder_inside(root, wanted.path), pattern.leads_into)
        answer = Listing()
        for entry in walk:
            if pattern.fits(walk.below(entry)):
                answer.add(shown_path(entry.path) + ("/" if entry.is_folder else ""))
        nothing = f"(nothing fits {shown_path(wanted.pattern)} in {shown_path(wanted.path)})"
        return answer.text(walk.cut, nothing, "Use a narrower pattern or a folder further down.")
