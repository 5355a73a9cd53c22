"""Writing a file so that it is either the old one or the new one, whatever happens meanwhile."""

import errno
import os
import shutil
import threading
from pathlib import Path

NO_ROOM = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
NO_RIGHT = {errno.EACCES, errno.EPERM, errno.EROFS}
NO_PLACE = {errno.EEXIST, errno.EISDIR, errno.ENOTDIR}


def write_whole(path: Path, content: bytes) -> None:
    """All of it or nothing: written beside, made durable, then put in its place.

    A link stays a link: what it leads to is written. Raises OSError, for a file marked read-only
    too, and then the old file is as it was.
    """
    try:
        path = path.resolve()
    except RuntimeError as error:  # before Python 3.13, for links that lead in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error
    if path.exists():
        path.open("r+b").close()  # a file marked read-only is not to be replaced either
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        _write(part, content, "wb")
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that isn't there yet. Raises FileExistsError, and any other OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(exist_ok=False)
    try:
        _write(path, content, "r+b")
    except OSError:
        path.unlink()
        raise


def _write(path: Path, content: bytes, mode: str) -> None:
    with path.open(mode) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def is_there(path: Path) -> bool:
    """A link counts even when it leads nowhere: somebody put it there."""
    return path.exists() or path.is_symlink()


def plain(error: OSError) -> str:
    """What went wrong and what mends it, in two short sentences."""
    says = error.strerror or str(error)
    if error.errno in NO_ROOM:
        return f"There is no room left ({says}). Make some, and try again."
    if error.errno in NO_RIGHT:
        return (
            f"There is no right to do that here ({says}). Give yourself the right, "
            "or take another folder with --workspace DIR."
        )
    if error.errno in NO_PLACE:
        return (
            f"Something stands where a file or a folder of the course belongs ({says}): "
            f"{error.filename}. Rename it."
        )
    return f"The system says: {says}. `mini-harness doctor` looks for the cause."
