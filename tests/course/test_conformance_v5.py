"""The suite of v5: right answers pass however they are written, and every check can fail."""

import pytest

from mini_harness.course.conformance import Wrong, conformance
from mini_harness.course.conformance.package import OURS
from mini_harness.course.exercises import exercise
from mini_harness.course.judge import judge
from tests.course import mutants
from tests.course.mutants import subject

pytestmark = pytest.mark.once

SOLUTIONS = {name: exercise(f"v5-{name}").solution for name in ("expect", "house", "shrink")}

RIGHT = {
    "v5-expect": {
        "compares types all the way down, and takes never for at most 0": """
def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b
def objections(expect, seen):
    rest = dict(expect)
    most = [(tool, 0) for tool in rest.pop("never", ())] + list(rest.pop("at_most", {}).items())
    found = [f"too much of {tool}" for tool, n in most if seen["calls"].count(tool) > n]
    if "output" in rest:
        if not ("output" in seen and same(rest.pop("output"), seen["output"])):
            found.append("another answer")
            rest.pop("output", None)
    elif not most and not rest:
        raise ValueError("nothing")
    if rest:
        raise ValueError(str(rest))
    return found
""",
    },
    "v5-house": {
        "one list, in which proof is put for those who ask for it": """
from mini_harness import *
from mini_harness.course.cases import NIGHT, TOOLS
def around(world, *first):
    layers = [*first, RepeatedCalls(2), MaxSteps(8), Compaction(2_000, [DropOldOutputs()]),
              Policy(rules=NIGHT), Retry(seed=9), Timeout(30),
              Budget(tokens=5_000, tool_calls=20, seconds=600), world.faults]
    return Harness(world.model, TOOLS, layers=layers, sinks=list(world.sinks), clock=world.clock)
def triage(world):
    return around(world)
def verified(world):
    return around(world, Verify(checks=["run_tests"]))
""",
    },
    "v5-shrink": {
        "by recursion, halves first": """
def shrink(script, fails):
    if fails(list(script)) is not True:
        raise ValueError("no")
    kept = list(script)
    def without(low, high):
        nonlocal kept
        rest = kept[:low] + kept[high:]
        if low < high and fails(rest) is True:
            kept = rest
        elif high - low > 1:
            middle = (low + high) // 2
            without(middle, high)
            without(low, middle)
    before = None
    while before != kept:
        before = kept
        without(0, len(kept))
    return kept
""",
    },
}


@pytest.mark.parametrize(
    ("name", "how"), [(name, how) for name, ways in RIGHT.items() for how in ways]
)
def test_a_right_answer_passes_however_it_is_written(name: str, how: str) -> None:
    checks = [each for each in conformance("v5") if each.exercise == name]
    status, text = judge(subject(RIGHT[name][how]), checks)
    assert status == "passed", text


def test_the_package_itself_passes() -> None:
    status, text = judge(OURS, conformance("v5"))
    assert status == "passed", text


# What is changed in the solutions, and how the message that follows names the likely cause.
MUTANTS = {
    "expect": [
        ("if told != wanted", "if True", "nothing to object to"),
        ("if told != wanted", "if False", "isn't the one expected"),
        (", sort_keys=True", "", "have no order"),
        ('if "output" in expect:', 'if expect.get("output"):', "Ask whether the key is there"),
        ('json.dumps(seen["output"], sort_keys=True) if "output" in seen else "missing"',
         'json.dumps(seen.get("output"), sort_keys=True)', "takes that for the answer None"),
        ("if told != wanted",
         'if "output" not in seen or seen["output"] != expect["output"]', "compare the JSON texts"),
        ('if tool in seen["calls"]', "if False", "must never begin did"),
        ("{tool} began, and must never", "A tool began", "name it in the text"),
        ("if began > most", "if began > most + 1", "one too many"),
        ("if began > most", "if began >= most", "is not too often"),
        ("if began > most", "if most and began > most", "At most 0 is never"),
        ("    return found", "    return found[:1]", "Don't stop at the first"),
        ("if unknown :=", "if False and", "A misspelt key"),
        ("Nobody looks at {unknown[0]}.", "A misspelt key.", "Say what is misspelt"),
        ('if "output" not in expect and not any(expect.values())', "if not expect",
         "It expects nothing"),
    ],
    "house": [
        ("        MaxSteps(8),\n", "", "MaxSteps ends a run"),
        ("        RepeatedCalls(2),\n", "", "makes no progress"),
        ("        Policy(rules=NIGHT),\n", "", "with the rules of the night"),
        ("Policy(rules=NIGHT)", "Policy()", "with the rules of the night"),
        ("        Compaction(2_000, [DropOldOutputs()]),\n", "", "leaves old output out"),
        ("        Retry(),\n", "", "tries again what may be repeated"),
        ("Retry()", "Retry(attempts=4)", "tries again what may be repeated"),
        ("tokens=5_000", "tokens=50_000", "5,000 tokens are allowed"),
        ("        Timeout(30),\n", "", "ends a call after 30 seconds"),
        ('"sinks": world.sinks, ', "", "The world's session is one of its sinks"),
        ("[*layers, world.faults]", "[world.faults, *layers]", "as the innermost one"),
        ("[*layers, world.faults]", "layers", "as the innermost one"),
        ('Verify(checks=["run_tests"]), ', "", "Verify looks at each answer"),
        ("return around(world, layers())", "return verified(world)", "nobody has to prove"),
    ],
    "shrink": [
        ("kept = rest", "pass\n                start += size", "can go if it still fails"),
        ("while size:", "while size > 1:", "can go if it still fails"),
        ("if size > 1 or len(kept) == before", "if True", "Begin again"),
        ("if fails(rest) is True", "if fails(rest)", "Only True is a failure"),
        ("if fails(kept) is not True", "if False", "ask first, and raise"),
        ("size = list(script), len(script)", "size = list(script), 1", "large parts first"),
    ],
}  # fmt: skip
ROWS = [(name, *row) for name, rows in MUTANTS.items() for row in rows]


@pytest.mark.parametrize(("name", "old", "new", "likely"), ROWS)
def test_what_is_wrong_is_told_by_its_likely_cause(
    name: str, old: str, new: str, likely: str
) -> None:
    """Some check that doesn't hold says it, and says what was called and expected."""
    found = faults_of(name, old, new).values()
    assert any(likely in f"{fault.likely} {fault.expected}" for fault in found)
    assert all(fault.called and fault.got and fault.expected for fault in found)


def test_every_check_is_failed_by_a_mutant() -> None:
    failed = {title for name, old, new, _ in ROWS for title in faults_of(name, old, new)}
    assert failed == {check.title for check in conformance("v5")}


def faults_of(name: str, old: str, new: str) -> dict[str, Wrong]:
    return mutants.faults_of("v5", SOLUTIONS, name, old, new)
