"""The files of an audit log on the disk: how they are locked, written and read.

audit.jsonl    one entry a line, only ever appended to
audit.head     how many entries there are, and the hash of the last one
audit.texts    what may be erased later, if the log keeps something apart
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mini_harness.audit_entry import AuditDamaged, Tip
from mini_harness.transcript import sync_folder, write

_SAFE = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_APPEND = os.O_RDWR | os.O_APPEND | _SAFE
_PIECE = 1 << 20
_TICKS = 0.001, 0.01
"""Between two looks whether the lock is free, in seconds: at first, and at most."""
_ADVICE = {
    errno.ENOSPC: "Free some space, then try again; nothing of it was written",
    errno.EDQUOT: "Free some space, then try again; nothing of it was written",
    errno.EACCES: "Choose a folder that can be written to",
    errno.EROFS: "Choose a folder that can be written to",
    errno.EPERM: "Choose a folder that can be written to",
    errno.ELOOP: "A log is never a link to somewhere else",
}


class AuditIsBusy(RuntimeError):
    """Somebody else held the lock of an audit log all the time that one was ready to wait."""


@contextmanager
def explaining(path: Path, what: str) -> Iterator[None]:
    """Errors of the system say what was tried, where, and what to do."""
    try:
        yield
    except OSError as error:
        why, advice = error.strerror or str(error), _ADVICE.get(error.errno or 0, "")
        text = f"The audit log couldn't be {what}: {why}." + (f" {advice}." if advice else "")
        raise OSError(error.errno or errno.EIO, text, str(path)) from error


class AuditFiles:
    """The log and its head. Whoever changes them holds the lock of the log."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.head = log.with_suffix(".head")

    def open(self) -> int:
        """The log, to read and to append to. It is made if there is neither log nor head.

        Raises AuditDamaged if there is only a head that counts entries, and OSError.
        """
        with explaining(self.log, "opened"):
            with suppress(FileNotFoundError):
                return os.open(self.log, _APPEND)
            head = self.read_head()
            if head is None or not head.count:
                self.log.parent.mkdir(parents=True, exist_ok=True)
                return os.open(self.log, _APPEND | os.O_CREAT, 0o600)
            # A head never counts before there is a log: somebody has made it just now, or it is
            # gone.
            with suppress(FileNotFoundError):
                return os.open(self.log, _APPEND)
            why = f"it is gone, and its head counts {head.count} entries"
            raise AuditDamaged(self.log, 0, why)

    @contextmanager
    def locked(self, patience: float) -> Iterator[int]:
        """Hold the log for oneself alone. It ends with the process, however that dies.

        Raises AuditIsBusy, AuditDamaged and OSError.
        """
        descriptor = self.open()
        try:
            _lock(descriptor, self.log, patience, alone=True)
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def watched(self, patience: float) -> Iterator[int]:
        """Keep all writers out for a moment, to read. Raises FileNotFoundError if there is none."""
        descriptor = os.open(self.log, os.O_RDONLY | _SAFE)
        try:
            _lock(descriptor, self.log, patience, alone=False)
            yield descriptor
        finally:
            os.close(descriptor)

    def read_head(self) -> Tip | None:
        """What the head says; None if there is none. Raises AuditDamaged and OSError."""
        try:
            return Tip.from_json(read_small(self.head).decode())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise AuditDamaged(self.head, 0, str(error)) from None

    def write_head(self, tip: Tip) -> None:
        """All of it or nothing, and it would survive a power failure. Raises OSError."""
        replace(self.head, tip.to_json().encode())


def replace(path: Path, data: bytes) -> None:
    """Give a file this content: all of it, or the old one stays. Only for who holds the lock.

    What a process that died has left half done is written over by the next. Raises OSError.
    """
    new = path.with_name(f".{path.name}.new")
    with explaining(path, "written to"):
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _SAFE, 0o600)
        try:
            write(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(new, path)  # noqa: PTH105 - beside the other calls of the system
    sync_folder(path.parent)


def read_small(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | _SAFE)
    try:
        return os.read(descriptor, _PIECE)
    finally:
        os.close(descriptor)


def lines(descriptor: int, start: int, stop: int) -> Iterator[bytes]:
    """The lines between two places, each with its line end; the last may lack one."""
    rest = b""
    while start < stop:
        piece = os.pread(descriptor, min(_PIECE, stop - start), start)
        if not piece:
            break
        start += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def _lock(descriptor: int, path: Path, patience: float, *, alone: bool) -> None:
    try:
        import fcntl
    except ImportError:
        raise OSError(errno.ENOTSUP, "Audit logs need Linux, macOS, or WSL on Windows") from None
    how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    until = time.monotonic() + patience
    tick, longest = _TICKS
    while True:
        try:
            return fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise AuditIsBusy(
                    f"Somebody else has held {path.name} for {patience:g} seconds. An append takes "
                    "milliseconds: look for a process that was stopped in the middle of one."
                ) from None
        time.sleep(tick)
        tick = min(2 * tick, longest)
