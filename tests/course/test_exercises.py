"""Exercises are read from the lessons and proved: stub, solution, wrong answers, hints."""

from pathlib import Path

import pytest

from mini_harness.course.exercises import (
    Exercise,
    ExerciseError,
    UnknownExercise,
    exercise,
    exercises,
    is_stub,
    lesson_folders,
    read_exercises,
)
from mini_harness.course.prove import exercise_faults, faults, graded

pytestmark = pytest.mark.once

SOLUTION = 'def act(tools, decision):\n    return "no"\n'
HINT = "<details><summary>Hint 1</summary>\n\nThink.\n\n</details>\n\n"
LESSON = (
    "### v0-act: Carry out one call (guided)\n\nDo it.\n\n" + HINT * 3 + "```{code-cell}\n"
    ":name: your-act\n:exercise: v0-act\n%%save my_harness/calls.py\n"
    "def act(tools, decision):\n    #: solution\n    return 1\n    #: stub\n"
    '    raise NotImplementedError("v0-act")\n    #: end\n```\n\n### Next\n'
)


def write(folder: Path, text: str) -> Path:
    path = folder / "lesson.md"
    path.write_text(text, encoding="utf-8")
    return path


def wrong_answers(name: str) -> Path:
    folder = next(f for f in lesson_folders() if f.name.startswith(f"{exercise(name).step}_"))
    return folder / "wrong_answers" / name


def test_the_stub_is_made_from_the_solution(tmp_path: Path) -> None:
    (found,) = read_exercises(write(tmp_path, LESSON))
    assert found == Exercise(
        id="v0-act",
        step="v0",
        title="Carry out one call",
        level="guided",
        module="calls",
        stub='def act(tools, decision):\n    raise NotImplementedError("v0-act")\n',
        solution="def act(tools, decision):\n    return 1\n",
        hints=("Think.\n",) * 3,
    )


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        (HINT * 3, HINT * 2),
        ("(guided)", "(easy)"),
        (":exercise: v0-act\n", ""),
        ("%%save my_harness/calls.py\n", ""),
        ("    #: stub\n", ""),
        ("    #: end\n", ""),
    ],
)
def test_an_exercise_that_lacks_a_part_is_refused(
    tmp_path: Path, written: str, instead: str
) -> None:
    assert written in LESSON
    with pytest.raises(ExerciseError):
        read_exercises(write(tmp_path, LESSON.replace(written, instead)))


def test_an_unknown_exercise_names_those_there_are() -> None:
    with pytest.raises(UnknownExercise, match="v0-act, v0-loop, v0-turns"):
        exercise("v9-all")
    with pytest.raises(UnknownExercise, match=r"v1 are: v1-judge, v1-guard, v1-trace\.$"):
        exercise("v1-gaurd")


def test_a_stub_is_known_whatever_white_space_it_got() -> None:
    stub = exercise("v0-act").stub
    assert is_stub("calls", stub.replace("\n", "  \r\n") + "\n\n")
    assert not is_stub("calls", stub + "    x = 1\n")
    assert not is_stub("loop", stub)


def test_all_exercises_of_all_lessons_are_proved() -> None:
    """The stub fails as meant, the solution passes, each wrong answer is told what it is."""
    assert [each.level for each in exercises("v0")] == ["guided", "open", "stretch"]
    assert list(faults()) == []


def changed(name: str, **parts: str) -> Exercise:
    return Exercise(**(vars(exercise(name)) | parts))


def test_a_stub_that_is_secretly_solved_is_a_fault() -> None:
    known = exercise("v0-act")
    found = list(exercise_faults(changed("v0-act", stub=known.solution), wrong_answers("v0-act")))
    assert any("must fail by its NotImplementedError" in fault for fault in found)


def test_a_solution_that_is_wrong_is_a_fault() -> None:
    found = list(exercise_faults(changed("v0-act", solution=SOLUTION), wrong_answers("v0-act")))
    assert len(found) == 1
    assert "the solution doesn't pass" in found[0]


def test_a_wrong_answer_that_passes_or_is_not_told_what_it_is_is_a_fault(tmp_path: Path) -> None:
    right = tmp_path / "right.py"
    right.write_text(exercise("v0-act").solution, encoding="utf-8")
    other = tmp_path / "other.py"
    other.write_text(f'"""Nobody says this."""\n\n{SOLUTION}', encoding="utf-8")
    found = list(exercise_faults(exercise("v0-act"), tmp_path))
    assert len(found) == 2
    assert "other.py isn't told 'Nobody says this.'" in found[0]
    assert "right.py is wrong, and v0-act: passed." in found[1]


def test_too_few_wrong_answers_are_a_fault(tmp_path: Path) -> None:
    assert list(exercise_faults(exercise("v0-act"), tmp_path)) == [
        "v0-act: 0 wrong answers, 2 to 4 are needed"
    ]


def test_the_loop_alone_does_not_yet_take_turns_with_several_calls() -> None:
    report = graded(exercise("v0-turns"), exercise("v0-loop").solution)
    assert report.status == "failed"
    assert "A turn can be a list of decisions." in str(report)
