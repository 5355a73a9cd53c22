"""What a learner hasn't written yet is borrowed: from the solutions, then from mini_harness."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import mini_harness
from mini_harness.course.exercises import PACKAGE, Exercise, exercises, is_stub
from mini_harness.course.names import bound


def borrower(package: str, path: Iterable[str]) -> Callable[[str], object]:
    """The ``__getattr__`` of a learner's package that lies in the folders ``path``.

    A name comes from the learner's own module if that holds more than the untouched stub, else
    from the solution, else from mini_harness. It raises AttributeError for any other name.
    """
    folders = [Path(folder) for folder in path]
    # Not longer than the package: a solution holds on to what it borrowed itself.
    solutions: dict[str, ModuleType] = {}

    def lend(name: str) -> object:
        found = home_of(name)
        if found is None:
            return _from_mini_harness(package, name)
        if any(written(folder / f"{found.module}.py") for folder in folders):
            return _own(import_module(f"{package}.{found.module}"), name)
        if found.id not in solutions:
            solutions[found.id] = _solution(found)
        return getattr(solutions[found.id], name)

    return lend


def _own(module: ModuleType, name: str) -> object:
    """Nothing is borrowed for a module that is written: its learner wouldn't notice the gap."""
    if not hasattr(module, name):
        file = f"{PACKAGE}/{module.__name__.rpartition('.')[2]}.py"
        raise AttributeError(f"{file} defines no {name!r}.")
    return getattr(module, name)


def home_of(name: str) -> Exercise | None:
    """The exercise whose module defines this name: of several the last, which does most."""
    for each in reversed(exercises()):
        if name in bound(each.solution).defined:
            return each
    return None


def written(file: Path) -> bool:
    """Whether a module's file holds more than the untouched stub."""
    if not file.is_file():
        return False
    return not is_stub(file.stem, file.read_text(encoding="utf-8", errors="replace"))


def _solution(exercise: Exercise) -> ModuleType:
    module = ModuleType(f"{PACKAGE}.{exercise.module}")
    code = compile(exercise.solution, f"<solution of {exercise.id}>", "exec")
    exec(code, module.__dict__)
    return module


def _from_mini_harness(package: str, name: str) -> object:
    if name.startswith("_") or not hasattr(mini_harness, name):
        raise AttributeError(f"{package} has no {name!r}, and there is nothing to borrow it from.")
    return getattr(mini_harness, name)
