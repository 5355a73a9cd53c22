"""The file of a session: one line of JSON for each event, and nothing that was written is lost.

A line counts from its line end on. So a line that a crash tore is none: readers leave it out, and
the next writer takes it away before it appends. Whatever else isn't as it was written is damage,
and is refused. One writes at a time, which the system's lock on the file sees to; it ends with the
process that holds it, however that dies.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_OLD = os.O_RDWR | os.O_APPEND
_SAFE = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_TICK = 0.01
_ADVICE = {
    errno.ENOSPC: "Free some space, then resume the run",
    errno.EDQUOT: "Free some space, then resume the run",
    errno.EFBIG: "A file may not become that large here",
    errno.EROFS: "Choose a folder that can be written to",
    errno.EACCES: "Choose a folder that can be written to",
    errno.EPERM: "Choose a folder that can be written to",
    errno.ENOENT: "Somebody has removed it",
    errno.EEXIST: "Open the session that has this id, or choose another",
}


class SessionIsBusy(RuntimeError):
    """Somebody else is writing to this session at the moment."""


class DamagedSession(ValueError):
    """A file of a session isn't what was written. ``line`` counts from 1."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        super().__init__(f"Line {line} of {path.name} is damaged: {why}")
        self.path, self.line = path, line


class Line(NamedTuple):
    """One whole line. ``start`` and ``end`` are its bytes in the file, ``number`` counts from 1."""

    number: int
    start: int
    end: int
    text: bytes


class Transcript:
    """Reads lines, and appends them while it holds the lock. ``end`` is as far as it has read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.end = 0
        self._descriptor: int | None = None
        self._is_torn = False
        """Whether an append was interrupted, so that something may stand after ``end``."""

    @classmethod
    def create(cls, path: Path, header: bytes) -> None:
        """Make the file, with its first line.

        What a creation that died has left is taken over. Raises OSError, FileExistsError if there
        is more than that.
        """
        with explaining(path, "made"):
            descriptor = os.open(path, _OLD | os.O_CREAT | _SAFE, 0o600)
            try:
                found = os.pread(descriptor, len(header) + 1, 0)
                if not header.startswith(found):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                write(descriptor, header[len(found) :])
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            sync_folder(path.parent)

    # --- reading

    def read(self, start: int, number: int, stop: int | None = None) -> Iterator[Line]:
        """The whole lines from byte ``start`` on, which begins line ``number``; up to ``stop``."""
        with explaining(self.path, "read"), self.path.open("rb") as file:
            file.seek(start)
            for text in file:
                if not text.endswith(b"\n") or start == stop:
                    return
                yield Line(number, start, start + len(text), text[:-1])
                start, number = start + len(text), number + 1

    def part(self, start: int, stop: int) -> bytes:
        """What stands between two places in the file."""
        with explaining(self.path, "read"), self.path.open("rb") as file:
            file.seek(start)
            return file.read(stop - start)

    def find(self, text: bytes, start: int, stop: int) -> bool:
        """Whether these bytes stand somewhere between the two places."""
        return text in self.part(start, stop)

    def size(self) -> int:
        with explaining(self.path, "read"):
            return self.path.stat().st_size

    # --- writing

    @property
    def is_locked(self) -> bool:
        return self._descriptor is not None

    def lock(self, patience: float) -> None:
        """Become the one writer, within ``patience`` seconds. Raises SessionIsBusy, OSError."""
        with explaining(self.path, "opened"):
            descriptor = os.open(self.path, _OLD | _SAFE)
        try:
            _lock(descriptor, self.path, patience)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def unlock(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def repair(self) -> int:
        """Take away what comes after the last whole line. How many bytes that were."""
        size = os.fstat(self._held).st_size
        if size > self.end:
            with explaining(self.path, "repaired"):
                os.ftruncate(self._held, self.end)
        return size - self.end

    def append(self, line: bytes, *, durable: bool) -> None:
        """Write one line, with its line end. After an error the file is as it was.

        ``durable`` waits until it would survive a power failure; so does all that was written
        before. Without that it survives the end of this process. Raises OSError.
        """
        held = self._held
        try:
            if self._is_torn:
                os.ftruncate(held, self.end)
            # Until the line is whole: somebody may interrupt this at any moment.
            self._is_torn = True
            write(held, line)
            if durable:
                os.fsync(held)
        except BaseException as error:
            # If even that fails, the next append tries it again.
            with suppress(OSError):
                os.ftruncate(held, self.end)
                self._is_torn = False
            if isinstance(error, OSError):
                raise _explained(error, self.path, "written to") from error
            raise
        self.end += len(line)
        self._is_torn = False

    def make_sure(self) -> None:
        """The file is still there, and ends where it should. Raises OSError if not."""
        status = os.fstat(self._held)
        if status.st_nlink == 0:
            gone = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            raise _explained(gone, self.path, "written to")
        if status.st_size < self.end:
            shorter = OSError(errno.EIO, "It has become shorter, so somebody changed it")
            raise _explained(shorter, self.path, "written to")

    @property
    def _held(self) -> int:
        if self._descriptor is None:
            raise RuntimeError("Only who holds the lock of a transcript may write to it.")
        return self._descriptor


@contextmanager
def explaining(path: Path, what: str) -> Iterator[None]:
    """Errors of the system say what was tried, where, and what to do."""
    try:
        yield
    except OSError as error:
        raise _explained(error, path, what) from error


def _explained(error: OSError, path: Path, what: str) -> OSError:
    """An error of the system, with what was tried, where, and what to do."""
    why, advice = error.strerror or str(error), _ADVICE.get(error.errno or 0, "")
    text = f"The session's file couldn't be {what}: {why}." + (f" {advice}." if advice else "")
    return OSError(error.errno or errno.EIO, text, str(path))


def write(descriptor: int, data: bytes) -> None:
    """All of it. The system may take less at a time, as when a disk is almost full."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, data[written:])


def _lock(descriptor: int, path: Path, patience: float) -> None:
    try:
        import fcntl
    except ImportError:
        raise OSError(errno.ENOTSUP, "Sessions need Linux, macOS, or WSL on Windows") from None
    until = time.monotonic() + patience
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise SessionIsBusy(
                    f"Somebody else is writing to session {path.stem}: another process, or another "
                    "Session object in this one. Wait until its run has ended, or close() it."
                ) from None
        time.sleep(_TICK)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder would survive a power failure, where that can be done."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
