"""The model's question in a cell, without a browser: what it shows, and that nothing hangs."""

import asyncio

from mini_harness.views import answer_here
from mini_harness.views.question import QuestionForm


def form(question: str, *choices: str) -> tuple[QuestionForm, list[str]]:
    given: list[str] = []
    return QuestionForm(question, choices, given.append), given


def test_where_no_person_is_nobody_has_answered() -> None:
    """Headless: nothing hangs"""
    assert asyncio.run(answer_here("Which build?", ())) is None


def test_nothing_in_a_question_is_markup_or_hides() -> None:
    """report P07"""
    shown, _ = form("<img src=x>\u202eWhich?", "a\u202eb")
    assert "&lt;img src=x&gt;\\u202eWhich?" in shown.card.value
    assert shown.choices[0].description == "a\\u202eb"


def test_the_first_answer_counts_and_the_second_click_does_nothing() -> None:
    """report N02"""
    shown, given = form("Which?", "b-1", "b-2")
    shown.choices[1].click()
    shown.choices[0].click()
    shown.send.click()
    assert given == ["b-2"]
    assert shown.send.disabled and all(each.disabled for each in shown.choices)
    assert "You answered: b-2" in shown.says.value


def test_what_a_choice_looks_like_changes_nothing_of_the_answer() -> None:
    shown, given = form("Which?", "a\u202eb")
    shown.choices[0].click()
    assert given == ["a\u202eb"]


def test_any_other_answer_can_be_typed() -> None:
    shown, given = form("Which?", "b-1")
    shown.text.value = "neither"
    shown.send.click()
    assert given == ["neither"]
