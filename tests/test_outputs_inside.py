"""The layers inside of LargeOutput: they see the tool as it is, and judge its calls alike."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mini_harness import (
    Bash,
    Harness,
    LargeOutput,
    Policy,
    ReadFile,
    Run,
    ScriptedModel,
    Trace,
    VirtualClock,
    tool,
)
from mini_harness.layer import Layer, Stop
from mini_harness.policy import Rule, Verdict
from mini_harness.protocol import Final, ToolCall
from mini_harness.run import StopReason
from mini_harness.tools.base import BaseTool, ToolResult
from mini_harness.tools.call import Call
from tests.test_outputs import run_once, says


class Guarded(BaseTool):
    """Says of itself all that a policy can ask."""

    name, description, idempotent = "guarded", "Do it.", True
    input_model = ReadFile.input_model

    def paths(self, arguments: Any) -> list[str]:
        return [arguments.path]

    def command(self, arguments: Any) -> str:
        return f"touch {arguments.path}"

    def preview(self, arguments: Any, context: Any) -> str:
        return f"It touches {arguments.path}."

    async def execute(self, arguments: Any, context: Any) -> ToolResult:
        return ToolResult("x" * 10**5)


@tool(paths=["at"], command="line")
def plain(at: str, line: str) -> str:
    """Run it."""
    return "x" * 10**5


@tool(paths=())
def loose(path: str) -> str:
    """Do it."""
    return "x" * 10**5


DENY = [
    Rule("path", Verdict.DENY, path="secrets/**"),
    Rule("line", Verdict.DENY, "guarded", command="touch no*"),
]
JUDGED: list[tuple[BaseTool, dict[str, Any]]] = [
    *[(Guarded(), {"path": path}) for path in ("a", "no", "secrets/x", ".ssh/id_rsa")],
    *[(plain, {"at": "a", "line": line}) for line in ("sudo rm -rf /", "ls", "cat secrets/x")],
    *[(plain, {"at": at, "line": "ls"}) for at in ("secrets/x", ".env")],
    (loose, {"path": "secrets/x"}),
    (ReadFile(), {"path": "secrets/x"}),
    (Bash(), {"command": "sudo rm -rf /nowhere"}),
]


@pytest.mark.parametrize("mode", ["default", "full_auto", "plan"])
@pytest.mark.parametrize(("made", "arguments"), JUDGED)
def test_a_policy_inside_judges_as_one_outside(
    made: BaseTool, arguments: dict[str, Any], mode: str, tmp_path: Path
) -> None:
    """Rule 1: a wrong order must not take guards away"""
    seen = []
    for outside in (True, False):
        layers: list[Layer] = [Policy(rules=DENY, mode=mode)]
        layers.insert(outside, LargeOutput())
        trace = Trace()
        model = ScriptedModel([ToolCall(made.name, arguments, "c"), Final("done")])
        harness = Harness(
            model, [made], layers=layers, sinks=[trace], cwd=tmp_path, clock=VirtualClock()
        )
        run = asyncio.run(harness.run("go"))
        told = [message["tool_result"] for message in run.history.messages[2:3]]
        request = dict(run.pause or {})
        for name in ("digest", "scope", "asker"):  # They name the place of the policy.
            request.pop(name, None)
        verdicts = [dict(e.data, digest="") for e in trace.events if e.type == "verdict"]
        rules = [e.data["rule"] for e in trace.events if e.type == "tool_start"]
        seen.append((told, request, verdicts, rules))
    assert seen[0] == seen[1]


def test_inside_it_differs_from_the_tool_in_nothing_but_the_result(tmp_path: Path) -> None:
    """What others go by: effects, whether it may be repeated, what kind of tool it is"""
    found: list[BaseTool] = []

    class Look(Layer):
        async def act(self, run: Run, call: Call, next: Any) -> Any:
            found.append(call.tool)
            assert call.repeatable
            return await next(run, call)

    run_once(tmp_path, Guarded(), path="a", more_inside=[Look()])
    run_once(tmp_path, looks(), more_inside=[Look()])
    assert [type(each) for each in found] == [Guarded, type(plain)]
    assert found[0].idempotent and found[1].is_read_only(found[1].input_model())
    assert not found[0].is_read_only(None)


def looks() -> BaseTool:
    @tool(read_only=True, paths=())
    def look() -> str:
        """Look."""
        return ""

    return look


@pytest.mark.parametrize("error", [None, Stop(StopReason.BUDGET)])
def test_whoever_stands_outside_has_the_tool_itself_back(error: Any, tmp_path: Path) -> None:
    """However the call ended: or each attempt would wrap what the last one wrapped"""
    before, after = [], []

    class Outside(Layer):
        async def act(self, run: Run, call: Call, next: Any) -> Any:
            before.append(call.tool)
            try:
                return await next(run, call)
            finally:
                after.append(call.tool)

    class Inside(Layer):
        async def act(self, run: Run, call: Call, next: Any) -> Any:
            if error is not None:
                raise error
            return await next(run, call)

    made = says("x" * 10**5)
    run_once(tmp_path, made, more=[Outside()], more_inside=[Inside()])
    assert before == after == [made]
