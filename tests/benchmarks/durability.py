"""What it costs to keep a session on the disk, as ratios within one run.

The yardstick is a bare append of the same bytes to a file, with an fsync at the same places: before
each effect. Bytes are those that the process asked the system to read.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mini_harness.clock import VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.loop import Harness
from mini_harness.protocol import Message
from mini_harness.run import Run
from mini_harness.session import Session
from mini_harness.tools.base import ToolSchema
from mini_harness.tools.builds import TOOLS
from mini_harness.trace import Trace

STEPS = 16_667
"""As many as make 50,000 events."""
SLICE = 99
ROUNDS = 40
# What is aimed at, and what makes the script fail.
DURABLE = 1.3, 2.5
GROWTH = 1.2, 1.6
RESUME = 0.05, 0.10
TAIL = 0.02, 0.05

Bounds = tuple[float, float]


class Repeating:
    """Asks for the same tool again and again, then answers."""

    def decide(self, history: Sequence[Message], tools: Sequence[ToolSchema]) -> dict[str, Any]:
        if len(history) > 2 * STEPS:
            return {"type": "final", "output": "done"}
        return {"type": "tool", "name": "read_build", "arguments": {"build_id": "build-102"}}


def events_of_a_long_run() -> list[Event]:
    trace = Trace()
    Harness(Repeating(), TOOLS, sinks=[trace], clock=VirtualClock()).run_sync("go")
    return trace.events


def slices(write: Callable[[Event], None], events: Sequence[Event]) -> list[float]:
    """Seconds for each SLICE events."""
    found = []
    for start in range(0, len(events) - SLICE, SLICE):
        begun = time.perf_counter()
        for event in events[start : start + SLICE]:
            write(event)
        found.append(time.perf_counter() - begun)
    return found


def bare(path: Path, events: Sequence[Event]) -> list[float]:
    """The floor: nothing but the bytes, which were made beforehand."""
    lines = [(f"{each.to_json()}\n".encode(), each.type is EventType.TOOL_START) for each in events]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    found = []
    for start in range(0, len(lines) - SLICE, SLICE):
        begun = time.perf_counter()
        for line, durable in lines[start : start + SLICE]:
            os.write(descriptor, line)
            if durable:
                os.fsync(descriptor)
        found.append(time.perf_counter() - begun)
    os.close(descriptor)
    return found


def durable(root: Path, events: Sequence[Event]) -> float:
    """A session in bare appends. Both take turns, so that a slow disk is slow for both."""
    pairs: list[tuple[float, float]] = []
    some = events[: 4 * SLICE + 1]
    for number in range(ROUNDS // 4):
        floor = bare(root / f"bare-{number}", some)
        with Session.create(root, session_id=f"s{number}") as session:
            pairs += zip(slices(session, some), floor, strict=True)
    ours = statistics.median(ours for ours, _ in pairs)
    theirs = statistics.median(theirs for _, theirs in pairs)
    print(f"an event: {ours / SLICE * 1e6:.0f} µs in a session, {theirs / SLICE * 1e6:.0f} bare")
    return ours / theirs


def bytes_read() -> int:
    """Of this process so far, on Linux."""
    said = Path("/proc/self/io").read_text(encoding="utf-8")
    return int(said.split("rchar:")[1].split()[0])


def long_session(root: Path, events: Sequence[Event]) -> tuple[float, float, float]:
    """Growth of an event's cost; a resume's time and bytes, as parts of a full replay's."""
    without_fsync = patch.object(os, "fsync", lambda _: None)  # Only the growth counts.
    with without_fsync, Session.create(root, session_id="long") as session:
        costs = slices(session, events)
    growth = statistics.median(costs[-30:]) / statistics.median(costs[1:31])
    before, begun = bytes_read(), time.perf_counter()
    run = Session.open("long", root).run()
    took, read = time.perf_counter() - begun, bytes_read() - before
    begun = time.perf_counter()
    whole = Run.fold(session.events())
    replay = time.perf_counter() - begun
    if (run.sequence, run.step) != (whole.sequence, whole.step):
        raise AssertionError(f"{run} isn't {whole}")
    size = session.path.stat().st_size
    print(f"{len(events):,} events, {size:,} bytes: resumed in {took * 1e3:.0f} ms from {read:,}")
    return growth, took / replay, read / size


def measure() -> list[tuple[str, float, Bounds]]:
    events = events_of_a_long_run()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        root = Path(folder)
        ratio = durable(root, events)
        growth, resume, tail = long_session(root, events)
    return [
        ("v3: durable recording, in bare appends", ratio, DURABLE),
        ("v3: an event at 50,000, in events at 100", growth, GROWTH),
        ("v3: resume, in full replays", resume, RESUME),
        ("v3: bytes read to resume, in whole files", tail, TAIL),
    ]
