"""Nothing failed, and nothing is known: that is no pass"""

from fractions import Fraction

from my_harness import compare


def gate(now, selected, repeats, at_least, before):
    found = [each for case in selected for each in now.get(case, [])]
    total = len(selected) * repeats
    share = Fraction(found.count("passed"), total) if total else 1
    if share < at_least or "worse" in compare(before or {}, now).values():
        return "fail"
    return "pass"
