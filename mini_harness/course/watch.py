"""`mini-harness watch`: look at `my_harness/` again and again, and grade what has changed."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from mini_harness.course.exercises import PACKAGE, Exercise
from mini_harness.course.grade import grade

SECONDS = 0.5
"""Between two looks. A learner doesn't notice it, and neither does the machine."""


def watch(chosen: Sequence[Exercise], folder: Path) -> int:
    """Until Ctrl-C, which is the way to end it: exit code 0. What is there at the start is new."""
    print(f"Watching {folder / PACKAGE}. Ctrl-C ends it.", flush=True)
    try:
        for _ in changes(folder):
            # Any module may be one that another borrows from.
            for each in chosen:
                print(f"\n{grade(each.id, folder)}", flush=True)
    except KeyboardInterrupt:
        pass
    print("\nNo longer watching.")
    return 0


def changes(folder: Path) -> Iterator[None]:
    """For ever: whenever a module is new, or other, or gone since the last look."""
    seen: dict[str, bytes] = {}
    while True:
        now = modules(folder)
        if now != seen:
            yield
        seen = now
        time.sleep(SECONDS)


def modules(folder: Path) -> dict[str, bytes]:
    """What every module of the learner's package holds now; one that just went away is left out."""
    found = {}
    for file in sorted((folder / PACKAGE).glob("*.py")):
        if not file.is_file():
            continue
        try:
            found[file.stem] = file.read_bytes()
        except OSError:  # just gone, or being written at this moment: the next look sees it
            continue
    return found
