"""What a lesson's cells stand on: the first cell's `begin`, then `%%save` and `check`.

Kernels that `mini-harness learn` starts load this module as an IPython extension, so that
`%%save` works, and a missing name is explained, before the first cell has run, too.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from mini_harness.course import guard
from mini_harness.course.exercises import (
    PACKAGE,
    UnknownExercise,
    UnknownHint,
    exercise,
    exercises,
)
from mini_harness.course.renew import follow, renew, renew_unsaved
from mini_harness.course.trouble import Told

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

TARGET = re.compile(rf"{PACKAGE}/(?P<module>[A-Za-z]\w*)\.py")


_home: list[Path] = []


def home() -> Path:
    """The workspace: where the kernel was when the lesson began. ``%cd`` doesn't move it."""
    return _home[0] if _home else Path.cwd()


class WrongVersion(Told):
    """A lesson was opened with another version of the package than it was written for."""


class NotSaved(Told):
    """A save cell's first line names no module, or nothing stands below it."""


def begin(lesson: str, expects: str) -> str:
    """The first cell of every lesson; says which version is here.

    Raises WrongVersion unless that is of the line `expects` ("0.1" takes every 0.1.x).
    """
    here = version("mini-harness")
    if not here.startswith(f"{expects}."):
        raise WrongVersion(
            f"This lesson was written for mini_harness {expects}, and here is {here}.\n"
            f"Install the other one: pip install 'mini-harness=={expects}.*'"
        )
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is not None:
        _equip(shell, lesson)
    return f"mini_harness {expects}: ready."


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Called by IPython when the kernel starts."""
    _equip(shell, None)


def _equip(shell: InteractiveShell, lesson: str | None) -> None:
    def magic(line: str, cell: str) -> None:
        save(line, cell, shell)

    if not _home:
        _home.append(Path.cwd())
        sys.path.append(str(home()))
        shell.events.register("pre_run_cell", lambda _: follow(shell.user_ns))
    shell.magics_manager.register_function(magic, "cell", "save")
    guard.install(shell, lesson)


def check(exercise_id: str) -> None:
    """Try the saved answer to an exercise, and print what came of it.

    An answer that is wrong, or isn't there yet, is a text and no error. Raises Told for an id
    that no exercise has.
    """
    from mini_harness.course.grade import grade

    try:
        print(grade(exercise_id, home()))
    except UnknownExercise as error:
        raise Told(str(error)) from None


def hint(exercise_id: str, level: int = 1) -> None:
    """Show a hint: 1 points in a direction, 3 nearly gives the answer. Raises Told."""
    from IPython.display import display

    try:
        text = exercise(exercise_id).hint(level)
    except (UnknownExercise, UnknownHint) as error:
        raise Told(str(error)) from None
    display({"text/markdown": text, "text/plain": text}, raw=True)


def doctor() -> None:
    """Print what is fine here, and what isn't with its mend."""
    from mini_harness.course.doctor import doctor_lines

    print("\n".join(doctor_lines(home())))


def save(line: str, cell: str, shell: InteractiveShell) -> None:
    """`%%save my_harness/NAME.py`: write the cell to that file, and use the file's names here.

    Raises NotSaved, and NotLoaded for code that Python can't read or that raises.
    """
    from mini_harness.course.workspace import WorkspaceError, save_module

    module = _module_named(line)
    if not cell.strip():
        raise NotSaved("This cell holds no code. Nothing is saved, and the file stays as it is.")
    try:
        saved = save_module(home(), module, cell)
    except WorkspaceError as error:
        print(error)
        renew_unsaved(module, cell, shell.user_ns)
    else:
        print(saved.note + _aside(module))
        renew(module, saved.path, shell.user_ns)


def _aside(module: str) -> str:
    """Most often a file that no exercise grades has a misspelt name."""
    graded = sorted({each.module for each in exercises()})
    if module in graded:
        return ""
    files = ", ".join(f"{PACKAGE}/{each}.py" for each in graded)
    return f"\nNo exercise looks at this file. They look at {files}."


def _module_named(line: str) -> str:
    target = TARGET.fullmatch(line.strip())
    if target is None:
        raise NotSaved(
            f"Nothing is saved: `%%save {line}` names no module of your harness. "
            f"Write %%save {PACKAGE}/NAME.py"
        )
    return target["module"]
