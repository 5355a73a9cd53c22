"""The suite of v6: right answers pass however they are written, and every check can fail."""

import pytest

from mini_harness.course.conformance import Wrong, conformance
from mini_harness.course.exercises import exercise
from mini_harness.course.judge import judge
from tests.course import mutants
from tests.course.mutants import subject

pytestmark = pytest.mark.once

SOLUTIONS = {name: exercise(f"v6-{name}").solution for name in ("rate", "compare", "gate")}
WHOLE = tuple(SOLUTIONS.values())

RIGHT = {
    "v6-rate": {
        "counts on its fingers": """
from fractions import Fraction
def rate(outcomes, selected):
    total = passed = ran = 0
    for case in dict.fromkeys(selected):
        total += 1
        ran += case in outcomes and outcomes[case] != "skipped"
        passed += outcomes.get(case) == "passed"
    return Fraction(passed) / total if ran else None
""",
    },
    "v6-compare": {
        "tries the best and the worst that could have been": """
def _holds(then, ends):
    if all(end == "passed" for end in then):
        return all(end == "passed" for end in ends)
    return "passed" in ends or "passed" not in then
def _read(ends, instead):
    return [end if end in ("passed", "failed") else instead for end in ends]
def compare(before, now):
    words = {}
    for case in before:
        could = [_holds(before[case], _read(now[case], instead)) for instead in ("passed", "failed")
                 ] if case in now else [False, False]
        words[case] = {2: "fine", 1: "unclear", 0: "worse"}[sum(could)]
    return words
""",
    },
    "v6-gate": {
        "asks rule by rule, and takes the worst": """
from mini_harness.gate_figures import is_clear
from fractions import Fraction
def _side(part, total, limit, estimated):
    if estimated and not is_clear(part, total, limit):
        return "inconclusive"
    return "pass" if Fraction(part, total) >= limit else "fail"
def gate(now, selected, repeats, at_least, before):
    ends = [end for case in selected for end in now.get(case, ())]
    if not any(end != "skipped" for end in ends):
        return "inconclusive"
    total, estimated = len(selected) * repeats, repeats > 1 and at_least < 1
    passed, failed = ends.count("passed"), ends.count("failed")
    said = {_side(passed, total, at_least, estimated),
            _side(total - failed, total, at_least, estimated)}
    rules = [said.pop() if len(said) == 1 else "inconclusive"]
    rules.append("pass" if passed + failed == total else "inconclusive")
    words = compare(before, now).values() if before else ["unclear"]
    rules += [{"fine": "pass", "worse": "fail", "unclear": "inconclusive"}[each] for each in words]
    return "fail" if "fail" in rules else max(rules, key=lambda each: each == "inconclusive")
""",
    },
}


@pytest.mark.parametrize(
    ("name", "how"), [(name, how) for name, ways in RIGHT.items() for how in ways]
)
def test_a_right_answer_passes_however_it_is_written(name: str, how: str) -> None:
    checks = [each for each in conformance("v6") if each.exercise == name]
    assert judge(subject(*WHOLE, RIGHT[name][how]), checks)[0] == "passed"


# What is changed in the solutions, and how the message that follows names the likely cause.
MUTANTS = {
    "rate": [
        ('ends.count("passed")', 'ends.count("failed")', "the passes among all selected"),
        ('Fraction(ends.count("passed"), len(chosen))',
         'Fraction(round(ends.count("passed") / len(chosen), 1)).limit_denominator(10)',
         "Don't round"),
        ("len(chosen))", 'len([each for each in ends if each in ("passed", "failed")]))',
         "it is no pass"),
        ("set(selected)", "set(outcomes) & set(selected)", "divide by the selected ones"),
        ("set(selected)", "set(selected) | set(outcomes)", "Only what was selected counts"),
        ("set(selected)", "list(selected)", "is one case"),
        ("        return None\n", "        return Fraction(1)\n", "so there is no rate"),
        ('ends.count("skipped") == len(ends)', "not ends", "None of them ran"),
        ('ends.count("skipped") == len(ends)', '"passed" not in ends', "a rate of 0"),
    ],
    "compare": [
        ('"fine" if passed', '"unclear" if passed', "That is fine"),
        ('else "unclear" if possible >= owed else "worse"', 'else "fine"',
         "however many others got better"),
        ("len(ends) if always else", "min(1, len(ends)) if always else",
         "has to pass each time now"),
        ('min(then.count("passed"), 1)', 'then.count("passed")', "owes one pass"),
        ('min(then.count("passed"), 1)', "1", "owes nothing but to be there"),
        ('words[case] = "worse"\n            continue', "continue", "A case that is gone"),
        ("    return words", '    return dict.fromkeys(now, "fine") | words', "leave it out"),
        ('"unclear" if possible >= owed else "worse"', '"worse"', "it is unclear"),
        ("possible >= owed", 'len(ends) > passed + ends.count("failed")', "couldn't mend that"),
    ],
    "gate": [
        ('    return "pass"', '    return "inconclusive"', "that is a pass"),
        ('high < at_least or "worse" in words', '"worse" in words', "Too few passed"),
        ("low < at_least or", "low <= at_least or", "19 of 20 is at least 95 %"),
        ("Fraction(passed, total), Fraction(possible, total)",
         "passed / total, possible / total", "so compare fractions"),
        ("Fraction(passed, total), Fraction(possible, total)",
         "(Fraction(round(100 * each / total), 100) for each in (passed, possible))",
         "Don't round"),
        ('if set(found) <= {"skipped"}:', "if not selected:", "nothing is known"),
        ('passed + found.count("failed") < total or ', "", "A run wasn't judged"),
        ('possible = found.count("passed"), total - found.count("failed")',
         'possible = found.count("passed"), len(found)', "it would still be too few"),
        ('high < at_least or "worse" in words', "high < at_least", "however high the rate is"),
        ('if before else ["unclear"]', "if before else []", "There is no baseline"),
        ("if repeats > 1 and at_least < 1:", "if False:", "lies within"),
        ("if repeats > 1 and at_least < 1:", "if at_least < 1:", "nothing is estimated"),
        ("wilson(passed, total)[0], wilson(possible, total)[1]", "Fraction(0), Fraction(1)",
         "the repeats are enough"),
        (" and at_least < 1:", ":", "isn't estimated"),
    ],
}  # fmt: skip
ROWS = [(name, *row) for name, rows in MUTANTS.items() for row in rows]


@pytest.mark.parametrize(("name", "old", "new", "likely"), ROWS)
def test_what_is_wrong_is_told_by_its_likely_cause(
    name: str, old: str, new: str, likely: str
) -> None:
    """Some check that doesn't hold says it, and says what was called and expected."""
    found = faults_of(name, old, new).values()
    assert any(likely in fault.likely for fault in found)
    assert all(fault.called and fault.got and fault.expected for fault in found)


def test_every_check_is_failed_by_a_mutant() -> None:
    failed = {title for name, old, new, _ in ROWS for title in faults_of(name, old, new)}
    assert failed == {check.title for check in conformance("v6")}


def faults_of(name: str, old: str, new: str) -> dict[str, Wrong]:
    return mutants.faults_of("v6", SOLUTIONS, name, old, new, *WHOLE)
