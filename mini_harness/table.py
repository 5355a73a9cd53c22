"""A trace as a table: text in a terminal, HTML in a notebook, the same facts in both.

Everything in it is made visible, so no tool's text can draw a line of its own.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mini_harness.events import Event, EventType
from mini_harness.frozen import canonical
from mini_harness.spans import Ending, by_run, calls_in, seconds, tell, verdict_of
from mini_harness.visible import counted, visible

HEAD, TAIL = 120, 80
"""Of a longer table only the first and the last rows are shown: nobody reads the others."""

WIDTH = 72
"""How many characters of an event are shown."""

REASONED, END = 120, 48
"""How many of one in which somebody decides, and how many of them are its last ones: there a
reason says what it is about."""

_REASONED = (
    EventType.VERDICT,
    EventType.PAUSE,
    EventType.APPROVAL,
    EventType.HOOK,
    EventType.VERIFICATION,
)

COLUMNS = ("#", "step", "at", "took", "type", "what")
_LEFT = ("run", "type", "what")
_STYLE = 'style="text-align: left"'
_WHOLE = 'style="text-align: left; white-space: nowrap"'

Cells = tuple[str, ...]
Data = Mapping[str, Any]


class Table:
    """What happened, a row for each event. ``print`` it, or let a notebook show it.

    ``at`` and ``took`` are seconds since the run began: the waiting for a person counts.
    """

    def __init__(
        self, events: Sequence[Event], *, step: int | None = None, type: EventType | None = None
    ) -> None:
        runs = by_run(events)
        several = len(runs) > 1
        self.columns: Cells = ("run", *COLUMNS) if several else COLUMNS
        self.rows: list[Cells] = [
            (visible(run), *cells) if several else cells
            for run, own in runs.items()
            for event, cells in zip(own, _told(own), strict=True)
            if step in (None, event.step) and type in (None, event.type)
        ]
        only = f" of step {step}" if step is not None else ""
        only += f" of type {type}" if type is not None else ""
        where = f"{len(runs):,} runs" if several else visible(next(iter(runs), "no run"))
        self.caption = f"{where}: {counted(len(self.rows), 'event')}{only}"

    def __str__(self) -> str:
        head, gap, tail = self._parts()
        columns = zip(self.columns, *head, *tail, strict=True)
        widths = [max(map(len, column)) for column in columns]
        lines = [self._aligned(cells, widths) for cells in (self.columns, *head)]
        lines += [gap] if gap else []
        lines += [self._aligned(cells, widths) for cells in tail]
        return "\n".join([self.caption, *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, gap, tail = self._parts()
        names = "".join(f'<th scope="col" {_STYLE}>{name}</th>' for name in self.columns)
        body = [_row(cells) for cells in head]
        body += [f'<tr><td colspan="{len(self.columns)}" {_STYLE}>{gap}</td></tr>'] if gap else []
        body += [_row(cells) for cells in tail]
        caption = f"<caption {_STYLE}>{html.escape(self.caption)}</caption>"
        lines = ["<table>", caption, f"<thead><tr>{names}</tr></thead>", "<tbody>", *body]
        table = "\n".join([*lines, "</tbody>", "</table>"])
        return f'<div style="overflow: auto">\n{table}\n</div>'

    def _parts(self) -> tuple[list[Cells], str, list[Cells]]:
        """The first rows, how many are left out, and the last ones."""
        missing = len(self.rows) - HEAD - TAIL
        if missing <= 0:
            return self.rows, "", []
        gap = f"... {counted(missing, 'event')} not shown ..."
        return self.rows[:HEAD], gap, self.rows[-TAIL:]

    def _aligned(self, cells: Cells, widths: Sequence[int]) -> str:
        padded = [
            cell.ljust(width) if name in _LEFT else cell.rjust(width)
            for name, cell, width in zip(self.columns, cells, widths, strict=True)
        ]
        return "  ".join(padded).rstrip()


def _row(cells: Cells) -> str:
    styles = [_WHOLE] * (len(cells) - 1) + [_STYLE]
    written = (f"<td {s}>{html.escape(c)}</td>" for s, c in zip(styles, cells, strict=True))
    return f"<tr>{''.join(written)}</tr>"


def _told(events: Sequence[Event]) -> Iterator[Cells]:
    """The rows of one run."""
    spans, _, times = tell(events)
    took = {span.last: span for span in spans if span.ending is not Ending.OPEN}
    for index, (event, at) in enumerate(zip(events, times, strict=True)):
        span = took.get(index)
        length = "" if span is None else seconds(span.end - span.start)
        number, step = str(event.sequence), str(event.step)
        yield number, step, f"{at:,.2f} s", length, event.type.value, line_of(event)


def line_of(event: Event) -> str:
    """What matters of an event, on one line."""
    width, end = (REASONED, END) if event.type in _REASONED else (WIDTH, 0)
    return _cut(gist(event), width, end)


def gist(event: Event) -> str:
    """What matters of an event, of whatever length. Works for events written by hand too."""
    tell_it = _GISTS.get(event.type)
    if tell_it is not None:
        return tell_it(event.data)
    return canonical(event.data) if event.data else ""


def _message(data: Data) -> str:
    because = f"[{data['because']}] " if "because" in data else ""
    return because + text_of(data.get("content", ""))


def _decision(data: Data) -> str:
    if calls := calls_in(data):
        return " and ".join(map(call_line, calls))
    if "final" in data:
        return f"final answer: {text_of(data.get('content'))}"
    said = text_of(data.get("decision", ""))
    return f"not understood: {said}" if "unknown" in data else said


def _start(data: Data) -> str:
    again = f"attempt {data['attempt']}: " if data.get("attempt", 1) != 1 else ""
    allowed = f" by rule {data['rule']}:" if data.get("rule") else ""
    return f"{again}{data.get('tool')}{allowed} {canonical(data.get('arguments'))}"


def _end(data: Data) -> str:
    # A loop that is written by hand may use the names of SEEDS A10.
    said = next((data[k] for k in ("tool_result", "result", "error") if k in data), "")
    how = f" [{data['outcome']}]" if "outcome" in data else ""
    return f"{data.get('tool')}{how} -> {text_of(said)}"


def _verdict(data: Data) -> str:
    return f"{verdict_of(data)} {data.get('tool')} {_reasoned(data)}"


def call_line(wire: Data) -> str:
    """A proposed call: the tool and its arguments."""
    return f"{wire.get('name')} {canonical(wire.get('arguments'))}"


def _approval(data: Data) -> str:
    said = "approved" if data.get("approved") is True else "denied"
    edited = data.get("arguments")
    with_what = "" if edited is None else f" with {canonical(edited)}"
    always = ", always" if data.get("remember") else ""
    why = f": {data['reason']}" if data.get("reason") else ""
    return f"{data.get('by', 'somebody')} {said} {data.get('tool')}{with_what}{always}{why}"


def _pause(data: Data) -> str:
    if "digest" not in data:
        return canonical(data)
    return f"waits for approval of {data.get('tool')} {_reasoned(data)}"


def _final(data: Data) -> str:
    return text_of(data.get("output"))


def _stop(data: Data) -> str:
    numbers = {k: v for k, v in data.items() if k not in ("reason", "error")}
    return f"{data.get('reason')}: {data.get('error') or canonical(numbers)}"


def _reasoned(data: Data) -> str:
    rule = f"by rule {data['rule']}" if data.get("rule") else "by no rule"
    return f"{rule}: {data.get('reason', '')}"


def text_of(value: Any) -> str:
    """A text as it is; anything else as JSON."""
    return value if isinstance(value, str) else canonical(value)


def _retry(data: Data) -> str:
    if not {"attempt", "seconds", "because"} <= set(data):
        return canonical(data)
    what = data.get("tool", "the model")
    return f"{what} again in {data['seconds']:g} s: {data['because']}"


def _compaction(data: Data) -> str:
    if not {"strategy", "before", "after"} <= set(data):
        return canonical(data)
    return f"{data['strategy']}: {data['before']:,} -> {data['after']:,} bytes"


def _hook(data: Data) -> str:
    about = f" {data['tool']}" if data.get("tool") else ""
    why = f": {data['reason']}" if data.get("reason") else ""
    return f"{data.get('event')}{about}: {data.get('hook')} {data.get('result')}{why}"


def _verification(data: Data) -> str:
    if not {"standing", "told"} <= set(data):
        return canonical(data)
    return f"{data['standing']}: {data['told']}"


_GISTS: dict[EventType, Callable[[Data], str]] = {
    EventType.MESSAGE: _message,
    EventType.MODEL_DECISION: _decision,
    EventType.TOOL_START: _start,
    EventType.TOOL_RESULT: _end,
    EventType.TOOL_ERROR: _end,
    EventType.VERDICT: _verdict,
    EventType.APPROVAL: _approval,
    EventType.PAUSE: _pause,
    EventType.HOOK: _hook,
    EventType.RETRY: _retry,
    EventType.COMPACTION: _compaction,
    EventType.LATE_RESULT: _end,
    EventType.VERIFICATION: _verification,
    EventType.FINAL: _final,
    EventType.STOP: _stop,
}


def _cut(text: str, width: int, end: int) -> str:
    """The first line, cut to the width before its end, and how many lines follow."""
    lines = text.strip().splitlines() or [""]
    first = visible(" ".join(lines[0].split()))
    more = f" (+{counted(len(lines) - 1, 'line')})" if len(lines) > 1 else ""
    room = width - len(more)
    if len(first) <= room:
        return first + more
    tail = f" {first[-end:]}" if end else ""
    return f"{first[: room - len(tail) - 2]} …{tail}{more}"
