"""The suite of v1: right answers pass however they are written, and every check can fail."""

from typing import Any

import pytest

from mini_harness.course.conformance import Wrong, conformance
from mini_harness.course.conformance.package import OURS
from mini_harness.course.exercises import exercise
from mini_harness.course.judge import judge
from mini_harness.course.prove import graded
from tests.course.mutants import faults, subject

pytestmark = pytest.mark.once

PURSUE = exercise("v0-act").solution + exercise("v0-turns").solution
SOLUTIONS = {name: exercise(f"v1-{name}").solution for name in ("judge", "guard", "trace")}
WHOLE = (PURSUE, *SOLUTIONS.values())
GUARD = SOLUTIONS["guard"]

RIGHT = {
    "v1-judge": {
        "match, and enum members": """
from mini_harness import Verdict
def judge(rules, name, arguments):
    answers = []
    for rule in rules:
        try:
            match rule(name, arguments):
                case None:
                    pass
                case (verdict, reason):
                    answers.append((Verdict(verdict), reason))
                case other:
                    raise TypeError(f"{other!r} is no verdict")
        except Exception as error:
            answers.append((Verdict.DENY, str(error)))
    for wanted in (Verdict.DENY, Verdict.REQUIRE_APPROVAL, Verdict.ALLOW):
        for verdict, reason in answers:
            if verdict is wanted:
                return wanted, reason
    return Verdict.REQUIRE_APPROVAL, ""
""",
    },
    "v1-guard": {
        "raises instead of returning a text": GUARD.replace(
            "return f", "raise PermissionError(f"
        ).replace('{reason}"', '{reason}")'),
        "asks before it wraps the answer, with another tool made by replace": """
import copy, dataclasses
def protect(tools, rules, approver):
    def said_yes(name, arguments):
        try:
            return approver(name, arguments) is True, "Nobody said yes."
        except Exception as error:
            return False, str(error)
    def around(tool):
        def handler(**arguments):
            said, why = judge(rules, tool.name, copy.deepcopy(arguments))
            if said == "require_approval":
                yes, why = said_yes(tool.name, copy.deepcopy(arguments))
                said = "allow" if yes else "deny"
            if said == "deny":
                return "No. " + why
            return tool.handler(**arguments)
        return dataclasses.replace(tool, handler=handler)
    return dict(zip(tools, map(around, tools.values())))
""",
    },
    "v1-trace": {
        "steps counted in the trace, snapshots by JSON, extra events": """
import json
from mini_harness import Tool
def supervise(model, tools, goal, rules, approver, trace, max_steps=8):
    def add(kind, **more):
        step = sum(each["type"] == "model_decision" for each in trace)
        step += kind == "model_decision"
        trace.append(json.loads(json.dumps({"step": step, "type": kind, **more})))
    class Model:
        asked = 0
        def decide(self, history, tools):
            self.asked += 1
            if self.asked > max_steps:
                raise RuntimeError("max_steps exceeded: " + str(max_steps))
            turn = model.decide(history, tools)
            add("model_decision", decision=turn)
            return turn
    def watch(tool):
        def handler(**arguments):
            add("tool_start", tool=tool.name, arguments=arguments)
            try:
                result = tool.handler(**arguments)
            except Exception as error:
                add("tool_error", tool=tool.name, error=repr(error))
                raise
            add("tool_result", tool=tool.name, result=result)
            return result
        return Tool(tool.name, tool.description, handler)
    watched = {name: watch(tool) for name, tool in tools.items()}
    answer = pursue(Model(), protect(watched, rules, approver), goal)
    add("final", output=answer)
    return answer
""",
    },
}


@pytest.mark.parametrize(
    ("name", "how"), [(name, how) for name, ways in RIGHT.items() for how in ways]
)
def test_a_right_answer_passes_however_it_is_written(name: str, how: str) -> None:
    checks = [each for each in conformance("v1") if each.exercise == name]
    assert judge(subject(*WHOLE, RIGHT[name][how]), checks)[0] == "passed"


# What is changed in the solutions, and how the message that follows names the likely cause.
MUTANTS = {
    "judge": [
        ("if said is None:", "if False:", "The others answer None"),
        ("found[1]\n", "''\n", "The reason comes from the rule"),
        (
            "return STRICTNESS[found[0]], found[1]",
            "return STRICTNESS[found[0]]",
            "returns two things",
        ),
        ("strictness > found[0]", "True", "The last rule wins"),
        ("strictness > found[0]", "False", "The first rule that speaks wins"),
        (
            "> found[0]:",
            "> found[0] or verdict == 'require_approval':",
            "The strictest verdict counts",
        ),
        ("strictness > found[0]", "strictness < found[0]", "The strictest verdict counts"),
        ('return "require_approval", "No', 'return "allow", "No', "Nobody decided that"),
        ('return "require_approval", "No', 'return "deny", "No', "somebody is asked"),
        (
            "except Exception as error",
            "except ValueError as error",
            "The rule's error leaves `judge`",
        ),
        (
            'return "deny", f"A rule failed',
            'continue; f"A rule failed',
            "A rule that fails is skipped",
        ),
        ("A rule failed: {error!r}", "A rule failed.", "Put the error into the reason"),
        (
            "STRICTNESS.index(verdict)\n",
            "{'deny': 2, 'allow': 0}.get(verdict, 1)\n",
            "taken for a verdict without a look",
        ),
        ("if said is None:", "if not said:", "Only None is: ask `is None`"),
    ],
    "guard": [
        ("return tool.handler(**arguments)", "return 'failed'", "Return tool.handler(**arguments)"),
        (
            "return tool.handler(**arguments)",
            "tool.handler(**arguments)",
            "isn't what the handler re",
        ),
        ('if verdict == "require_approval"', 'if verdict != "deny"', "What is allowed just runs"),
        ('if verdict == "require_approval"', 'if verdict != "allow"', "nobody's to approve"),
        (
            'if verdict == "allow":\n            return',
            "if True:\n            return",
            "not heeded",
        ),
        ("{tool.name}. {reason}", "{tool.name}.", "The model isn't told why"),
        ("approver(tool.name, deepcopy(arguments))", "True", "Ask once, and with everything"),
        (
            "approver(tool.name, deepcopy",
            "approver('tool', deepcopy",
            "Ask once, and with everything",
        ),
        ('verdict = "allow"\n', 'verdict = "deny"\n', "True means yes"),
        ("answer is True", "answer", "a text like 'no' is"),
        ("answer is True", "answer == True", "Ask `is True`"),
        (
            "return f",
            "if verdict == 'require_approval': return None\n        return f",
            "isn't told that",
        ),
        ("answer = error", "answer = True", "Could not judge is never yes"),
        ("answer = error", "raise", "The approver's error leaves the handler"),
        ("except Exception as error", "except ValueError as error", "Ask it within a `try`"),
        ("answer = error", "answer = False", "Put the approver's error into the reason"),
        (
            "deepcopy(arguments))\n        if",
            "arguments)\n        if",
            "A rule holds the very arguments",
        ),
        (
            "deepcopy(arguments))\n        if",
            "dict(arguments))\n        if",
            "A rule holds the very arguments",
        ),
        (
            "            except Exception as error:\n                answer = error\n",
            "                if answer is True: return tool.handler(**arguments)\n"
            "            except Exception as error: answer = error\n",
            "keep the `try` around the approver alone",
        ),
        (
            "return tool.handler(**arguments)",
            "\n            try: return tool.handler(**arguments)\n"
            "            except Exception as error: reason = error",
            "taken for a no",
        ),
        (
            "approver(tool.name, deepcopy(arguments))",
            "approver(tool.name, arguments)",
            "Show it a copy",
        ),
        (
            "approver(tool.name, deepcopy(arguments))",
            "approver(tool.name, dict(arguments))",
            "Use `deepcopy`",
        ),
        (
            "    return Tool(tool.name, tool.description, handler)\n",
            "    old, tool = tool, Tool(tool.name, tool.description, tool.handler)\n"
            "    old.handler = handler\n    return old\n",
            "Make new ones",
        ),
        (
            "for name, tool in tools.items()",
            "for name, tool in [*tools.items()][:1]",
            "all tools by",
        ),
        ("if verdict ==", "if verdikt ==", "That file doesn't know `verdikt`"),
    ],
    "trace": [
        ("    return output", "    return None", "Return what `pursue` returns"),
        ('note("final", output=output)', "pass", "Each event is appended when it happens"),
        ("step = 0", "step = 1", "They count from 1"),
        ("result=result", "value=result", "the names of the table"),
        ('"type": kind', '"kind": kind', "Append dictionaries"),
        ("                raise\n", "                return 'failed'\n", "noted and swallowed"),
        ('note("tool_error"', '0 and note("tool_error"', "no event says so"),
        ("error=repr(error)", "error=str(error)", "note the `repr`"),
        ("protect(inner, rules, approver)", "inner", "aren't protected"),
        (
            "protect(inner, rules, approver)",
            "protect(inner, rules, None)",
            "isn't asked, or not heard",
        ),
        ("step == max_steps", "step > max_steps", "Count before you ask"),
        ("step == max_steps", "step == 8", "Count before you ask"),
        ("max_steps=8", "max_steps=9", "Count before you ask"),
        (
            'raise RuntimeError(f"max_steps exceeded: {max_steps}")',
            'return {"type": "final", "output": None}',
            "The run ends quietly",
        ),
        (
            "    output = pursue(Watched(), protect(inner, rules, approver), goal)\n",
            "    try: output = pursue(Watched(), protect(inner, rules, approver), goal)\n"
            "    except RuntimeError as error: return error\n",
            "The error is returned",
        ),
        (
            'raise RuntimeError(f"max_steps',
            'trace.clear(); raise RuntimeError(f"max_steps',
            "belongs to the trace too",
        ),
        ("step == max_steps", "step == max_steps - 1", "It counts"),
        ("step == max_steps", "False", "There is no limit"),
        ("deepcopy({", "dict({", "Copy what you note"),
        (
            'deepcopy({"type": kind, "step": step, **data})',
            '{"type": kind, "step": step, **(data if "decision" in data else deepcopy(data))}',
            "the very decision",
        ),
    ],
}
ROWS = [(name, *row) for name, rows in MUTANTS.items() for row in rows]


@pytest.mark.parametrize(("name", "old", "new", "likely"), ROWS)
def test_what_is_wrong_is_told_by_its_likely_cause(
    name: str, old: str, new: str, likely: str
) -> None:
    """The first check that doesn't hold says it, and says what was called and expected."""
    (fault, *_) = faults_of(name, old, new).values()
    assert likely in fault.likely
    assert all(fault.parts.values())


def test_every_check_is_failed_by_a_mutant() -> None:
    failed = {title for name, old, new, _ in ROWS for title in faults_of(name, old, new)}
    assert failed == {check.title for check in conformance("v1")}


def faults_of(name: str, old: str, new: str) -> dict[str, Wrong]:
    """What the checks say of the exercise whose solution the mutant belongs to."""
    assert old in SOLUTIONS[name]
    mutant = subject(*WHOLE, SOLUTIONS[name].replace(old, new))
    return faults("v1", mutant, lambda graded: graded == f"v1-{name}")


def test_a_name_that_a_function_keeps_to_itself_is_told_with_the_word_that_frees_it() -> None:
    """A name within a function, of the file, or of nobody: each has a mend of its own"""
    trace = exercise("v1-trace")
    told = str(graded(trace, trace.solution.replace("            nonlocal step\n", "")))
    assert "`step` is read in `decide` before it has a value there." in told
    assert "say `nonlocal step` first" in " ".join(told.split())
    counted = trace.solution.replace("    step = 0\n", "").replace("nonlocal step", "pass")
    told = str(graded(trace, f"step = 0\n{counted}"))
    assert "say `global step` first" in " ".join(told.split())
    guard = exercise("v1-guard")
    forgot = guard.solution.replace("answer = error", "pass")
    told = " ".join(str(graded(guard, forgot)).split())
    assert "`answer` is read in `handler` before it has a value there. Give it one" in told


def test_what_a_check_called_is_said_in_words_that_read_well() -> None:
    (fault, *_) = faults_of("judge", "except Exception as error", "except ValueError as error")[
        "A rule that fails denies the call."
    ].parts.values()
    assert fault.endswith("where the rules answer: by raising an error")
    (fault, *_) = faults_of("trace", "step == max_steps", "step > max_steps")[
        "After max_steps turns the run ends with an error."
    ].parts.values()
    assert fault.startswith("supervise(…, max_steps=3), where the model says: call read_build(")
    assert fault.endswith(", then so on")


def test_the_package_asks_a_rule_and_an_approver_as_a_learner_would() -> None:
    """A07, A23: what stands between the suite and the package changes no verdict"""
    asked: list[tuple[str, Any]] = []

    def rule(name: str, arguments: dict[str, Any]) -> tuple[str, str]:
        asked.append((name, arguments))
        return "deny", "Never."

    assert OURS.judge([rule], "deploy_prod", {"builds": ["build-102"]}) == ("deny", "Never.")
    assert asked == [("deploy_prod", {"builds": ["build-102"]})]
