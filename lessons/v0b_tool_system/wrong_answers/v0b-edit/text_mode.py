"""Text mode turns every CRLF into LF, or guesses the encoding."""

import shutil
from pathlib import Path


def edit(path: str, old: str, new: str) -> str:
    """Replace the one passage of a text file that is like old. Say where it was."""
    file = Path(path).resolve()
    before = file.read_text(encoding="utf-8")
    if not old or old == new:
        raise ValueError("old is empty, or new is the same: nothing would change.")
    places = [at for at in range(len(before)) if before.startswith(old, at)]
    if len(places) != 1:
        raise ValueError(f"The passage is in {path} {len(places)} times.")
    at = places[0]
    beside = file.with_name(f".{file.name}.new")
    beside.write_text(before[:at] + new + before[at + len(old) :], encoding="utf-8")
    shutil.copymode(file, beside)
    Path(beside).replace(file)
    line = before.count("\n", 0, at) + 1
    return f"Edited {path}: line {line}."
