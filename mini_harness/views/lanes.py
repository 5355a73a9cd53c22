"""How the lanes of a timeline are drawn: each event, or how many there were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from mini_harness.events import Event
from mini_harness.spans import (
    Ending,
    Kind,
    Lane,
    Moment,
    Span,
    Told,
    label_of,
    rows_of,
    seconds,
)
from mini_harness.visible import counted, visible

TOOLS = 6
"""So many tools have a lane of their own. The others share one."""

OTHERS = "other tools"
SLICES = 120
STEP_ROOM = 0.07
"""The part of the axis that the word above a step needs."""

SEEN = 0.006
"""The part of the axis that a bar covers at least, and needs if its length is to be seen."""

LABELLED = 40
"""Up to this many events, marks have a word beside them and steps a number."""

# Okabe and Ito's colours, which people with any colour vision tell apart. What matters is told by
# lane, hatch and mark as well.
_COLOURS = {
    Kind.MESSAGE: "#555555",
    Kind.MODEL: "#0072B2",
    Kind.TOOL: "#009E73",
    Kind.WAITING: "#E69F00",
    Kind.DENIED: "#882255",
    Kind.OTHER: "#555555",
    Kind.END: "#000000",
}
_MARKS = {Kind.MESSAGE: "v", Kind.TOOL: "x", Kind.DENIED: "X", Kind.OTHER: "d", Kind.END: "D"}
_FAILED: dict[str, Any] = {"facecolor": "#D55E00", "hatch": "////"}
# Lines, not dots: as SVG, each dot is drawn by eight curves, 250 kB in all.
_OPEN: dict[str, Any] = {"facecolor": "white", "hatch": "\\\\\\\\"}
_STOPPED = "s"


def merged(told: Told) -> Told:
    """With many tools, the rarer ones are one."""
    uses = Counter(span.name for span in told.spans if span.kind is Kind.TOOL)
    if len(uses) <= TOOLS + 1:
        return told
    own = {name for name, _ in uses.most_common(TOOLS)}

    def renamed(item: Any) -> Any:
        return (
            item._replace(name=OTHERS) if item.kind is Kind.TOOL and item.name not in own else item
        )

    return Told([*map(renamed, told.spans)], [*map(renamed, told.moments)], told.times)


def short_label(lane: Lane) -> str:
    """What stands beside a lane, where there is little room."""
    text = visible(label_of(lane))
    # Long names of tools mostly begin alike, and a mark that they are tools stands at the end.
    return drawable(text if len(text) <= 22 else f"{text[:9]}…{text[-12:]}")


def drawable(text: str) -> str:
    """The text with an escape for each character that the font can't draw."""
    known = _known()
    return "".join(c if ord(c) in known else ascii(c)[1:-1] for c in text)


@lru_cache(maxsize=1)
def _known() -> frozenset[int]:
    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    return frozenset(font.get_charmap())


def draw_each(
    axes: Axes, lanes: Sequence[Lane], events: Sequence[Event], told: Told, *, by: str
) -> str:
    """A bar for all that took time, a mark for all that happened at once."""
    at = told.times if by == "time" else [float(event.sequence) for event in events]
    whole = (at[-1] - at[0]) or 1.0
    least = SEEN * whole
    _draw_bars(axes, lanes, told.spans, at, least)
    for moment in told.moments:
        _draw_mark(axes, lanes.index(moment.lane), moment, at, whole, named=len(events) <= LABELLED)
    axes.set_xlim(at[0] - 0.02 * whole, at[-1] + 0.03 * whole)
    if by == "order":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if len(events) <= LABELLED:
        _draw_steps(axes, events, told.spans, at)
    _draw_legend(axes, told.spans)
    return ""


def _draw_bars(
    axes: Axes, lanes: Sequence[Lane], spans: Sequence[Span], at: Sequence[float], least: float
) -> None:
    rows = rows_of(spans)
    deepest: Counter[Lane] = Counter()
    for span, row in zip(spans, rows, strict=True):
        deepest[span.lane] = max(deepest[span.lane], row + 1)
    for span, row in zip(spans, rows, strict=True):
        height = 0.7 / deepest[span.lane]
        low = lanes.index(span.lane) - 0.35 + row * height
        width = max(at[span.last] - at[span.first], least)
        style = _style(span.kind, span.ending)
        axes.broken_barh([(at[span.first], width)], (low, height), lw=0.6, ec="#222222", **style)


def _style(kind: Kind, ending: Ending) -> dict[str, Any]:
    match ending:
        case Ending.FAILED:
            return _FAILED
        case Ending.OPEN:
            return _OPEN
        case _:
            return {"facecolor": _COLOURS[kind]}


def _draw_mark(
    axes: Axes, y: int, moment: Moment, at: Sequence[float], whole: float, *, named: bool
) -> None:
    x = at[moment.event]
    stopped = moment.subject == "stop"
    mark = _STOPPED if stopped else _MARKS[moment.kind]
    axes.plot([x], [y], mark, color=_COLOURS[moment.kind], ms=8, mew=1.5)
    if named and moment.kind in (Kind.TOOL, Kind.DENIED, Kind.END):
        left = x > at[0] + 0.7 * whole
        axes.annotate(
            drawable(visible(moment.subject)),
            (x, y),
            xytext=(-9 if left else 9, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            fontsize=9,
            parse_math=False,
        )


def _draw_steps(
    axes: Axes, events: Sequence[Event], spans: Sequence[Span], at: Sequence[float]
) -> None:
    """A thin line where each step begins, with its number above."""
    begins = {events[s.last].step: at[s.first] for s in reversed(spans) if s.kind is Kind.MODEL}
    roomy: dict[int, float] = {}
    for step, x in reversed(begins.items()):
        axes.axvline(x, color="#BBBBBB", lw=0.8, zorder=0)
        if not roomy or x - max(roomy.values()) >= STEP_ROOM * (at[-1] - at[0]):
            roomy[step] = x
    above = axes.secondary_xaxis("top")
    above.set_xticks([*roomy.values()], [f"step {step}" for step in roomy], fontsize=9)
    above.tick_params(length=0)
    above.spines["top"].set_visible(False)


def _draw_legend(axes: Axes, spans: Iterable[Span]) -> None:
    """Only for what a lane doesn't say already."""
    endings = {span.ending for span in spans}
    shown = [
        (Ending.FAILED, "failed, or refused", _FAILED),
        (Ending.OPEN, "still open", _OPEN),
    ]
    patches = [
        Patch(label=label, ec="#222222", lw=0.6, **style)
        for ending, label, style in shown
        if ending in endings
    ]
    if patches:
        axes.figure.legend(
            handles=patches, loc="outside upper right", fontsize=9, ncols=2, frameon=False
        )


def draw_density(
    axes: Axes, lanes: Sequence[Lane], events: Sequence[Event], told: Told, *, by: str
) -> str:
    """For each lane, how many events began in each slice; the failed ones hatched."""
    at = np.asarray(told.times if by == "time" else [event.sequence for event in events], float)
    edges = np.linspace(at[0], at[-1] if at[-1] > at[0] else at[0] + 1, SLICES + 1)
    for y, lane in enumerate(lanes):
        spans = [span for span in told.spans if span.lane == lane]
        begun = [s.first for s in spans] + [m.event for m in told.moments if m.lane == lane]
        failed = [span.first for span in spans if span.ending is Ending.FAILED]
        counts, bad = (np.histogram(at[each], edges)[0] for each in (begun, failed))
        _draw_area(axes, y, edges, counts, bad, _COLOURS[lane[0]])
    axes.set_xlim(edges[0], edges[-1])
    _draw_legend(axes, told.spans)
    slice_of = edges[1] - edges[0]
    size = seconds(slice_of) if by == "time" else counted(round(slice_of) or 1, "event")
    return f"; height: how many began within {size}, at most the number on the right"


def _draw_area(axes: Axes, y: int, edges: Any, counts: Any, bad: Any, colour: str) -> None:
    scale = 0.75 / counts.max()
    base = y + 0.35
    axes.stairs(base - counts * scale, edges, baseline=base, fill=True, color=colour)
    if bad.any():
        axes.stairs(base - bad * scale, edges, baseline=base, fill=True, ec="#222222", **_FAILED)
    axes.annotate(
        f"{counts.max():,}",
        (1.0, base),
        xycoords=("axes fraction", "data"),
        xytext=(5, 0),
        textcoords="offset points",
        va="bottom",
        fontsize=9,
    )
