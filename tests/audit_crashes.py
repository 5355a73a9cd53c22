"""A world in which an audit log is written, and every process may be killed.

One life opens the log, appends until it has LONG entries, erases the text of the second one, and
notes each entry that it was told is safe.
"""

import os
import sys
from pathlib import Path

from mini_harness.audit import AuditLog
from tests.crashes import serve

LONG = 3


def opened(folder: Path) -> AuditLog:
    return AuditLog(folder / "audit.jsonl", erasable=["text"])


def go_on(folder: Path) -> None:
    log = opened(folder).start()
    while (count := log.tip().count) < LONG:
        noted(folder, log.append("user_prompt", {"text": f"text {count + 1}"}, timestamp=1).hash)
    if log.tip().count == LONG:
        noted(folder, log.erase(2, "asked").hash)


def noted(folder: Path, what: str) -> None:
    descriptor = os.open(folder / "safe", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{what}\n".encode())
    os.close(descriptor)


def safe(folder: Path) -> list[str]:
    """The hashes of the entries that somebody was told are safe."""
    path = folder / "safe"
    return path.read_text(encoding="utf-8").split() if path.exists() else []


if __name__ == "__main__":
    serve(Path(sys.argv[1]), {"told": go_on})
