"""Writing files, and what is common to all tools that change one.

A change is made in one piece: the file is held, read, changed, compared once more and replaced,
and meanwhile nobody else of us is at work in its folder (see ``places``). What a tool has read or
written it notes in its metadata, and the run's history keeps that. So ``write_file`` can refuse to
replace a content that the model doesn't know (report O04), also after a resume. To know it, one
line that was shown, or one passage that was edited, is enough: what is to be kept safe is what
somebody else has changed meanwhile, not what the model didn't care to read.
"""

from __future__ import annotations

import errno
import hashlib
import io
from abc import abstractmethod
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from mini_harness.run import Run
from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult
from mini_harness.tools.diff import unified_diff
from mini_harness.tools.files import (
    MAX_WHOLE,
    as_opened,
    name_inside,
    note_of,
    open_inside,
    quoted_path,
    read_whole,
    shown_path,
)
from mini_harness.tools.places import Holder, file_place, hold_file, make_folder, open_folder, whole
from mini_harness.visible import counted

BOM = b"\xef\xbb\xbf"

_NOWHERE = "Choose another place inside the workspace folder, or ask the user"
_FULL = "The file is as it was. Space must be freed before this can work"
_ADVICE = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _NOWHERE,
    errno.EACCES: _NOWHERE,
    errno.EPERM: _NOWHERE,
    errno.ENOTDIR: "A part of its path is a file, or a link that somebody has just put there",
    errno.ELOOP: "A part of its path is a link that leads nowhere",
    errno.EFBIG: "Change it with a shell command",
    errno.EAGAIN: "Read it again, then decide anew",
    errno.EBUSY: "Try again later",
    errno.ENAMETOOLONG: "Choose a shorter one",
}


class Refused(Exception):
    """A change that isn't made. The text says why, and what to do."""


class Change(NamedTuple):
    """What becomes of a file: all its bytes, and what the model is told about it."""

    data: bytes
    said: str


class FileChange(BaseTool):
    """A tool that changes one text file. Subclasses say in ``change`` what becomes of it.

    The metadata of a success are ``file`` and ``sha256`` (``files.note_of``).
    """

    holder: Holder = staticmethod(open_folder)

    @abstractmethod
    def change(self, wanted: Any, before: bytes | None, seen: str | None) -> Change:
        """The new content. Raises Refused.

        ``before`` is all that is in the file, None if there is none. ``seen`` is the hash of what
        this run last read from it or wrote to it, None if it did neither.
        """

    def paths(self, arguments: Any) -> list[str]:
        return [as_opened(arguments.path)]

    def preview(self, arguments: Any, context: ToolExecutionContext) -> str:
        """The diff, in at most ``diff.MAX_BYTES``, or why the call would be refused."""
        try:
            # Nobody is kept out meanwhile: a question may stay open for days.
            place = file_place(context.cwd, arguments.path)
            before = _content(context.cwd, place)
            file = name_inside(context.cwd, place)
            change = self._judged(arguments, before, last_seen(context.run, file))
        except (OSError, Refused) as error:
            return f"Nothing: the call would be refused. {explained(arguments.path, error)}"
        return unified_diff(shown_path(arguments.path), before, change.data)

    async def execute(self, arguments: Any, context: ToolExecutionContext) -> ToolResult:
        """Every failure is an error result that names the path and says what to do."""
        return await whole(self._apply, arguments, context)

    def _apply(self, wanted: Any, context: ToolExecutionContext) -> ToolResult:
        try:
            with hold_file(context.cwd, wanted.path, self.holder) as held:
                file = name_inside(context.cwd, held.place)
                before = held.read()
                change = self._judged(wanted, before, last_seen(context.run, file))
                held.replace(before, change.data)
        except (OSError, Refused) as error:
            return ToolResult(explained(wanted.path, error), is_error=True)
        return ToolResult(change.said, metadata=note_of(file, change.data))

    def _judged(self, wanted: Any, before: bytes | None, seen: str | None) -> Change:
        """The change, if it is one and may be made. Raises Refused."""
        if before is not None and b"\0" in before:
            raise Refused("It is a binary file, and this tool changes text")
        change = self.change(wanted, before, seen)
        if b"\0" in change.data:
            raise Refused("A text can't hold a NUL character. Leave it out")
        if len(change.data) > MAX_WHOLE:
            raise Refused(f"It would have more than {MAX_WHOLE:,} bytes. Write less")
        if change.data == before:
            raise Refused("Nothing would change: this is what is in it already")
        return change


def _content(root: Path, place: Path) -> bytes | None:
    try:
        with io.FileIO(open_inside(root, str(place))) as file:
            return read_whole(file, str(place))
    except FileNotFoundError:
        return None


def explained(path: str, error: OSError | Refused) -> str:
    """What the model is told about a change that wasn't made."""
    shown = quoted_path(path)
    match error:
        case FileNotFoundError():
            return f"File not found: {shown_path(path)}"
        case IsADirectoryError():
            return f"Cannot write to a directory: {shown}. Name a file."
        case Refused():
            return f"Cannot change file: {shown}. {error}."
        case _:
            advice = _ADVICE.get(error.errno or 0)
            why = f"{error.strerror or error}." + (f" {advice}." if advice else "")
            return f"Cannot change file: {shown}. {why}"


def last_seen(run: Run | None, file: str) -> str | None:
    """The hash of what this run last read from a file or wrote to it, as its history says.

    ``file`` is its path as ``files.name_inside`` gives it.
    """
    for message in reversed(() if run is None else run.history.messages):
        noted = message.get("metadata") or {}
        if noted.get("file") == file and "sha256" in noted:
            return str(noted["sha256"])
    return None


def encoded(text: str) -> bytes:
    """The text in UTF-8. Raises Refused for half of a character."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Refused("The text holds half of a character (a lone surrogate)") from None


def ending_of(text: bytes) -> bytes | None:
    """The line end that a text has throughout: LF or CRLF. None if it has both or neither."""
    lines, pairs = text.count(b"\n"), text.count(b"\r\n")
    if pairs not in (0, lines) or not lines:
        return None
    return b"\r\n" if pairs else b"\n"


def with_ending(text: bytes, ending: bytes) -> bytes:
    """The text with this line end throughout. A CR that stands alone ends no line."""
    return text.replace(b"\r\n", b"\n").replace(b"\n", ending)


class WriteFileInput(BaseModel):
    path: str = Field(description="The file, relative to the workspace folder.")
    content: str = Field(description="All that is to be in the file.")


class WriteFile(FileChange):
    """Write a whole text file; missing folders are made (report O04).

    A file that exists is replaced only if this run knows its present content: the last thing that
    it read from it or wrote to it. Its byte order mark stays, and so does its line end, if it has
    the same one throughout. At most ``files.MAX_WHOLE`` bytes.
    """

    name = "write_file"
    description = (
        "Write a whole text file in the workspace folder. Missing folders are made. A file that "
        "exists already must have been read before; to change a part of it, use edit_file."
    )
    input_model = WriteFileInput
    holder = staticmethod(make_folder)

    def change(self, wanted: WriteFileInput, before: bytes | None, seen: str | None) -> Change:
        data = encoded(wanted.content)
        if before is None:
            return Change(data, f"Created {shown_path(wanted.path)}: {_size(data)}.")
        if seen is None:
            raise Refused("It exists already, and its content isn't known. Read it first")
        if seen != hashlib.sha256(before).hexdigest():
            raise Refused("It has changed since it was read. Read it again")
        if ending := ending_of(before):
            data = with_ending(data, ending)
        if before.startswith(BOM):
            data = BOM + data.removeprefix(BOM)
        kept = " Line ends and byte order mark stayed as they were."
        adapted = "" if data == encoded(wanted.content) else kept
        return Change(data, f"Wrote {shown_path(wanted.path)}: {_size(data)}.{adapted}")


def _size(data: bytes) -> str:
    lines = data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    return f"{counted(lines, 'line')}, {counted(len(data), 'byte')}"
