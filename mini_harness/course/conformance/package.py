"""The package itself as a subject: its parts behind the functions that a learner writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from pydantic import create_model

from mini_harness.approval import Answer, ApprovalRequest, Approver
from mini_harness.course.conformance import Subject
from mini_harness.course.conformance.package_tools import adapt, check_arguments, describe, edit
from mini_harness.course.conformance.package_v2 import limited, retry, survive
from mini_harness.course.conformance.package_v3 import append, load, pursue_on, what_to_do
from mini_harness.course.conformance.package_v4 import (
    add,
    examine,
    pursue_proved,
    standing,
    verify,
)
from mini_harness.course.conformance.package_v5 import objections, shrink, triage, verified
from mini_harness.course.conformance.package_v6 import compare, gate, rate
from mini_harness.events import Event, EventType
from mini_harness.frozen import FrozenDict, canonical
from mini_harness.limits import MaxSteps
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.policy import Policy
from mini_harness.rules import Facts, Judgement, Rule, Verdict
from mini_harness.tools.base import BaseTool, Tool, ToolExecutionContext, ToolResult
from mini_harness.tools.call import Call


def _act(tools: Mapping[str, Any], decision: Any) -> Any:
    model = ScriptedModel([decision, {"type": "final", "output": None}])
    run = Harness(model, tools).run_sync("Carry this out.")
    run.unwrap()
    return run.history.messages[2]["tool_result"]


def _pursue(model: Any, tools: Mapping[str, Any], goal: str) -> Any:
    return Harness(model, tools).run_sync(goal).unwrap()


@dataclass(frozen=True)
class _Asked(Rule):
    """A rule as a learner writes it: a function of name and arguments."""

    function: Callable[[str, Any], Any] | None = None

    def judge(self, facts: Facts) -> Judgement | None:
        assert self.function is not None
        said = self.function(facts.call.name, _thawed(facts.call.arguments))
        if said is None:
            return None
        verdict, reason = said
        return Judgement(Verdict(verdict), self.id, reason)


def _rules(functions: Iterable[Callable[[str, Any], Any]]) -> list[Rule]:
    return [
        _Asked(f"rule-{number}", Verdict.DENY, function=each)
        for number, each in enumerate(functions)
    ]


def _approver(function: Callable[[str, Any], Any]) -> Approver:
    def ask(request: ApprovalRequest) -> Answer:
        said: Any = function(request.tool, _thawed(request.arguments))
        if said is True:
            return request.approve()
        # None would pause the run, and nobody comes to resume it.
        return request.deny("Nobody decided.") if said is None else said

    return ask


class _Anything(BaseTool):
    """A tool of any name that takes any arguments."""

    description = "For a check."

    def __init__(self, name: str, arguments: Iterable[str]) -> None:
        self.name = name
        takes: dict[str, Any] = dict.fromkeys(arguments, (Any, ...))
        self.input_model = create_model(name, **takes)

    async def execute(self, arguments: Any, context: ToolExecutionContext) -> ToolResult:
        return ToolResult("")


def _thawed(arguments: FrozenDict) -> Any:
    return json.loads(canonical(arguments))


def _judge(rules: Sequence[Any], name: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    call = Call(_Anything(name, arguments), "call-1", dict(arguments))
    verdict, _, reason = Policy(rules=_rules(rules)).judge(call, ".")
    return verdict, reason


def _protect(tools: Mapping[str, Tool], rules: Sequence[Any], approver: Any) -> dict[str, Tool]:
    policy = Policy(rules=_rules(rules), approver=_approver(approver))

    def protected(tool: Tool) -> Tool:
        @wraps(tool.handler)
        def handler(**arguments: Any) -> Any:
            proposal = {"type": "tool", "name": tool.name, "arguments": arguments}
            model = ScriptedModel([proposal, {"type": "final", "output": None}])
            run = Harness(model, tools, layers=[policy]).run_sync("Carry this out.")
            run.unwrap()
            return run.history.messages[2]["tool_result"]

        return Tool(tool.name, tool.description, handler)

    return {name: protected(tool) for name, tool in tools.items()}


def _supervise(
    model: Any,
    tools: Mapping[str, Any],
    goal: str,
    rules: Sequence[Any],
    approver: Any,
    trace: list[dict[str, Any]],
    max_steps: int = 8,
) -> Any:
    layers = [MaxSteps(max_steps), Policy(rules=_rules(rules), approver=_approver(approver))]
    harness = Harness(model, tools, layers=layers, sinks=[lambda event: trace.extend(_told(event))])
    return harness.run_sync(goal).unwrap()


def _told(event: Event) -> Iterator[dict[str, Any]]:
    """An event as a learner's trace has it, if it is one of those that are asked for."""
    data, about = event.data, {"type": event.type.value, "step": event.step}
    match event.type:
        case EventType.MODEL_DECISION if "calls" in data:
            wire = {key: each for key, each in data["calls"][0].items() if key != "call_id"}
            yield {**about, "decision": wire}
        case EventType.MODEL_DECISION:
            yield {**about, "decision": {"type": "final", "output": data["content"]}}
        case EventType.TOOL_START:
            yield {**about, "tool": data["tool"], "arguments": data["arguments"]}
        case EventType.TOOL_RESULT:
            yield {**about, "tool": data["tool"], "result": data["tool_result"]}
        case EventType.TOOL_ERROR if data["outcome"] == "error":
            yield {**about, "tool": data["tool"], "error": data["error"]}
        case EventType.FINAL:
            yield {**about, "output": data["output"]}


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "act": _act,
    "pursue": _pursue,
    "describe": describe,
    "check_arguments": check_arguments,
    "edit": edit,
    "adapt": adapt,
    "judge": _judge,
    "protect": _protect,
    "supervise": _supervise,
    "retry": retry,
    "limited": limited,
    "survive": survive,
    "append": append,
    "load": load,
    "what_to_do": what_to_do,
    "pursue_on": pursue_on,
    "examine": examine,
    "standing": standing,
    "add": add,
    "verify": verify,
    "pursue_proved": pursue_proved,
    "objections": objections,
    "triage": triage,
    "verified": verified,
    "shrink": shrink,
    "rate": rate,
    "compare": compare,
    "gate": gate,
}

OURS = Subject("mini_harness", _FUNCTIONS.__getitem__)
