"""A selected case without a result counts, too: divide by the selected ones."""

from fractions import Fraction


def rate(outcomes, selected):
    ends = [each for case, each in outcomes.items() if case in selected]
    if not ends or set(ends) == {"skipped"}:
        return None
    return Fraction(ends.count("passed"), len(ends))
