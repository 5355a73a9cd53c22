"""The model's question in a cell, without a browser: what it shows, and that nothing hangs."""

import asyncio

import pytest

from mini_harness.views import answer_here, waiting
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


def test_a_front_end_that_has_drawn_buttons_isnt_doubted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slow isn't unable: on a busy machine the second question has all the time it takes."""
    monkeypatch.setattr(waiting, "_drawing", set())

    async def asked(drawn: bool) -> bool:
        shown, _ = form("Which?")
        answer: waiting.Answer[str] = waiting.Answer()
        if drawn:
            asyncio.get_running_loop().call_soon(setattr, shown.send, "_view_count", 1)
        monkeypatch.setattr(waiting, "HANDSHAKE", 5.0 if drawn else 0.0)
        return await answer.shown(shown.box, shown.send)

    assert [asyncio.run(asked(drawn)) for drawn in (False, True, False)] == [False, True, True]
