"""Where each case ran once, nothing is estimated"""

from my_harness import compare

from mini_harness.gate_figures import wilson


def gate(now, selected, repeats, at_least, before):
    found = [each for case in selected for each in now.get(case, [])]
    if set(found) <= {"skipped"}:
        return "inconclusive"
    total = len(selected) * repeats
    passed, failed = found.count("passed"), found.count("failed")
    words = list(compare(before, now).values()) if before else ["unclear"]
    low = wilson(passed, total)[0] if at_least < 1 else passed / total
    high = wilson(total - failed, total)[1] if at_least < 1 else (total - failed) / total
    if high < at_least or "worse" in words:
        return "fail"
    if low < at_least or passed + failed < total or "unclear" in words:
        return "inconclusive"
    return "pass"
