"""One suite, three subjects; and no check that nothing can fail."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mini_harness.course.conformance import SUITES, Subject, Wrong, conformance
from mini_harness.course.conformance.package import OURS
from mini_harness.course.exercises import exercise, exercises
from mini_harness.course.grade import grade
from mini_harness.course.judge import judge
from mini_harness.course.workspace import save_module
from tests.course.mutants import faults

ACT = exercise("v0-act").solution
PURSUE = exercise("v0-turns").solution.replace("from my_harness import act\n", "")


def subject(act: str = ACT, pursue: str = PURSUE) -> Subject:
    namespace: dict[str, Any] = {}
    exec(act + pursue, namespace)
    find: Callable[[str], Any] = namespace.__getitem__
    return Subject("a mutant", find)


@pytest.mark.parametrize("step", SUITES)
def test_the_package_passes_its_own_suite(step: str) -> None:
    assert judge(OURS, conformance(step))[0] == "passed"


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


RIGHT_ACTS = {
    "match": """
def act(tools: dict, decision: dict) -> str:
    match tools.get(decision["name"]):
        case None:
            return f"No tool {decision['name']!r}; there are {sorted(tools)}"
        case tool:
            try:
                return f"{tool.handler(**decision['arguments'])}"
            except Exception as error:
                return f"{type(error).__name__}: {error}"
""",
    "traceback": """
import traceback
def act(tools, call):
    if call["name"] not in tools:
        return "unknown " + call["name"] + ", known: " + str(list(tools))
    try:
        return str(tools[call["name"]].handler(**call["arguments"]))
    except KeyboardInterrupt:
        raise
    except BaseException:
        return traceback.format_exc()
""",
    "signature": """
import inspect
def act(tools, decision):
    tool = tools.get(decision["name"])
    if tool is None:
        return f"{decision['name']} is unknown, {list(tools)}"
    try:
        return str(tool.handler(**decision["arguments"]))
    except TypeError:
        return f"{tool.name} takes {inspect.signature(tool.handler)}"
    except Exception as error:
        return repr(error)
""",
}
RIGHT_LOOPS = {
    "recursion": """
def pursue(model, tools, goal, history=()):
    history = history or ({"role": "user", "content": goal},)
    turn = model.decide(history, tools)
    new = []
    for decision in turn if isinstance(turn, list) else [turn]:
        match decision:
            case {"type": "final", "output": output}:
                return output
            case {"type": "tool", "name": name}:
                new.append({"role": "tool", "tool": name, "tool_result": act(tools, decision)})
            case _:
                new.append({"role": "user", "content": "What?"})
    return pursue(model, tools, goal, (*history, *new))
""",
    "class, and the model's own turns in the history": """
class Loop:
    def __init__(self, model, tools):
        self.model, self.tools, self.done = model, tools, False
    def take(self, decision):
        if not isinstance(decision, dict) or decision.get("type") not in ("tool", "final"):
            return {"role": "user", "content": f"Neither: {decision}"}
        if decision["type"] == "final":
            self.done, self.output = True, decision["output"]
            return {"role": "assistant", "content": "done"}
        text = act(self.tools, decision)
        return {"role": "tool", "tool": decision["name"], "tool_result": text, "id": 1}
def pursue(model, tools, goal):
    loop, history = Loop(model, tools), [{"role": "user", "content": goal}]
    while not loop.done:
        turn = model.decide(history=list(history), tools=list(tools.values()))
        history.append({"role": "assistant", "content": str(turn)})
        history += [loop.take(each) for each in (turn if isinstance(turn, list) else [turn])]
    return loop.output
""",
    "a system entry after the goal": PURSUE.replace(
        '"content": goal}]', '"content": goal}, {"role": "system", "content": "Be brief."}]'
    ),
}


@pytest.mark.parametrize("name", RIGHT_ACTS)
def test_a_right_act_passes_however_it_is_written(name: str) -> None:
    checks = [each for each in conformance("v0") if each.exercise == "v0-act"]
    assert judge(subject(act=RIGHT_ACTS[name]), checks)[0] == "passed"


@pytest.mark.parametrize("name", RIGHT_LOOPS)
def test_a_right_loop_passes_however_it_is_written(name: str) -> None:
    checks = [each for each in conformance("v0") if each.exercise != "v0-act"]
    status, text = judge(subject(pursue=RIGHT_LOOPS[name]), checks)
    assert (status, text) == ("passed", "passed. All 11 checks hold.")


# What is changed in the solutions, and how the message that follows names the likely cause.
MUTANTS = [
    # act
    ("str(tool.handler(**decision", "str((lambda **given: 1)(**decision", "The handler isn't call"),
    ("return str(tool", "tool.handler(**decision['arguments'])\n        return str(tool", "once."),
    (
        "    except Exception",
        "    except LookupError:\n        pass\n    except Exception as error:\n"
        "        try:\n            tool.handler(**decision['arguments'])\n"
        "        except Exception:\n            pass\n"
        "        return f'{tool.name}: {error!r}'\n    except OSError",
        "Nobody knows here whether that is safe",
    ),
    ('tools.get(decision["name"]', 'tools.get(decision["name"].lower()', "The nearest name"),
    ("while True:", "for _ in range(100):", "no mistake, and no number of turns"),
    ("tool.handler(**decision", "tool.handler(decision", "Unpack the arguments with two stars"),
    ("return str(tool", "str(tool", "isn't what `act` returns"),
    ("return str(", "return (", "make one of it with `str`"),
    (
        "if tool is None:",
        "tool = tool or tools['read_build']\n    if tool is None:",
        "The nearest name",
    ),
    ("if tool is None:", "if tool is None:\n        return 'No.'", "which name was wrong"),
    ("{known}", "", "which names would have been right"),
    ("{error!r}", "{len(str(error))}", "which argument was wrong"),
    ("failed: {error!r}", "takes build_id", "The error's text is lost"),
    ("{error!r}", "{error}", "`str(error)` can be empty"),
    ("except Exception", "except (TypeError, ValueError, OSError)", "The error leaves `act`"),
    ("except Exception", "except BaseException", "catches the Stop button too"),
    ("tools.get(", "toolz.get(", "That file doesn't know `toolz`"),
    ("def act", "async def act", "Write it with a plain `def`"),
    ("    tool = tools", "    raise SystemExit\n    tool = tools", "The error leaves `act`"),
    # pursue
    (
        '    history = [{"role"',
        '    return "build"\n    history = [{"role"',
        "The model isn't asked",
    ),
    ('return decision["output"]', "return None", "`pursue` returns nothing"),
    ('return decision["output"]', "return decision", "The output is changed on its way"),
    ('return decision["output"]', "pass", "doesn't return when there is a final"),
    ('return decision["output"]', 'return decision["output"] or "x"', "whether the answer is true"),
    ('return decision["output"]', 'if decision["output"]: return decision["output"]', "is true"),
    ('[{"role": "user", "content": goal}]', "[]", "isn't put into the history"),
    ('"role": "user", "content": goal', '"role": "human", "content": goal', "has other keys"),
    ("list(tools)", "[]", "can only propose what it knows"),
    ("list(tools)", "None", "can only propose what it knows"),
    ("list(tools)", "list(tools)[:1]", "can only propose what it knows"),
    ("result = act(", "return act(", "ends after the first turn"),
    ("history.append(entry)", "pass", "isn't appended to the history"),
    ('"tool_result": result', '"result": result', "look at its keys and values"),
    ("result = act(", "act(tools, decision)\n                result = act(", "carried out once"),
    ("history.append(entry)", "history.insert(0, entry)", "only grows at its end"),
    (
        'history = [{"role": "user", "content": goal}]',
        'history = globals().setdefault("h", [])\n'
        '    history.append({"role": "user", "content": goal})',
        "The history is made once",
    ),
    ("while True:", "for _ in range(4):", "no mistake, and no number of turns"),
    (
        "history.append(entry)",
        "history.append(entry)\n            history[1:] = history[-1:]",
        "only grows at its end",
    ),
    (
        "history.append(entry)",
        "history.append(entry) if 'Unk' not in str(entry) else 0",
        "Not every",
    ),
    (
        "result = act(tools, decision)",
        "result = str(tools[decision['name']].handler(**decision['arguments']))",
        "hand the call to `act`, which never raises",
    ),
    ('if kind == "final"', 'if kind != "tool"', "is taken for an answer"),
    ("if isinstance(decision, dict) else None", "", "even a plain text"),
    (
        'decision.get("type") if isinstance(decision, dict) else None',
        'decision["type"]',
        "knows that",
    ),
    ('"content": f"Unknown decision: {decision}"', '"content": goal', "The model isn't told"),
    ("history.append(entry)", "history.append(str(entry))", "An entry is a dictionary"),
]
TURNS = [
    ("turn if isinstance", "turn[:1] if isinstance", "Only the first call of the list"),
    ("turn if isinstance", "turn[::-1] if isinstance", "in the order of the calls"),
    ("turn if isinstance(turn, list) else [turn]", "[turn]", "takes every turn for one"),
    (
        "history.append(entry)",
        "history.append(entry)\n            if 'Unknown tool' in str(entry): break",
        "leaves the turn at the first mistake",
    ),
    ("else [turn]:", "else []:", "Make a list of it first"),
]


@pytest.mark.parametrize(("old", "new", "likely"), MUTANTS + TURNS)
def test_what_is_wrong_is_told_by_its_likely_cause(old: str, new: str, likely: str) -> None:
    """The first check that doesn't hold says it, and says what was called and expected."""
    assert old in ACT + PURSUE
    (fault, *_) = faults_of((old, new, likely)).values()
    assert likely in fault.likely
    assert all(fault.parts.values())


def test_every_check_is_failed_by_a_mutant() -> None:
    failed = {title for row in MUTANTS + TURNS for title in faults_of(row)}
    assert failed == {check.title for check in conformance("v0")}


def faults_of(row: tuple[str, str, str]) -> dict[str, Wrong]:
    """What the checks of the exercises say to whose solution the mutant belongs."""
    old, new, _ = row
    mutant = subject(ACT.replace(old, new), PURSUE.replace(old, new))
    exercise = "v0-turns" if row in TURNS else "v0-" if old in PURSUE else "v0-act"
    return faults("v0", mutant, lambda graded: graded.startswith(exercise))
