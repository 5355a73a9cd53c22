"""What a run on a journal must do: killed at any moment, it goes on and does nothing twice."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mini_harness.course.conformance import Check, Subject, Wrong
from mini_harness.course.conformance.stage import GOAL, call, raised, wrong
from mini_harness.course.trouble import unknown_name
from mini_harness.frozen import shown
from mini_harness.tools.base import Tool

TURNS = [call("look"), call("page"), call("look"), call("page")]
ANSWER = "All is quiet."
TORN = (
    "Killed while it writes, a process leaves a torn line. Use your load and append: they know it."
)
MOST = 40
"""Moments after which a run that never ends is given up."""


class Killed(BaseException):
    """The process ends here. No ``except Exception`` hides it."""


class World:
    """A model and two tools that are killed at one of their moments, and what really happened."""

    def __init__(self, did: Sequence[str] = (), told: Sequence[str] = ()) -> None:
        self.did, self.told = list(did), list(told)
        self.seen: list[tuple[int, list[str], list[str]]] = []
        """At each moment, how many bytes the journal had, what had been done, and what the model
        had been told."""
        self._moment = self._dies_at = 0
        self._path = Path()

    def live(self, subject: Subject, path: Path, dies_at: int = 0) -> Any:
        """One process. ``dies_at`` 0: it lives."""
        self._moment, self._dies_at, self._path = 0, dies_at, path
        return subject.pursue_on(path, self, self.tools(), GOAL, {"look"})

    def tick(self) -> None:
        self._moment += 1
        size = self._path.stat().st_size if self._path.is_file() else 0
        self.seen.append((size, list(self.did), self.told))
        if self._moment == self._dies_at or self._moment > MOST:
            raise Killed

    @property
    def moments(self) -> int:
        return self._moment

    def decide(self, history: Sequence[Mapping[str, Any]], tools: object) -> Any:
        told = [str(each.get("tool_result")) for each in history if each.get("role") == "tool"]
        self.told = told
        self.tick()
        if len(told) < len(TURNS):
            return dict(TURNS[len(told)])
        return {"type": "final", "output": ANSWER}

    def tools(self) -> dict[str, Tool]:
        return {name: Tool(name, "For a check.", self._does(name)) for name in ("look", "page")}

    def _does(self, name: str) -> Callable[[], str]:
        def handler() -> str:
            self.tick()
            self.did.append(name)
            self.tick()
            return f"{name}: done"

        return handler


def lives(subject: Subject, dies_at: int) -> tuple[World, Any, int]:
    """A world that is killed once and then lives on; what came out, and how many moments it had."""
    world, called = World(), f"pursue_on(…), killed at moment {dies_at} and called again"
    with tempfile.TemporaryDirectory() as folder:
        path, moments = Path(folder) / "night.jsonl", 0
        if dies_at:
            with suppress(Killed), finding(called):
                world.live(subject, path, dies_at)
            moments = world.moments
        output = _lived(world, subject, path, called)
        return world, output, moments or world.moments


def torn_lives(subject: Subject) -> Iterator[tuple[World, Any, str]]:
    """The same for a world that was killed while it wrote, or between two lines that it wrote.

    What was in the file then, and what had been done, is known from a run that nobody killed.
    """
    whole = World()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "night.jsonl"
        _lived(whole, subject, path, "pursue_on(…), where nobody dies")
        # A run that keeps something elsewhere, too, can't be cut at one place.
        data = path.read_bytes() if list(Path(folder).iterdir()) == [path] else b""
        for place in _places(data, {size for size, *_ in whole.seen}):
            path.write_bytes(data[:place])
            before = [what for size, *what in whole.seen if size < place]
            world = World(*(before[-1] if before else ()))
            called = f"pursue_on(…), killed with {place} bytes of its journal written, called again"
            output = _lived(world, subject, path, called, TORN)
            if output == ANSWER:
                # What was glued to a torn line is missed by the process after the next.
                called += ", and once more"
                output = _lived(world, subject, path, called, TORN)
            yield world, output, called


def _places(data: bytes, known: set[int]) -> Iterator[int]:
    """Within each line and after it, but for the places at which a moment lies anyway."""
    start = 0
    for line in data.split(b"\n")[:-1]:
        end = start + len(line) + 1
        yield from (place for place in ((start + end) // 2, end - 1, end) if place not in known)
        start = end


def _lived(world: World, subject: Subject, path: Path, called: str, likely: str = "") -> Any:
    """What comes out when this world lives to the end."""
    try:
        with finding(called, likely):
            return world.live(subject, path)
    except Killed:
        likely = "The run doesn't end. Check v0-turns first."
        wrong(called, "the model was asked again and again", "the run ends", likely)


@contextmanager
def finding(called: str, likely: str = "") -> Iterator[None]:
    """What the subject raises becomes a finding, but for what says something by itself."""
    try:
        yield
    except (NotImplementedError, Wrong):
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it becomes the finding
        wrong(called, raised(error), "the run goes on", unknown_name(error) or likely)


def _alone(subject: Subject) -> None:
    world, output, _ = lives(subject, 0)
    called = "pursue_on(…), where nobody dies"
    if output != ANSWER:
        likely = "Return the output of the final answer."
        wrong(called, shown(output), repr(ANSWER), likely)
    if world.did != ["look", "page", "look", "page"]:
        likely = "Carry out each call once, in order, and tell the model what came of it."
        wrong(called, f"{world.did} ran", "look, page, look, page", likely)


def _matrix(subject: Subject, look: Callable[[World, str], None]) -> None:
    for world, output, called in _all_lives(subject):
        if output != ANSWER:
            likely = "Called again on the same journal, it must go on to the same answer."
            wrong(called, shown(output), repr(ANSWER), likely)
        look(world, called)


def _all_lives(subject: Subject) -> Iterator[tuple[World, Any, str]]:
    _, _, moments = lives(subject, 0)
    for dies_at in range(1, moments + 1):
        world, output, _ = lives(subject, dies_at)
        yield world, output, f"pursue_on(…), killed at moment {dies_at} of {moments}, called again"
    yield from torn_lives(subject)


def _never_twice(subject: Subject) -> None:
    def look(world: World, called: str) -> None:
        if world.did.count("page") > 2:
            likely = "page ran again, though it may have had its effect. Its start must be in the "
            likely += "journal before it runs; then what has a start and no end isn't repeated."
            wrong(called, f"{world.did} ran", "page twice, as the model asked", likely)

    _matrix(subject, look)


def _told(subject: Subject) -> None:
    def look(world: World, called: str) -> None:
        missing = 2 - world.did.count("page")
        unknown = sum("unknown" in told.lower() for told in world.told)
        if missing > unknown:
            likely = "A page wasn't sent, and the model was told that it was, or nothing. Say that "
            likely += "its outcome is unknown."
            wrong(called, f"the model was told {world.told}", "that it is unknown", likely)
        if unknown > 1:
            likely = "Only what was started and has no end is unknown."
            wrong(called, f"the model was told {world.told}", "one of them at most", likely)

    _matrix(subject, look)


def _again(subject: Subject) -> None:
    def look(world: World, called: str) -> None:
        seen = [told for told in world.told if told == "look: done"]
        if len(seen) != 2:
            likely = "look may be repeated: run it again, and tell the model what it gives."
            wrong(called, f"the model was told {world.told}", "'look: done' twice", likely)

    _matrix(subject, look)


REVIVED_CHECKS = (
    Check("v3-survive", "Where nobody dies, it is a run like any other.", _alone),
    Check("v3-survive", "Killed at any moment, it sends no page twice.", _never_twice),
    Check("v3-survive", "What nobody knows, the model is told.", _told),
    Check("v3-survive", "What may be repeated is repeated.", _again),
)
