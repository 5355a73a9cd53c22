"""A trace as files that others read: JSON lines, and Chrome's trace event format for Perfetto."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mini_harness.events import Event, EventType
from mini_harness.frozen import FrozenDict
from mini_harness.spans import Kind, Lane, Moment, Span, by_run, label_of, rows_of, tell
from mini_harness.table import line_of
from mini_harness.visible import visible

_TYPES = {
    (str, int, int, EventType, offset, time, FrozenDict)
    for offset in (int, float)
    for time in (int, float)
}
"""What the fields of an event may be: a JSON number needn't have a point."""

_JUDGED = (EventType.VERDICT, EventType.APPROVAL)


class DamagedTrace(ValueError):
    """A file isn't what ``Trace.save`` wrote. ``line`` counts from 1."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        super().__init__(
            f"Line {line} of {path.name} isn't an event as Trace.save writes it: {why}"
        )
        self.path = path
        self.line = line


def jsonl(events: Iterable[Event]) -> str:
    """One line for each event, each with its line end."""
    return "".join(f"{event.to_json()}\n" for event in events)


def save(events: Iterable[Event], path: Path) -> None:
    """Write all events, or leave the old file as it is."""
    path = path.resolve()
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")

    def opened(name: str, flags: int) -> int:
        # Never, not even for a moment, may somebody read it who couldn't read the old file.
        return os.open(name, flags, 0o666 if mode is None else mode)

    try:
        with open(new, "x", encoding="utf-8", newline="\n", opener=opened) as file:
            file.writelines(f"{event.to_json()}\n" for event in events)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            new.chmod(mode)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def load(path: Path) -> Iterator[Event]:
    """The events of a file. Raises DamagedTrace for the first line that isn't one."""
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):
        yield _event(path, number, line)
    if lines[-1]:
        raise DamagedTrace(path, len(lines), "it has no line end, so something is missing.")


def _event(path: Path, number: int, line: bytes) -> Event:
    try:
        return event_of(line)
    except ValueError as error:
        raise DamagedTrace(path, number, str(error)) from None


def event_of(line: bytes) -> Event:
    """The event that a line holds. Raises ValueError that says why it isn't as it was written."""
    try:
        text = line.decode("utf-8")
        event = Event.from_json(text)
        same = event.to_json() == text and tuple(map(type, event)) in _TYPES
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if not same:
        # A type that is wrong, a key too many, an order that is another: all show here.
        raise ValueError("somebody changed it.")
    return event


def perfetto(events: Iterable[Event]) -> str:
    """A process for each run, a thread for each lane, in microseconds."""
    runs = by_run(events)
    began = min((own[0].time for own in runs.values()), default=0.0)
    written: list[dict[str, Any]] = []
    for pid, own in enumerate(runs.values(), start=1):
        written += _Process(pid, own, own[0].time - began).written
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": written}, allow_nan=False)


class _Process:
    """One run as Perfetto has it. ``later`` is in seconds after the first run's beginning."""

    def __init__(self, pid: int, events: Sequence[Event], later: float) -> None:
        self.pid = pid
        self.events = events
        self.later = later
        self.written: list[dict[str, Any]] = []
        self._threads: dict[tuple[Lane, int], int] = {}
        self._name("process", 0, visible(events[0].run_id))
        told = tell(events)
        for span, row in zip(told.spans, rows_of(told.spans), strict=True):
            self._span(span, row)
        for moment in told.moments:
            if moment.kind is not Kind.DENIED:
                self._instant(moment)
        for index, event in enumerate(events):
            if event.type in _JUDGED:
                self._instant(Moment(Kind.OTHER, "verdicts", told.times[index], index))

    def _span(self, span: Span, row: int) -> None:
        name = label_of(span.lane)
        # From both ends, so that neighbours never overlap by a rounded microsecond.
        start, end = self._micro(span.start), self._micro(span.end)
        about = {**self._about(span.last), "ending": span.ending.value, "call_id": span.call_id}
        self._add("X", name, self._thread(span.lane, row), ts=start, dur=end - start, args=about)

    def _instant(self, moment: Moment) -> None:
        about = self._about(moment.event)
        at = self._micro(moment.at)
        thread = self._thread(moment.lane, 0)
        self._add("i", about["type"], thread, ts=at, s="t", args=about)

    def _about(self, index: int) -> dict[str, Any]:
        event = self.events[index]
        place = {"event": event.sequence, "step": event.step, "type": event.type.value}
        return {**place, "what": line_of(event)}

    def _micro(self, seconds: float) -> int:
        return round((self.later + seconds) * 1e6)

    def _thread(self, lane: Lane, row: int) -> int:
        """The number of a lane's thread. Calls that ran side by side have one each."""
        tid = self._threads.get((lane, row))
        if tid is None:
            tid = self._threads[lane, row] = len(self._threads) + 1
            name = visible(label_of(lane))
            self._name("thread", tid, name if row == 0 else f"{name} ({row + 1})")
        return tid

    def _name(self, what: str, tid: int, name: str) -> None:
        self._add("M", f"{what}_name", tid, args={"name": name})
        self._add("M", f"{what}_sort_index", tid, args={"sort_index": tid or self.pid})

    def _add(self, phase: str, name: str, tid: int, **more: Any) -> None:
        fixed = {"ph": phase, "name": visible(name), "pid": self.pid, "tid": tid}
        self.written.append({**fixed, "cat": "mini_harness", **more})
