"""One case is worse than before. That is a fail, however high the rate is."""

from fractions import Fraction

from mini_harness.gate_figures import wilson


def gate(now, selected, repeats, at_least, before):
    found = [each for case in selected for each in now.get(case, [])]
    if set(found) <= {"skipped"} or not before:
        return "inconclusive"
    total = len(selected) * repeats
    passed, failed = found.count("passed"), found.count("failed")
    low, high = Fraction(passed, total), Fraction(total - failed, total)
    if repeats > 1 and at_least < 1:
        low, high = wilson(passed, total)[0], wilson(total - failed, total)[1]
    if high < at_least:
        return "fail"
    return "pass" if low >= at_least and passed + failed == total else "inconclusive"
