"""Prove an exercise: its stub fails as meant, its solution passes, its wrong answers are known.

A stub that is secretly solved, a check that nothing can fail, a message that names no
misconception: each is a fault of the lesson, and this finds it.
"""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mini_harness.course.exercises import PACKAGE, Exercise, exercises, lesson_folders
from mini_harness.course.grade import Report, grade
from mini_harness.course.workspace import save_module

WRONG_ANSWERS = 2, 4
"""How many plausible wrong answers an exercise has."""


def faults() -> Iterator[str]:
    """What is wrong with the exercises of all lessons."""
    for each in exercises():
        folder = next(f for f in lesson_folders() if f.name.startswith(f"{each.step}_"))
        yield from exercise_faults(each, folder / "wrong_answers" / each.id)


def exercise_faults(exercise: Exercise, wrong_answers: Path) -> Iterator[str]:
    """What is wrong with one exercise, whose wrong answers lie in that folder."""
    yield from _of_stub(exercise)
    solved = graded(exercise, exercise.solution)
    if solved.status != "passed":
        yield f"{exercise.id}: the solution doesn't pass.\n{solved}"
    files = sorted(wrong_answers.glob("*.py"))
    least, most = WRONG_ANSWERS
    if not least <= len(files) <= most:
        yield f"{exercise.id}: {len(files)} wrong answers, {least} to {most} are needed"
    for file in files:
        yield from _of_wrong_answer(exercise, file)


def _of_stub(exercise: Exercise) -> Iterator[str]:
    if graded(exercise, exercise.stub).status != "untouched":
        yield f"{exercise.id}: the stub isn't known as one"
    # Touched, so that it is really run.
    begun = graded(exercise, f"{exercise.stub}\n# begun\n")
    if begun.status != "failed" or "raise NotImplementedError" not in str(begun):
        yield f"{exercise.id}: the stub must fail by its NotImplementedError.\n{begun}"


def _of_wrong_answer(exercise: Exercise, file: Path) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    misconception = ast.get_docstring(ast.parse(text)) or "(no docstring names it)"
    report = graded(exercise, text)
    if report.status != "failed":
        yield f"{exercise.id}: {file.name} is wrong, and {report}"
    elif misconception not in " ".join(str(report).split()):
        yield f"{exercise.id}: {file.name} isn't told {misconception!r}.\n{report}"


def graded(exercise: Exercise, text: str) -> Report:
    """The report on this text, in a workspace that holds nothing else."""
    with tempfile.TemporaryDirectory(prefix="mini-harness-") as folder:
        save_module(Path(folder), exercise.module, exercise.stub)
        file = Path(folder) / PACKAGE / f"{exercise.module}.py"
        file.write_text(text, encoding="utf-8")
        return grade(exercise.id, Path(folder))
