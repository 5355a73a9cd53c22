"""A workspace folder to work in with the file tools, and a run that remembers what it has read."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mini_harness.clock import VirtualClock
from mini_harness.events import Event
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.run import Run
from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult
from mini_harness.tools.edit import EditFile
from mini_harness.tools.files import ReadFile
from mini_harness.tools.grep import Grep
from mini_harness.tools.listing import Glob, ListFiles
from mini_harness.tools.write import WriteFile
from tests.loops import DONE, call, turn

TOOLS: list[BaseTool] = [ReadFile(), WriteFile(), EditFile(), ListFiles(), Glob(), Grep()]
OUTSIDE = "With its links followed, it lies outside the workspace folder"


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for one example of a property."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def use(tool: BaseTool, cwd: Path, **arguments: Any) -> ToolResult:
    """One call outside of any run."""
    wanted = tool.input_model(**arguments)
    return asyncio.run(tool.execute(wanted, ToolExecutionContext(cwd=cwd)))


def preview(tool: BaseTool, cwd: Path, run: Run | None = None, **arguments: Any) -> str:
    context = ToolExecutionContext(cwd=cwd, run=run)
    return tool.preview(tool.input_model(**arguments), context)


def harness(
    cwd: Path, turns: list[Any], events: list[Event] | None = None, **parts: Any
) -> Harness:
    """A real harness that plays these turns in a folder."""
    sinks = [] if events is None else [events.append]
    return Harness(
        ScriptedModel([*turns, DONE]), TOOLS, cwd=cwd, sinks=sinks, clock=VirtualClock(), **parts
    )


def play(cwd: Path, *calls: tuple[str, dict[str, Any]], **parts: Any) -> Run:
    """A run that makes these calls, each in a turn of its own."""
    turns = [turn(call(name, **arguments)) for name, arguments in calls]
    return asyncio.run(harness(cwd, turns, **parts).run("go"))


def go_on(run: Run, cwd: Path, *calls: tuple[str, dict[str, Any]]) -> Run:
    """The same run, later: the user has spoken again, and the model makes these calls."""
    again = harness(cwd, [turn(call(name, **arguments)) for name, arguments in calls])
    again.record.message(run, "go on")
    return asyncio.run(again.resume(run))


def told(run: Run) -> list[str]:
    """What the model was told about each call, with "!" before an error."""
    seen = [message for message in run.history.messages if message["role"] == "tool"]
    return ["!" * message["is_error"] + message["tool_result"] for message in seen]


def only(cwd: Path, *names: str) -> None:
    """Nothing but these is in the folder: no temporary file was left."""
    assert sorted(path.name for path in cwd.iterdir()) == sorted(names)
