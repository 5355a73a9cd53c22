"""Every choice is explained, and the package itself gives the answer."""

from pathlib import Path

import pytest

from mini_harness.course.exercises import lesson_folders
from mini_harness.course.questions import Question, QuestionError, as_markdown, read_questions
from mini_harness.course.source import read_lesson

LESSONS = [
    folder / "lesson.md"
    for folder in lesson_folders()
    if read_lesson(folder / "lesson.md").kind == "ladder"
]
HOW_MANY = Question("How many?", {"1": "No. More.", "2": "Yes. Two."}, lambda: 2)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.parent.name)
def test_every_lesson_has_four_questions_whose_answers_are_true(lesson: Path) -> None:
    questions = read_questions(lesson)
    assert len(questions) == 4
    for question in questions:
        question.check()
        assert len(question.choices) >= 3
        assert all(len(why.split()) > 5 for why in question.choices.values())


@pytest.mark.parametrize(
    "changes",
    [
        {"answer": lambda: 1},
        {"choices": {"1": "Yes. One.", "2": "Yes. Two."}},
        {"choices": {"1": "No. More.", "2": "No. Fewer."}},
        {"choices": {"1": "No. More.", "3": "Yes. Three."}},
    ],
)
def test_an_explanation_that_the_package_contradicts_is_refused(changes: dict[str, object]) -> None:
    HOW_MANY.check()
    with pytest.raises(QuestionError, match="How many"):
        Question(**(vars(HOW_MANY) | changes)).check()


def test_questions_are_plain_markdown_to_open() -> None:
    assert as_markdown([HOW_MANY, HOW_MANY]).startswith(
        "**1.** How many?\n\n<details><summary>1</summary>\n\nNo. More.\n\n</details>\n\n"
    )
    assert "\n\n---\n\n**2.** How many?" in as_markdown([HOW_MANY, HOW_MANY])


def test_a_lesson_without_questions_says_so(tmp_path: Path) -> None:
    with pytest.raises(QuestionError, match=r"questions.py is missing beside lesson.md"):
        read_questions(tmp_path / "lesson.md")
