"""The package's session behind the functions that a learner writes in v3."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from mini_harness.clock import RealClock
from mini_harness.frozen import canonical, freeze, parse_object
from mini_harness.loop import Harness
from mini_harness.run import Run
from mini_harness.session import Session
from mini_harness.sync import run_sync
from mini_harness.tools.base import Tool
from mini_harness.tools.call import Call
from mini_harness.tools.function import FunctionTool, function_tool
from mini_harness.transcript import Transcript


def append(path: Path, event: Mapping[str, Any]) -> None:
    if not path.exists():
        Transcript.create(path, b"")
    transcript = Transcript(path)
    transcript.lock(1.0)
    try:
        transcript.end = max((line.end for line in transcript.read(0, 1)), default=0)
        transcript.repair()
        transcript.append(f"{canonical(freeze(event))}\n".encode(), durable=True)
    finally:
        transcript.unlock()


def load(path: Path) -> tuple[list[Any], int]:
    events: list[Any] = []
    if not path.exists():
        return events, 0
    transcript = Transcript(path)
    for line in transcript.read(0, 1):
        try:
            events.append(parse_object(line.text.decode()))
        except ValueError as error:
            raise ValueError(f"Line {line.number} is damaged: {error}") from None
        transcript.end = line.end
    return events, transcript.size() - transcript.end


def what_to_do(events: Sequence[Mapping[str, str]], safe: Collection[str]) -> dict[str, str]:
    """Let the events happen to a run of the package, and ask it."""
    tools, run, done = dict[str, FunctionTool](), Run("run-1"), set[str]()
    for event in events:
        call, name = event["call"], event["tool"]
        tools[call] = _named(name, name in safe)
        match event["type"]:
            case "start":
                run.in_doubt[call] = freeze({})
            case "end":
                run.in_doubt.pop(call, None)
                done.add(call)
    return {call: _word(run, Call(tool, call, {}), done) for call, tool in tools.items()}


def _word(run: Run, call: Call, done: Collection[str]) -> str:
    if call.call_id not in run.in_doubt:
        return "done" if call.call_id in done else "run"
    return "ask" if run.doubts(call) else "run again"


def _named(name: str, idempotent: bool) -> FunctionTool:
    return function_tool(lambda: "", name=name, description="For a check.", idempotent=idempotent)


def pursue_on(
    path: Path, model: Any, tools: Mapping[str, Tool], goal: str, safe: Collection[str]
) -> Any:
    try:
        session = Session.open("night", path.parent)
    except FileNotFoundError:
        session = Session.create(path.parent, session_id="night")
    with session:
        own = [
            function_tool(
                each.handler,
                name=each.name,
                description=each.description,
                idempotent=each.name in safe,
            )
            for each in tools.values()
        ]
        harness = Harness(model, own, sinks=[session], clock=RealClock())
        run = harness.resume(session.run()) if session.runs else harness.run(goal)
        return run_sync(run).unwrap()
