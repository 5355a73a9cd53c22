"""What a run's own record says of its calls: which ended well, and what was changed after them.

Nothing here asks the model. A call may have changed something unless its tool says that it only
reads, or the record says that it never began.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mini_harness.events import EventType
from mini_harness.frozen import FrozenDict
from mini_harness.protocol import Outcome
from mini_harness.run import Run
from mini_harness.tools.call import Call, InvalidArguments
from mini_harness.tools.registry import ToolRegistry

Places = tuple[Path, ...] | None
"""Files and folders, links followed. None is everything."""

_NEVER_BEGAN = frozenset(
    (Outcome.UNKNOWN_TOOL, Outcome.INVALID_ARGUMENTS, Outcome.DENIED, Outcome.NOT_RUN)
)
_NOTHING: Places = ()
_UNSAID = object()


@dataclass(frozen=True)
class Receipt:
    """One call that has its observation. ``place`` counts the calls of the run, from 0."""

    place: int
    call_id: str
    tool: str
    outcome: Outcome
    output: str
    """As it was recorded: without secrets, and cut where a layer cut it."""
    metadata: Mapping[str, Any]
    changes: Places
    """What it may have changed. Nothing, for a call that only reads."""
    reads_only: bool
    commands: tuple[str, ...] | None
    """The shell line that it ran, if it ran one; several if nobody can tell which of them. None if
    nobody can tell whether it ran one."""

    @property
    def may_go_on(self) -> bool:
        """Whether it ran out of time, can't be ended, and may still change something."""
        return self.metadata.get("abandoned") is True and self.changes != _NOTHING

    def touches(self, places: Places) -> bool:
        """Whether it may have changed one of these. A folder contains its files."""
        return self.changes != _NOTHING and _meet(self.changes, places)


@dataclass
class Receipts:
    """All calls of one run, in the order in which they were made.

    ``checks`` names the tools that only check: their calls change nothing.
    """

    run: Run
    checks: Collection[str] = ()
    all: dict[str, Receipt] = field(default_factory=dict)

    def __post_init__(self) -> None:
        proposed: dict[str, Mapping[str, Any]] = {}
        harness, edited = self.run.driver, _edited(self.run)
        begun_before = {
            note["began"]
            for note in self.run.notes.get(EventType.VERIFICATION, ())
            if "began" in note
        }
        for message in self.run.history.messages:
            proposed |= {wire["call_id"]: wire for wire in message.get("calls", ())}
            if message["role"] == "tool":
                call_id, place = message["call_id"], len(self.all)
                ran = [proposed[call_id]["arguments"], *edited.get(call_id, ())]
                about = _About(harness.tools, harness.cwd, message["tool"], call_id, ran)
                self.all[call_id] = self._receipt(place, message, about, call_id in begun_before)

    def _receipt(
        self, place: int, message: Mapping[str, Any], about: _About, began: bool
    ) -> Receipt:
        outcome = Outcome(message.get("outcome", Outcome.OK))
        idle = outcome in _NEVER_BEGAN and not began
        changes = _NOTHING if idle or message["tool"] in self.checks else about.changes()
        return Receipt(
            place,
            message["call_id"],
            message["tool"],
            outcome,
            message["tool_result"],
            message.get("metadata", FrozenDict()),
            changes,
            about.reads_only,
            about.commands(),
        )

    def changed_since(self, receipt: Receipt, places: Places) -> Receipt | None:
        """The last call after this one that may have changed one of these places, or one before it
        that may still be changing them."""
        for other in reversed(self.all.values()):
            is_later = other.place > receipt.place
            if (is_later or other.may_go_on) and other.touches(places):
                return other
        return None


def resolved(cwd: Path, paths: Iterable[str]) -> Places:
    """Where these paths lead, as seen from a folder. Everything, if one can't be a path."""
    try:
        return tuple(Path(os.path.realpath(cwd / path)) for path in paths)
    except (OSError, TypeError, ValueError):
        return None


def _meet(some: Places, others: Places) -> bool:
    if some is None or others is None:
        return True
    return any(a.is_relative_to(b) or b.is_relative_to(a) for a in some for b in others)


def _edited(run: Run) -> dict[str, list[Mapping[str, Any]]]:
    """The arguments that people gave to calls in the place of the proposed ones."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for note in run.notes.get(EventType.APPROVAL, ()):
        if note.get("arguments") is not None:
            found.setdefault(note["call_id"], []).append(note["arguments"])
    return found


class _About:
    """What a tool says of a call. Whatever it can't say, or isn't there to say, is the worst."""

    def __init__(
        self, tools: ToolRegistry, cwd: Path, name: str, call_id: str, ran: Iterable[Any]
    ) -> None:
        self.cwd, tool = cwd, tools.get(name)
        self.calls: list[Call] | None = []
        """The call with each of the arguments that it may have had. None if it can't be read."""
        try:
            self.calls = None if tool is None else [Call(tool, call_id, each) for each in ran]
        except InvalidArguments:
            self.calls = None
        self.reads_only = self.calls is not None and all(each.read_only for each in self.calls)

    def changes(self) -> Places:
        """No path is no answer: then it may have changed anything, as any shell line may."""
        if self.reads_only:
            return _NOTHING
        found: list[Path] = []
        for call in self.calls or ():
            named = self._said(call, "paths")
            is_list = isinstance(named, Sequence) and not isinstance(named, str)
            places = resolved(self.cwd, named) if is_list and named else None
            if places is None or self._said(call, "command") is not None:
                return None
            found += places
        return tuple(found) or None

    def commands(self) -> tuple[str, ...] | None:
        if self.calls is None:
            return None
        said = [self._said(call, "command") for call in self.calls]
        lines = [each for each in said if each is not None]
        return tuple(lines) if all(isinstance(each, str) for each in lines) else None

    def _said(self, call: Call, what: str) -> Any:
        try:
            return getattr(call.tool, what)(call.parsed)
        except Exception:  # noqa: BLE001 - a tool that can't tell hasn't said no
            return _UNSAID
