"""Replacing files inside the workspace folder, whole and one at a time, and nothing else.

From the workspace folder down, the way to a file is walked folder by folder. Each one is held by
its descriptor and none of them may be a link, and the file is replaced within the folder that is
held. So a link that somebody swaps in between leads nowhere.

The new content is written to a file beside the old one, which then takes its place at once:
whatever happens, the old or the new content is there, and never less. Meanwhile nobody else who
changes files here is at work in that folder, no other thread and no other process. An editor
doesn't ask, so the old content is compared once more at the last moment.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from mini_harness.tools.files import READ, read_whole, refuse_irregular, resolve_inside

P = ParamSpec("P")
T = TypeVar("T")
Holder = Callable[[Path, Path], AbstractContextManager[int]]
"""``open_folder`` or ``make_folder``."""

WAIT = 30.0
"""For how many seconds somebody else may be at work in the folder before a change is given up."""

_HELD = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _HELD
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _HELD
_WALKS = os.open in os.supports_dir_fd
_TICK = 0.002
_GUARDS: WeakValueDictionary[tuple[int, int], threading.Lock] = WeakValueDictionary()
"""For the threads of this process: a guard for each folder, as long as somebody needs it."""
_CHOOSING = threading.Lock()


class Stale(OSError):
    """A file isn't any more what it was when it was looked at."""


@contextmanager
def open_folder(root: Path, place: Path) -> Iterator[int]:
    """Hold a folder by its descriptor. ``place`` has been resolved and lies inside ``root``."""
    with _descended(root, place, enter) as folder:
        yield folder


@contextmanager
def make_folder(root: Path, place: Path) -> Iterator[int]:
    """The same, and every folder on the way that is missing is made."""
    with _descended(root, place, _make_and_enter) as folder:
        yield folder


@contextmanager
def _descended(root: Path, place: Path, enter: Callable[[str, int], int]) -> Iterator[int]:
    if not _WALKS:
        raise OSError(errno.ENOTSUP, "This needs Linux, macOS, or WSL on Windows")
    base = os.path.realpath(root)
    folder = os.open(base, _FOLDER)
    try:
        for part in place.relative_to(base).parts:
            inner = enter(part, folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def enter(name: str, folder: int) -> int:
    """Open a folder within one that is held; not through a link. The caller closes it."""
    return os.open(name, _FOLDER, dir_fd=folder)


def _make_and_enter(name: str, folder: int) -> int:
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return enter(name, folder)


# --- files that are replaced


@dataclass(frozen=True)
class HeldFile:
    """A file that may be replaced, in a folder where nobody else of us is at work."""

    folder: int
    place: Path
    path: str
    """As the caller named it, for errors."""
    alone: bool
    """Whether other processes are kept out, too."""

    @property
    def name(self) -> str:
        return self.place.name

    def read(self) -> bytes | None:
        """The whole content, or None if there is no such file.

        Raises PermissionError, IsADirectoryError, or OSError for more than MAX_WHOLE bytes.
        """
        if self._status() is None:
            return None
        descriptor = os.open(self.name, READ | _HELD, dir_fd=self.folder)
        with os.fdopen(descriptor, "rb") as file:
            refuse_irregular(os.fstat(descriptor), self.path)
            return read_whole(file, self.path)

    def replace(self, before: bytes | None, data: bytes) -> None:
        """Put new content in the place of ``before``, at once and whole.

        Mode bits are kept, and the owner where that is allowed; hard links, access lists and
        extended attributes are not. Raises Stale if the content isn't ``before`` any more, and
        other OSErrors; then everything is as it was.
        """
        with self._beside(data) as temporary:
            if self.read() != before:
                reason = "It has changed in this very moment"
                raise Stale(errno.EAGAIN, reason, self.path)
            self._move(temporary)

    def overwrite(self, data: bytes) -> None:
        """The same, whatever was in the file before, if there was one."""
        with self._beside(data) as temporary:
            self._move(temporary)

    @contextmanager
    def _beside(self, data: bytes) -> Iterator[str]:
        """The name of a temporary file with this content, which is gone afterwards."""
        status = self._status()
        temporary = self._temporary()
        descriptor = self._create(temporary, 0o666 if status is None else 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if status is not None:
                    self._keep_rights(descriptor, status)
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            yield temporary
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=self.folder)
            raise

    def _move(self, temporary: str) -> None:
        os.replace(temporary, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        # The change is made. Some file systems can't do this for a folder.
        with suppress(OSError):
            os.fsync(self.folder)

    def _status(self) -> os.stat_result | None:
        try:
            status = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        refuse_irregular(status, self.path)
        return status

    def _temporary(self) -> str:
        # What a crash left behind has the name that the next change of this file needs.
        unique = self.name if self.alone else secrets.token_hex(8)
        return f".{hashlib.sha256(os.fsencode(unique)).hexdigest()[:16]}.tmp"

    def _create(self, temporary: str, mode: int) -> int:
        try:
            return os.open(temporary, _NEW, mode, dir_fd=self.folder)
        except FileExistsError:
            os.unlink(temporary, dir_fd=self.folder)
            return os.open(temporary, _NEW, mode, dir_fd=self.folder)

    def _keep_rights(self, descriptor: int, status: os.stat_result) -> None:
        # Whoever may not write to a file may not replace it either.
        os.close(os.open(self.name, os.O_WRONLY | READ | _HELD, dir_fd=self.folder))
        mode, now = stat.S_IMODE(status.st_mode), os.fstat(descriptor)
        if (now.st_uid, now.st_gid) != (status.st_uid, status.st_gid):
            try:
                os.fchown(descriptor, status.st_uid, status.st_gid)
            except OSError:
                # "Run as the owner" would mean somebody else now.
                mode &= 0o777
        os.fchmod(descriptor, mode)


def file_place(root: Path, path: str) -> Path:
    """Where a file is, or would be made, as ``resolve_inside`` says it.

    Raises IsADirectoryError for a path that can only be a folder's, and OSError for one that is
    too long: folder by folder it could be made, and then nobody could open it.
    """
    place = resolve_inside(root, path)
    if path.rpartition("/")[2] in ("", ".", "..") or place == Path(os.path.realpath(root)):
        raise IsADirectoryError(errno.EISDIR, "It is a directory", path)
    longest = max(place.parts, key=lambda part: len(os.fsencode(part)))
    # What the system takes, it knows best. Below a folder that isn't there, it looks at no name.
    for each in (place, root / longest):
        with suppress(FileNotFoundError, NotADirectoryError):
            each.lstat()
    return place


@contextmanager
def hold_file(root: Path, path: str, holder: Holder = open_folder) -> Iterator[HeldFile]:
    """Hold the folder of a file, so that the file can be replaced and nobody comes between.

    A link is followed to the file that it means. Raises OSError, also after WAIT seconds in
    which somebody else was at work in the folder.
    """
    place = file_place(root, path)
    with holder(root, place.parent) as folder, _alone(folder, path) as alone:
        yield HeldFile(folder, place, path, alone)


def write_inside(root: Path, path: str, data: bytes) -> None:
    """Write a file whatever was in it, at once and whole; missing folders are made.

    Raises OSError.
    """
    with hold_file(root, path, make_folder) as held:
        held.overwrite(data)


@contextmanager
def _alone(folder: int, path: str) -> Iterator[bool]:
    """Keep all others who change files here out of this folder: threads, then processes."""
    until = time.monotonic() + WAIT
    status = os.fstat(folder)
    with _CHOOSING:
        guard = _GUARDS.setdefault((status.st_dev, status.st_ino), threading.Lock())
    if not guard.acquire(timeout=WAIT):
        raise _busy(path)
    try:
        with _locked(folder, path, until) as locked:
            yield locked
    finally:
        guard.release()


@contextmanager
def _locked(folder: int, path: str, until: float) -> Iterator[bool]:
    """Hold the folder's lock, which ends with the process. False where there are no such locks."""
    import fcntl

    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > until:
                raise _busy(path) from None
            time.sleep(_TICK)
        except OSError:
            # Some network file systems have none.
            yield False
            return
    try:
        yield True
    finally:
        fcntl.flock(folder, fcntl.LOCK_UN)


def _busy(path: str) -> OSError:
    reason = f"For {WAIT:g} seconds, somebody else has been changing files in its folder"
    return OSError(errno.EBUSY, reason, path)


async def whole(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that blocks, in a thread. If cancelled, wait for its end, then go on up.

    So nothing is still being changed when a cancellation arrives at the top.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        # Looked at, so that asyncio doesn't report an error that nobody saw.
        task.exception()
        raise
