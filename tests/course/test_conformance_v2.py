"""The suite of v2: right answers pass however they are written, and every check can fail."""

import pytest

from mini_harness.course.conformance import Wrong, conformance
from mini_harness.course.exercises import exercise
from mini_harness.course.judge import judge
from tests.course import mutants
from tests.course.mutants import subject

pytestmark = pytest.mark.once

PURSUE = exercise("v0-act").solution + exercise("v0-turns").solution
SOLUTIONS = {name: exercise(f"v2-{name}").solution for name in ("retry", "budget", "survive")}
WHOLE = (PURSUE, *SOLUTIONS.values())

RIGHT = {
    "v2-retry": {
        "a for loop that ends with the last attempt outside of it": """
def retry(attempt, key, repeatable, sleep, attempts=3, base=1.0, cap=30.0):
    wait = base
    for _ in range(attempts - 1):
        try:
            return attempt(key)
        except TransientError as error:
            if not repeatable:
                raise OutcomeUnknown("unknown") from error
            sleep(max(wait, error.retry_after or 0))
            wait = min(cap, wait * 2)
    try:
        return attempt(key)
    except TransientError as error:
        if repeatable:
            raise
        raise OutcomeUnknown("unknown") from error
""",
        "recursion": """
def retry(attempt, key, repeatable, sleep, attempts=3, base=1.0, cap=30.0):
    try:
        return attempt(key)
    except TransientError as error:
        if not repeatable:
            raise OutcomeUnknown("unknown") from error
        if attempts == 1:
            raise
        sleep(max(min(cap, base), error.retry_after or 0))
        return retry(attempt, key, repeatable, sleep, attempts - 1, base * 2, cap)
""",
    },
    "v2-budget": {
        "counts down, in a list that the handlers share": """
import math
def limited(tools, max_calls):
    if max_calls is not None and (math.isnan(max_calls) or max_calls < 0):
        raise ValueError(max_calls)
    left = [math.inf if max_calls is None else max_calls]
    def around(tool):
        def handler(**arguments):
            if left[0] <= 0:
                raise BudgetSpent(max_calls - left[0], max_calls)
            left[0] -= 1
            return tool.handler(**arguments)
        return Tool(tool.name, tool.description, handler)
    return {name: around(tool) for name, tool in tools.items()}
""",
    },
}


@pytest.mark.parametrize(
    ("name", "how"), [(name, how) for name, ways in RIGHT.items() for how in ways]
)
def test_a_right_answer_passes_however_it_is_written(name: str, how: str) -> None:
    checks = [each for each in conformance("v2") if each.exercise == name]
    assert judge(subject(*WHOLE, RIGHT[name][how]), checks)[0] == "passed"


# What is changed in the solutions, and how the message that follows names the likely cause.
MUTANTS = {
    "retry": [
        ("return attempt(key)", "return [attempt(key), attempt(key)][0]", "what the first attempt"),
        ("sleep(max(wait, error.retry_after or 0))", "raise", "Wait, and try again"),
        ("except TransientError as error:",
         "except Exception as error:\n            error.retry_after = None",
         "Every error is taken for one that passes"),
        ("if not repeatable:", "if False:", "it may have had its effect"),
        ("raise OutcomeUnknown(", "raise TransientError(", "that must be said"),
        ("attempt(key)", 'attempt(f"{key}-{number}")', "a key of its own"),
        ("number == attempts", "number > attempts", "counts all of them"),
        ("                raise\n", "                raise ValueError\n", "raise it"),
        ("2 ** (number - 1)", "number", "twice as long"),
        ("if number == attempts:", "if number == 99:", "counts all of them"),
        ("2 ** (number - 1)", "2 ** number", "Wait 1 second after the first"),
        ("error.retry_after or 0", "0", "the longer of that"),
    ],
    "budget": [
        ("used >= max_calls", "used > max_calls", "share one budget"),
        ("used >= max_calls", "used >= max_calls - 1", "A limit of 2 allows two"),
        ("    used = 0\n\n    def around(tool):\n", "    def around(tool):\n        used = 0\n",
         "share"),
        ("BudgetSpent(used, max_calls)", "BudgetSpent(0, 0)", "how far it went"),
        ("raise BudgetSpent(used, max_calls)", "return 'no'", "Raise BudgetSpent"),
        ("return tool.handler", "tool.handler", "Return what the handler returns"),
        ("is not None and used", "and used", "0 is taken for no limit"),
        ("max_calls is not None and used", "used", ""),
        ("not max_calls >= 0", "max_calls < 0", "nan is neither"),
        ("not max_calls >= 0", "False", "A negative limit"),
        ("            used += 1\n            return tool.handler(**arguments)\n",
         "            result = tool.handler(**arguments)\n            used += 1\n"
         "            return result\n", "isn't counted"),
        ("        return Tool(tool.name, tool.description, handler)",
         "        old = tool.handler\n        tool.handler = handler\n        return tool", ""),
    ],
    "survive": [
        ("return pursue(", "pursue(", "Return what `pursue` returns"),
        ("return retry(lambda key: tool.handler(**arguments), tool.name, again, sleep)",
         "return tool.handler(**arguments)", "with `retry`"),
        ("tool.name in repeatable", "True", "isn't among the repeatable ones"),
        ("limited(tools, max_calls)", "limited(tools, None)", "The retries aren't counted"),
        ("if spent is not None:", "if False:", "makes a text of BudgetSpent"),
        ("limited(tools, max_calls)", "limited(tools, max_calls and max_calls - 1)", ""),
    ],
}  # fmt: skip
ROWS = [(name, *row) for name, rows in MUTANTS.items() for row in rows]


@pytest.mark.parametrize(("name", "old", "new", "likely"), ROWS)
def test_what_is_wrong_is_told_by_its_likely_cause(
    name: str, old: str, new: str, likely: str
) -> None:
    """Some check that doesn't hold says it, and says what was called and expected."""
    found = faults_of(name, old, new).values()
    assert found
    assert any(likely in fault.likely or likely in fault.expected for fault in found)
    assert all(fault.called and fault.got and fault.expected for fault in found)


def test_every_check_is_failed_by_a_mutant() -> None:
    failed = {title for name, old, new, _ in ROWS for title in faults_of(name, old, new)}
    assert failed == {check.title for check in conformance("v2")}


def faults_of(name: str, old: str, new: str) -> dict[str, Wrong]:
    return mutants.faults_of("v2", SOLUTIONS, name, old, new, *WHOLE)
