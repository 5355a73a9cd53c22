"""What it costs to append to an audit log, as ratios within one run.

The yardstick is what an append can't do without: the same bytes to the log and to a new head, an
fsync of each, the head put in its place, and an fsync of the folder.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mini_harness.audit import AuditLog

ENTRIES = 50_000
FEW = 100
PAIRS = 300
# What is aimed at, and what makes the script fail.
FLOOR = 1.3, 1.6
GROWTH = 1.2, 1.6

Bounds = tuple[float, float]


def entry(number: int) -> dict[str, Any]:
    arguments = {"build_id": f"build-{number}"}
    return {"sessionId": "s1", "tool": "read_build", "argument": arguments}


def without_fsync() -> AbstractContextManager[object]:
    return patch.object(os, "fsync", lambda _: None)


def timed(do: Callable[[], object], now: Callable[[], float] = time.perf_counter) -> float:
    begun = now()
    do()
    return now() - begun


def written(root: Path, count: int) -> tuple[list[bytes], list[bytes]]:
    """The bytes that so many appends write: the lines, and the heads."""
    log, heads = AuditLog(root / "audit.jsonl"), []
    with without_fsync():
        for number in range(count):
            log.append("tool_call", entry(number), timestamp=number)
            heads.append(log.path.with_suffix(".head").read_bytes())
    return log.path.read_bytes().splitlines(keepends=True), heads


def bare(folder: Path, line: bytes, head: bytes) -> None:
    """The floor: an append without a lock, and without a look at what is there."""
    log = os.open(folder / "bare.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(log, line)
    os.fsync(log)
    os.close(log)
    new = os.open(folder / "bare.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(new, head)
    os.fsync(new)
    os.close(new)
    (folder / "bare.new").replace(folder / "bare.head")
    place = os.open(folder, os.O_RDONLY)
    os.fsync(place)
    os.close(place)


def over_the_floor(root: Path) -> float:
    """An append in bare ones. They take turns, so that a slow disk is slow for both."""
    (root / "known").mkdir()
    lines, heads = written(root / "known", PAIRS)
    log = AuditLog(root / "audit.jsonl").start()
    ours: list[float] = []
    theirs: list[float] = []
    for number, (line, head) in enumerate(zip(lines, heads, strict=True)):
        append = partial(log.append, "tool_call", entry(number), timestamp=number)
        turns: list[tuple[list[float], Callable[[], object]]]
        turns = [(ours, append), (theirs, partial(bare, root, line, head))]
        for times, do in turns if number % 2 else reversed(turns):
            times.append(timed(do))
    if log.path.read_bytes() != (root / "bare.jsonl").read_bytes():
        raise AssertionError("both must write the same bytes")
    mine, floor = (statistics.median(times) for times in (ours, theirs))
    print(f"an entry: {mine * 1e6:.0f} µs in the audit log, {floor * 1e6:.0f} bare")
    return mine / floor


def growth(root: Path) -> float:
    """An append to a log of 50,000 entries, in appends to one that begins with 100.

    They take turns. It is the CPU's time, and without fsync: only what grows counts.
    """
    long, short = (AuditLog(root / name / "audit.jsonl").start() for name in ("long", "short"))
    costs: dict[AuditLog, list[float]] = {long: [], short: []}
    with without_fsync():
        for log, count in ((long, ENTRIES), (short, FEW)):
            for number in range(count):
                log.append("tool_call", entry(number), timestamp=number)
        for number in range(5 * PAIRS):
            for log in (long, short) if number % 2 else (short, long):
                append = partial(log.append, "tool_call", entry(number), timestamp=number)
                costs[log].append(timed(append, time.process_time))
    begun = time.perf_counter()
    check = long.check()
    took = time.perf_counter() - begun
    if not check.ok:
        raise AssertionError(str(check))
    print(f"{check.entries:,} entries checked in {took:.1f} s")
    return statistics.median(costs[long]) / statistics.median(costs[short])


def measure() -> list[tuple[str, float, Bounds]]:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        root = Path(folder)
        ratio = over_the_floor(root)
        return [
            ("v4: an audit entry, in bare appends", ratio, FLOOR),
            ("v4: an entry at 50,000, in entries at 100", growth(root), GROWTH),
        ]
