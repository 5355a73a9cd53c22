"""`replace` takes every passage, also the one that nobody meant."""

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
    if old not in before:
        raise ValueError(f"The passage isn't in {path}.")
    at = before.index(old)
    beside = file.with_name(f".{file.name}.new")
    beside.write_bytes(before.replace(old, new))
    shutil.copymode(file, beside)
    Path(beside).replace(file)
    line = before.count(b"\n", 0, at) + 1
    return f"Edited {path}: line {line}."
