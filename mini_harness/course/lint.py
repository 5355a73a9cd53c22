"""The budgets of a lesson: what a learner reads and runs in 60 to 75 minutes.

Prose inside `<details>` and code don't count as words: nobody has to read the first, and the second
has a budget of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from mini_harness.course.exercises import stub_of
from mini_harness.course.markdown import outline
from mini_harness.course.source import Cell, Lesson

WORDS = 1750
CODE_CELLS = 28, 40
AIMS = 3, 5
CODE_LINES = 180
INSTRUCTOR_WORDS = 500
START_WORDS = 300
SLACK = 1.25
"""A section may be this much longer than its share, as long as the whole keeps to WORDS."""

SECTIONS: Mapping[str, int] = MappingProxyType(
    {
        "start": 60,
        "watch-it-fail": 120,
        "you-will-be-able-to": 60,
        "predict": 40,
        "picture": 80,
        "build-it": 330,
        "in-the-package": 90,
        "see-it": 90,
        "break-it-twice": 140,
        "decide": 80,
        "your-turn": 270,
        "check-yourself": 170,
        "with-a-real-model": 100,
        "recap": 120,
    }
)
"""The sections of a lesson of the ladder, in order, with the words that each may have."""

OPTIONAL = ("decide", "with-a-real-model")
_DETAILS = re.compile(r"<details>.*?</details>", re.DOTALL)
_NO_WORDS = re.compile(r"<!--.*?-->|!\[[^]]*\]\([^)]*\)|\]\([^)]*\)", re.DOTALL)


def budget_faults(lesson: Lesson) -> Iterator[str]:
    """What is too long, too short, missing or out of order in a lesson."""
    words = words_by_section(lesson.cells)
    if lesson.kind == "start":
        yield from _within("words", sum(words.values()), 0, START_WORDS)
        return
    yield from _of_sections(words)
    yield from _within("words", sum(words.values()), 0, WORDS)
    aims = [
        line
        for cell in lesson.cells
        if cell.section == "you-will-be-able-to"
        for line in cell.source.splitlines()
        if line.startswith("- ")
    ]
    yield from _within("aims", len(aims), *AIMS)
    code = [cell for cell in lesson.cells if cell.kind == "code"]
    yield from _within("code cells", len(code), *CODE_CELLS)
    lines = sum(len(_given(cell).splitlines()) for cell in code)
    yield from _within("lines of code", lines, 0, CODE_LINES)
    yield from _of_instructor(lesson.path.with_name("instructor.md"))


def _given(cell: Cell) -> str:
    """What a learner gets to read of a code cell."""
    return cell.source if cell.exercise is None else stub_of(cell.source)


def words_by_section(cells: tuple[Cell, ...]) -> dict[str, int]:
    """How many words of prose each section has, in the order of the lesson."""
    texts: dict[str, str] = {}
    for cell in cells:
        prose = _prose(cell.source) if cell.kind == "markdown" else ""
        texts[cell.section] = f"{texts.get(cell.section, '')}\n{prose}"
    return {section: count_words(text) for section, text in texts.items()}


def count_words(text: str) -> int:
    """Words as a reader counts them: "don't" and "build-102" are one each."""
    return len(re.findall(r"\w[\w'.-]*", _NO_WORDS.sub(" ", text)))


def _prose(markdown: str) -> str:
    lines, found = markdown.split("\n"), outline(markdown)
    code = {n for fence in found.fences for n in range(fence.first - 1, fence.last + 1)}
    kept = [line for number, line in enumerate(lines) if number not in code]
    return _DETAILS.sub("", "\n".join(kept))


def _of_sections(words: Mapping[str, int]) -> Iterator[str]:
    expected = [name for name in SECTIONS if name in words or name not in OPTIONAL]
    if list(words) != expected:
        yield f"the sections are {', '.join(words)}; they should be {', '.join(expected)}"
    for name, most in SECTIONS.items():
        yield from _within(f"words in {name!r}", words.get(name, 0), 0, int(most * SLACK))


def _of_instructor(path: Path) -> Iterator[str]:
    if not path.is_file():
        yield "instructor.md is missing"
        return
    text = path.read_text(encoding="utf-8")
    yield from _within("words in instructor.md", count_words(text), 100, INSTRUCTOR_WORDS)


def _within(what: str, number: int, least: int, most: int) -> Iterator[str]:
    if not least <= number <= most:
        yield f"{number} {what}: {least} to {most} are allowed"
