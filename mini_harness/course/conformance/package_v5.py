"""The package's corpus behind the functions that a learner writes in v5."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mini_harness.course.cases import triage, verified
from mini_harness.events import Event
from mini_harness.expectation import Expectation
from mini_harness.loop import Harness
from mini_harness.minimal import minimise
from mini_harness.models.scripted import ScriptedModel
from mini_harness.sync import run_sync
from mini_harness.tools.function import function_tool

__all__ = ["objections", "shrink", "triage", "verified"]


def objections(expect: Mapping[str, Any], seen: Mapping[str, Any]) -> list[str]:
    """Let it happen to a run of the package, and ask the expectation."""
    turns: list[Any] = [{"type": "tool", "name": each, "arguments": {}} for each in seen["calls"]]
    if "output" in seen:
        turns.append({"type": "final", "output": seen["output"]})
    tools = [
        function_tool(lambda: "", name=each, description="For a check.", read_only=True)
        for each in dict.fromkeys(seen["calls"])
    ]
    events: list[Event] = []
    run = run_sync(Harness(ScriptedModel(turns), tools, sinks=[events.append]).run("Go."))
    return Expectation.from_dict(expect).objections(run, events)


def shrink(script: Sequence[Any], fails: Callable[[Sequence[Any]], Any]) -> list[Any]:
    return list(minimise(list(script), fails).found)
