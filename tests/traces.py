"""Traces to test on: of a real harness, and made by hand as a harness with a policy writes them."""

from typing import Any

from mini_harness.clock import VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.frozen import freeze
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.tools.function import tool
from mini_harness.trace import Trace


@tool
def read_build(build_id: str) -> str:
    """Read a build."""
    return "failed"


def happy(
    latency: float = 0.0, trace: Trace | None = None, clock: VirtualClock | None = None
) -> Trace:
    """What a real harness writes in the run of SEEDS A11."""
    trace, clock = trace or Trace(), clock or VirtualClock()
    call = {"type": "tool", "name": "read_build", "arguments": {"build_id": "build-102"}}
    final = {"type": "final", "output": "The build status is: failed"}
    model = ScriptedModel([call, final], clock=clock, latency=latency)
    Harness(model, [read_build], sinks=[trace], clock=clock).run_sync("What is its status?")
    return trace


class Written:
    """Writes the events of one run, with times of its own choice, in seconds."""

    def __init__(self, run_id: str = "run-1") -> None:
        self.trace = Trace()
        self.run_id = run_id
        self.step = 0
        self.offset = self.time = 0.0

    def add(
        self, type: str, /, *, later: float = 0.0, wall: float | None = None, **data: Any
    ) -> None:
        """One event, ``later`` than the one before; ``wall`` if the wall clock differs."""
        self.offset += later
        self.time += later if wall is None else wall
        sequence = len(self.trace.events) + 1
        place = self.run_id, sequence, self.step, EventType(type)
        self.trace(Event(*place, self.offset, self.time, freeze(data)))

    def goal(self, text: str = "Do it.") -> None:
        self.add("message", role="user", content=text)

    def turn(self, call_id: str, tool: str, later: float = 0.0, **arguments: Any) -> None:
        call = {"type": "tool", "name": tool, "arguments": arguments, "call_id": call_id}
        self.step += 1
        self.add("model_decision", later=later, role="assistant", content=None, calls=[call])

    def start(self, call_id: str, tool: str, **arguments: Any) -> None:
        self.add("tool_start", tool=tool, arguments=arguments, call_id=call_id, attempt=1)

    def end(
        self, call_id: str, tool: str, text: str = "ok", later: float = 0.0, outcome: str = "ok"
    ) -> None:
        data: dict[str, Any] = {
            "role": "tool",
            "tool": tool,
            "tool_result": text,
            "call_id": call_id,
        }
        if outcome == "ok":
            self.add("tool_result", later=later, **data, is_error=False)
        else:
            error = f"ValueError({text!r})"
            self.add("tool_error", later=later, **data, is_error=True, outcome=outcome, error=error)

    def verdict(self, call_id: str, tool: str, verdict: str) -> None:
        why: dict[str, Any] = {"rule": "no-deploy", "reason": "Nobody may."}
        self.add("verdict", call_id=call_id, tool=tool, verdict=verdict, **why)

    def approval(self, call_id: str, tool: str, approved: bool = True, later: float = 0.0) -> None:
        said: dict[str, Any] = {
            "arguments": None,
            "remember": False,
            "reason": "",
            "by": "A person",
        }
        named: dict[str, Any] = {"digest": "d", "call": "c", "call_id": call_id, "tool": tool}
        self.add("approval", later=later, approved=approved, **named, **said)

    def final(self, output: Any = "Done.", later: float = 0.0) -> None:
        self.step += 1
        self.add("model_decision", later=later, role="assistant", content=output, final=True)
        self.add("final", output=output)


def guarded(scale: float = 1.0) -> Trace:
    """A run with a failing tool, a denied call, and a wait for a person, of 12.45 s."""
    run = Written()
    run.goal("Repair build-102.")
    run.turn("c1", "read_build", 1.2 * scale, build_id="build-102")
    run.start("c1", "read_build", build_id="build-102")
    run.end("c1", "read_build", "status: failed\nlog: long", 0.3 * scale)
    run.turn("c2", "bash", 1.5 * scale, command="pytest")
    run.start("c2", "bash", command="pytest")
    run.end("c2", "bash", "1 failed", 2.1 * scale, "error")
    run.turn("c3", "deploy_prod", 0.9 * scale, build_id="build-101")
    run.verdict("c3", "deploy_prod", "deny")
    run.end("c3", "deploy_prod", "Tool not allowed: deploy_prod.", outcome="denied")
    run.turn("c4", "edit_file", 1.1 * scale, path="shipping.py")
    run.verdict("c4", "edit_file", "require_approval")
    ask: dict[str, Any] = {"call_id": "c4", "tool": "edit_file", "digest": "d", "rule": "default"}
    run.add("pause", **ask, arguments={"path": "shipping.py"}, reason="It writes.")
    run.add("resume", wall=4.0 * scale)
    run.approval("c4", "edit_file")
    run.start("c4", "edit_file", path="shipping.py")
    run.end("c4", "edit_file", later=0.05 * scale)
    run.final(later=1.3 * scale)
    return run.trace


def long(events: int, scale: float = 1.0, tools: int = 3) -> Trace:
    """A run of this many events or a few more, in which some calls fail and some are denied."""
    run = Written()
    run.goal()
    number = 0
    while len(run.trace.events) < events - 4:
        number += 1
        name, call_id = f"tool_{number % tools}", f"c{number}"
        run.turn(call_id, name, (0.5 + number % 5 * 0.3) * scale, number=number)
        if number % 37 == 0:
            run.verdict(call_id, name, "deny")
            run.end(call_id, name, "no", outcome="denied")
            continue
        run.start(call_id, name, number=number)
        outcome = "ok" if number % 11 else "error"
        run.end(call_id, name, later=(0.1 + number % 7 * 0.2) * scale, outcome=outcome)
    run.final(later=scale)
    return run.trace
