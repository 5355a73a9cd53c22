"""No case was selected, so there is no rate."""

from fractions import Fraction


def rate(outcomes, selected):
    chosen = set(selected)
    if not chosen:
        return Fraction(1)
    ends = [outcomes.get(case, "skipped") for case in chosen]
    if set(ends) == {"skipped"}:
        return None
    return Fraction(ends.count("passed"), len(chosen))
