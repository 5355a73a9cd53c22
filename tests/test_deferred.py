"""Deferred tools are found first, and shown then."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from mini_harness import (
    Block,
    DeferredTools,
    Harness,
    Hook,
    Hooks,
    Pause,
    Run,
    ScriptedModel,
    ToolSearch,
    Trace,
    tool,
)
from mini_harness.layer import Layer
from mini_harness.tools.base import ToolResult
from mini_harness.tools.call import Call, prepare


@tool(paths=())
def deploy_prod() -> str:
    """Deploy to production."""
    return "deployed"


@tool(read_only=True, paths=())
def read_build() -> str:
    """Read build status."""
    return "failed"


TOOLS = [ToolSearch(), deploy_prod, read_build]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool", "name": name, "arguments": arguments}


class Seeing:
    """A scripted model that notes which tools it was shown in each turn."""

    def __init__(self, script: Sequence[Any]) -> None:
        self._model = ScriptedModel([*script, {"type": "final", "output": "done"}])
        self.shown: list[list[str]] = []

    def decide(self, history: Any, tools: Any) -> Any:
        self.shown.append([each["name"] for each in tools])
        return self._model.decide(history, tools)


def pursue(script: Sequence[Any], *patterns: str, **more: Any) -> tuple[Run, Seeing]:
    model = Seeing(script)
    harness = Harness(model, TOOLS, layers=[DeferredTools(patterns)], **more)
    return asyncio.run(harness.run("go")), model


def outputs(run: Run) -> list[str]:
    return [m["tool_result"] for m in run.history.messages if m["role"] == "tool"]


def test_a_deferred_tool_is_shown_from_the_turn_after_it_was_found() -> None:
    """C26, issue 5: found first, schema loaded then"""
    run, model = pursue([call("tool_search", query="production"), call("deploy_prod")], "deploy*")
    assert model.shown == [
        ["tool_search", "read_build"],
        ["tool_search", "deploy_prod", "read_build"],
        ["tool_search", "deploy_prod", "read_build"],
    ]
    assert outputs(run) == ["deploy_prod: Deploy to production.", "deployed"]


def test_a_deferred_tool_that_was_not_found_does_not_run() -> None:
    run, _ = pursue([call("deploy_prod")], "deploy*")
    assert outputs(run) == [
        "Not run: deploy_prod isn't loaded. Find it with tool_search, then call it."
    ]
    assert [m["outcome"] for m in run.history.messages if m["role"] == "tool"] == ["not_run"]


def test_to_list_all_tools_loads_none() -> None:
    """C26: an empty query lists all"""
    run, model = pursue([call("tool_search"), call("deploy_prod")], "*")
    assert "deploy_prod: Deploy" in outputs(run)[0]
    assert model.shown == [["tool_search"]] * 3
    assert outputs(run)[1].startswith("Not run")


def test_a_search_beside_the_call_comes_too_late_for_nothing() -> None:
    """In one turn, in order: what the first call finds, the second may use"""
    turn = [call("tool_search", query="deploy"), call("deploy_prod")]
    run, _ = pursue([turn], "deploy*")
    assert outputs(run)[1] == "deployed"


def test_each_run_has_to_find_its_tools() -> None:
    layer = DeferredTools(["deploy*"])
    for script in ([call("tool_search", query="deploy")], [call("deploy_prod")]):
        model = Seeing(script)
        run = asyncio.run(Harness(model, TOOLS, layers=[layer]).run("go"))
    assert outputs(run)[0].startswith("Not run")


class PauseBefore(Layer):
    """Leaves the run before its second turn, once."""

    def __init__(self) -> None:
        self.done = False

    async def act(self, run: Run, call: Call, next: Any) -> Any:
        if call.name == "deploy_prod" and not self.done:
            self.done = True
            raise Pause()
        return await next(run, call)


def test_a_run_read_back_from_its_record_still_knows_what_was_found() -> None:
    trace = Trace()
    script = [call("tool_search", query="deploy"), call("deploy_prod")]
    layers = [PauseBefore(), DeferredTools(["deploy*"])]
    asyncio.run(Harness(Seeing(script), TOOLS, layers=layers, sinks=[trace]).run("go"))
    again = Run.fold(trace.events)
    model = Seeing([])
    asyncio.run(Harness(model, TOOLS, layers=[DeferredTools(["deploy*"])]).resume(again))
    assert outputs(again)[1] == "deployed"
    assert "deploy_prod" in model.shown[0]


def test_a_layer_inside_that_changes_what_a_search_says_is_what_counts() -> None:
    """What the model was told is what it knows: a search that a hook blocked found nothing"""

    def refuse(_: object) -> Block:
        return Block("no searching")

    model = Seeing([call("tool_search", query="deploy"), call("deploy_prod")])
    layers = [Hooks([Hook("pre_tool_use", refuse, matcher="tool_search")]), DeferredTools(["dep*"])]
    run = asyncio.run(Harness(model, TOOLS, layers=layers).run("go"))
    assert outputs(run)[1].startswith("Not run")


def test_no_other_tool_can_say_that_something_was_found() -> None:
    """Only a search loads: metadata may come from anywhere, also from a server"""

    @tool(paths=())
    def helper() -> ToolResult:
        """Help."""
        return ToolResult("ok", metadata={"found": ["deploy_prod"]})

    model = Seeing([call("helper"), call("deploy_prod")])
    harness = Harness(model, [*TOOLS, helper], layers=[DeferredTools(["deploy*"])])
    assert outputs(asyncio.run(harness.run("go")))[1].startswith("Not run")


class LastFirst(Layer):
    """Runs the first call of a turn after the others, as a layer may."""

    async def act(self, run: Run, call: Call, next: Any) -> Any:
        if call.call_id in run.observed:
            return run.observed[call.call_id]
        assert isinstance(run.pending, tuple)
        for other in run.pending[1:]:
            ready = prepare(run.driver.tools, other)
            assert isinstance(ready, Call)
            run.driver.record.observation(run, other, await next(run, ready))
        return await next(run, call)


def test_a_search_that_ends_after_a_later_call_of_its_turn_counts_from_the_next_turn() -> None:
    """Its observation takes the place of its call: before messages that were looked through"""
    turn = [call("tool_search", query="deploy"), call("read_build"), call("deploy_prod")]
    model = Seeing([turn, call("deploy_prod")])
    layers = [LastFirst(), DeferredTools(["deploy*"])]
    run = asyncio.run(Harness(model, TOOLS, layers=layers).run("go"))
    assert [text[:7] for text in outputs(run)] == ["deploy_", "failed", "Not run", "deploye"]


def test_without_a_search_nothing_can_be_deferred() -> None:
    harness = Harness(Seeing([]), [deploy_prod], layers=[DeferredTools(["*"])])
    with pytest.raises(LookupError, match="deploy_prod is deferred, and without the tool tool_sea"):
        asyncio.run(harness.run("go"))


def test_the_search_itself_is_never_deferred() -> None:
    assert not DeferredTools(["*"]).defers("tool_search")
    assert DeferredTools(["*"]).defers("tool_searches")


def test_a_lone_text_is_no_list_of_patterns() -> None:
    with pytest.raises(TypeError, match=r"as a list: \['mcp__\*'\]"):
        DeferredTools("mcp__*")
