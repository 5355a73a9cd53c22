"""Models whose turns are written down beforehand."""

import asyncio
from typing import Any

import pytest

from mini_harness.clock import VirtualClock
from mini_harness.loop import Harness
from mini_harness.models.base import ModelError
from mini_harness.models.scripted import DemoModel, ScriptedModel, ScriptEnded
from mini_harness.run import Status
from mini_harness.tools.builds import TOOLS
from tests.loops import DONE, call, kinds, play


def test_the_demo_model_looks_a_build_up_and_says_what_it_saw() -> None:
    """A05, A06, A11"""
    events: list[Any] = []
    harness = Harness(DemoModel(), TOOLS, sinks=[events.append])
    run = asyncio.run(harness.run("How is build-102?"))
    assert run.unwrap() == "The build status is: failed"
    assert run.history.messages[1]["calls"][0]["name"] == "read_build"
    assert run.history.messages[1]["calls"][0]["arguments"] == {"build_id": "build-102"}
    turn = ["model_decision", "tool_start", "tool_result"]
    assert kinds(events) == ["message", *turn, "model_decision", "final"]


def test_each_turn_is_played_once_and_in_order() -> None:
    run, _ = play([call("nobody", "a"), call("nobody", "b"), DONE])
    assert [m["call_id"] for m in run.history.messages if m["role"] == "tool"] == ["a", "b"]


def test_a_script_that_ended_fails_the_run_and_says_why() -> None:
    run, _ = play([call("nobody")])
    assert run.status is Status.FAILED
    with pytest.raises(ScriptEnded, match=r"All 1 turns .* and one more was asked for") as raised:
        run.unwrap()
    assert isinstance(raised.value, ModelError)


def test_a_function_sees_history_and_tools_and_gives_the_turn() -> None:
    seen: list[tuple[Any, list[str]]] = []

    def look(history: Any, tools: Any) -> Any:
        seen.append((history[-1]["content"], [tool["name"] for tool in tools]))
        return DONE

    run, _ = play([look], TOOLS.values())
    assert run.unwrap() == "done"
    assert seen == [("go", list(TOOLS))]


def test_a_loop_that_awaits_nothing_can_play_a_script() -> None:
    """The loop that a learner writes first is a plain function."""
    model = ScriptedModel([lambda history, tools: DONE, ConnectionError("away")])
    assert model.decide([], []) == DONE
    with pytest.raises(ConnectionError, match="away"):
        model.decide([], [])


async def later(history: object, tools: object) -> Any:
    await asyncio.sleep(0)
    return DONE


def test_a_function_may_be_async() -> None:
    assert play([later]).run.unwrap() == "done"


@pytest.mark.parametrize("turn", [ValueError("wire"), lambda history, tools: ValueError("wire")])
def test_an_exception_in_the_script_is_raised(turn: Any) -> None:
    run, _ = play([turn])
    assert run.status is Status.FAILED
    with pytest.raises(ValueError, match="wire"):
        run.unwrap()


def test_a_turn_takes_its_latency_on_the_clock() -> None:
    """DESIGN, determinism: model latency advances the virtual clock"""
    clock = VirtualClock()
    model = ScriptedModel([call("nobody"), DONE], clock=clock, latency=1.5)
    asyncio.run(Harness(model, clock=clock).run("go"))
    assert clock.monotonic() == 3.0
