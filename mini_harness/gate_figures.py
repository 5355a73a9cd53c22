"""Exact figures for a gate: what stands at the border falls on the same side every time.

As floats, 0.1 + 0.2 is more than 0.3, and 4.2 - 0.1 is more than 4.1. So thresholds are taken as
they are written, shares are fractions of whole numbers, and nothing is rounded but for people.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction

Number = int | float | Decimal | Fraction
"""What a threshold may be. A float is taken as it is printed: 0.1 is one tenth."""

Z = Fraction(1_959_964, 1_000_000)
"""How many standard deviations hold 95 % of a normal distribution."""

MOST_DIGITS = 30
"""A threshold with more digits than this, before or behind the point, is a slip."""


def exact(number: Number, what: str = "The number") -> Fraction:
    """The number as it is written. Raises TypeError for what is none, texts and booleans included,
    and ValueError for NaN, for infinities and for more than MOST_DIGITS digits."""
    if isinstance(number, bool) or not isinstance(number, int | float | Decimal | Fraction):
        raise TypeError(f"{what} is {number!r}, which is no number: write 0.9, without quotes.")
    if isinstance(number, int | Fraction):
        return Fraction(number)
    # By its text, and not by its value: as a float, 0.1 is a little more than one tenth.
    written = Decimal(repr(float(number))) if isinstance(number, float) else number
    if not written.is_finite():
        raise ValueError(f"{what} is {written}, which compares with nothing: write a number.")
    _, digits, exponent = written.as_tuple()
    assert isinstance(exponent, int)  # only NaN and infinity have letters there
    if max(-exponent, len(digits) + exponent) > MOST_DIGITS:
        raise ValueError(f"{what} has more than {MOST_DIGITS} digits.")
    return Fraction(written)


def share(number: Number, what: str) -> Fraction:
    """A part of a whole, from 0 to 1. Raises as ``exact`` does, and ValueError beyond."""
    found = exact(number, what)
    if not 0 <= found <= 1:
        raise ValueError(f"{what} is {plain(found)}, but must be from 0 to 1: 0.9 means 90 %.")
    return found


def amount(number: Number, what: str) -> Fraction:
    """0 or more. Raises as ``exact`` does, and ValueError below 0."""
    found = exact(number, what)
    if found < 0:
        raise ValueError(f"{what} is {plain(found)}, but must be 0 or more.")
    return found


def plain(value: Fraction) -> str:
    """The number as one writes it: ``0.67``, or ``2/3`` where no decimal says it exactly."""
    with localcontext(prec=3 * MOST_DIGITS):
        found = Decimal(value.numerator) / Decimal(value.denominator)
        if Fraction(found) != value:
            return f"{value.numerator}/{value.denominator}"
        return format(found.normalize(), "f")


def ratio(part: int, whole: int, limit: Fraction | None = None) -> str:
    """``2/3=0.6667``; with more digits where four would make it look like a limit that it isn't."""
    value = Fraction(part, whole)
    for digits in range(4, MOST_DIGITS):
        said = rounded(value, digits)
        if limit is None or value == limit or Fraction(said) != limit:
            break
    return f"{part}/{whole}={said}"


def rounded(value: Fraction, digits: int = 4) -> str:
    """For people. Nothing is decided by it."""
    with localcontext(prec=3 * MOST_DIGITS):
        found = Decimal(value.numerator) / Decimal(value.denominator)
        return str(found.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN))


def is_clear(part: int, whole: int, limit: Fraction) -> bool:
    """Whether the limit lies outside of the Wilson interval, decided exactly, without a root."""
    apart: Fraction = (Fraction(part, whole) - limit) ** 2
    return whole * apart > Z**2 * limit * (1 - limit)


def wilson(part: int, whole: int) -> tuple[Fraction, Fraction]:
    """The 95 % score interval of a share, its ends rounded to 12 digits. ``whole`` is above 0.

    E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal of
    the American Statistical Association 22 (1927), 209-212. Unlike the usual p ± z·s it stays
    within 0 and 1, and 10 of 10 doesn't give an interval of no width.
    """
    found = Fraction(part, whole)
    inside = found * (1 - found) / whole + Z**2 / (4 * whole**2)
    scale = 10**12
    half = Z * Fraction(math.isqrt(int(inside * scale**2)), scale)
    middle, width = found + Z**2 / (2 * whole), 1 + Z**2 / whole
    low = Fraction(0) if part == 0 else (middle - half) / width
    high = Fraction(1) if part == whole else (middle + half) / width
    return Fraction(round(low * scale), scale), Fraction(round(high * scale), scale)
