"""Failures, retries and crashes in any order, with the record on the disk: it loses nothing."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import event as noted
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_harness.events import Event
from mini_harness.run import Run, Status
from mini_harness.session import Session
from tests.loops import check, state
from tests.sessions import new
from tests.test_retry_property import (
    ATTEMPTS,
    PLANS,
    Crash,
    World,
    check_attempts,
    check_effects,
)

FEW = 6
"""After how many lines the next turn begins with a checkpoint."""
Plan = list[tuple[str, list[str]]]

CRASHES = st.lists(
    st.tuples(st.integers(2, 16), st.sampled_from(["after", "before", "torn"]), st.integers(1, 99)),
    min_size=1,
    max_size=4,
).map(sorted)
"""At which event, when, and of how many hundredths of a record something is left."""


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """Checkpoints come often. Nobody waits for the disk: what is written outlives a process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mini_harness.checkpoint.EVERY", FEW)
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


class Kept(World):
    """A world whose record is a session. ``events`` has what was acknowledged, to compare."""

    def __init__(self, root: Path, plan: Plan, model_fails: int = 0, crashes: Any = ()) -> None:
        super().__init__(plan, model_fails)
        self.root, self.ends = root, list(crashes)
        self.session = new(root)
        self.was_in_doubt = False

    def keep(self, event: Event) -> None:
        _, when, part = self.ends[0] if self.ends else (0, "", 0)
        dies = bool(self.ends) and self.ends[0][0] <= event.sequence
        if dies:
            self.ends.pop(0)
        if dies and when != "after":
            if when == "torn":
                line = f"{event.to_json()}\n".encode()
                with self.session.path.open("ab") as file:
                    file.write(line[: len(line) * part // 100])
            raise Crash
        self.session(event)
        self.events.append(event)
        if dies:
            raise Crash

    def live(self) -> Run:
        while True:
            try:
                return self.begin_or_go_on()
            except Crash:
                self.session.close()
                noted("crashed")
                self.session = Session.open("s1", self.root)
                self.was_in_doubt |= bool(self.session.run().in_doubt)

    def begin_or_go_on(self) -> Run:
        harness = self.harness(self.session.clock())
        if not self.events:
            return asyncio.run(harness.run("go"))
        run = self.session.run()
        assert state(run) == state(Run.fold(self.events)), "from a checkpoint, as from all events"
        return asyncio.run(harness.resume(run))


def lived(plan: Plan, model_fails: int = 0, crashes: Sequence[Any] = ()) -> tuple[Kept, Run]:
    with TemporaryDirectory() as root:
        world = Kept(Path(root), plan, model_fails, crashes)
        run = world.live()
        assert list(Session.open("s1", root).events()) == world.events, "what was acknowledged"
        assert run.status is Status.COMPLETED
        check(run, world.events)
    return world, run


@settings(max_examples=60)
@given(PLANS, st.integers(0, ATTEMPTS - 1), CRASHES)
def test_however_attempts_end_and_the_process_dies_each_effect_happens_as_declared(
    plan: Plan, model_fails: int, crashes: list[Any]
) -> None:
    """A20, A22, A24, reports R01, R02, S10"""
    world, run = lived(plan, model_fails, crashes)
    check_effects(world, run)
    check_attempts(world.events, len(crashes) - len(world.ends))


def story(events: list[Event]) -> list[tuple[Any, ...]]:
    return [tuple(event[2:]) for event in events if "replaces" not in event.data]


@settings(max_examples=40)
@given(PLANS, CRASHES)
def test_where_no_call_was_in_doubt_it_is_the_run_of_which_nobody_died(
    plan: Plan, crashes: list[Any]
) -> None:
    """issue 6: event for event, times included.

    But for what a layer makes of an observation after its end was recorded: who died in between
    has the observation as the tool gave it.
    """
    world, _ = lived(plan, 0, crashes)
    if world.was_in_doubt:
        noted("in doubt")
        return
    undisturbed, _ = lived(plan)
    assert story(world.events) == story(undisturbed.events)
    assert world.effects == undisturbed.effects
