"""Reading files, and only those inside the workspace folder.

Paths are resolved, then compared, then opened without following a swapped link. On Linux that
holds whatever somebody does to the folders meanwhile: the file is first opened as a mere place
(``O_PATH``, which neither blocks nor touches it), the kernel is asked where that place is, and
then that very file is opened for reading. Other systems have no ``O_PATH``. There the path is
resolved and compared before *and* after opening, which leaves a gap of microseconds to somebody
who swaps links at exactly the right moments. A hard link has no other place, so it counts as
inside.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import os
import stat
from pathlib import Path
from typing import BinaryIO, TypeAlias

from pydantic import BaseModel, Field

from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult

MAX_BYTES = 50 * 1024
"""The longest answer of ``read_file``, in UTF-8 bytes, its closing note included."""

MAX_WHOLE = 10 * 1024 * 1024
"""The largest file, in bytes, that is read as a whole: to be hashed, edited or overwritten."""

READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""How to open a file that may have become a FIFO meanwhile: without waiting for anybody."""

_NOTE_ROOM = 256
_BLOCK = 65_536
_BINARY_LOOK = 8_192
_BOM = b"\xef\xbb\xbf"
_DESCRIPTORS = Path("/proc/self/fd")
_KINDS = {
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFLNK: "link",
}

_Reader: TypeAlias = "io.BufferedReader[io.FileIO]"


class BinaryFile(ValueError):
    """A file holds a NUL byte, so it is no text."""


def unusable(text: str) -> str | None:
    """Why no system call takes this text, or None if it does."""
    if "\0" in text:
        return "It holds a NUL character"
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return "It holds half of a character (a lone surrogate)"
    return None


def resolve_inside(root: Path, path: str) -> Path:
    """Where a path leads, links followed, relative ones seen from ``root``; it needn't exist.

    Raises PermissionError, with the path and the reason in it, if that is outside (SEEDS C24),
    FileNotFoundError and NotADirectoryError for ``x/..`` where x is no folder, as the system does,
    and OSError for a text that can't be a path.
    """
    if reason := unusable(path):
        raise OSError(errno.EINVAL, reason, path)
    place = Path(os.path.realpath(root / path))
    if not place.is_relative_to(os.path.realpath(root)):
        raise _outside(path)
    parts = Path(path).parts
    if ".." in parts:
        # To realpath, "x/.." is nothing, whatever x is. Only the system knows.
        last = len(parts) - parts[::-1].index("..")
        root.joinpath(*parts[:last]).stat()
    return place


def as_opened(path: str) -> str:
    """A path as a policy must take it: for the tools of this package, "~" is a name like any."""
    return f"./{path}" if path.startswith("~") else path


def open_inside(root: Path, path: str) -> int:
    """Open a regular file inside ``root`` for reading. Returns its descriptor.

    Never blocks. Raises PermissionError for a place outside and for a FIFO, device or socket
    (SEEDS C24), IsADirectoryError, FileNotFoundError, or another OSError.
    """
    if reason := unusable(path):
        raise OSError(errno.EINVAL, reason, path)
    opener = _open_place if hasattr(os, "O_PATH") and _DESCRIPTORS.is_dir() else _open_checked
    return opener(root, path)


def _open_place(root: Path, path: str) -> int:
    """Linux: hold the place, ask where it is, and open what is held."""
    try:
        place = os.open(root / path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        # Of what lies outside, nobody needs to know whether it exists.
        resolve_inside(root, path)
        raise
    try:
        held = _DESCRIPTORS / str(place)
        if not held.readlink().is_relative_to(os.path.realpath(root)):
            raise _outside(path)
        refuse_irregular(os.fstat(place), path)
        return os.open(held, READ | os.O_CLOEXEC)
    finally:
        os.close(place)


def _open_checked(root: Path, path: str) -> int:
    """Elsewhere: compare, open, and compare what was opened."""
    place = resolve_inside(root, path)
    refuse_irregular(place.stat(), path)
    descriptor = os.open(place, READ | getattr(os, "O_NOFOLLOW", 0))
    try:
        opened = os.fstat(descriptor)
        refuse_irregular(opened, path)
        if not os.path.samestat(opened, resolve_inside(root, path).lstat()):
            raise _outside(path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _outside(path: str) -> PermissionError:
    reason = "With its links followed, it lies outside the workspace folder"
    return PermissionError(errno.EACCES, reason, path)


def refuse_irregular(status: os.stat_result, path: str) -> None:
    """Raise IsADirectoryError or PermissionError for whatever isn't a regular file."""
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, "It is a directory", path)
    if kind != stat.S_IFREG:
        reason = f"It is a {_KINDS.get(kind, 'special file')}, not a regular file"
        raise PermissionError(errno.EACCES, reason, path)


def read_whole(file: BinaryIO, path: str) -> bytes:
    """All that is in an open file. Raises OSError for more than MAX_WHOLE bytes."""
    data = file.read(MAX_WHOLE + 1)
    if len(data) > MAX_WHOLE:
        reason = f"It has more than {MAX_WHOLE:,} bytes, and that is too large for this tool"
        raise OSError(errno.EFBIG, reason, path)
    return data


def name_inside(root: Path, place: Path) -> str:
    """The path of a resolved place as seen from the workspace folder, with "/" in it."""
    return readable(place.relative_to(os.path.realpath(root)).as_posix())


def readable(name: str) -> str:
    """A name that isn't UTF-8 in a form that can be recorded."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def shown_path(path: str) -> str:
    """A path as it stands in a text: on one line, and nothing in it that can't be seen."""
    return path if path.isprintable() else repr(path)


def quoted_path(path: str) -> str:
    """The same within a sentence: in quotes where a reader can't see its end."""
    return repr(path) if path.endswith((".", " ")) or not path else shown_path(path)


def note_of(file: str, data: bytes) -> dict[str, str]:
    """What the metadata of a tool say of a file: its ``name_inside``, and a hash of all its bytes.

    So the history of a run tells which content the model has seen last.
    """
    return {"file": file, "sha256": hashlib.sha256(data).hexdigest()}


class ReadFileInput(BaseModel):
    path: str = Field(description="The file, relative to the workspace folder.")
    offset: int = Field(0, ge=0, description="How many lines to leave out at the beginning.")
    limit: int = Field(200, ge=1, le=2000, description="How many lines to show.")


class ReadFile(BaseTool):
    """Show some lines of a text file, each with its number (SEEDS B10 to B12, C24).

    Memory and answer are bounded, whatever the size of the file and of its lines: an answer has
    at most MAX_BYTES. Where something is left out, the last line says so, and how to go on.
    A line ends with LF or CRLF and with nothing else. A byte order mark isn't shown. A file is
    binary if a NUL byte is in its first 8 KiB or in a line up to the last one shown.
    The metadata are ``file`` and ``sha256`` (``note_of``), for a file of at most MAX_WHOLE bytes.
    They name its whole content, however few lines are shown; if none is, they are missing.
    """

    name = "read_file"
    description = (
        "Read some lines of a text file in the workspace folder. "
        "Every line is shown with its number, counted from 1."
    )
    input_model = ReadFileInput

    def is_read_only(self, arguments: ReadFileInput) -> bool:
        return True

    def paths(self, arguments: ReadFileInput) -> list[str]:
        return [as_opened(arguments.path)]

    async def execute(self, arguments: ReadFileInput, context: ToolExecutionContext) -> ToolResult:
        """Every failure is an error result that names the path."""
        # A disk may take its time, and an event loop can't wait.
        return await asyncio.to_thread(_read, context.cwd, arguments)


def _read(root: Path, wanted: ReadFileInput) -> ToolResult:
    shown = shown_path(wanted.path)
    try:
        source = io.FileIO(open_inside(root, wanted.path))
        with io.BufferedReader(source, _BLOCK) as file:
            # First the hash: if somebody writes to the file just now, it is the older content's.
            note = _note(root, wanted.path, file)
            text = _select(file, wanted.offset, wanted.limit)
    except (FileNotFoundError, NotADirectoryError):
        return ToolResult(f"File not found: {shown}", is_error=True)
    except IsADirectoryError:
        return ToolResult(f"Cannot read directory: {shown}", is_error=True)
    except BinaryFile:
        return ToolResult(f"Binary file cannot be read as text: {shown}", is_error=True)
    except OSError as error:
        text = f"Cannot read file: {quoted_path(wanted.path)}. {error.strerror or error}."
        return ToolResult(text, is_error=True)
    if not text:
        # Without lines left out at the beginning, nothing is all that there is.
        note = note if wanted.offset == 0 else {}
    return ToolResult(text or f"(no content in selected range for {shown})", metadata=note)


def _note(root: Path, path: str, file: _Reader) -> dict[str, str]:
    """The note on an open file; none if it is too large, or isn't where its path leads any more."""
    opened = os.fstat(file.fileno())
    if opened.st_size > MAX_WHOLE:
        return {}
    try:
        data = read_whole(file, path)
        place = resolve_inside(root, path)
        same = os.path.samestat(opened, place.lstat())
    except OSError:
        return {}
    finally:
        file.seek(0)
    return note_of(name_inside(root, place), data) if same else {}


def _select(file: _Reader, offset: int, limit: int) -> str:
    """The wanted lines as they are shown, and a note if there are more. Raises BinaryFile."""
    start = file.peek(_BINARY_LOOK)[:_BINARY_LOOK]
    _refuse_binary(start)
    if start.startswith(_BOM):
        file.read(len(_BOM))
    for _ in range(offset):
        if not _skip_line(file):
            return ""
    lines: list[str] = []
    room = MAX_BYTES - _NOTE_ROOM
    for number in range(offset + 1, offset + limit + 1):
        piece = file.readline(room)
        if not piece:
            return "\n".join(lines)
        _refuse_binary(piece)
        line = f"{number:>6}\t{_text(piece)}"
        size = len(line.encode()) + 1
        if size > room:
            return _cut(lines, line, number)
        lines.append(line)
        room -= size
    return "\n".join(lines) + (_more(offset + limit) if file.peek(1) else "")


def _cut(lines: list[str], line: str, number: int) -> str:
    """The end of an answer that has become too long: before this line, or else inside it."""
    if lines:
        return "\n".join(lines) + _more(number - 1)
    part = line.encode()[: MAX_BYTES - _NOTE_ROOM].decode(errors="ignore")
    return (
        f"{part}\n[Line {number} is cut: it has more than the {len(part.encode()):,} bytes shown. "
        f"Another tool must show its rest. The next line, if any, is at offset={number}.]"
    )


def _more(last: int) -> str:
    return f"\n[More follows after line {last}. To go on, read with offset={last}.]"


def _skip_line(file: _Reader) -> bool:
    """Read past one line, however long it is. False at the end of the file."""
    piece = b""
    while block := file.readline(_BLOCK):
        _refuse_binary(block)
        piece = block
        if piece.endswith(b"\n"):
            break
    return bool(piece)


def _refuse_binary(data: bytes) -> None:
    if b"\0" in data:
        raise BinaryFile


def _text(line: bytes) -> str:
    ending = b"\r\n" if line.endswith(b"\r\n") else b"\n"
    return line.removesuffix(ending).decode(errors="replace")
