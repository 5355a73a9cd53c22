"""The exercises, read from the lessons. The solution is the source: the stub is made from it.

In a lesson an exercise is a heading `### v0-act: Carry out one call (guided)`, a text, three hints
in `<details>`, and a code cell with `:exercise: v0-act` that holds the solution. Three lines mark
what the learner doesn't get to see, and what stands in its place:

    #: solution
    …
    #: stub
    …
    #: end
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = "my_harness"
"""The learner's own package, in the workspace."""
LEVELS = ("guided", "open", "stretch")
HINTS = 3

_HEADING = re.compile(
    r"^### (?P<id>v\d\w*-[a-z]+): (?P<title>.+) \((?P<level>\w+)\)$", re.MULTILINE
)
_ANY_HEADING = re.compile(r"^##+ ", re.MULTILINE)
_HINT = re.compile(r"<details><summary>Hint \d</summary>\n(.*?)</details>", re.DOTALL)
_CELL = re.compile(
    r"^```\{code-cell\}\n(?P<options>(?::[^\n]*\n)+)\n?(?P<body>.*?)^```$", re.M | re.S
)
_SAVE = re.compile(r"%%save my_harness/(?P<module>[a-z_]+)\.py\n")
_BLOCK = re.compile(
    r"^ *#: solution\n(?P<solution>.*?)^ *#: stub\n(?P<stub>.*?)^ *#: end(?:\n|\Z)", re.M | re.S
)


class UnknownExercise(ValueError):
    """There is no exercise of that name. The text lists those there are."""


class UnknownHint(ValueError):
    """An exercise has no hint of that number. The text says which it has."""


class ExerciseError(ValueError):
    """A lesson's exercise isn't written as it must be. Authors read this, not learners."""


@dataclass(frozen=True)
class Exercise:
    """One exercise. ``stub`` and ``solution`` are whole texts of ``my_harness/<module>.py``.

    ``level`` is one of LEVELS; ``hints`` are Markdown, the gentlest first.
    """

    id: str
    step: str
    title: str
    level: str
    module: str
    stub: str
    solution: str
    hints: tuple[str, ...]

    @property
    def file(self) -> str:
        """Where the answer is written, as seen from the workspace."""
        return f"{PACKAGE}/{self.module}.py"

    def hint(self, level: int) -> str:
        """The hint of that level, from 1. Raises UnknownHint."""
        last = len(self.hints)
        if not 1 <= level <= last:
            raise UnknownHint(f"{self.id} has {last} hints: ask for 1 to {last}.")
        return self.hints[level - 1].rstrip()


def shipped(name: str) -> Path:
    """A folder that travels with the package: beside this file, or at the root in a clone."""
    installed, clone = HERE / name, HERE.parent.parent / name
    return installed if installed.is_dir() else clone


def lesson_folders() -> list[Path]:
    """The lessons' sources."""
    return sorted(path.parent for path in shipped("lessons").glob("*/lesson.md"))


def exercises(step: str | None = None) -> list[Exercise]:
    """All exercises in the order of the lessons, or those of one step."""
    return [each for each in _all() if step in (None, each.step)]


def exercise(exercise_id: str) -> Exercise:
    """The exercise of this id. Raises UnknownExercise, which lists those of its step or all."""
    for each in _all():
        if each.id == exercise_id:
            return each
    step = exercise_id.partition("-")[0]
    near = exercises(step)
    known = ", ".join(each.id for each in near or _all())
    whose = f" of {step}" if near else ""
    text = f"There is no exercise {exercise_id!r}. The exercises{whose} are: {known}."
    raise UnknownExercise(text)


def is_stub(module: str, text: str) -> bool:
    """Whether a text is the untouched stub of that module; white space at line ends is nothing."""
    return any(each.module == module and tidy(text) == each.stub for each in _all())


def tidy(text: str) -> str:
    """The text without white space at line ends and without empty lines at both its ends."""
    # Some editors begin a file with a mark of its encoding.
    lines = [line.rstrip() for line in text.removeprefix("\ufeff").splitlines()]
    return "\n".join(lines).strip("\n") + "\n"


def stub_of(marked: str) -> str:
    """What a learner starts from. Raises ExerciseError for a cell without its three marks."""
    return _without_marks(marked, "stub")


def solution_of(marked: str) -> str:
    """The solution without the marks. Raises ExerciseError."""
    return _without_marks(marked, "solution")


def read_exercises(path: Path) -> list[Exercise]:
    """The exercises of one `lesson.md`. Raises ExerciseError that names the exercise."""
    text = path.read_text(encoding="utf-8")
    return [
        _read(path, heading, _until_next_heading(text, heading.end()))
        for heading in _HEADING.finditer(text)
    ]


@cache
def _all() -> tuple[Exercise, ...]:
    found = (read_exercises(folder / "lesson.md") for folder in lesson_folders())
    return tuple(each for lesson in found for each in lesson)


def _until_next_heading(text: str, start: int) -> str:
    following = _ANY_HEADING.search(text, start)
    return text[start : following.start() if following else len(text)]


def _read(path: Path, heading: re.Match[str], text: str) -> Exercise:
    name, level = heading["id"], heading["level"]
    where = f"{path.parent.name}, exercise {name}"
    cells = [body for options, body in _cells(text) if f":exercise: {name}\n" in options]
    hints = tuple(tidy(found) for found in _HINT.findall(text))
    if level not in LEVELS or len(hints) != HINTS or len(cells) != 1:
        raise ExerciseError(
            f"{where}: it needs one code cell with `:exercise: {name}`, {HINTS} hints and a level "
            f"({', '.join(LEVELS)}), and has {len(cells)}, {len(hints)} and {level!r}."
        )
    save = _SAVE.match(cells[0])
    if save is None:
        raise ExerciseError(f"{where}: its cell begins with `%%save my_harness/NAME.py`.")
    body = cells[0][save.end() :]
    return Exercise(
        id=name,
        step=name.partition("-")[0],
        title=heading["title"],
        level=level,
        module=save["module"],
        stub=tidy(stub_of(body)),
        solution=tidy(solution_of(body)),
        hints=hints,
    )


def _cells(text: str) -> Iterator[tuple[str, str]]:
    for cell in _CELL.finditer(text):
        yield cell["options"], cell["body"]


def _without_marks(marked: str, keep: str) -> str:
    kept, blocks = _BLOCK.subn(lambda block: block[keep], marked)
    if not blocks or "#: " in kept:
        raise ExerciseError(
            "Mark the solution with `#: solution`, `#: stub` and `#: end`, in order."
        )
    return kept
