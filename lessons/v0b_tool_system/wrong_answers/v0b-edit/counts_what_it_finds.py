"""`count` goes on after the passage that it has found, so it misses one that overlaps."""

import shutil
from pathlib import Path


def edit(path: str, old: str, new: str) -> str:
    """Replace the one passage of a text file that is like old. Say where it was."""
    file = Path(path).resolve()
    before = file.read_bytes()
    old, new = old.encode(), new.encode()
    if b"\r\n" in before:
        old, new = (each.replace(b"\n", b"\r\n") for each in (old, new))
    if not old or old == new:
        raise ValueError("old is empty, or new is the same: nothing would change.")
    times = before.count(old)
    if times != 1:
        raise ValueError(f"The passage is in {path} {times} times. Give one that is there once.")
    at = before.index(old)
    beside = file.with_name(f".{file.name}.new")
    beside.write_bytes(before[:at] + new + before[at + len(old) :])
    shutil.copymode(file, beside)
    Path(beside).replace(file)
    line = before.count(b"\n", 0, at) + 1
    return f"Edited {path}: line {line}."
