"""What stands at the border falls on the same side every time."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.gate_figures import Z, amount, exact, is_clear, plain, ratio, share, wilson


def test_a_number_is_taken_as_it_is_written() -> None:
    """report G04"""
    assert exact(0.1) + exact(0.2) == exact(0.3)
    assert exact(4.2) - exact(4.1) <= exact(0.1)
    assert Fraction(7, 10) >= exact(0.7)
    assert Fraction(29, 100) >= exact(0.29)
    assert Fraction(2, 3) < exact(0.67)
    assert exact(Decimal("0.1")) == exact(0.1) == exact(Fraction(1, 10))
    assert exact(1e-7) == Fraction(1, 10_000_000)


@pytest.mark.parametrize("wrong", ["0.9", True, False, None, 1j])
def test_what_is_no_number_is_refused(wrong: object) -> None:
    """report G02"""
    with pytest.raises(TypeError, match=r"is no number: write 0\.9, without quotes"):
        share(wrong, "at_least")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [1.01, -0.1, 90, math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("sNaN"), 1 + 1e-9],
)
def test_what_is_no_share_is_refused(wrong: float) -> None:
    """report G02: 90 isn't read as 90 %"""
    with pytest.raises(ValueError, match=r"^at_least is "):
        share(wrong, "at_least")


def test_0_and_1_are_shares_and_0_is_an_amount() -> None:
    """report G02"""
    assert [share(each, "x") for each in (0, 1, 0.0, 1.0)] == [0, 1, 0, 1]
    assert amount(0, "x") == 0
    with pytest.raises(ValueError, match="must be 0 or more"):
        amount(-1, "x")


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "0e-999999999", "9" * 31])
def test_a_number_of_a_million_digits_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="more than 30 digits"):
        exact(Decimal(text))
    assert exact(Decimal("9" * 30)) == 10**30 - 1


def test_a_ratio_shows_counts_and_never_looks_like_a_limit_that_it_is_not() -> None:
    """report G04"""
    assert ratio(2, 3, exact(0.67)) == "2/3=0.6667"
    assert ratio(0, 7) == "0/7=0.0000"
    assert ratio(66_999, 100_000, exact(0.67)) == "66999/100000=0.66999"
    assert ratio(67, 100, exact(0.67)) == "67/100=0.6700"
    assert (plain(exact(0.67)), plain(Fraction(2, 3)), plain(exact(1500))) == (
        "0.67",
        "2/3",
        "1500",
    )


def test_the_interval_is_wilsons() -> None:
    """Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 81 of 263, 0 of 20, 1 of 29"""
    for counts, low, high in (
        ((81, 263), 0.2553, 0.3662),
        ((15, 148), 0.0624, 0.1605),
        ((0, 20), 0.0, 0.1611),
        ((1, 29), 0.0061, 0.1718),
    ):
        assert [round(float(end), 4) for end in wilson(*counts)] == [low, high]
    assert wilson(20, 20)[1] == 1


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_limit_is_clear_exactly_outside_of_the_interval(counts: tuple[int, int]) -> None:
    """The decision takes no root; this oracle does."""
    part, whole = counts
    low, high = wilson(part, whole)
    assert 0 <= low <= Fraction(part, whole) <= high <= 1
    for limit in (Fraction(step, 97) for step in range(1, 97)):
        if min(abs(limit - low), abs(limit - high)) > Fraction(1, 10**9):
            assert is_clear(part, whole, limit) is not (low < limit < high)
    assert abs(float(Z) - 1.959963985) < 1e-6
