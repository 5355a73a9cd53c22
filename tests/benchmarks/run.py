"""What a step costs, as ratios within one run. ``python tests/benchmarks/run.py`` prints the table.

The yardstick is the bare loop of the document that this project grew from: ask the model, check
its decision and the arguments with pydantic, call the function, append to the history. It has no
events, no call ids, no frozen arguments and no error handling.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, TypeAdapter

from mini_harness.events import Event
from mini_harness.loop import Harness
from mini_harness.protocol import Decision, Final, Message, ToolCall
from mini_harness.tools.base import ToolSchema
from mini_harness.tools.function import function_tool

ROUNDS = 7
MOST_TIMES_BARE = 6.0
MOST_GROWTH = 1.1
MOST_IMPORT = 1.5

CALL = {"type": "tool", "name": "read_build", "arguments": {"build_id": "build-102"}}
DECISION: TypeAdapter[ToolCall | Final] = TypeAdapter(Decision)


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")
    build_id: str


def read_build(build_id: str) -> str:
    """Read build status."""
    return "failed"


class Repeating:
    """Asks for the same tool ``steps`` times, then answers."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def decide(self, history: Sequence[Message], tools: Sequence[ToolSchema]) -> dict[str, Any]:
        self.left -= 1
        return dict(CALL) if self.left >= 0 else {"type": "final", "output": "done"}


def bare(steps: int) -> None:
    model, history = Repeating(steps), [{"role": "user", "content": "go"}]
    while True:
        decision = DECISION.validate_python(model.decide(history, ()))
        if isinstance(decision, Final):
            return
        arguments = Arguments.model_validate(decision.arguments, strict=True)
        result = read_build(**arguments.__dict__)
        history.append({"role": "tool", "tool": decision.name, "tool_result": result})


def harness(steps: int) -> None:
    events: list[Event] = []
    tool = function_tool(read_build)
    run = asyncio.run(Harness(Repeating(steps), [tool], sinks=[events.append]).run("go"))
    if run.step != steps + 1 or len(events) != 3 * steps + 3:
        raise AssertionError(f"{run.step} steps and {len(events)} events for {steps} calls")


def per_step(work: Callable[[int], None], steps: int) -> float:
    """Microseconds of CPU a step, in one round."""
    gc.collect()
    began = time.process_time()
    work(steps)
    return (time.process_time() - began) / steps * 1e6


def best(work: Callable[[int], None], steps: int, batch: int) -> float:
    def repeated(total: int) -> None:
        for _ in range(total // steps):
            work(steps)

    return per_step(repeated, batch)


def import_cost(module: str) -> float:
    """CPU seconds that a fresh interpreter needs to import a module."""
    code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    return float(subprocess.check_output([sys.executable, "-c", code], text=True, encoding="utf-8"))


class Line(NamedTuple):
    what: str
    value: float
    bound: float


def measure() -> list[Line]:
    bare_us = min(best(bare, 1000, 10_000) for _ in range(ROUNDS))
    times = {
        n: min(best(harness, n, 10_000) for _ in range(ROUNDS)) for n in (10, 100, 1000, 10_000)
    }
    for steps, cost in times.items():
        print(f"{steps:>6} steps: {cost:6.1f} µs a step ({cost / bare_us:.1f} times the bare loop)")
    print(f"  bare loop: {bare_us:6.1f} µs a step")
    base = min(import_cost("pydantic") for _ in range(ROUNDS))
    ours = min(import_cost("mini_harness") for _ in range(ROUNDS))
    return [
        Line("a tool step, in bare steps", times[1000] / bare_us, MOST_TIMES_BARE),
        Line("a step at 10,000, in steps at 100", times[10_000] / times[100], MOST_GROWTH),
        Line("import mini_harness, in import pydantic", ours / base, MOST_IMPORT),
    ]


def main() -> int:
    lines = measure()
    for line in lines:
        verdict = "ok" if line.value <= line.bound else "TOO MUCH"
        print(f"{line.what:<42} {line.value:5.2f}  (at most {line.bound})  {verdict}")
    return int(any(line.value > line.bound for line in lines))


if __name__ == "__main__":
    sys.exit(main())
