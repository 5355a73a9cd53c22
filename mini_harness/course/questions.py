"""The questions of a lesson: each choice is explained, and the package itself gives the answer.

A lesson's `questions.py` holds `QUESTIONS`. They become plain Markdown, so that they work without
a kernel, in a static viewer and by keyboard: the choices are `<details>` to open.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

RIGHT = "Yes."
"""How the explanation of the right choice begins."""


class QuestionError(ValueError):
    """A question isn't written as it must be, or its explanation and the package disagree."""


@dataclass(frozen=True)
class Question:
    """``choices`` maps each choice to its explanation; ``answer`` asks the package.

    The text of what ``answer`` returns is the right choice.
    """

    text: str
    choices: Mapping[str, str]
    answer: Callable[[], object]

    def check(self) -> None:
        """Raises QuestionError unless what the package says is what the lesson explains."""
        said = [choice for choice, why in self.choices.items() if why.startswith(RIGHT)]
        computed = str(self.answer())
        if said != [computed]:
            raise QuestionError(
                f"{self.text!r}: the explanations call {said} right, the package says {computed!r}."
            )


def read_questions(lesson: Path) -> Sequence[Question]:
    """The questions beside a lesson. Raises QuestionError if there are none."""
    path = lesson.parent / "questions.py"
    if not path.is_file():
        raise QuestionError(f"{path.name} is missing beside {lesson.name}")
    found: Sequence[Question] = runpy.run_path(str(path))["QUESTIONS"]
    return found


def as_markdown(questions: Sequence[Question]) -> str:
    """The questions, numbered, with every choice to open."""
    asked = [_one(number, each) for number, each in enumerate(questions, start=1)]
    return "\n\n---\n\n".join(asked)


def _one(number: int, question: Question) -> str:
    choices = [
        f"<details><summary>{choice}</summary>\n\n{why}\n\n</details>"
        for choice, why in question.choices.items()
    ]
    return "\n\n".join([f"**{number}.** {question.text}", *choices])
