"""The suite of v3: right answers pass however they are written, and every check can fail."""

import pytest

from mini_harness.course.conformance import Wrong, conformance
from mini_harness.course.exercises import exercise
from mini_harness.course.judge import judge
from tests.course import mutants
from tests.course.mutants import subject

pytestmark = pytest.mark.once

ACT = exercise("v0-act").solution
SOLUTIONS = {name: exercise(f"v3-{name}").solution for name in ("append", "resume", "survive")}
WHOLE = (ACT, *SOLUTIONS.values())

RIGHT = {
    "v3-append": {
        "reads line by line, and writes from where the last whole line ends": """
import json
def _lines(path):
    if not path.exists():
        return
    with path.open("rb") as file:
        yield from file
def load(path):
    events, torn = [], 0
    for number, line in enumerate(_lines(path), 1):
        if not line.endswith(b"\\n"):
            torn = len(line)
            break
        try:
            events.append(json.loads(line))
        except ValueError:
            raise ValueError(f"line {number}")
    return events, torn
def append(path, event):
    size = sum(len(line) for line in _lines(path) if line.endswith(b"\\n"))
    path.touch()
    with path.open("r+b") as file:
        file.seek(size)
        file.truncate()
        file.write(json.dumps(event).encode() + b"\\n")
""",
    },
    "v3-resume": {
        "counts starts and ends": """
from collections import Counter
def what_to_do(events, safe):
    starts, ends, words = Counter(), Counter(), {}
    for event in events:
        starts[event["call"]] += event["type"] == "start"
        ends[event["call"]] += event["type"] == "end"
    for event in events:
        call, tool = event["call"], event["tool"]
        if starts[call] > ends[call]:
            words[call] = "run again" if tool in safe else "ask"
        else:
            words[call] = "done" if ends[call] else "run"
    return words
""",
    },
    "v3-survive": {
        "a decision is the start too, and the last answer is never written": """
def pursue_on(path, model, tools, goal, safe):
    while True:
        events, _ = load(path)
        told = [event["told"] for event in events if "told" in event]
        history = [{"role": "user", "content": goal}, *told]
        doubted = bool(events) and "call" in events[-1]
        call = events[-1]["call"] if doubted else model.decide(history, list(tools))
        if call["type"] == "final":
            return call["output"]
        if not doubted:
            append(path, {"call": call})
        may = call["name"] in safe or not doubted
        result = act(tools, call) if may else "Unknown."
        append(path, {"told": {"role": "tool", "tool": call["name"], "tool_result": result}})
""",
    },
}


@pytest.mark.parametrize(
    ("name", "how"), [(name, how) for name, ways in RIGHT.items() for how in ways]
)
def test_a_right_answer_passes_however_it_is_written(name: str, how: str) -> None:
    checks = [each for each in conformance("v3") if each.exercise == name]
    assert judge(subject(*WHOLE, RIGHT[name][how]), checks)[0] == "passed"


# What is changed in the solutions, and how the message that follows names the likely cause.
MUTANTS = {
    "append": [
        ('open("ab")', 'open("wb")', "never replaces what is there"),
        (' + b"\\n"', "", "One event is one line"),
        (' if path.exists() else b""', "", "no events"),
        ('data.split(b"\\n")', 'data.replace(b"\\\\u2028", b"\\n").split(b"\\n")', "U+2028"),
        ("json.dumps(event)", "json.dumps(event, ensure_ascii=False)", "escapes it by itself"),
        ("return events, len(torn)",
         "return events + ([json.loads(torn)] if torn.endswith(b'}') else []), len(torn)",
         "from its line end on"),
        ("file.truncate(file.tell() - torn)", "pass", "in one line with the torn one"),
        ('raise ValueError(f"Line {number} is damaged: {error}") from None', "continue",
         "refuse it"),
        ("Line {number}", "A line", "name the line"),
    ],
    "resume": [
        ('"end": "done"', '"end": "run"', "don't run it again"),
        ('"proposed": "run"', '"proposed": "ask"', "it hasn't begun"),
        ('else "ask"', 'else "run again"', "It may have had its effect"),
        ('"run again" if event["tool"] in safe else "ask"', '"ask"', "may be repeated"),
        ('last[event["call"]] = event', 'last = {event["call"]: event}', "by its own events"),
        ('        last[event["call"]] = event',
         '        if last.get(event["call"], event)["type"] != "end":\n'
         '            last[event["call"]] = event', "the second start has no end"),
    ],
    "survive": [
        ('return pending["output"]', "return None", "Return the output"),
        ('note("start", pending["name"])', "pass", "Its start must be in the journal"),
        ('append(path, {"type": kind, "value": value})',
         'path.touch()\n        line = json.dumps({"type": kind, "value": value}).encode()\n'
         '        path.write_bytes(path.read_bytes() + line + b"\\n")',
         "leaves a torn line"),
        ('pending["name"] not in safe', "True", "run it again"),
        ('"The outcome is unknown: it was started, and nobody recorded its end."', '"It is done."',
         "outcome is unknown"),
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
    assert failed == {check.title for check in conformance("v3")}


def faults_of(name: str, old: str, new: str) -> dict[str, Wrong]:
    return mutants.faults_of("v3", SOLUTIONS, name, old, new, *WHOLE)
