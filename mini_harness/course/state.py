"""What the commands remember of a workspace, in `.mini-harness/state.json`.

Nothing in it is a learner's work. Whoever loses it gets a backup too many, or sees a hint twice.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

from mini_harness.course.files import write_whole

T = TypeVar("T")
HIDDEN = ".mini-harness"


@dataclass
class State:
    hints: dict[str, int] = field(default_factory=dict)
    """Exercise -> the highest hint seen, from 1."""

    saved: dict[str, str] = field(default_factory=dict)
    """Module -> digest of what a cell last wrote there."""

    shipped: dict[str, str] = field(default_factory=dict)
    """File of the workspace -> digest of the bytes that came from the package."""

    sources: dict[str, str] = field(default_factory=dict)
    """The same, of what a learner can edit in it: see `workspace.fingerprint`."""


def state_file(folder: Path) -> Path:
    return folder / HIDDEN / "state.json"


def load(folder: Path) -> State:
    """The state; a new one where there is none, or none that can be read."""
    try:
        return read(folder)
    except (ValueError, OSError):
        return State()


def read(folder: Path) -> State:
    """Raises ValueError when the file holds something else, OSError when it can't be read."""
    try:
        text = state_file(folder).read_text(encoding="utf-8")
    except FileNotFoundError:
        return State()
    try:
        known = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(known, dict):
        raise ValueError("it isn't a JSON object")
    return State(
        hints=_table(known.get("hints"), int),
        saved=_table(known.get("saved"), str),
        shipped=_table(known.get("shipped"), str),
        sources=_table(known.get("sources"), str),
    )


def _table(value: object, kind: type[T]) -> dict[str, T]:
    entries = value.items() if isinstance(value, dict) else ()
    return {name: entry for name, entry in entries if isinstance(entry, kind)}


def store(folder: Path, state: State) -> None:
    """Raises OSError."""
    text = json.dumps(asdict(state), indent=1, sort_keys=True) + "\n"
    write_whole(state_file(folder), text.encode("utf-8"))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
