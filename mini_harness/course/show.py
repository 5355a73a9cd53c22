"""Events as text: one line each, short enough to read, the same on every machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mini_harness.events import Event, EventType
from mini_harness.frozen import canonical

WIDTH = 60


def line(event: Event) -> str:
    """One event: sequence, step, type, and what matters of its data."""
    return f"{event.sequence:>3}  {event.step:>4}  {event.type:<14}  {_cut(_gist(event))}".rstrip()


def table(events: Iterable[Event]) -> str:
    """All events under a heading, as text."""
    return "\n".join([f"{'#':>3}  {'step':>4}  {'event':<14}  what", *map(line, events)])


def _gist(event: Event) -> str:
    data = event.data
    match event.type:
        case EventType.TOOL_START:
            return f"{data['tool']} {canonical(data['arguments'])}"
        case EventType.TOOL_RESULT | EventType.TOOL_ERROR:
            return f"{data['tool']} -> {data['tool_result']}"
        case EventType.FINAL:
            return str(data["output"])
        case EventType.MODEL_DECISION:
            return _decision(data)
        case _:
            return str(data.get("content", canonical(data)))


def _decision(data: dict[str, Any]) -> str:
    if "calls" in data:
        return "call " + " and ".join(wire["name"] for wire in data["calls"])
    return "final answer" if "final" in data else f"unknown: {data['decision']}"


def _cut(text: str) -> str:
    """The first line that isn't empty, cut to the width, and how many lines follow."""
    lines = text.strip().splitlines() or [""]
    first = " ".join(lines[0].split())
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    room = WIDTH - len(more)
    return (first if len(first) <= room else first[: room - 2] + " …") + more
