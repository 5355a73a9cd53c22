"""The drawing of a run, without a browser: what it holds, and what it says in words."""

import os
import re
import subprocess
import sys
import threading
import warnings
from base64 import b64decode
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.axes import Axes
from PIL import Image

from mini_harness.trace import Trace
from mini_harness.views.lanes import OTHERS, SLICES, TOOLS
from mini_harness.views.timeline import DETAIL, Timeline
from tests.traces import Written, guarded, happy, long


def axes_of(drawn: Timeline) -> Axes:
    return drawn.figure.axes[0]


def lanes(drawn: Timeline) -> list[str]:
    return [label.get_text() for label in axes_of(drawn).get_yticklabels()]


def test_a_lane_for_each_kind_that_occurs_and_no_other() -> None:
    kinds = ["user", "model", "read_build", "bash", "edit_file", "approval", "denied", "end"]
    assert lanes(guarded().timeline()) == kinds
    assert lanes(happy().timeline()) == ["user", "model", "read_build", "end"]


def test_its_summary_is_one_line_with_the_same_facts() -> None:
    drawn = guarded().timeline()
    assert repr(drawn) == (
        "Timeline of run-1: 19 events in 12.45 s. user 1, model 5, read_build 1, "
        "bash 1 (1 failed), edit_file 1, approval 1 (waited 4.00 s), denied 1, end 1."
    )


def test_a_tool_whose_name_is_a_lanes_is_told_apart() -> None:
    run = Written()
    run.goal()
    for name in ("model", "denied", "approval", "paused", "end", "user", "hook", ""):
        run.turn(name, name)
        run.start(name, name)
        run.end(name, name)
    run.verdict("x", "model", "require_approval")
    run.approval("x", "model", approved=False)
    run.add("pause", why="lunch")
    run.add("resume")
    run.add("hook")
    run.final()
    drawn = run.trace.timeline()
    assert len(set(lanes(drawn))) == len(lanes(drawn)) == 14
    assert lanes(drawn)[:4] == ["user", "model", "model (tool)", "denied (tool)"]
    assert lanes(drawn)[8:] == [OTHERS, "approval", "paused", "denied", "hook", "end"]
    assert "model 9, model (tool) 1" in drawn.summary


def test_long_names_that_begin_or_end_alike_are_told_apart() -> None:
    run = Written()
    for name in ("mcp__playwright__browser_click", "mcp__playwright__browser_type"):
        run.start(name, name)
        run.end(name, name)
    assert lanes(run.trace.timeline()) == ["mcp__play…rowser_click", "mcp__play…browser_type"]


def test_its_summary_tells_a_call_that_never_ran_from_a_use_of_the_tool() -> None:
    run = Written()
    run.goal()
    for call_id in ("a", "b", "c"):
        run.turn(call_id, "act")
    run.end("a", "act", "Invalid arguments.", outcome="error")
    for call_id in ("b", "c"):
        run.start(call_id, "act")
        run.end(call_id, "act", outcome="ok" if call_id == "b" else "error")
    run.turn("d", "other")
    run.end("d", "other", "Unknown tool: other.", outcome="error")
    drawn = run.trace.timeline()
    assert "act 2 (1 failed, 1 not run), other 0 (1 not run)." in drawn.summary
    assert [text.get_text() for text in axes_of(drawn).texts] == ["not run", "not run"]


def test_a_notebook_gets_a_picture_with_words_that_is_the_same_every_time() -> None:
    """nbval compares it; axe asks for the alternative text"""
    shown = guarded().timeline()._repr_html_()
    assert 'alt="Timeline of run-1, described in the text below"' in shown
    assert f"<figcaption>{guarded().timeline().summary}</figcaption>" in shown
    (source,) = re.findall('src="data:image/svg[+]xml;base64,([^"]+)"', shown)
    assert ElementTree.fromstring(b64decode(source)).tag.endswith("svg")
    assert shown == guarded().timeline()._repr_html_()
    run = Written('run-"><script>')
    run.goal()
    assert "<script>" not in run.trace.timeline()._repr_html_()


def test_a_notebook_with_a_timeline_stays_small() -> None:
    """All endings, each with its hatch, and the most shapes that are drawn"""
    run = Written()
    run.goal()
    run.turn("a", "t", 1.0)
    run.start("a", "t")
    run.end("a", "t", later=1.0, outcome="error")
    run.start("a", "t")
    run.add("pause", later=1.0, call_id="b", digest="d")
    for trace in (run.trace, guarded(), long(DETAIL), long(20_000, tools=20)):
        assert len(trace.timeline().svg) < 160_000


def widths(drawn: Timeline) -> list[float]:
    boxes = [each.get_datalim(axes_of(drawn).transData) for each in axes_of(drawn).collections]
    return [box.width for box in boxes]


@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_every_bar_can_be_seen_also_where_no_time_passed(scale: float) -> None:
    drawn = guarded(scale).timeline()
    low, high = axes_of(drawn).get_xlim()
    assert len(widths(drawn)) == 9
    assert min(widths(drawn)) >= 0.0055 * (high - low)


def test_the_axis_is_time_where_one_sees_something_by_it() -> None:
    assert guarded().timeline().by == "time"
    assert guarded(0.0).timeline().by == "order"
    assert "no time passed" in axes_of(guarded(0.0).timeline()).get_xlabel()
    assert guarded().timeline(by="order").by == "order"
    night = Written()
    night.goal()
    for number in range(5):
        night.turn(f"c{number}", "t", 1.0)
        night.start(f"c{number}", "t")
        night.end(f"c{number}", "t", later=30_000.0 if number == 3 else 1.0)
    assert night.trace.timeline().by == "order"
    with pytest.raises(ValueError, match="'time' or by 'order', not by 'size'"):
        guarded().timeline(by="size")  # type: ignore[arg-type]


@pytest.mark.parametrize("events", [20, DETAIL, 1_000, 20_000])
def test_it_stays_small_whatever_the_length_of_the_run(events: int) -> None:
    """The number of shapes is bounded, so it is quick and legible."""
    drawn = long(events, tools=20).timeline()
    axes = axes_of(drawn)
    shapes = len(axes.collections) + len(axes.patches) + len(axes.lines)
    assert shapes <= max(DETAIL, 2 * (TOOLS + 6))
    assert len(lanes(drawn)) <= TOOLS + 6
    assert (OTHERS in lanes(drawn)) is (events > 50)
    with Image.open(BytesIO(drawn.png)) as image:
        assert image.width == 900
        assert image.height < 700


def test_above_the_limit_lanes_show_how_many_there_were() -> None:
    trace = long(2_000)
    axes = axes_of(trace.timeline())
    model = axes.patches[1].get_data()  # type: ignore[attr-defined]
    assert len(model.values) == SLICES
    heights = (model.baseline - model.values) / 0.75
    assert heights.max() == pytest.approx(1.0)
    asked = sum(event.type == "model_decision" for event in trace.events)
    most = int(axes.texts[1].get_text())
    assert round((heights * most).sum()) == asked


def test_no_writing_is_smaller_than_nine_points() -> None:
    for trace in (guarded(), long(1_000)):
        drawn = trace.timeline()
        texts = [*axes_of(drawn).texts, *axes_of(drawn).get_yticklabels()]
        assert min(float(text.get_fontsize()) for text in texts) >= 9


def test_names_are_drawn_as_they_are_and_warn_of_nothing() -> None:
    """report P07: no mathematics, no missing letters, no control characters"""
    run = Written("$\\frac{$")
    run.goal()
    for number, name in enumerate(
        ["$x$", "\u6784\u5efa", "\x1b[2K", "_hidden", "n" * 80, "model", "$\\frac{$"]
    ):
        run.turn(f"c{number}", name)
        run.start(f"c{number}", name)
        run.end(f"c{number}", name)
    run.verdict("z", "$\\frac{$", "deny")
    drawn = run.trace.timeline()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert drawn.png
    assert lanes(drawn)[2:6] == ["$x$", "\\u6784\\u5efa", "\\x1b[2K", "_hidden"]
    assert (lanes(drawn)[1], lanes(drawn)[7]) == ("model", "model (tool)")


def test_it_is_saved_with_its_words_as_png_and_svg(tmp_path: Path) -> None:
    drawn = guarded().timeline()
    for name in ("a.png", "a.svg", "b.svg"):
        drawn.save(tmp_path / name)
    with Image.open(tmp_path / "a.png") as image:
        assert image.info["Description"] == drawn.summary
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert drawn.summary in " ".join(ElementTree.fromstring(svg).itertext())
    assert (tmp_path / "b.svg").read_text(encoding="utf-8") == svg
    assert "date>" not in svg
    with pytest.raises(ValueError, match=r"\.png or \.svg, not 'a.pdf'"):
        drawn.save(tmp_path / "a.pdf")


def test_an_empty_trace_has_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="is empty"):
        Trace().timeline()


def test_pyplot_is_never_loaded_and_threads_draw_side_by_side() -> None:
    """pyplot keeps one current figure for all threads."""
    script = "import sys; from mini_harness.views.timeline import Timeline; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "MPLBACKEND": "agg"},
    )
    assert "matplotlib.pyplot" not in done.stdout.split()
    pictures: list[bytes] = []

    def draw() -> None:
        pictures.append(guarded().timeline().png)

    workers = [threading.Thread(target=draw) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len(set(pictures)) == 1
    assert len(pictures) == 2
