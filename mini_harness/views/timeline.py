"""A run as a drawing: a lane for the model, for each tool, for waiting, for what was denied.

Up to DETAIL events each one is drawn. Above, a lane shows how many events it had in each slice:
thousands of bars on a page are stripes that nobody can read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mini_harness.events import Event
from mini_harness.spans import NOT_RUN, Ending, Kind, Lane, Told, seconds, tell
from mini_harness.views.drawing import Drawing
from mini_harness.views.lanes import SEEN, draw_density, draw_each, drawable, merged, short_label
from mini_harness.visible import counted, visible

DETAIL = 250
"""Up to this many events each one is drawn."""

SPREAD = 0.3
"""The part of the axis that eight tenths of many events must cover."""

By = Literal["time", "order"]


class Timeline(Drawing):
    """The drawing of one run. A notebook shows it, with its summary below it.

    ``figure`` is matplotlib's; ``summary`` says the same in one line; ``table()`` of the trace
    has all of it.
    """

    salt = "timeline"

    def __init__(self, events: Sequence[Event], *, by: By | None = None) -> None:
        """Takes the events of one run. Raises ValueError for none, and for another ``by``."""
        if not events:
            raise ValueError("There are no events to draw.")
        if by not in (None, "time", "order"):
            raise ValueError(f"A timeline is drawn by 'time' or by 'order', not by {by!r}.")
        self.events = events
        self.told = merged(tell(events))
        self.by: By = by or _axis(self.told)

    @cached_property
    def summary(self) -> str:
        """How many events of each lane there are, and how long it took."""
        return _summary(self.events, self.told)

    @cached_property
    def figure(self) -> Figure:
        lanes = lanes_of(self.told)
        figure = Figure(figsize=(9, 1.3 + 0.36 * len(lanes)), dpi=100, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        draw = draw_each if len(self.events) <= DETAIL else draw_density
        scale = draw(axes, lanes, self.events, self.told, by=self.by)
        labels = [short_label(lane) for lane in lanes]
        axes.set_yticks(range(len(lanes)), labels, fontsize=10, parse_math=False)
        axes.set_ylim(len(lanes) - 0.4, -0.6)
        axes.set_xlabel(self._along() + scale, fontsize=10)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        title = drawable(f"{visible(self.events[0].run_id)}: {_size(self.events, self.told)}")
        axes.set_title(title, loc="left", fontsize=11, parse_math=False)
        return figure

    def _along(self) -> str:
        if self.by == "time":
            return "seconds since the run began"
        if self.told.times[-1] == 0:
            return "number of the event (no time passed)"
        return "number of the event"

    def _repr_html_(self) -> str:
        name = visible(self.events[0].run_id)
        return self.in_html(f"Timeline of {name}, described in the text below")


def lanes_of(told: Told) -> list[Lane]:
    """The lanes that hold something, from top to bottom."""
    found = sorted(
        [(span.first, span.lane) for span in told.spans]
        + [(moment.event, moment.lane) for moment in told.moments]
    )
    order = list(Kind)
    return sorted(dict.fromkeys(lane for _, lane in found), key=lambda lane: order.index(lane[0]))


def _axis(told: Told) -> By:
    """Time, if one sees something by it; else the order of the events."""
    times = told.times
    whole = times[-1]
    if len(times) > DETAIL:
        # A night's wait would press all the rest into one slice.
        most = times[len(times) * 9 // 10] - times[len(times) // 10]
        return "time" if whole > 0 and most >= SPREAD * whole else "order"
    seen = [span for span in told.spans if span.end - span.start >= SEEN * whole]
    return "time" if whole > 0 and 2 * len(seen) >= len(told.spans) else "order"


def _size(events: Sequence[Event], told: Told) -> str:
    return f"{counted(len(events), 'event')} in {seconds(told.times[-1])}"


def _summary(events: Sequence[Event], told: Told) -> str:
    parts = ", ".join(_counted_in(lane, told) for lane in lanes_of(told)) or "Nothing to draw"
    return f"Timeline of {visible(events[0].run_id)}: {_size(events, told)}. {parts}."


def _counted_in(lane: Lane, told: Told) -> str:
    """How much a lane holds. A call that never started is no use of its tool."""
    spans = [span for span in told.spans if span.lane == lane]
    moments = [moment for moment in told.moments if moment.lane == lane]
    failed = sum(span.ending is Ending.FAILED for span in spans)
    idle = sum(lane[0] is Kind.TOOL and moment.subject == NOT_RUN for moment in moments)
    told_apart = ((failed, "failed"), (idle, NOT_RUN))
    notes = [f"{number:,} {what}" for number, what in told_apart if number]
    if lane[0] is Kind.WAITING:
        notes = [f"waited {seconds(sum(span.end - span.start for span in spans))}"]
    more = f" ({', '.join(notes)})" if notes else ""
    return f"{short_label(lane)} {len(spans) + len(moments) - idle:,}{more}"
