"""What of a run goes into the audit chain (SEEDS C43): who asked what, what was done, what came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mini_harness.audit import AuditLog
from mini_harness.events import Event, EventType
from mini_harness.frozen import FrozenDict

Action = tuple[str, dict[str, Any]]


class Audit:
    """A sink that adds an entry for each thing that an auditor asks for.

    A call is added when its tool starts, and so is each attempt. One that never starts, as when it
    was denied, is added with its error. ``session_id`` stands in every entry; without one it is
    the id of the run. Many of these may share a log.

    Give it after the sink that keeps the record. What it raises stops the run: nothing goes on
    unaudited (rule 4 of the design).
    """

    def __init__(self, log: AuditLog, *, session_id: str | None = None) -> None:
        """Starts the log. Raises AuditDamaged, AuditIsBusy and OSError (SEEDS C48)."""
        self.log = log.start()
        self.session_id = session_id
        self._proposed: dict[tuple[str, str], Any] = {}
        """What the model asked for and nobody has started yet, by run and call."""

    def __call__(self, event: Event) -> None:
        """Add what there is to add. Raises what ``AuditLog.append`` raises."""
        session = {"sessionId": event.run_id if self.session_id is None else self.session_id}
        for action, data in self._told(event):
            self.log.append(action, session | data, timestamp=round(event.time * 1000))

    def _told(self, event: Event) -> Iterator[Action]:
        data = event.data
        match event.type:
            # What the harness says in the user's place isn't the user's.
            case EventType.MESSAGE if "because" not in data:
                yield "user_prompt", {"text": data["content"]}
            case EventType.MODEL_DECISION:
                for call in data.get("calls", ()):
                    self._proposed[event.run_id, call["call_id"]] = call["arguments"]
            case EventType.TOOL_START:
                self._proposed.pop((event.run_id, data["call_id"]), None)
                yield _call(data["tool"], data["arguments"])
            case EventType.TOOL_RESULT | EventType.TOOL_ERROR | EventType.LATE_RESULT:
                yield from self._ended(event)
            case EventType.FINAL:
                yield "assistant_message", {"content": data["output"]}

    def _ended(self, event: Event) -> Iterator[Action]:
        data = event.data
        if "replaces" in data:
            return  # Only what the model is told about an end that is in the log already.
        proposed = self._proposed.pop((event.run_id, data["call_id"]), None)
        if proposed is not None:
            yield _call(data["tool"], proposed)
        if data["is_error"]:
            yield "tool_error", {"tool": data["tool"], "error": data["tool_result"]}
        else:
            beside = data.get("metadata", FrozenDict())
            place = beside.get("externalized_path")
            code = beside.get("returncode", beside.get("exit_code"))
            yield "tool_result", {"tool": data["tool"], "externalized": place, "exit_code": code}


def _call(tool: str, arguments: Any) -> Action:
    return "tool_call", {"tool": tool, "argument": arguments}
