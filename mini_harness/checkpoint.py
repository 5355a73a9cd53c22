"""A checkpoint: what a run was at one moment, so that only what came later has to be read.

It is derived from the transcript, which alone is the truth: a checkpoint that doesn't fit is left
out, and everything is read instead. A run that was restored from one is exact. What lies before is
read only when somebody asks for it, and in blocks: between two checkpoints lies one block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, MutableSequence, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, overload

from mini_harness.events import Event, EventType
from mini_harness.frozen import FrozenDict, canonical, freeze
from mini_harness.history import History, Messages
from mini_harness.protocol import Message, Usage
from mini_harness.run import NAMED_BY, Run, Status

_PLAIN = ("goal", "step", "sequence", "offset", "time", "born", "calls", "begun", "rejections")
"""What of a run is a number or a text."""
_TURNS = (EventType.MODEL_DECISION, EventType.MESSAGE)
"""With one of these a new turn begins."""

EVERY = 256
"""After how many lines the next turn begins with a checkpoint."""


class Block(NamedTuple):
    """A moment between two turns of a run. ``messages`` and ``sequence`` count what came before;
    the later events are read from the byte ``start`` of the transcript on, in line ``line``."""

    messages: int
    sequence: int
    start: int
    line: int


@dataclass
class Place:
    """Where a run begins in the transcript, its last event so far, and in which call it lies."""

    start: int
    line: int
    sequence: int
    within: str | None


class Store(NamedTuple):
    """How what lies in the transcript is reached."""

    read: Callable[[Block, Block], Iterable[Event]]
    """The events of the run between the two."""
    holds: Callable[[bytes, int, int], bool]
    """Whether these bytes stand between two places in the file."""


def state_of(run: Run) -> FrozenDict:
    """All that has to be known of a run between two of its turns, but for what lies before."""
    state: dict[str, Any] = {name: getattr(run, name) for name in _PLAIN}
    state |= {"id": run.id, "status": run.status.value, "output": run.output}
    state |= {"stop": run.stop, "pause": run.pause, "usage": asdict(run.usage)}
    state["first"] = run.history.messages[0] if len(run.history.messages) else None
    # The last note of each type that has a name: what a layer asks for in every step.
    latest = {kind: note for (kind, _), note in run.named.items()}
    frozen: FrozenDict = freeze({**state, "latest": latest}, depth=-16)
    return frozen


class Known:
    """What is known of a transcript up to one place: which runs it has, and how the last one that
    doesn't lie inside a call of another stands. That one has the checkpoints."""

    def __init__(self, end: int) -> None:
        self.end, self.lines, self.time = end, 1, 0.0
        self.runs: dict[str, Place] = {}
        self.main: Run | None = None
        self.blocks: list[Block] = []
        self.state: FrozenDict | None = None
        """How the main run stood at the last of the blocks, if that is a checkpoint."""
        self._later: list[Event] = []
        """Events of the main run that needn't be applied before the next checkpoint."""

    def objection(self, event: Event) -> str:
        """Why this event can't be the next one, or nothing."""
        known = self.runs.get(event.run_id)
        expected = 1 if known is None else known.sequence + 1
        if event.sequence == expected:
            return ""
        if event.sequence == 1:
            return f"there is a {event.run_id} already"
        return f"after {event.run_id}:{expected - 1} comes {event.event_id}"

    def take(self, event: Event, size: int) -> dict[str, Any] | None:
        """The next event, in a line of ``size`` bytes. A new checkpoint, if it begins with one."""
        place, checkpoint = self.runs.get(event.run_id), None
        if place is None:
            within = event.data.get("within")
            place = self.runs[event.run_id] = Place(self.end, self.lines + 1, 0, within)
            if within is None:
                self.main, self.state, self._later = Run(event.run_id), None, []
                self.blocks = [Block(0, 0, self.end, self.lines + 1)]
        main = self.main
        if main is not None and main.id == event.run_id:
            if self._is_due(main, event):
                checkpoint = self._checkpoint(main)
            self._later.append(event)
        place.sequence, self.time = event.sequence, event.time
        self.end, self.lines = self.end + size, self.lines + 1
        return checkpoint

    def begun(self, run_id: str, store: Store) -> tuple[Run, int, int]:
        """A run as it was at its last checkpoint, or before its first event; and at which byte and
        in which line its events begin that came later."""
        if self.main is not None and self.main.id == run_id and self.state is not None:
            here = self.blocks[-1]
            return StoredRun(self.state, self.blocks, store), here.start, here.line
        place = self.runs[run_id]
        return Run(run_id), place.start, place.line

    def settle(self) -> None:
        """Apply to the main run what has come. Raises whatever it raises for events that make no
        sense."""
        later, self._later = self._later, []
        for event in later:
            if self.main is not None:
                self.main.apply(event)

    def _is_due(self, main: Run, event: Event) -> bool:
        """Between two turns, when enough has been written since the last time."""
        if self.lines - self.blocks[-1].line < EVERY:
            return False
        self.settle()
        return event.type in _TURNS and not main.history.open and main.sequence > 0

    def _checkpoint(self, main: Run) -> dict[str, Any]:
        """What ``from_dict`` reads."""
        here = len(main.history.messages), main.sequence, self.end, self.lines + 1
        self.blocks.append(Block(*here))
        self.state = state_of(main)
        runs = {name: [*vars(place).values()] for name, place in self.runs.items()}
        return {"runs": runs, "time": self.time, "blocks": self.blocks, "state": self.state}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any], store: Callable[[str], Store]) -> Known:
        """Raises KeyError, TypeError or ValueError for what isn't one."""
        state = freeze(found["state"], depth=-16)
        blocks = [Block(*each) for each in found["blocks"]]
        known = cls(blocks[-1].start)
        known.lines, known.time = blocks[-1].line - 1, found["time"]
        known.runs = {name: Place(*each) for name, each in found["runs"].items()}
        known.main = StoredRun(state, blocks, store(state["id"]))
        known.blocks, known.state = blocks, state
        return known


class StoredRun(Run):
    """A run of which the earlier part is still in its transcript."""

    def __init__(self, state: Mapping[str, Any], blocks: Sequence[Block], store: Store) -> None:
        """The last of ``blocks`` is where the events begin that are applied to it then."""
        super().__init__(state["id"])
        past = _Past(self.id, blocks, store)
        self.history = _StoredHistory(past, state)
        self.named = _Named(past, state["latest"])
        self._past: _Past | None = past
        for name in _PLAIN:
            setattr(self, name, state[name])
        self.status, self.output = Status(state["status"]), state["output"]
        self.stop, self.pause = state["stop"], state["pause"]
        self.usage = Usage(**state["usage"])

    @property
    def notes(self) -> dict[EventType, list[FrozenDict]]:
        if self._past is not None:
            past, self._past = self._past, None
            for kind, notes in past.notes().items():
                self._notes[kind] = notes + self._notes[kind]
        return self._notes


class _Past:
    """What lies before a checkpoint: blocks of events, each read when it is needed first."""

    def __init__(self, run_id: str, blocks: Sequence[Block], store: Store) -> None:
        self.run_id, self.blocks, self.store = run_id, tuple(blocks), store
        self._read: dict[int, Run] = {}

    @property
    def length(self) -> int:
        """How many messages there are."""
        return self.blocks[-1].messages

    def message(self, index: int) -> Message:
        block = bisect_right(self.blocks, index, key=lambda each: each.messages) - 1
        return self._run(block).history.messages[index - self.blocks[block].messages]

    def notes(self) -> dict[EventType, list[FrozenDict]]:
        found: dict[EventType, list[FrozenDict]] = defaultdict(list)
        for block in range(len(self.blocks) - 1):
            for kind, notes in self._run(block).notes.items():
                found[kind] += notes
        return found

    def named(self, key: tuple[EventType, str]) -> FrozenDict | None:
        """The last note of this type and name."""
        for block in reversed(range(len(self.blocks) - 1)):
            if (note := self._run(block).named.get(key)) is not None:
                return note
        return None

    def knows(self, call_id: str) -> bool:
        """Whether a call had this id. It is looked for in the file's bytes, which takes less time
        than to read what they mean."""
        text = f'"call_id":{canonical(call_id)}'.encode()
        return self.store.holds(text, self.blocks[0].start, self.blocks[-1].start)

    def _run(self, block: int) -> Run:
        """What the events of one block alone make of a run."""
        if block not in self._read:
            run = self._read[block] = Run(self.run_id)
            first, after = self.blocks[block : block + 2]
            run.sequence = first.sequence
            for event in self.store.read(first, after):
                run.apply(event)
        return self._read[block]


class _Items(MutableSequence[Message]):
    """The messages of the past, and after them a list."""

    def __init__(self, past: _Past, first: Message) -> None:
        self._past, self._first = past, first
        self._length = past.length
        self._own: list[Message] = []

    def __len__(self) -> int:
        return self._length + len(self._own)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | MutableSequence[Message]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        if index >= self._length:
            return self._own[index - self._length]
        return self._first if index == 0 else self._past.message(index)

    def __setitem__(self, index: Any, message: Any) -> None:
        self._own[index - self._length] = message

    def __delitem__(self, index: Any) -> None:
        del self._own[index - self._length]

    def insert(self, index: int, message: Message) -> None:
        self._own.insert(index - self._length, message)


class _StoredHistory(History):
    """Only the turns after the checkpoint ever change."""

    def __init__(self, past: _Past, state: Mapping[str, Any]) -> None:
        super().__init__()
        self._items = _Items(past, state["first"])
        self.messages = Messages(self._items)
        self._used = _UsedIds(past, int(state["born"] * 1e9), state["calls"])


class _UsedIds(set[str]):
    """The ids of all calls. Those that the harness gave end in a number, so they needn't be
    looked for; one that a model gave is."""

    def __init__(self, past: _Past, born: int, calls: int) -> None:
        super().__init__()
        self._past, self._born, self._calls = past, f"_{born}", calls

    def __contains__(self, call_id: object) -> bool:
        if super().__contains__(call_id):
            return True
        head, _, number = str(call_id).rpartition("_")
        if head.startswith("call_") and head.endswith(self._born) and number.isdecimal():
            return int(number) <= self._calls
        return self._past.knows(str(call_id))


class _Named(dict[tuple[EventType, str], FrozenDict]):
    """Notes by their names, of which the earlier ones are looked up in the past."""

    def __init__(self, past: _Past, latest: Mapping[str, FrozenDict]) -> None:
        super().__init__()
        self._past = past
        for kind, note in latest.items():
            self.update({(EventType(kind), note[name]): note for name in NAMED_BY if name in note})

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None

    def __getitem__(self, key: tuple[EventType, str]) -> FrozenDict:
        note: FrozenDict | None = self.get(key)
        if note is None:
            raise KeyError(key)
        return note

    def get(self, key: Any, default: Any = None) -> Any:
        found = super().get(key)
        if found is None:
            found = self._past.named(key)
        return default if found is None else found
