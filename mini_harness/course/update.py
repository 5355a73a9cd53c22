"""`mini-harness update`: the lessons of the installed release, without losing a learner's edits.

Each file is dealt with by itself, and each write is all or nothing: an update that was stopped half
way is finished by the next one.
"""

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Literal, NamedTuple

from mini_harness.course.files import is_there, plain, write_whole
from mini_harness.course.state import State, digest, load, store
from mini_harness.course.workspace import WorkspaceError, fingerprint, keep, note_release, release

Fate = Literal["added", "replaced", "beside", "yours", "current"]
TITLES: Mapping[Fate, str] = {
    "added": "Added:",
    "replaced": "Replaced, since you had changed no cell:",
    "beside": "Changed by you, so it stays; the new version lies beside it:",
    "yours": "Changed by you, and there is nothing new for it:",
    "current": "Up to date:",
}


class Change(NamedTuple):
    """What became of a file. ``other`` is the backup, or the new version beside it."""

    name: str
    fate: Fate
    other: Path | None = None


def update(folder: Path, files: Mapping[str, bytes] | None = None) -> Iterator[Change]:
    """Deal with one file after the other. ``files`` stands for another release than this one.

    Raises WorkspaceError; what was dealt with before that stays so.
    """
    for name, content in (release() if files is None else files).items():
        try:
            state = load(folder)
            change = _bring(folder, name, content, state)
            if state != load(folder):
                store(folder, state)
        except OSError as error:
            raise WorkspaceError(
                f"stopped at {name}. {plain(error)} Nothing is lost; then run it once more."
            ) from error
        yield change


def newer(folder: Path, files: Mapping[str, bytes] | None = None) -> list[str]:
    """The files of which the release has a version that the workspace hasn't been given yet."""
    state = load(folder)
    return [
        name
        for name, content in (release() if files is None else files).items()
        if fingerprint(name, content) not in (state.sources.get(name), _mine(folder, name))
    ]


def _bring(folder: Path, name: str, content: bytes, state: State) -> Change:
    """Put one file of the release in its place, and note in ``state`` that it was given."""
    path, new, was = folder / name, fingerprint(name, content), state.sources.get(name)
    change = Change(name, "current")
    if not is_there(path):
        write_whole(path, content)
        change = Change(name, "added")
    elif (mine := _mine(folder, name)) == new:
        pass
    elif mine is not None and mine == was:
        kept = None
        if digest(path.read_bytes()) != state.shipped.get(name):
            kept = keep(folder, path)
        write_whole(path, content)
        change = Change(name, "replaced", kept)
    elif was == new:
        return Change(name, "yours")
    else:
        change = Change(name, "beside", _put_beside(folder, name, content, state))
        state.sources[name], state.shipped[name] = new, digest(content)
    note_release(state, folder, name, content)
    return change


def _mine(folder: Path, name: str) -> str | None:
    """The fingerprint of what lies there; None if that isn't a file."""
    path = folder / name
    return fingerprint(name, path.read_bytes()) if path.is_file() else None


def _put_beside(folder: Path, name: str, content: bytes, state: State) -> Path:
    """Write NAME.new.ipynb, or .new-2 if the learner has gone on to work in the first."""
    new = fingerprint(name, content)
    for beside in _names_beside(name):
        there = _mine(folder, beside)
        ours = there is not None and there in (new, state.sources.get(beside))
        if is_there(folder / beside) and not ours:
            continue
        if there != new:
            if there is not None:
                keep(folder, folder / beside)
            write_whole(folder / beside, content)
        note_release(state, folder, beside, content)
        return folder / beside
    raise AssertionError("there is always a next name")


def _names_beside(name: str) -> Iterator[str]:
    stem, dot, suffix = name.rpartition(".")
    yield f"{stem}.new{dot}{suffix}"
    for number in count(2):
        yield f"{stem}.new-{number}{dot}{suffix}"
