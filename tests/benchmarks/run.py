"""What a step costs, as ratios within one run. ``python -m tests.benchmarks.run`` prints the table.

The yardstick is the bare loop of the document that this project grew from: ask the model, check
its decision and the arguments with pydantic, call the function, append to the history. It has no
events, no call ids, no frozen arguments and no error handling.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, TypeAdapter

from mini_harness.events import Event
from mini_harness.limits import MaxSteps
from mini_harness.loop import Harness
from mini_harness.policy import Policy
from mini_harness.protocol import Decision, Final, Message, ToolCall
from mini_harness.tools.base import Tool, ToolSchema
from mini_harness.tools.function import function_tool
from mini_harness.trace import Trace
from tests.benchmarks import audit, durability, regression

ROUNDS = 12
IMPORTS = 5
SLICE = 100
"""Steps that are timed together."""
# What is aimed at, and what makes this script fail. They differ where the aim isn't reached yet.
TIMES_BARE = 6.0, 9.5
TIMES_BARE_GUARDED = 8.0, 11.0
GROWTH = 1.1, 1.5
IMPORT = 1.5, 1.5

CALL = {"type": "tool", "name": "read_build", "arguments": {"build_id": "build-102"}}
DECISION: TypeAdapter[ToolCall | Final] = TypeAdapter(Decision)


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")
    build_id: str


def read_build(build_id: str) -> str:
    """Read build status."""
    return "failed"


TOOLS = {"read_build": Tool("read_build", "Read build status.", read_build)}


class Repeating:
    """Asks for the same tool ``steps`` times, then answers. Notes the time at every SLICE steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.times: list[float] = []

    def decide(self, history: Sequence[Message], tools: Sequence[ToolSchema]) -> dict[str, Any]:
        if self.left % SLICE == 0:
            self.times.append(time.process_time())
        self.left -= 1
        return dict(CALL) if self.left >= 0 else {"type": "final", "output": "done"}

    def slices(self) -> list[float]:
        """Microseconds of CPU a step, for every SLICE steps."""
        return [(end - start) / SLICE * 1e6 for start, end in pairwise(self.times)]


def bare(steps: int) -> list[float]:
    model = Repeating(steps)
    history: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    while True:
        decision = DECISION.validate_python(model.decide(history, ()))
        if isinstance(decision, Final):
            return model.slices()
        if not isinstance(decision, ToolCall):
            raise TypeError("Unknown decision type")
        tool = TOOLS.get(decision.name)
        if tool is None:
            raise KeyError(f"Unknown tool: {decision.name}")
        arguments = Arguments.model_validate(decision.arguments, strict=True)
        result = tool.handler(**arguments.__dict__)
        history.append({"role": "tool", "tool": tool.name, "tool_result": result})


def harness(steps: int) -> list[float]:
    model = Repeating(steps)
    events: list[Event] = []
    run = Harness(model, [function_tool(read_build)], sinks=[events.append]).run_sync("go")
    if run.step != steps + 1 or len(events) != 3 * steps + 3:
        raise AssertionError(f"{run.step} steps and {len(events)} events for {steps} calls")
    return model.slices()


def guarded(steps: int) -> list[float]:
    """The same with what v1 adds: a policy that allows the call, a trace, and a step limit."""
    model, trace = Repeating(steps), Trace()
    tool = function_tool(read_build, read_only=True, paths=())
    layers = [MaxSteps(steps + 1), Policy()]
    run = Harness(model, [tool], layers=layers, sinks=[trace]).run_sync("go")
    if run.step != steps + 1 or trace.events[2].data["rule"] != "read-only":
        raise AssertionError(f"{run.step} steps, and {trace.events[2]}")
    return model.slices()


def import_cost(statement: str) -> float:
    """CPU seconds that a fresh interpreter needs for an import."""
    code = f"import time; t = time.process_time(); {statement}; print(time.process_time() - t)"
    return float(subprocess.check_output([sys.executable, "-c", code], text=True, encoding="utf-8"))


class Costs(NamedTuple):
    """Microseconds a step: in the first 100, about the 1,000th, and in the last 1,000 of 10,000."""

    first: list[float]
    tenth: list[float]
    last: list[float]

    @property
    def growth(self) -> float:
        return min(self.last) / min(self.first)


class Line(NamedTuple):
    what: str
    value: float
    goal: float
    limit: float

    def __str__(self) -> str:
        verdict = "ok" if self.value <= self.goal else "over the goal"
        verdict = verdict if self.value <= self.limit else "OVER THE LIMIT"
        bounds = f"(goal {self.goal}, limit {self.limit})"
        return f"{self.what:<42} {self.value:5.2f}  {bounds}  {verdict}"


def measure() -> list[Line]:
    # Slices are short, the two kinds take turns, and the cheapest of each counts: so a machine
    # that is busy with something else most of the time still gives the same ratio. As in timeit,
    # the garbage collector waits.
    gc.disable()
    bares: list[float] = []
    found = {"v0": Costs([], [], []), "v1": Costs([], [], [])}
    for _ in range(ROUNDS):
        bares += bare(2000)
        for step, kind in (("v0", harness), ("v1", guarded)):
            costs = kind(10_000)
            found[step].first.append(costs[0])
            found[step].tenth.extend(costs[5:15])
            found[step].last.extend(costs[-10:])
    base = min(bares)
    print(f"bare loop: {base:.1f} µs a step")
    for step, costs_of in found.items():
        for name, costs in costs_of._asdict().items():
            print(
                f"{step}, {name:>5}: {min(costs):6.1f} µs a step, {min(costs) / base:.1f} bare ones"
            )
    pydantic = min(import_cost("import pydantic") for _ in range(IMPORTS))
    ours = min(import_cost("import mini_harness") for _ in range(IMPORTS))
    whole = min(import_cost("from mini_harness import Harness") for _ in range(IMPORTS))
    print(f"from mini_harness import Harness: {whole / pydantic:.2f} times import pydantic")
    v0, v1 = found.values()
    return [
        Line("v0: a tool step, in bare steps", min(v0.tenth) / base, *TIMES_BARE),
        Line("v0: a step at 10,000, in steps at 100", v0.growth, *GROWTH),
        Line("v1: a tool step, in bare steps", min(v1.tenth) / base, *TIMES_BARE_GUARDED),
        Line("v1: a step at 10,000, in steps at 100", v1.growth, *GROWTH),
        Line("import mini_harness, in import pydantic", ours / pydantic, *IMPORT),
        *(Line(what, value, *bounds) for what, value, bounds in durability.measure()),
        *(Line(what, value, *bounds) for what, value, bounds in audit.measure()),
        *(Line(what, value, *bounds) for what, value, bounds in regression.measure()),
    ]


def main() -> int:
    lines = measure()
    print(*lines, sep="\n")
    return int(any(line.value > line.limit for line in lines))


if __name__ == "__main__":
    sys.exit(main())
