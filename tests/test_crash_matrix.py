"""Killed at every moment: what it was doing is finished, and nothing happens twice."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mini_harness.events import Event
from mini_harness.run import Run, Status
from mini_harness.session import Session
from tests.crashes import KILLED, Life, World, lives, world
from tests.loops import check

EFFECTS = ("order a", "mail ann", "order b", "mail bob", "deploy b-1", "mail cem")
Live = Callable[[str, int], Life]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, Path]]:
    root = tmp_path_factory.mktemp("lives")
    with lives(root) as live:
        yield live, root  # type: ignore[misc]


@pytest.fixture(scope="module")
def untouched(live: tuple[Live, Path]) -> tuple[World, int]:
    """The world in which nobody died, and how many moments to die at it has."""
    once, root = live
    (root / "untouched").mkdir()
    ended = once("untouched", 0)
    assert ended.code == 0
    return world(root / "untouched"), ended.moments


def told(events: list[Event]) -> list[tuple[object, ...]]:
    """What happened, but for questions that nobody had recorded an answer to: they come again."""
    return [tuple(each[3:]) for each in events if each.type not in ("pause", "resume")]


def in_doubt(folder: Path) -> bool:
    """Whether somebody died between the start of a call and its end."""
    try:
        session = Session.open("s1", folder / "home")
    except FileNotFoundError:
        return False
    return bool(session.runs and session.run().in_doubt)


def unknown(run: Run) -> list[str]:
    return [f"{each['tool']}" for each in run.history.messages if each.get("outcome") == "unknown"]


def judge(found: World, whole: World) -> None:
    """Each effect once, or at most once and reported unknown."""
    run, events, effects = found
    check(run, events)
    assert run.status is Status.COMPLETED
    assert run.output == "done"
    assert set(effects.values()) <= {1}, "nothing happens twice"
    doubted = unknown(run)
    missing = [each for each in EFFECTS if each not in effects]
    assert all(each.split()[0] in doubted for each in missing), "what is missing is reported"
    assert all(tool in ("mail", "deploy") for tool in doubted), "what may be repeated is"
    assert len(doubted) <= 2
    ids = [(each.run_id, each.sequence) for each in events]
    assert ids == [(run.id, number) for number in range(1, len(events) + 1)]


def test_nobody_dies_and_each_effect_happens_once(untouched: tuple[World, int]) -> None:
    whole, moments = untouched
    judge(whole, whole)
    assert sorted(whole.effects) == sorted(EFFECTS)
    assert moments > 100


def test_killed_at_any_moment_it_finishes_and_does_nothing_twice(
    live: tuple[Live, Path], untouched: tuple[World, int]
) -> None:
    """A24, C06, C35, report S10: before and after every write and every effect"""
    (once, root), (whole, moments) = live, untouched
    reported = 0
    for moment in range(1, moments + 1):
        folder = root / f"at-{moment}"
        folder.mkdir()
        assert once(folder.name, moment).code == KILLED
        was_in_doubt = in_doubt(folder)
        assert once(folder.name, 0).code == 0, f"it doesn't go on after moment {moment}"
        found = world(folder)
        judge(found, whole)
        reported += bool(unknown(found.run))
        if not was_in_doubt:
            assert told(found.events) == told(whole.events), "as if nobody had died"
    assert reported > 5, "some moments lie between an effect and its record"


def test_killed_again_while_it_recovers_it_still_does_nothing_twice(
    live: tuple[Live, Path], untouched: tuple[World, int]
) -> None:
    (once, root), (whole, moments) = live, untouched
    for moment in range(3, moments, 23):
        for second in range(1, 60, 17):
            folder = root / f"at-{moment}-{second}"
            folder.mkdir()
            once(folder.name, moment)
            once(folder.name, second)
            assert once(folder.name, 0).code == 0
            judge(world(folder), whole)
