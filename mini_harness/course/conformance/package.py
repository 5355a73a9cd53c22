"""The package itself as a subject: its Harness behind the two functions that a learner writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mini_harness.course.conformance import Subject
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel


def _act(tools: Mapping[str, Any], decision: Any) -> Any:
    model = ScriptedModel([decision, {"type": "final", "output": None}])
    run = Harness(model, tools).run_sync("Carry this out.")
    run.unwrap()
    return run.history.messages[2]["tool_result"]


def _pursue(model: Any, tools: Mapping[str, Any], goal: str) -> Any:
    return Harness(model, tools).run_sync(goal).unwrap()


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"act": _act, "pursue": _pursue}

OURS = Subject("mini_harness", _FUNCTIONS.__getitem__)
