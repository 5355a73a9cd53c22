"""A run, event by event: what was proposed, judged, approved, observed, and what the model saw."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ipywidgets
from IPython.display import display

from mini_harness.events import Event, EventType
from mini_harness.frozen import shown
from mini_harness.history import HistoryError
from mini_harness.protocol import Message
from mini_harness.run import Run
from mini_harness.spans import calls_in, elapsed
from mini_harness.table import Table, call_line, gist, text_of
from mini_harness.trace import Trace
from mini_harness.visible import counted, shortened, visible, visible_lines

MESSAGES = 8
"""How many of the last messages are shown."""

LONGEST = 1_000
"""How many characters of one text are shown."""

_STORY = {
    EventType.MODEL_DECISION: "Decision",
    EventType.VERDICT: "Verdict",
    EventType.PAUSE: "Pause",
    EventType.APPROVAL: "Approval",
    EventType.HOOK: "Hook",
    EventType.TOOL_START: "Started",
    EventType.TOOL_RESULT: "Observation",
    EventType.TOOL_ERROR: "Observation",
}
_CELL = 'style="text-align: left; vertical-align: baseline; padding-right: 1em"'


class TraceExplorer:
    """Buttons to step, and a number to go to, in one run: the last one, unless told otherwise.

    Where no widget lives, a card with the table of the run.
    """

    def __init__(self, trace: Trace, run: Run | str | None = None) -> None:
        """Raises ValueError if the trace is empty or has no such run."""
        self.events = (trace.last() if run is None else trace.of(run)).events
        self._times = elapsed(self.events)
        self._past = _Past(self.events)
        self._calls = _by_call(self.events)
        last = len(self.events)
        # Not a slider: ipywidgets gives its handle no name, so a screen reader says nothing of it.
        self._number = ipywidgets.BoundedIntText(1, min=1, max=last, description="Event")
        back = ipywidgets.Button(description="Previous", tooltip="One event back")
        ahead = ipywidgets.Button(description="Next", tooltip="One event ahead")
        # At the ends they do nothing; were they disabled, the keyboard would lose its place.
        back.on_click(lambda _: self.go(self._number.value - 1))
        ahead.on_click(lambda _: self.go(self._number.value + 1))
        self._page = ipywidgets.HTML(self.page(1))
        self._number.observe(self._moved, names="value")
        self._row = ipywidgets.HBox([back, self._number, ahead])
        self._whole = ipywidgets.VBox([self._row, self._page])

    def go(self, number: int) -> None:
        """Show this event, counted from 1; beyond the ends, the first or the last."""
        self._number.value = number

    def _moved(self, change: Mapping[str, Any]) -> None:
        self._page.value = self.page(change["new"])

    def page(self, number: int) -> str:
        """The HTML of one event, counted from 1."""
        event = self.events[number - 1]
        at = f"{self._times[number - 1]:,.2f} s"
        head = f"Event {number:,} of {len(self.events):,}: {event.type}, step {event.step}, at {at}"
        # Asked what to do next, the model hadn't heard its own answer yet.
        decides = event.type is EventType.MODEL_DECISION
        title = "What the model saw then" if decides else "The history by then"
        parts = [f"<h4>{html.escape(head)}</h4>", _pre(gist(event)), *self._story(number)]
        history = self._past.messages(number - 1 if decides else number)
        return "\n".join([*parts, f"<h4>{title}</h4>", *_history(history)])

    def _story(self, number: int) -> Iterator[str]:
        """What had happened by then to the calls that this event is about."""
        for call_id in _calls_of(self.events[number - 1]):
            known = [self.events[index] for index in self._calls[call_id] if index < number]
            rows = "".join(_row(_STORY[e.type], gist(e)) for e in known if e.type in _STORY)
            caption = (
                f"<caption style='text-align: left'>Call {html.escape(visible(call_id))}</caption>"
            )
            yield f"<table>{caption}{rows}</table>"

    def __repr__(self) -> str:
        size = counted(len(self.events), "event")
        return f"Explorer of {visible(self.events[0].run_id)}: {size} to step through"

    def _ipython_display_(self) -> None:
        live = self._whole._repr_mimebundle_() or {}
        card = f"<p>{html.escape(repr(self))}</p>\n{Table(self.events)._repr_html_()}"
        display({**live, "text/html": card, "text/plain": repr(self)}, raw=True)


class _Past:
    """The run as it was by an event. Forwards it goes on from where it is; back it starts anew."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._run: Run | None = None
        self._at = 0

    def messages(self, count: int) -> Sequence[Message] | str:
        """The history after this many events; or why there is none to be had."""
        try:
            return self._fold(count).history.messages if count else ()
        except (AttributeError, HistoryError, KeyError, TypeError, ValueError) as error:
            self._run = None
            return f"These events don't make a run: {shown(error)}"

    def _fold(self, count: int) -> Run:
        if self._run is None or count < self._at:
            self._run = Run.fold(self._events[:count])
        else:
            for event in self._events[self._at : count]:
                self._run.apply(event)
        self._at = count
        return self._run


def _by_call(events: Sequence[Event]) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for index, event in enumerate(events):
        for call_id in _calls_of(event):
            found[call_id].append(index)
    return found


def _calls_of(event: Event) -> list[str]:
    calls = calls_in(event.data) or [event.data]
    return [str(each["call_id"]) for each in calls if "call_id" in each]


def _row(head: str, text: str) -> str:
    return f'<tr><th scope="row" {_CELL}>{html.escape(head)}</th><td {_CELL}>{_pre(text)}</td></tr>'


def _history(messages: Sequence[Message] | str) -> Iterator[str]:
    if isinstance(messages, str):
        yield _pre(messages)
        return
    if not messages:
        yield "<p>Nothing yet.</p>"
    if len(messages) > MESSAGES:
        yield f"<p>... {counted(len(messages) - MESSAGES, 'earlier message')} ...</p>"
    rows = [_row(visible(str(each.get("role", ""))), _said(each)) for each in messages[-MESSAGES:]]
    yield f"<table>{''.join(rows)}</table>"


def _said(message: Message) -> str:
    said = message.get("content", message.get("tool_result"))
    words = [] if said is None else [text_of(said)]
    return "\n".join([*words, *map(call_line, calls_in(message))])


def _pre(text: str) -> str:
    """A text that others wrote: escaped, all of it visible, cut in the middle if it is long."""
    safe = html.escape(visible_lines(shortened(text, LONGEST)))
    return f'<pre style="white-space: pre-wrap; margin: 0">{safe}</pre>'
