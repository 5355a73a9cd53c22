"""The explorer, without a browser: what it shows of each event, and where no widget lives."""

import pytest

from mini_harness.clock import VirtualClock
from mini_harness.trace import Trace
from mini_harness.views.explorer import MESSAGES, TraceExplorer
from tests.displays import displayed
from tests.traces import Written, guarded, happy, long

pytestmark = pytest.mark.once

NASTY = "\x1b[2K\rALL PASSED\u202e <script>"


def page(explorer: TraceExplorer) -> str:
    return str(explorer._page.value)


def test_buttons_and_number_step_and_stay_within_the_run() -> None:
    explorer = TraceExplorer(happy())
    back, number, ahead = explorer._row.children
    for _ in range(9):
        ahead.click()
    assert number.value == 6
    assert "Event 6 of 6: final" in page(explorer)
    back.click()
    assert "Event 5 of 6: model_decision" in page(explorer)
    number.value = 1
    back.click()
    assert "Event 1 of 6: message" in page(explorer)


def test_the_keyboard_reaches_everything_and_nothing_is_taken_from_it() -> None:
    """All are native and have names. Were one disabled at the end, the focus would be lost."""
    explorer = TraceExplorer(happy())
    back, number, ahead = explorer._row.children
    explorer.go(6)
    assert (back.disabled, number.disabled, ahead.disabled) == (False, False, False)
    assert (back.description, number.description, ahead.description) == (
        "Previous",
        "Event",
        "Next",
    )


def test_it_tells_what_had_happened_to_the_call_by_then_and_not_more() -> None:
    """A07, A08: decision, verdict, approval, observation"""
    explorer = TraceExplorer(guarded())
    explorer.go(12)
    assert "require_approval edit_file by rule no-deploy" in page(explorer)
    assert "A person approved" not in page(explorer)
    explorer.go(17)
    assert "A person approved edit_file" in page(explorer)
    assert page(explorer).count(">Observation</th>") == 1
    explorer.go(9)
    assert "deny deploy_prod by rule no-deploy: Nobody may." in page(explorer)


def test_the_history_is_the_one_the_model_saw_at_that_moment() -> None:
    """At a decision: what it was asked with; else: what there was by then."""
    explorer = TraceExplorer(happy())
    explorer.go(2)
    assert "What the model saw then" in page(explorer)
    assert page(explorer).count('<tr><th scope="row"') == 2
    assert ">assistant</th>" not in page(explorer)
    explorer.go(5)
    assert ">tool</th>" in page(explorer)
    assert page(explorer).count(">assistant</th>") == 1
    explorer.go(6)
    assert page(explorer).count(">assistant</th>") == 2


def test_whatever_way_one_goes_the_page_of_an_event_is_the_same() -> None:
    """Going on from where it is gives what starting anew gives."""
    trace = long(60)
    fresh = [TraceExplorer(trace).page(n + 1) for n in range(len(trace.events))]
    explorer = TraceExplorer(trace)
    for number in (1, 40, 3, 59, 58, 60, 2, 30, 31, 32):
        assert explorer.page(number) == fresh[number - 1]


def test_only_the_last_messages_are_shown_and_it_says_so() -> None:
    explorer = TraceExplorer(long(200))
    explorer.go(150)
    assert page(explorer).count('<tr><th scope="row"') <= MESSAGES + 7
    assert "earlier messages ..." in page(explorer)


def test_nothing_of_a_run_becomes_markup_or_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    """report P07"""
    run = Written(f"run-{NASTY}")
    run.goal(NASTY)
    run.turn(NASTY, NASTY, command=NASTY)
    run.verdict(NASTY, NASTY, "deny")
    run.end(NASTY, NASTY, NASTY + "x" * 9_000, outcome="error")
    explorer = TraceExplorer(run.trace)
    pages = [explorer.page(n + 1) for n in range(4)]
    data = displayed(explorer, monkeypatch)
    for text in [*pages, data["text/html"], data["text/plain"]]:
        assert "<script>" not in text.replace(data["text/plain"], "")
        assert all(char.isprintable() or char == "\n" for char in text)
    assert "&lt;script&gt;" in pages[0]
    assert "characters are not shown" in pages[3]


def test_what_the_model_saw_is_shown_as_it_was() -> None:
    """Rows of spaces too: only where a person has to decide are they replaced by their number."""
    code = "def f():\n" + " " * 40 + "return 1"
    run = Written()
    run.goal(code)
    run.turn("a", "t")
    assert code in TraceExplorer(run.trace).page(2)


def test_a_card_and_a_line_stand_beside_the_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    """report N07"""
    trace = happy()
    data = displayed(TraceExplorer(trace), monkeypatch)
    assert data["text/plain"] == f"Explorer of {trace.runs[0]}: 6 events to step through"
    assert trace.table()._repr_html_() in data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in data


def test_a_trace_written_by_hand_is_shown_without_a_history() -> None:
    """A09"""
    trace = Trace(clock=VirtualClock())
    trace.record("tool_start", step=1, tool="t", arguments={})
    trace.record("final", output="x")
    assert "t make a run: KeyError" in TraceExplorer(trace).page(1)
    assert "t make a run: KeyError" in TraceExplorer(trace).page(2)


def test_it_shows_the_last_run_unless_told_otherwise() -> None:
    trace, clock = Trace(), VirtualClock()
    happy(trace=trace, clock=clock)
    happy(trace=trace, clock=clock)
    first, second = trace.runs
    assert second in repr(TraceExplorer(trace))
    assert first in repr(TraceExplorer(trace, first))
    with pytest.raises(ValueError, match="is empty"):
        TraceExplorer(Trace())
