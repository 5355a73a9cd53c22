"""The story of v4: a mend is claimed, and whoever is on call wants to see it proved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mini_harness.clock import Clock, VirtualClock
from mini_harness.course import night_shift, story
from mini_harness.course.story import call, final
from mini_harness.events import Sink
from mini_harness.evidence import HOW_TO_CLAIM
from mini_harness.layer import Layer
from mini_harness.limits import MaxSteps
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.policy import Policy
from mini_harness.rules import Rule, Verdict
from mini_harness.tools.base import ToolExecutionContext, ToolResult
from mini_harness.tools.builds import read_build, read_log
from mini_harness.tools.edit import EditFile
from mini_harness.tools.files import ReadFile
from mini_harness.tools.function import tool
from mini_harness.tools.shell import Bash, BashInput

GOAL = "build-102 fails. Mend shop/shipping.py, and prove it."
GOAL_AND_HOW = f"{GOAL} {HOW_TO_CLAIM}"
"""The same for a model that hasn't been told how to claim."""
SOURCE = "shop/shipping.py"
BOAST = "Fixed: orders of 50 euros are sent free of charge now, and all tests pass."
ANSWER = "Orders of 50 euros are sent free of charge: line 9 asks for >=."
BLUNDER = call("edit_file", path=SOURCE, old="CENTS = 5000", new="CENTS = 50")
"""Somebody took cents for euros. Now a small order is free, too."""
UNDO = call("edit_file", path=SOURCE, old="CENTS = 50", new="CENTS = 5000")
MEND = call("edit_file", path=SOURCE, old="total_cents > FREE", new="total_cents >= FREE")
TESTS = call("run_tests")
_MAY = [
    Rule(f"{name}-in-the-farm", Verdict.ALLOW, tool=name, reason="On a branch of its own.")
    for name in ("edit_file", "bash", "run_tests")
]


@tool(paths=())
async def run_tests(context: ToolExecutionContext) -> ToolResult:
    """Run the shop's own tests."""
    return await Bash().execute(BashInput(command="python -m pytest", cwd="shop"), context)


def harness(
    farm: Path,
    turns: Iterable[Any],
    *layers: Layer,
    sinks: Iterable[Sink] = (),
    clock: Clock | None = None,
) -> Harness:
    """The harness of v3, and around it what is given. Without a ``clock`` it has a virtual one."""
    clock = VirtualClock() if clock is None else clock
    model = ScriptedModel(turns, clock=clock, latency=0.5)
    tools = [read_build, read_log, run_tests, ReadFile(), EditFile(), Bash()]
    around = [MaxSteps(12), *layers, Policy(rules=_MAY)]
    return Harness(model, tools, layers=around, sinks=sinks, clock=clock, cwd=farm)


def claim(says: str, call_id: str, **more: Any) -> dict[str, Any]:
    """A claim in its wire form."""
    return {"says": says, "call_id": call_id, **more}


def answer(text: str, *claims: Mapping[str, Any]) -> dict[str, Any]:
    """The wire form of a final answer that claims something."""
    return final({"answer": text, "claims": list(claims)})


def fresh_farm() -> Path:
    """The story's folder anew, in a place that goes with this process, and its path."""
    return story.fresh_farm(night_shift.fresh("proof") / "farm")


def last_call(history: Sequence[Mapping[str, Any]], name: str) -> str:
    """The id of the last call of a tool that a model has seen the end of."""
    return str([each["call_id"] for each in history if each.get("tool") == name][-1])


def boasting() -> list[Any]:
    """What a model says that changes something, and doesn't look afterwards."""
    return [TESTS, BLUNDER, final(BOAST)]


def learning() -> list[Any]:
    """The same model, when its answer comes back: it looks, mends what it broke, and proves it."""
    return [*boasting(), TESTS, [UNDO, MEND], TESTS, _proved]


def _proved(history: Sequence[Mapping[str, Any]], tools: object) -> dict[str, Any]:
    return answer(ANSWER, tests_pass(last_call(history, "run_tests")))


def tests_pass(call_id: str) -> dict[str, Any]:
    """The claim that a call has shown that all tests pass."""
    return claim("All tests pass.", call_id, quote="3 passed", exit_code=0, about=["shop"])


def lies() -> list[Any]:
    """Answers that cite a call that failed, one that never was, and a text that nobody wrote."""
    return [
        answer(BOAST, claim("All tests pass.", "call_run_tests_0_1", quote="2 passed")),
        answer(BOAST, claim("All tests pass.", "call_run_tests_0_9", quote="3 passed")),
        answer(BOAST, claim("All tests pass.", "call_edit_file_0_2", quote="3 passed")),
    ]


def proving() -> list[Any]:
    """What a model says that mends it, looks, and proves it."""
    return [MEND, TESTS, _proved]


def lying() -> list[Any]:
    """What a model says that did well, and proves it with everything but that."""
    piped = call("bash", command="python -m pytest | tail -1", cwd="shop")
    return [TESTS, call("read_log", build_id="build-101"), MEND, piped, *[_lied] * 4]


def _lied(history: Sequence[Mapping[str, Any]], tools: object) -> dict[str, Any]:
    return answer(
        ANSWER,
        claim("It failed before.", last_call(history, "run_tests")),
        claim("It passed on the farm.", last_call(history, "read_log")),
        claim("All tests pass.", last_call(history, "bash"), quote="3 passed"),
        claim("They passed last night, too.", "call_run_tests_7_1", quote="3 passed"),
    )


def half_proving() -> list[Any]:
    """What a model says of which one half is true, and the other isn't known yet."""
    return [MEND, TESTS, call("read_build", build_id="build-102"), *[_half_proved] * 4]


def _half_proved(history: Sequence[Mapping[str, Any]], tools: object) -> dict[str, Any]:
    built = claim("The farm has built it.", last_call(history, "read_build"), quote="passed")
    return answer(ANSWER, tests_pass(last_call(history, "run_tests")), built)
