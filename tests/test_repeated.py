"""A run that brings nothing new is stopped."""

import asyncio
from collections.abc import Iterable
from itertools import count
from typing import Any

import pytest

from mini_harness import Harness, Layer, MaxSteps, Run, ScriptedModel, Status, tool
from mini_harness.repeated import NoProgress, RepeatedCalls


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool", "name": name, "arguments": arguments}


@tool(read_only=True, paths=())
def read(path: str) -> str:
    """Read."""
    return f"content of {path}"


@tool(paths=())
def fail() -> str:
    """Fail."""
    raise ValueError("no")


def pursue(script: Iterable[Any], *tools: Any, layers: Iterable[Layer] = ()) -> Run:
    harness = Harness(
        ScriptedModel(script), [read, fail, *tools], layers=[*layers, RepeatedCalls()]
    )
    return asyncio.run(harness.run("go"))


def calls_made(run: Run) -> int:
    return sum(m["role"] == "tool" and m.get("outcome") != "not_run" for m in run.history.messages)


@pytest.mark.parametrize("same", [call("read", path="a"), call("fail")])
def test_the_sixth_identical_call_stops_the_run(same: dict[str, Any]) -> None:
    """report R11: repeat limit 5, max_steps 50"""
    run = pursue([same] * 50, layers=[MaxSteps(50)])
    assert calls_made(run) == 5
    assert run.stop is not None
    assert [run.stop[key] for key in ("reason", "used", "limit")] == ["repeated_call", 5, 5]
    with pytest.raises(NoProgress, match="was called 5 times and brought nothing new"):
        run.unwrap()
    assert run.history.messages[-1]["outcome"] == "not_run"
    assert not run.history.open


def test_two_calls_in_turn_are_no_progress_either() -> None:
    """report R11: a, b, a, b …"""
    run = pursue([call("read", path="ab"[n % 2]) for n in range(50)])
    assert run.status is Status.STOPPED
    assert calls_made(run) <= 11


def test_a_job_may_be_polled_while_its_state_changes() -> None:
    """report R11: poll(job) with changing results"""
    states = count()

    @tool(read_only=True, paths=())
    def poll(job: str) -> str:
        """Poll."""
        return f"{next(states) // 3} % done"

    script = [*[call("poll", job="1")] * 30, {"type": "final", "output": "done"}]
    assert pursue(script, poll).output == "done"


def test_a_test_may_be_run_again_after_every_edit() -> None:
    """report R11: a legal retry after a changed file passes"""

    @tool(paths=())
    def edit(text: str) -> str:
        """Edit."""
        return f"wrote {text}"

    steps = [step for n in range(20) for step in (call("edit", text=str(n)), call("fail"))]
    assert pursue([*steps, {"type": "final", "output": "done"}], edit).output == "done"


def test_one_and_true_are_different_arguments() -> None:
    """report R02"""

    @tool(read_only=True, paths=())
    def show(value: int | bool) -> str:
        """Show."""
        return "same"

    script = [call("show", value=v) for v in (1, True) * 5]
    assert pursue([*script, {"type": "final", "output": "done"}], show).output == "done"


def test_a_run_read_back_from_its_record_goes_on_counting() -> None:
    events: list[Any] = []
    same = call("read", path="a")
    harness = Harness(
        ScriptedModel([same] * 4), [read], layers=[MaxSteps(4)], sinks=[events.append]
    )
    asyncio.run(harness.run("go"))
    run = Run.fold(events)
    asyncio.run(Harness(ScriptedModel([same] * 9), [read], layers=[RepeatedCalls()]).resume(run))
    assert run.stop is not None and run.stop["reason"] == "repeated_call"
    assert calls_made(run) == 5


def test_runs_do_not_share_what_they_know() -> None:
    layer = RepeatedCalls(2)
    for _ in range(3):
        script = [call("read", path="a"), {"type": "final", "output": "done"}]
        run = asyncio.run(Harness(ScriptedModel(script), [read], layers=[layer]).run("go"))
        assert run.output == "done"


@pytest.mark.parametrize("bad", [True, 1.5, "5"])
def test_a_limit_is_an_integer(bad: Any) -> None:
    with pytest.raises(TypeError, match="must be an integer"):
        RepeatedCalls(bad)
    with pytest.raises(ValueError, match="at least 1"):
        RepeatedCalls(0)
