"""The learner's workspace: copies of the lessons, and `my_harness/`, which grows cell by cell.

Nothing here writes over what a learner wrote without keeping it first.
"""

import errno
import json
import os
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import NamedTuple

from mini_harness.course.exercises import PACKAGE, exercises, is_stub, shipped, tidy
from mini_harness.course.files import is_there, plain, write_new, write_whole
from mini_harness.course.state import HIDDEN, State, digest, load, store

INIT = '''\
"""My own harness. What I haven't written yet is borrowed."""

from mini_harness.course.borrow import borrower

__getattr__ = borrower(__name__, __path__)
'''


class WorkspaceError(Exception):
    """Something can't be done in a workspace. A person reads it: what, where, what to do."""


class Saved(NamedTuple):
    """``note`` is one line to print, the same each time. ``kept`` is a backup that was needed."""

    path: Path
    kept: Path | None
    note: str


def default_workspace() -> Path:
    """$MINI_HARNESS_HOME, else the working folder if it is a workspace, else ~/mini-harness."""
    named = os.environ.get("MINI_HARNESS_HOME", "").strip()
    if named:
        return Path(named)
    return Path.cwd() if Path(HIDDEN).is_dir() else Path("~/mini-harness")


def located(folder: Path) -> Path:
    """The whole path of a workspace. Raises WorkspaceError where there can be none."""
    try:
        return folder.expanduser().resolve()
    except (RuntimeError, OSError) as error:
        raise WorkspaceError(
            f"{folder} can't be found: {error}. Name another folder with --workspace DIR."
        ) from error


def existing(folder: Path | None) -> Path:
    """A workspace that is there already, the default one for None. Raises WorkspaceError."""
    folder = located(folder or default_workspace())
    if (folder / HIDDEN).is_dir() or (folder / PACKAGE).is_dir():
        return folder
    raise WorkspaceError(
        f"there is no workspace in {folder}. `mini-harness learn` makes one; "
        "--workspace DIR names another."
    )


# --- what ships -------------------------------------------------------------------------------


def lesson_files() -> list[Path]:
    """The built lessons."""
    return sorted(shipped("notebooks").glob("*.ipynb"))


def release() -> dict[str, bytes]:
    """What this version of the package puts into a workspace: name in it -> content."""
    lessons = {lesson.name: lesson.read_bytes() for lesson in lesson_files()}
    return lessons | {f"{PACKAGE}/__init__.py": INIT.encode("utf-8")}


def fingerprint(name: str, content: bytes) -> str:
    """A digest of what a learner can edit in a file: of a notebook, its cells without outputs."""
    if not name.endswith(".ipynb"):
        return digest(content)
    try:
        cells = [
            [cell["cell_type"], "".join(cell["source"]), cell.get("attachments", {})]
            for cell in json.loads(content)["cells"]
        ]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return digest(content)  # no notebook at all, so every byte counts
    return digest(json.dumps(cells, sort_keys=True).encode("utf-8"))


def make(folder: Path, files: Mapping[str, bytes] | None = None) -> Path:
    """Add what isn't there yet; a file that is there is never touched. The whole path.

    ``files`` stands for another release than this one. Raises WorkspaceError.
    """
    folder = located(folder)
    files = release() if files is None else files
    try:
        for name, content in files.items():
            if not is_there(folder / name):
                write_whole(folder / name, content)
        state, before = load(folder), load(folder)
        for name, content in files.items():
            note_release(state, folder, name, content)
        if state != before or not (folder / HIDDEN).is_dir():
            store(folder, state)
    except OSError as error:
        raise WorkspaceError(f"can't make the workspace {folder}. {plain(error)}") from error
    return folder


def note_release(state: State, folder: Path, name: str, content: bytes) -> None:
    """Remember what a file came from, if it still says what this release says."""
    mine = folder / name
    if mine.is_file() and fingerprint(name, mine.read_bytes()) == fingerprint(name, content):
        state.shipped[name] = digest(content)
        state.sources[name] = fingerprint(name, content)


# --- what the learner writes ------------------------------------------------------------------


def module_path(folder: Path, module: str) -> Path:
    return folder / PACKAGE / f"{module}.py"


def save_module(folder: Path, module: str, text: str) -> Saved:
    """Write what a cell holds to ``my_harness/<module>.py``, all of it or nothing.

    An untouched stub never replaces work. What somebody wrote there outside the cell is kept
    first. Raises WorkspaceError, and then the old file is whole.
    """
    name = f"{PACKAGE}/{module}.py"
    if not module.isidentifier() or module == "__init__":
        raise WorkspaceError(f"{name} isn't a module of yours. Name it like {PACKAGE}/loop.py.")
    try:
        content = (text.rstrip("\n") + "\n").encode("utf-8")
        old = _content(module_path(folder, module))
        if old is not None and is_stub(module, text) and not _is_stub(module, old):
            return Saved(module_path(folder, module), None, _keeps_work(name, module, text))
        state = load(folder)
        kept = _keep_foreign(folder, module, old, content, state)
        if old != content:
            write_whole(module_path(folder, module), content)
    except (OSError, UnicodeEncodeError) as error:
        raise WorkspaceError(_not_saved(name, error)) from error
    _remember(folder, module, content, state)
    note = f"Saved as {name}."
    if kept:
        note += f" What was there before is kept: {kept.relative_to(folder).as_posix()}."
    return Saved(module_path(folder, module), kept, note)


def _content(path: Path) -> bytes | None:
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "something else than a file stands there", str(path))
    return path.read_bytes() if path.exists() else None


def _is_stub(module: str, content: bytes) -> bool:
    return is_stub(module, content.decode("utf-8", "replace"))


def _keeps_work(name: str, module: str, stub: str) -> str:
    (exercise, *_) = [e.id for e in exercises() if (e.module, e.stub) == (module, tidy(stub))]
    return (
        f"{name} keeps your work: this cell holds only the stub. "
        f"To start again: mini-harness reset {exercise}"
    )


def _keep_foreign(
    folder: Path, module: str, old: bytes | None, new: bytes, state: State
) -> Path | None:
    """A backup of what neither a cell nor the course put there, or of work that a stub replaces."""
    if old is None or old == new or _is_stub(module, old):
        return None
    if digest(old) == state.saved.get(module) and not _begins_again(old, new):
        return None
    return keep(folder, module_path(folder, module))


def _begins_again(old: bytes, new: bytes) -> bool:
    """A stub that isn't this release's, in an older copy of a notebook, replaces work too."""
    mark = b"raise NotImplementedError("
    return mark in new and mark not in old


def _not_saved(name: str, error: OSError | UnicodeEncodeError) -> str:
    cause = plain(error) if isinstance(error, OSError) else f"It can't be written down: {error}."
    return (
        f"{name} is not saved. {cause} Nothing is lost: "
        "the cell still holds your code, and the file is as it was."
    )


def _remember(folder: Path, module: str, content: bytes, state: State) -> None:
    """Only after the file itself: a state that lags behind costs no more than a backup."""
    init = folder / PACKAGE / "__init__.py"
    try:
        if not is_there(init):
            write_whole(init, INIT.encode("utf-8"))
        if state.saved.get(module) != digest(content):
            state.saved[module] = digest(content)
            store(folder, state)
    except OSError as error:
        raise WorkspaceError(
            f"{PACKAGE}/{module}.py is saved, but {HIDDEN} beside it can't be. {plain(error)}"
        ) from error


def keep(folder: Path, path: Path) -> Path:
    """Make a backup of a file of the workspace; its path. An earlier backup is never overwritten.

    Raises OSError.
    """
    content = path.read_bytes()
    place = folder / HIDDEN / "backups" / path.relative_to(folder).parent
    # Not below: there FileExistsError means that a number is taken.
    place.mkdir(parents=True, exist_ok=True)
    numbers = count(1)
    while True:
        target = place / f"{path.stem}-{next(numbers)}{path.suffix}"
        try:
            write_new(target, content)
        except FileExistsError:
            continue
        return target
