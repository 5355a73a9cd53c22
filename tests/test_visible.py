"""What others wrote can't steer a terminal, hide from a person, or lie by its order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.visible import LONGEST, shortened, undisguised, visible, visible_lines


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain text, ünïcode, 漢字, 🙂", "plain text, ünïcode, 漢字, 🙂"),
        ("\x1b]0;x\x07\x1b[2K\rALL PASSED", "\\x1b]0;x\\x07\\x1b[2K\\rALL PASSED"),
        ("\x9b2K", "\\x9b2K"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("r\u200bm\ufeff", "r\\u200bm\\ufeff"),
        ("a\u3164b\u2800\u115f\uffa0", "a\\u3164b\\u2800\\u115f\\uffa0"),
        ("a\ufe0fb\U000e0101", "a\\ufe0fb\\U000e0101"),
        ("\ud800", "\\ud800"),
        ("a\u17b4b\u180bc\U00016fe4", "a\\u17b4b\\u180bc\\U00016fe4"),
        ("a\u2028b\u00a0c\nd\te", "a\\u2028b\\xa0c\\nd\\te"),
    ],
)
def test_what_cannot_be_seen_is_an_escape(text: str, seen: str) -> None:
    """report P07"""
    assert visible(text) == seen


@given(st.text(st.characters()))
def test_what_is_shown_is_printable_and_stays_as_it_is_when_shown_again(text: str) -> None:
    """report P07"""
    shown = visible(text)
    assert shown.isprintable()
    assert visible(shown) == shown


def test_lines_stay_lines_and_a_row_of_spaces_becomes_its_number() -> None:
    """report P07"""
    text = "safe" + " " * 400 + "; rm -rf d\r\nnext\rx"
    assert undisguised(text) == "safe [400 spaces] ; rm -rf d\nnext\\rx"
    assert undisguised("    indented") == "    indented"
    assert undisguised("safe" + "\n \n" * 2_000 + "rm") == "safe\n[3,999 empty lines]\nrm"
    assert undisguised("a\n\nb") == "a\n\nb"
    assert visible_lines(text) == "safe" + " " * 400 + "; rm -rf d\nnext\\rx"


def test_a_long_text_keeps_head_and_tail_and_says_how_much_is_missing() -> None:
    """C37: cut at 4,000 characters with a marker"""
    text = "a" * 3_000 + "b" * 5_000 + "c" * 1_000
    lines = shortened(text).split("\n")
    assert lines == ["a" * 3_000, "[... 5,000 of 9,000 characters are not shown ...]", "c" * 1_000]
    assert shortened("a" * LONGEST) == "a" * LONGEST
