"""Runs whose answers claim something, and the tools that they use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mini_harness.events import EventType
from mini_harness.evidence import SCOPE, Verify
from mini_harness.frozen import FrozenDict
from mini_harness.layer import Layer
from mini_harness.protocol import Final, ToolCall
from mini_harness.run import Run
from mini_harness.tools.base import ToolResult
from mini_harness.tools.function import function_tool, tool
from mini_harness.tools.registry import AnyTool
from tests.loops import play


@tool(read_only=True, paths=("path",))
def read(path: str) -> str:
    """Read a file."""
    return f"content of {path}"


@tool(paths=("path",))
def edit(path: str) -> str:
    """Change a file."""
    return f"changed {path}"


@tool(paths=("path",))
def break_off(path: str) -> str:
    """Change a file, and fail after that."""
    raise OSError("disk full")


@tool(paths=())
def deploy() -> str:
    """Change something that has no path."""
    return "is live"


@tool
def check() -> str:
    """Run the tests, which writes caches and logs."""
    return "3 passed"


TOOLS: tuple[AnyTool, ...] = (read, edit, break_off, deploy, check)


def saying(text: str, *, name: str = "check", read_only: bool = False, **metadata: Any) -> AnyTool:
    """A tool whose output is this text."""

    def say() -> ToolResult:
        return ToolResult(text, metadata=metadata)

    return function_tool(say, name=name, description="Say it.", read_only=read_only)


def claim(call_id: str, says: str = "It is so.", **more: Any) -> dict[str, Any]:
    return {"says": says, "call_id": call_id, **more}


def final(*claims: Any, answer: Any = "Done.", **more: Any) -> Final:
    return Final({"answer": answer, "claims": list(claims), **more})


def shell(command: str, call_id: str = "c1") -> ToolCall:
    return ToolCall("bash", {"command": command}, call_id)


def verified(
    *turns: Any,
    tools: Iterable[AnyTool] = TOOLS,
    layers: Iterable[Layer] = (),
    cwd: Path | str = ".",
    **how: Any,
) -> Run:
    """A run in which the answer is sent back as often as the loop allows, or accepted."""
    again = [turns[-1]] * 3 if isinstance(turns[-1], Final) else []
    stack = [Verify(**how), *layers]
    return play([*turns, *again], tools, layers=stack, cwd=cwd).run


def note(run: Run) -> FrozenDict:
    """What the last verification came to."""
    return run.named[EventType.VERIFICATION, SCOPE]


def finding(run: Run, index: int = 0) -> str:
    """What was found out about one claim."""
    found: Mapping[str, Any] = note(run)["findings"][index]
    return str(found["finding"])
