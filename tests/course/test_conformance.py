"""One suite, three subjects; and no check that nothing can fail."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mini_harness.course.conformance import SUITES, Subject, Wrong, conformance
from mini_harness.course.conformance.package import PACKAGE
from mini_harness.course.exercises import exercise, exercises
from mini_harness.course.grade import grade, judge
from mini_harness.course.workspace import save_module

ACT = exercise("v0-act").solution
PURSUE = exercise("v0-turns").solution.replace("from my_harness import act\n", "")


def subject(act: str = ACT, pursue: str = PURSUE) -> Subject:
    namespace: dict[str, Any] = {}
    exec(act + pursue, namespace)
    find: Callable[[str], Any] = namespace.__getitem__
    return Subject("a mutant", find)


@pytest.mark.parametrize("step", SUITES)
def test_the_package_passes_its_own_suite(step: str) -> None:
    assert judge(PACKAGE, conformance(step))[0] == "passed"


@pytest.mark.parametrize("step", SUITES)
def test_the_reference_solutions_pass_together(step: str, tmp_path: Path) -> None:
    """As a learner would have them: in a workspace, each module as its last exercise leaves it."""
    for each in exercises(step):
        save_module(tmp_path, each.module, each.solution)
    reports = [grade(each.id, tmp_path) for each in exercises(step)]
    assert [report.status for report in reports] == ["passed"] * len(reports)


@pytest.mark.parametrize("step", SUITES)
def test_every_check_grades_an_exercise_and_every_exercise_has_checks(step: str) -> None:
    graded = {check.exercise for check in conformance(step)}
    assert graded == {each.id for each in exercises(step)}


def test_a_step_without_a_suite_is_refused() -> None:
    with pytest.raises(ValueError, match="There are: v0"):
        conformance("v99")


# Each check, and what is changed in the solutions to make it fail: (old, new).
MUTANTS = {
    "A known tool runs, and its result comes back.": ("return str(tool", "str(tool"),
    "The observation is a text.": ("return str(", "return ("),
    "An unknown tool is told to the model, with the names there are.": ("{known}", ""),
    "Wrong arguments are told to the model.": ("except Exception", "except ConnectionError"),
    "A tool that raises is told to the model.": ("{error!r}", "{error}"),
    "The Stop button works.": ("except Exception", "except BaseException"),
    "A final answer ends the run and is returned as it is.": (
        'return decision["output"]',
        "return decision",
    ),
    "0, False, None and an empty text are answers too.": (
        'return decision["output"]',
        'return decision["output"] or "done"',
    ),
    "The history begins with the goal.": ('"user", "content": goal', '"system", "content": goal'),
    "The model sees what came of its call.": ('"tool_result": result', '"tool_result": "done"'),
    "Every run begins anew.": ("(model, tools, goal):", "(model, tools, goal, seen=[0]):"),
    "The run lives when the model errs.": ("history.append(entry)", "ADD_UNLESS_UNKNOWN"),
    "What is neither a call nor an answer is told, never guessed at.": (
        'if kind == "final"',
        'if kind != "tool"',
    ),
    "Two calls in one turn: both run, in order, before the model is asked again.": (
        "turn if isinstance",
        "turn[::-1] if isinstance",
    ),
    "A mistaken call in a turn doesn't take the others with it.": (
        "history.append(entry)",
        "history.append(entry)\n            if 'Unknown' in str(entry): break",
    ),
    "A turn of one decision still works.": ("else [turn]:", "else []:"),
}
LINES = {
    "ADD_UNLESS_UNKNOWN": "history.append(entry) if 'Unknown tool' not in str(entry) else None",
    "(model, tools, goal, seen=[0]):": "(model, tools, goal, history=[]):",
}


@pytest.mark.parametrize("title", [check.title for check in conformance("v0")])
def test_every_check_can_fail(title: str) -> None:
    old, new = MUTANTS[title]
    new = LINES.get(new, new)
    assert old in ACT + PURSUE
    pursue = PURSUE.replace(old, new)
    if "history=[]" in new:
        pursue = pursue.replace('history = [{"role"', 'history += [{"role"')
    (check,) = [check for check in conformance("v0") if check.title == title]
    check.run(subject())
    with pytest.raises(Wrong) as caught:
        check.run(subject(ACT.replace(old, new), pursue))
    assert all(vars(caught.value)[part] for part in ("called", "got", "expected", "likely"))
