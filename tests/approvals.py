"""A run with one tool that must be approved, for the tests of approval."""

from typing import Any

from pydantic import BaseModel

from mini_harness import (
    Approver,
    BaseTool,
    Event,
    Harness,
    Policy,
    Run,
    ScriptedModel,
    ToolExecutionContext,
    ToolResult,
    VirtualClock,
    run_sync,
)
from mini_harness.tools.function import function_tool

CALL = {"type": "tool", "name": "deploy", "arguments": {"build": "build-101"}}
FINAL = {"type": "final", "output": "done"}


class Stage:
    """A harness with one tool that must be approved, and what was deployed and recorded."""

    def __init__(self, script: list[Any], approver: Approver | None = None, **policy: Any) -> None:
        self.deployed: list[str] = []
        self.events: list[Event] = []

        def deploy(build: str) -> str:
            """Deploy a build."""
            self.deployed.append(build)
            return f"{build} is live"

        self.tools = [function_tool(deploy)]
        self.policy = Policy(approver=approver, **policy)
        self.script = script
        self.harness = self.anew(script)

    def anew(self, script: list[Any]) -> Harness:
        """Another process: the same tools, a model that goes on."""
        return Harness(
            ScriptedModel(script),
            self.tools,
            layers=[self.policy],
            sinks=[self.events.append],
            clock=VirtualClock(),
        )

    def run(self) -> Run:
        return self.harness.run_sync("deploy it")

    def resume(self, run: Run) -> Run:
        return run_sync(self.harness.resume(run))

    def types(self) -> list[str]:
        return [event.type.value for event in self.events]


def told(run: Run) -> str:
    """What the model was told about its last call."""
    text: str = next(m for m in reversed(run.history.messages) if m["role"] == "tool")[
        "tool_result"
    ]
    return text


class Path_(BaseModel):
    path: str
    text: str


class Append(BaseTool):
    """A tool that shows what it would change."""

    name = "append"
    description = "Append a line to a file."
    input_model = Path_

    def paths(self, arguments: Path_) -> list[str]:
        return [arguments.path]

    def preview(self, arguments: Path_, context: ToolExecutionContext) -> str:
        before = (context.cwd / arguments.path).read_text(encoding="utf-8")
        return f"{before}+{arguments.text}"

    async def execute(self, arguments: Path_, context: ToolExecutionContext) -> ToolResult:
        path = context.cwd / arguments.path
        path.write_text(path.read_text(encoding="utf-8") + arguments.text, encoding="utf-8")
        return ToolResult("appended")
