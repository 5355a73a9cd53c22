"""Folders in which writing goes wrong, and a process that dies at a chosen moment of it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

NOBODY = 65534
CRASHED = 9
CRASH = """
import os, sys
from pathlib import Path
folder, steps = Path(sys.argv[1]), int(sys.argv[2])
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT

def about_to_write(event, args):
    global steps
    writes = event in ("os.rename", "os.remove", "os.mkdir", "os.chmod") or (
        event == "open" and args[2] is not None and args[2] & WRITING
    )
    if writes and str(args[0]).startswith(str(folder)):
        steps -= 1
        if steps < 0:
            if event == "open" and args[2] & os.O_TRUNC and os.path.exists(args[0]):
                os.truncate(args[0], 0)  # the opening itself has still happened
            os._exit(9)
"""


def crash_at(step: int, program: str, folder: Path) -> bool:
    """Run a program on `folder` that dies at its write number `step`; whether it did.

    The program finds the folder in `folder`. Its imports come first; it dies from its first line
    `armed()` on.
    """
    head = f"{CRASH}\ndef armed():\n    sys.addaudithook(about_to_write)\n"
    done = run_python(head + program, str(folder), str(step))
    assert done.returncode in (0, CRASHED), done.stderr
    return done.returncode == CRASHED


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


@contextmanager
def small_disk(size: str) -> Iterator[Path]:
    """A real file system of that size ("64k"), which root may make; else the test is skipped."""
    with TemporaryDirectory() as folder:
        mounting = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
        try:
            done = subprocess.run(mounting, check=False, capture_output=True, encoding="utf-8")
        except FileNotFoundError:
            pytest.skip("there is no mount command here")
        if done.returncode:
            pytest.skip(f"no file system of our own here: {done.stderr.strip()}")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def make_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach, as pytest's own can't be."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


AS_NOBODY = f"import os\nif os.geteuid() == 0: os.seteuid({NOBODY})\n"
"""A line for a program, after its imports: for root every folder can be written."""


def files_in(folder: Path) -> dict[str, bytes]:
    """All files below a folder, hidden ones too."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
