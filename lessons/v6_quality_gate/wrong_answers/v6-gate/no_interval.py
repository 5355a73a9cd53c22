"""Where cases run more than once, the rate is an estimate"""

from fractions import Fraction

from my_harness import compare


def gate(now, selected, repeats, at_least, before):
    found = [each for case in selected for each in now.get(case, [])]
    if set(found) <= {"skipped"}:
        return "inconclusive"
    total = len(selected) * repeats
    passed, failed = found.count("passed"), found.count("failed")
    words = list(compare(before, now).values()) if before else ["unclear"]
    if Fraction(total - failed, total) < at_least or "worse" in words:
        return "fail"
    if passed + failed < total or "unclear" in words:
        return "inconclusive"
    return "pass"
