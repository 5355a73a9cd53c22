"""`mini-harness build`: from lessons/<lesson>/lesson.md to notebooks/<lesson>.ipynb, one way.

A built notebook never holds old outputs: it is executed afresh, and two builds are the same to
the byte. `--check` builds into memory and compares.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import takewhile, zip_longest
from pathlib import Path

from mini_harness.course.assemble import assemble
from mini_harness.course.execute import CellFailed, execute
from mini_harness.course.markdown import ToolMissing
from mini_harness.course.normalise import normalise
from mini_harness.course.source import LessonError, read_lesson

ROOT = Path(__file__).parents[2]
SHOWN = 160
"""Characters shown of a line that differs."""


class UnknownLesson(Exception):
    """There is no such lesson; the text lists those that exist."""


def main(argv: Sequence[str]) -> int:
    """Exit code 0: built, or no difference; 1: a lesson's fault or a difference; 2: can't start."""
    options = _parser().parse_args(argv)
    try:
        lessons = find_lessons(options.lessons, options.step)
        if options.check:
            return check(lessons, options.notebooks, complete=options.step is None)
        for lesson in lessons:
            write(lesson, options.notebooks)
    except LessonError as error:
        print(f"{_shown(error.path)}:{error.line}: {error.advice}", file=sys.stderr)
        return 1
    except (UnknownLesson, ToolMissing) as error:
        print(f"mini-harness build: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mini-harness build", description="Build and run the notebooks of lessons/."
    )
    parser.add_argument("step", nargs="?", metavar="STEP", help="v0, or a lesson's whole name")
    parser.add_argument(
        "--check", action="store_true", help="build again, write nothing, show differences"
    )
    parser.add_argument("--lessons", type=Path, default=ROOT / "lessons", metavar="DIR")
    parser.add_argument("--notebooks", type=Path, default=ROOT / "notebooks", metavar="DIR")
    return parser


def find_lessons(folder: Path, step: str | None) -> list[Path]:
    """The lesson.md files below `folder`: all, or those of one step. Raises UnknownLesson."""
    every = sorted(folder.glob("*/lesson.md"))
    chosen = [path for path in every if step in (None, *_called(path))]
    if not chosen:
        names = ", ".join(path.parent.name for path in every) or "none"
        asked = "lesson" if step is None else f"lesson {step!r}"
        raise UnknownLesson(f"no {asked} in {folder}; the lessons are: {names}")
    return chosen


def _called(lesson: Path) -> tuple[str, str]:
    name = lesson.parent.name
    return name, name.partition("_")[0]


def build(path: Path) -> str:
    """The text of the notebook that a lesson.md makes, executed. Raises LessonError."""
    lesson = read_lesson(path)
    notebook = assemble(lesson)
    try:
        execute(notebook)
    except CellFailed as error:
        cell = lesson.cells[error.index]
        lesson.fail(cell.line, f"cell {cell.name!r} {error}")
    return normalise(notebook)


def target_of(lesson: Path, notebooks: Path) -> Path:
    return notebooks / f"{lesson.parent.name}.ipynb"


def write(lesson: Path, notebooks: Path) -> Path:
    """Build a lesson into the folder `notebooks`; the file written."""
    target = target_of(lesson, notebooks)
    text = build(lesson)
    target.write_text(text, encoding="utf-8", newline="\n")
    print(f"built {_shown(target)}")
    return target


def check(lessons: Sequence[Path], notebooks: Path, *, complete: bool) -> int:
    """Build each again and compare; 1 if any differs.

    `complete`: these are all lessons, so a notebook that none of them makes is a fault too.
    """
    targets = [target_of(lesson, notebooks) for lesson in lessons]
    faults = [compare(target_of(lesson, notebooks), build(lesson)) for lesson in lessons]
    if complete:
        faults += [
            f"{_shown(extra)}: no lesson makes this notebook"
            for extra in sorted(notebooks.glob("*.ipynb"))
            if extra not in targets
        ]
    found = [fault for fault in faults if fault]
    as_built = "1 notebook is" if len(targets) == 1 else f"{len(targets)} notebooks are"
    print("\n".join(found) or f"{as_built} as built")
    return 1 if found else 0


def compare(target: Path, built: str) -> str | None:
    """None when the file's text is `built`, else where it first differs, and both lines."""
    if not target.is_file():
        return f"{_shown(target)}: not there yet; run `mini-harness build`"
    committed = target.read_bytes().decode("utf-8", "replace")
    pairs = zip_longest(committed.split("\n"), built.split("\n"))
    for number, (old, new) in enumerate(pairs, start=1):
        if old != new:
            return (
                f"{_shown(target)}:{number}: a fresh build differs; run `mini-harness build`\n"
                f"  committed: {_excerpt(old, new)}\n"
                f"  built:     {_excerpt(new, old)}"
            )
    return None


def _excerpt(line: str | None, other: str | None) -> str:
    """A long line from shortly before the place where it parts from the other."""
    if line is None:
        return "(the file ends here)"
    same = takewhile(lambda pair: pair[0] == pair[1], zip(line, other or "", strict=False))
    start = max(0, len(list(same)) - SHOWN // 2)
    cut = line[start : start + SHOWN]
    return repr(cut)


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
