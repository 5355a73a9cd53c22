"""Text that lessons don't write by hand: what a step adds, measured from the code."""

import ast
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from mini_harness.course.exercises import lesson_folders
from mini_harness.course.includes import names_of

ASKED = "write `generate: step v0`, `changes v1`, `ladder` or `questions`"


class TableError(Exception):
    """What a lesson asks to have generated isn't known."""


class Step(Protocol):
    """What is read of a step in the registry."""

    @property
    def name(self) -> str: ...
    @property
    def modules(self) -> tuple[str, ...]: ...
    @property
    def public_names(self) -> tuple[str, ...]: ...


def registry() -> Mapping[str, Step]:
    """The package's own steps, imported only when a lesson asks for a table. Rooms come last."""
    from mini_harness.steps import ROOMS, STEPS

    return {**STEPS, **ROOMS}


def generated(what: str, steps: Mapping[str, Step]) -> str:
    """Markdown for `step v0` or `changes v1`. Raises TableError for anything else."""
    match what.split():
        case ["step", name] if name in steps:
            return step_table(steps[name])
        case ["changes", name] if name in steps:
            return step_table(steps[name]) + _unchanged(name, steps)
        case ["ladder"]:
            return ladder_table()
        case ["step" | "changes", name]:
            raise TableError(f"no step {name!r}: the steps are {', '.join(steps)}")
        case _:
            raise TableError(f"{what!r} can't be generated: {ASKED}")


def step_table(step: Step) -> str:
    """One row a module that the step adds: its public names and its length in lines."""
    rows = ["| module | public names | lines |", "|---|---|--:|"]
    total = 0
    for module in step.modules:
        text = _source(module)
        length = len(text.splitlines())
        total += length
        names = ", ".join(f"`{n}`" for n in _defined(text) if n in step.public_names)
        rows.append(f"| `{module}` | {names} | {length} |")
    rows.append(f"| together | | {total} |")
    return "\n".join(rows)


def ladder_table() -> str:
    """One row a step, also of those to come, with a link to its notebook where there is one."""
    from mini_harness.steps import COURSE

    lessons = {folder.name.partition("_")[0]: folder.name for folder in lesson_folders()}
    rows = ["| step | what you add | lesson |", "|---|---|---|"]
    for name, title in COURSE.items():
        lesson = lessons.get(name)
        link = f"[{lesson}]({lesson}.ipynb)" if lesson else "to come"
        rows.append(f"| {name} | {title} | {link} |")
    return "\n".join(rows)


def _unchanged(name: str, steps: Mapping[str, Step]) -> str:
    """The sentence below the table of a step that isn't the first.

    No numbers for a room: one may enter it before the steps on which it stands.
    """
    from mini_harness.steps import ROOMS

    if name in ROOMS:
        return "\n\nNothing else changed."
    names = list(steps)
    earlier = [module for n in names[: names.index(name)] for module in steps[n].modules]
    if not earlier:
        return ""
    length = sum(len(_source(module).splitlines()) for module in earlier)
    return f"\n\nNothing else changed: {len(earlier)} modules ({length} lines) stay as they were."


def _source(module: str) -> str:
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin:
        raise TableError(f"the step registry names the module {module!r}, which isn't there")
    return Path(spec.origin).read_text(encoding="utf-8")


def _defined(text: str) -> list[str]:
    """The names that a module's own top level defines, in their order."""
    # An overloaded function is defined several times.
    return list(dict.fromkeys(n for node in ast.parse(text).body for n in names_of(node)))
