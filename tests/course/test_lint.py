"""The budgets of a lesson: each can be broken, and no lesson of ours breaks one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mini_harness.course.exercises import lesson_folders
from mini_harness.course.lint import SECTIONS, budget_faults, count_words, words_by_section
from mini_harness.course.source import Cell, Lesson, read_lesson

V0 = next(f for f in lesson_folders() if f.name.startswith("v0_")) / "lesson.md"


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    return read_lesson(V0)


@pytest.mark.parametrize("folder", lesson_folders(), ids=lambda folder: folder.name)
def test_every_lesson_keeps_its_budgets(folder: Path) -> None:
    assert list(budget_faults(read_lesson(folder / "lesson.md"))) == []


def moved(lesson: Lesson, old: str, new: str) -> Iterator[Cell]:
    for cell in lesson.cells:
        yield replace(cell, section=new) if cell.section == old else cell


def text(section: str, words: int) -> Cell:
    return Cell("markdown", "word " * words, 1, section, "more")


def code(lines: int, place: int = 0) -> Cell:
    return Cell("code", "x = 1\n" * lines, 1, "recap", f"more-{place}")


def test_a_section_may_be_a_quarter_longer_than_its_share(lesson: Lesson) -> None:
    room = int(SECTIONS["predict"] * 1.25) - words_by_section(lesson.cells)["predict"]
    fits = replace(lesson, cells=(*lesson.cells, text("predict", room)))
    assert list(budget_faults(fits)) == []
    long = replace(lesson, cells=(*lesson.cells, text("predict", room + 1)))
    assert list(budget_faults(long)) == ["51 words in 'predict': 0 to 50 are allowed"]


def test_the_whole_is_not_longer_than_all_shares(lesson: Lesson) -> None:
    sections = list(words_by_section(lesson.cells))
    share = {name: int(SECTIONS[name] * 1.25) for name in sections}
    full = replace(lesson, cells=tuple(text(name, words) for name, words in share.items()))
    faults = list(budget_faults(full))
    assert f"{sum(share.values())} words: 0 to 1750 are allowed" in faults


def test_code_has_a_budget_of_cells_and_of_lines(lesson: Lesson) -> None:
    faults = list(budget_faults(replace(lesson, cells=(*lesson.cells, *map(code, [1] * 13)))))
    assert any(fault.endswith("code cells: 28 to 40 are allowed") for fault in faults)
    faults = list(budget_faults(replace(lesson, cells=(*lesson.cells, code(150)))))
    assert any(fault.endswith("lines of code: 0 to 180 are allowed") for fault in faults)


def test_sections_stand_in_their_order(lesson: Lesson) -> None:
    swapped = replace(lesson, cells=(*lesson.cells[-3:], *lesson.cells[:-3]))
    assert any("they should be" in fault for fault in budget_faults(swapped))
    renamed = replace(lesson, cells=tuple(moved(lesson, "predict", "guess")))
    assert any("they should be" in fault for fault in budget_faults(renamed))


def test_a_lesson_has_three_to_five_aims(lesson: Lesson) -> None:
    more = Cell("markdown", "- one more\n- and more", 1, "you-will-be-able-to", "more")
    faults = list(budget_faults(replace(lesson, cells=(*lesson.cells, more))))
    assert faults == ["6 aims: 3 to 5 are allowed"]


def test_a_lesson_has_notes_for_the_instructor(lesson: Lesson, tmp_path: Path) -> None:
    alone = replace(lesson, path=tmp_path / "lesson.md")
    assert list(budget_faults(alone)) == ["instructor.md is missing"]
    (tmp_path / "instructor.md").write_text("word " * 501, encoding="utf-8")
    assert list(budget_faults(alone)) == ["501 words in instructor.md: 100 to 500 are allowed"]


def test_what_nobody_has_to_read_does_not_count() -> None:
    cell = Cell(
        "markdown",
        "Two words.\n\n<details><summary>Hint 1</summary>\n\nmany more words\n\n</details>\n\n"
        "```python\ncode = 1\n```\n\n![a drawing](figures/x.svg)",
        1,
        "start",
        "text_1",
    )
    assert words_by_section((cell,)) == {"start": 2}
    assert count_words("don't touch build-102, please") == 4
