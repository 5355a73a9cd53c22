"""What took time in a run and what happened at one moment, read out of its events."""

from typing import Any

from mini_harness.spans import PAUSED, Ending, Kind, elapsed, rows_of, tell
from tests.traces import Written


def ended(run: Written) -> list[tuple[Any, ...]]:
    spans = tell(run.trace.events).spans
    return [(s.kind, s.name, s.ending, s.end - s.start) for s in spans if s.kind is not Kind.MODEL]


def test_what_ran_side_by_side_is_told_by_its_call_id() -> None:
    run = Written()
    run.goal()
    run.turn("a", "t")
    run.start("a", "t")
    run.start("b", "t")
    run.end("a", "t", later=1.0, outcome="error")
    run.end("b", "t", later=1.0)
    assert ended(run) == [(Kind.TOOL, "t", Ending.FAILED, 1.0), (Kind.TOOL, "t", Ending.OK, 2.0)]
    assert rows_of(tell(run.trace.events).spans) == [0, 0, 1]


def test_what_never_ended_is_told_as_open() -> None:
    run = Written()
    run.turn("a", "t")
    run.start("a", "t")
    run.add("pause", later=2.0, call_id="b", tool="u", digest="d")
    run.add("resume", wall=5.0)
    waiting = (Kind.WAITING, "", Ending.OPEN, 5.0)
    assert ended(run) == [(Kind.TOOL, "t", Ending.OPEN, 7.0), waiting]


def test_the_wait_for_a_person_counts_by_the_wall_clock_and_never_backwards() -> None:
    """A paused run isn't driven, so its own offset stands still."""
    run = Written()
    run.add("pause", call_id="a", digest="d")
    run.add("resume", wall=3.0)
    run.add("pause", call_id="a", digest="d")
    run.add("resume", wall=-100.0)
    run.approval("a", "t", later=1.0)
    assert elapsed(run.trace.events) == [0.0, 3.0, 3.0, 3.0, 4.0]
    assert ended(run) == [(Kind.WAITING, "", Ending.OK, 4.0)]


def test_the_wait_after_a_stop_counts_too_however_it_goes_on() -> None:
    """By resume; or because somebody says something else, in another process"""
    run = Written()
    run.goal()
    run.add("stop", later=1.0, reason="max_steps")
    run.add("resume", wall=3600.0)
    run.add("final", later=1.0, output="x")
    run.add("message", wall=10.0, role="user", content="And now?")
    assert elapsed(run.trace.events) == [0.0, 1.0, 3601.0, 3602.0, 3612.0]
    assert "3,601.00 s" in str(run.trace.table())
    assert "in 3,612 s" in run.trace.timeline().summary


def test_a_pause_for_no_answer_lasts_until_the_run_goes_on() -> None:
    run = Written()
    run.add("pause", why="lunch")
    run.add("resume", wall=3.0)
    run.add("pause", why="night")
    assert [(s.name, s.ending, s.end - s.start) for s in tell(run.trace.events).spans] == [
        (PAUSED, Ending.OK, 3.0),
        (PAUSED, Ending.OPEN, 0.0),
    ]


def test_a_wait_that_the_offset_knows_already_is_counted_once() -> None:
    """Somebody says something else to a paused run, and nobody resumed it before."""
    run = Written()
    run.add("pause", call_id="a", digest="d")
    run.add("message", later=3.0, role="user", content="Leave it.")
    assert elapsed(run.trace.events) == [0.0, 3.0]


def test_each_denied_call_has_one_mark_whoever_said_no() -> None:
    """SEEDS A07: a rule, or a person"""
    run = Written()
    run.verdict("a", "by_rule", "deny")
    run.end("a", "by_rule", outcome="denied")
    run.verdict("b", "by_person", "require_approval")
    run.approval("b", "by_person", approved=False)
    run.end("b", "by_person", outcome="denied")
    moments = tell(run.trace.events).moments
    assert [(m.kind, m.subject) for m in moments] == [
        (Kind.DENIED, "by_rule"),
        (Kind.DENIED, "by_person"),
    ]
