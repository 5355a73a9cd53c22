"""The file is written over in place. If that stops half-way, half of it is lost."""

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
    places = [at for at in range(len(before)) if before.startswith(old, at)]
    if len(places) != 1:
        raise ValueError(
            f"The passage is in {path} {len(places)} times. Give one that is there once."
        )
    at = places[0]
    file.write_bytes(before[:at] + new + before[at + len(old) :])
    line = before.count(b"\n", 0, at) + 1
    return f"Edited {path}: line {line}."
