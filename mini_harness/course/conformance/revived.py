"""What a run on a journal must do: killed at any moment, it goes on and does nothing twice."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mini_harness.course.conformance import Check, Subject, Wrong
from mini_harness.course.conformance.stage import GOAL, call, raised, wrong
from mini_harness.course.trouble import unknown_name
from mini_harness.frozen import shown
from mini_harness.tools.base import Tool

TURNS = [call("look"), call("page"), call("look"), call("page")]
ANSWER = "All is quiet."
MOST = 40
"""Moments after which a run that never ends is given up."""


class Killed(BaseException):
    """The process ends here. No ``except Exception`` hides it."""


class World:
    """A model and two tools that are killed at one of their moments, and what really happened."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.told: list[str] = []
        self._moment = self._dies_at = 0

    def live(self, subject: Subject, path: Path, dies_at: int = 0) -> Any:
        """One process. ``dies_at`` 0: it lives."""
        self._moment, self._dies_at = 0, dies_at
        return subject.pursue_on(path, self, self.tools(), GOAL, {"look"})

    def tick(self) -> None:
        self._moment += 1
        if self._moment == self._dies_at or self._moment > MOST:
            raise Killed

    @property
    def moments(self) -> int:
        return self._moment

    def decide(self, history: Sequence[Mapping[str, Any]], tools: object) -> Any:
        self.tick()
        told = [str(each.get("tool_result")) for each in history if each.get("role") == "tool"]
        self.told = told
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
        try:
            if dies_at:
                moments = _killed(world, subject, path, dies_at)
            output = world.live(subject, path)
        except Killed:
            likely = "The run doesn't end. Check v0-turns first."
            wrong(called, "the model was asked again and again", "the run ends", likely)
        except (NotImplementedError, Wrong):
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it becomes the finding
            wrong(called, raised(error), "the run goes on", unknown_name(error) or "")
        return world, output, moments or world.moments


def _killed(world: World, subject: Subject, path: Path, dies_at: int) -> int:
    """A first process, which dies; after how many moments."""
    with suppress(Killed):
        world.live(subject, path, dies_at)
    return world.moments


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
    _, _, moments = lives(subject, 0)
    for dies_at in range(1, moments + 1):
        world, output, _ = lives(subject, dies_at)
        called = f"pursue_on(…), killed at moment {dies_at} of {moments} and called again"
        if output != ANSWER:
            likely = "Called again on the same journal, it must go on to the same answer."
            wrong(called, shown(output), repr(ANSWER), likely)
        look(world, called)


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
