"""Killed at every moment: what it was doing is finished, and nothing happens twice."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mini_harness.events import Event
from mini_harness.run import Run, Status
from mini_harness.session import Session
from tests import crashes
from tests.crashes import KILLED, KINDS, Live, World, lives, world
from tests.loops import check, tool_messages

EFFECTS = ("order a", "mail ann", "order b", "mail bob", "deploy b-1", "ring dan", "mail cem")
PLAIN = ("mail", "deploy", "ring")
ONCE_MORE = {
    "look": {"start start result"},
    "order": {"start start result"},
    # If the order had arrived, the shop says at once that it knows it.
    "order_late": {
        "start start result",
        "start start error retry start result",
        "start error retry start start result",
    },
}
"""How a call goes that was in doubt, by its events, if it may be repeated."""
UNKNOWN = "start error"
LOOKED = {
    "start verdict approval error",
    "start verdict approval retry start result",
    "start verdict approval retry start error",
}
"""A person looks, and says that it was done, or that it should be."""


class Place(NamedTuple):
    """Where lives are lived, and the world in which nobody died, for each kind of life."""

    live: Live
    root: Path
    whole: dict[str, World]
    moments: dict[str, int]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("lives")
    with lives(root) as live:
        ended = {kind: live(f"whole-{kind}", 0, kind) for kind in KINDS}
        assert {each.code for each in ended.values()} == {0}
        whole = {kind: world(root / f"whole-{kind}") for kind in KINDS}
        yield Place(live, root, whole, {kind: each.moments for kind, each in ended.items()})


def in_doubt(folder: Path) -> str:
    """The call between whose start and end somebody died, if there is one."""
    try:
        session = Session.open("s1", folder / "home")
    except FileNotFoundError:
        return ""
    doubted = [*session.run().in_doubt] if session.runs else []
    assert len(doubted) <= 1, "one call after the other"
    return "".join(doubted)


def unknown(run: Run) -> list[str]:
    return [each["tool"] for each in tool_messages(run) if each.get("outcome") == "unknown"]


def judge(found: World, kind: str) -> None:
    """Each effect once, or at most once and reported unknown; and the record is whole."""
    run, events, effects = found
    check(run, events)
    assert (run.status, run.output) == (Status.COMPLETED, "done")
    assert set(effects) <= set(EFFECTS)
    assert set(effects.values()) <= {1}, "nothing happens twice"
    reported = unknown(run)
    assert set(reported) <= set(PLAIN), "what may be repeated is"
    assert "ring" in reported, "nobody takes it for undone"
    missing = sorted(each.split()[0] for each in EFFECTS if each not in effects)
    assert kind == "told" or not missing, "somebody looked"
    for tool in PLAIN:
        assert missing.count(tool) <= reported.count(tool), "what is missing is reported"
    assert all(each in PLAIN for each in missing)


def story(events: list[Event], without: str, timed: bool) -> list[tuple[object, ...]]:
    """What happened, and when if it is ``timed``; but for one call, and for questions that nobody
    had recorded an answer to: they come again."""
    kept = [e for e in events if e.type not in ("pause", "resume")]
    kept = [e for e in kept if not without or e.data.get("call_id") != without]
    return [(e.type, e.data, *((e.offset, e.time) if timed else ())) for e in kept]


def steps(events: list[Event], call_id: str) -> str:
    """How one call went, by its events."""
    own = [e.type.removeprefix("tool_") for e in events if e.data.get("call_id") == call_id]
    return " ".join(each for each in own if each != "pause")


def compare(found: World, whole: World, doubted: str, kind: str) -> None:
    """As if nobody had died; but the call that was in doubt was started once more, or is unknown
    if that might have repeated its effect."""
    # It may be that the shop needn't be asked a second time, so that no time passes.
    timed = "order_late" not in doubted
    assert story(found.events, doubted, timed) == story(whole.events, doubted, timed)
    if not doubted:
        return
    tool = doubted.removeprefix("call_").rsplit("_", 2)[0]
    went = steps(found.events, doubted).removeprefix("verdict approval ")
    expected = ONCE_MORE.get(tool) or (LOOKED if kind == "asked" else {UNKNOWN})
    assert went in expected, (doubted, went)
    ended, undisturbed = observation(found, doubted), observation(whole, doubted)
    assert ended["outcome"] == "unknown" if went.endswith("error") else ended == undisturbed


def observation(found: World, call_id: str) -> dict[str, Any]:
    return next(each for each in tool_messages(found.run) if each["call_id"] == call_id)


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_dies_and_each_effect_happens_once(place: Place, kind: str) -> None:
    found = place.whole[kind]
    judge(found, kind)
    assert sorted(found.effects) == sorted(EFFECTS)
    assert unknown(found.run) == ["ring"], "it had its effect, and its answer got lost"
    assert place.moments[kind] > 80


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_moment_it_finishes_and_does_nothing_twice(place: Place, kind: str) -> None:
    """A24, C06, C35, report S10: before and after every write and every effect"""
    live, root, whole, moments = place
    met = set()
    for moment in range(1, moments[kind] + 1):
        folder = root / f"{kind}-{moment}"
        assert live(folder.name, moment, kind).code == KILLED
        met.add(doubted := in_doubt(folder))
        assert live(folder.name, 0, kind).code == 0, f"it doesn't go on after moment {moment}"
        found = world(folder)
        judge(found, kind)
        compare(found, whole[kind], doubted, kind)
    calls = {each.data["call_id"] for each in whole[kind].events if each.type == "tool_start"}
    assert met == calls | {""}, "somebody died within each call"


@pytest.mark.parametrize("kind", KINDS)
def test_killed_again_while_it_recovers_it_still_does_nothing_twice(
    place: Place, kind: str
) -> None:
    live, root, _, moments = place
    for moment in range(3, moments[kind], 17):
        for second in range(2, 40, 13):
            folder = root / f"{kind}-{moment}-{second}"
            live(folder.name, moment, kind)
            live(folder.name, second, kind)
            assert live(folder.name, 0, kind).code == 0
            judge(world(folder), kind)


def test_torn_at_any_byte_of_its_last_record_it_is_the_same_file_again(place: Place) -> None:
    """report S01"""
    shutil.copytree(place.root / "whole-told", folder := place.root / "torn")
    (path,) = folder.glob("home/projects/*/s1.jsonl")
    whole, effects = path.read_bytes(), (folder / "effects").read_bytes()
    for cut in range(whole.rindex(b"\n", 0, -1) + 1, len(whole)):
        path.write_bytes(whole[:cut])
        crashes.told(folder)
        assert path.read_bytes() == whole
        assert (folder / "effects").read_bytes() == effects
