"""What a gate says, in a notebook: a card with a row for each rule, and a plot of each kind.

Both are plain HTML with a text beside it. Nothing in them lives, so that they look the same on a
page where no kernel runs.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mini_harness.gate import GateFinding, GateResult, GateVerdict, Tally
from mini_harness.gate_figures import plain, ratio, wilson
from mini_harness.gate_report import MOST, to_text
from mini_harness.results import CaseOutcome, FailureKind
from mini_harness.views.drawing import Drawing
from mini_harness.visible import counted, visible

ALL, UNKNOWN = "all cases", "no result"

# Not the coloured ones: many a machine has no font for them.
_MARKS = {GateVerdict.PASS: "✓", GateVerdict.FAIL: "✗", GateVerdict.INCONCLUSIVE: "?"}
_CELL = 'style="text-align: left; vertical-align: baseline; padding-right: 1em"'
_INK, _LINE = "#1f4e79", "#b3261e"
_OPEN: dict[str, Any] = {
    "facecolor": "#e3e3e3",
    "hatch": "//",
    "edgecolor": "#8c8c8c",
    "linewidth": 0,
    "zorder": 0,
}


@dataclass(frozen=True)
class Row:
    """How many runs of one kind passed, and how many nobody could judge. ``total`` is above 0."""

    label: str
    passed: int
    unjudged: int
    total: int
    repeated: bool

    @property
    def rate(self) -> float:
        return self.passed / self.total

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 %, by Wilson. Of cases that ran once there is none: nothing was sampled."""
        if not self.repeated:
            return None
        low, high = wilson(self.passed, self.total)
        return float(low), float(high)


class GatePlot(Drawing):
    """The pass rate of each kind of failure, with its interval, and the threshold.

    ``rows`` holds the facts, ``table()`` and ``summary`` say them in words.
    """

    salt = "gate"

    def __init__(self, result: GateResult) -> None:
        self.result = result
        self.rows = tuple(_rows(result.tally))
        self.limits = tuple(
            each.limit
            for each in result.findings
            if each.rule == "pass_rate" and each.limit is not None
        )

    @property
    def summary(self) -> str:
        asked = "".join(f" At least {plain(limit)} is asked." for limit in self.limits)
        parts = ", ".join(f"{row.label} {ratio(row.passed, row.total)}" for row in self.rows)
        return f"Pass rate by kind: {parts or 'no case ran'}.{asked}"

    @cached_property
    def figure(self) -> Figure:
        figure = Figure(figsize=(9, 1.5 + 0.36 * len(self.rows)), dpi=100, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for place, row in enumerate(self.rows):
            _draw(axes, place, row)
        for limit in self.limits:
            axes.axvline(float(limit), color=_LINE, linestyle="--", linewidth=1.5, zorder=1)
            says = f"at least {_percent(limit)}"
            axes.text(float(limit), -0.75, says, color=_LINE, fontsize=10, ha="center", va="bottom")
        if not self.rows:
            axes.text(0.5, 0, "No case ran.", fontsize=11, ha="center", va="center")
        axes.set_yticks(range(len(self.rows)), [row.label for row in self.rows], fontsize=10)
        axes.set_ylim(max(len(self.rows), 1) - 0.4, -0.7)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        axes.set_xlabel(self._legend(), fontsize=10)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        title = f"Gate {self.result.verdict.upper()}: runs that passed, by kind of failure"
        axes.set_title(title, loc="left", fontsize=11, pad=18)
        return figure

    def _legend(self) -> str:
        parts = ["dot: passed"]
        parts += ["bar: 95 % interval by Wilson"] if any(row.repeated for row in self.rows) else []
        parts += ["grey: not judged"] if any(row.unjudged for row in self.rows) else []
        return "; ".join(parts)

    def table(self) -> str:
        """The facts of the plot as an HTML table."""
        head = ("Kind", "Passed", "Not judged", "95 % interval")
        return _table("Pass rate by kind of failure", head, map(_cells, self.rows))

    def _repr_html_(self) -> str:
        alternative = "Pass rate by kind of failure, described in the table below"
        return self.in_html(alternative) + self.table()


class GateCard:
    """The verdict, and a row for each rule with what it found. ``plot`` shows each kind."""

    def __init__(self, result: GateResult) -> None:
        self.result = result

    @property
    def plot(self) -> GatePlot:
        return GatePlot(self.result)

    def __repr__(self) -> str:
        return to_text(self.result).rstrip("\n")

    def _repr_html_(self) -> str:
        result, tally, found = self.result, self.result.tally, self.result.findings
        size = f"{counted(len(tally.cases), 'case')}, {counted(tally.total, 'run')}"
        source = f", from {visible(tally.report.source)}" if tally.report.source else ""
        rows = ((visible(each.rule), _verdict(each.verdict), _said(each)) for each in found)
        parts = [
            f"<h4>Quality gate: {html.escape(_verdict(result.verdict))}</h4>",
            f"<p>{html.escape(result.summary)}<br>{html.escape(size + source)}</p>",
            _table("What each rule found", ("Rule", "Verdict", "What was found"), rows),
        ]
        return "\n".join([*parts, *filter(None, map(_blame, found))])


def _verdict(verdict: GateVerdict) -> str:
    """Never by its colour alone."""
    return f"{_MARKS[verdict]} {verdict.upper()}"


def _said(found: GateFinding) -> str:
    return f"{found.says} This rule cannot fail." if found.cannot_fail else found.says


def _blame(found: GateFinding) -> str:
    if found.verdict is GateVerdict.PASS or not found.details:
        return ""
    items = [f"<li>{html.escape(each)}</li>" for each in found.details[:MOST]]
    if more := len(found.details) - MOST:
        items += [f"<li>... and {more:,} more</li>"] if more > 0 else []
    name = html.escape(visible(found.rule))
    return f"<details><summary>{name}: which</summary><ul>{''.join(items)}</ul></details>"


def _table(caption: str, head: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """The first cell of a row is its name."""
    tops = "".join(f'<th scope="col" {_CELL}>{html.escape(each)}</th>' for each in head)
    body = "".join(
        f'<tr><th scope="row" {_CELL}>{html.escape(first)}</th>'
        + "".join(f"<td {_CELL}>{html.escape(each)}</td>" for each in rest)
        + "</tr>"
        for first, *rest in rows
    )
    title = f'<caption style="text-align: left">{html.escape(caption)}</caption>'
    return f"<table>{title}<thead><tr>{tops}</tr></thead><tbody>{body}</tbody></table>"


def _rows(tally: Tally) -> Iterator[Row]:
    """All cases first, then each kind that occurs, in the order of the closed list."""
    if not tally.total:
        return
    kinds: dict[str, list[str]] = {}
    for case, runs in tally.by_case.items():
        kinds.setdefault(runs[0].kind if runs else UNKNOWN, []).append(case)
    yield _row(ALL, tally.cases, tally)
    for kind in (*FailureKind, UNKNOWN):
        if kind in kinds:
            label = "no failure" if kind is FailureKind.NONE else kind.replace("_", " ")
            yield _row(label, kinds[kind], tally)


def _row(label: str, cases: Sequence[str], tally: Tally) -> Row:
    passed = sum(tally.count(CaseOutcome.PASSED, case=case) for case in cases)
    unjudged = sum(map(tally.unjudged_of, cases))
    return Row(label, passed, unjudged, len(cases) * tally.repeats, tally.repeats > 1)


def _cells(row: Row) -> Sequence[str]:
    found = row.interval
    interval = "each case ran once" if found is None else f"{found[0]:.4f} to {found[1]:.4f}"
    return row.label, ratio(row.passed, row.total), str(row.unjudged), interval


def _percent(limit: Fraction) -> str:
    """As the axis has it, if a decimal says it exactly."""
    found = plain(limit * 100)
    return plain(limit) if "/" in found else f"{found} %"


def _draw(axes: Axes, place: int, row: Row) -> None:
    if row.unjudged:
        width = row.unjudged / row.total
        axes.barh(place, width, left=row.rate, height=0.5, **_OPEN)
    if row.interval:
        axes.hlines(place, *row.interval, color=_INK, linewidth=4, alpha=0.45, zorder=2)
    axes.plot(row.rate, place, "o", color=_INK, markersize=8, clip_on=False, zorder=3)
    says = f"{row.passed}/{row.total}"
    axes.annotate(says, (1.03, place), va="center", fontsize=10, annotation_clip=False)
