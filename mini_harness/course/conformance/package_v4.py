"""The package's verification and audit log behind the functions that a learner writes in v4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mini_harness.audit import AuditLog
from mini_harness.claims import Claim, Evidence, Examiner, Finding
from mini_harness.claims import standing as standing_among
from mini_harness.events import EventType
from mini_harness.evidence import Verify
from mini_harness.layer import Feedback, Finish
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final
from mini_harness.receipts import Receipts
from mini_harness.run import Run
from mini_harness.tools.base import BaseTool, Tool, ToolExecutionContext, ToolResult
from mini_harness.tools.function import FunctionTool

Entry = Mapping[str, Any]


class _Place(BaseModel):
    place: int


class _Recorded(BaseTool):
    """Gives what a record says that its calls gave."""

    description, input_model = "For a check.", _Place

    def __init__(self, name: str, record: Sequence[Entry]) -> None:
        self.name, self.record = name, record

    def is_read_only(self, arguments: _Place) -> bool:
        return bool(self.record[arguments.place]["changes"] == [])

    def paths(self, arguments: _Place) -> Sequence[str] | None:
        found: Sequence[str] | None = self.record[arguments.place]["changes"]
        return found

    def command(self, arguments: _Place) -> str | None:
        found: str | None = self.record[arguments.place]["command"]
        return found

    async def execute(self, arguments: _Place, context: ToolExecutionContext) -> ToolResult:
        entry = self.record[arguments.place]
        return ToolResult(entry["output"], is_error=not entry["ok"])


def examine(record: Sequence[Entry], claim: Mapping[str, Any]) -> str:
    """Let the calls happen in a run of the package, and ask its examiner."""
    tools = {each["tool"]: _Recorded(each["tool"], record) for each in record}
    calls = [
        {"type": "tool", "name": each["tool"], "arguments": {"place": place}}
        | {"call_id": each["call_id"]}
        for place, each in enumerate(record)
    ]
    harness = Harness(ScriptedModel([*calls, {"type": "final", "output": None}]), tools.values())
    run = harness.run_sync("Check a claim.")
    with run.driven_by(harness):
        asked = Claim(**dict(claim) | {"about": tuple(claim.get("about", ()))})
        found = Examiner(Receipts(run), harness.cwd).examine(asked).finding
    return "not_quoted" if found is Finding.BLANK_QUOTE else found.value


def standing(findings: Iterable[str]) -> str:
    claim = Claim("It is so.", "c-1")
    return standing_among(Evidence(claim, Finding(each), "") for each in findings).value


def add(path: Path, data: Mapping[str, Any]) -> None:
    AuditLog(path).start().append("added", data)


def verify(path: Path) -> int | None:
    found = AuditLog(path).check()
    return None if found.ok else found.line or found.entries + 1


class _Declared(FunctionTool):
    """A tool of which is said from outside what it changes."""

    def __init__(self, tool: Tool, changes: Sequence[str] | None) -> None:
        super().__init__(tool.handler, tool.name, tool.description, read_only=changes == [])
        self.changes = changes

    def paths(self, arguments: Any) -> list[str] | None:
        return None if self.changes is None else list(self.changes)


def pursue_proved(
    model: Any, tools: Mapping[str, Tool], goal: str, changes: Mapping[str, Sequence[str]]
) -> Any:
    own = [_Declared(each, changes.get(name)) for name, each in tools.items()]
    return Harness(model, own, layers=[_InWords()]).run_sync(goal).unwrap()


class _InWords(Verify):
    """Names each finding by its word, too, as a learner does; the package tells it in sentences."""

    async def finish(self, run: Run, final: Final, next: Finish) -> Any:
        answer = await super().finish(run, final, next)
        if not isinstance(answer, Feedback):
            return answer
        findings = run.notes[EventType.VERIFICATION][-1]["findings"]
        words = ", ".join(each["finding"] for each in findings)
        return Feedback(f"{answer.reason}\nFound: {words or 'nothing'}")
