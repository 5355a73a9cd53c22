"""The conversation, in which every call has exactly one observation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, MutableSequence, Sequence
from typing import overload

from mini_harness.frozen import canonical
from mini_harness.protocol import Message, ToolCall


class HistoryError(RuntimeError):
    """A writer tried to break the pairing of calls and observations."""


class Messages(Sequence[Message]):
    """A read-only window on the messages of a history. It costs nothing to hand out."""

    __slots__ = ("_items",)

    def __init__(self, items: Sequence[Message]) -> None:
        self._items = items

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._items)


def _mark_twins(calls: Sequence[ToolCall], given: Sequence[str]) -> None:
    seen: dict[tuple[str, str, str], str] = {}
    for call, call_id in zip(calls, given, strict=True):
        # As text: in JSON, unlike in Python, 1 isn't true.
        key = (call_id, call.name, canonical(call.arguments))
        if call_id.strip() and key in seen:
            call.defect = f"It is the same call as {seen[key]}, sent twice."
        seen.setdefault(key, call.call_id)


class History:
    """The conversation: append-only, and every call has exactly one observation (SEEDS A17)."""

    def __init__(self) -> None:
        self._items: MutableSequence[Message] = []
        self._used: set[str] = set()
        self._turn: dict[str, ToolCall] = {}
        self._first = 0
        self.open: dict[str, ToolCall] = {}
        """The calls of this turn that wait for their observation, in call order, by id."""
        self.messages = Messages(self._items)

    def admit(self, calls: Sequence[ToolCall], new_id: Callable[[str], str]) -> None:
        """Give every call of a turn an id that this history never saw, the same way each time.

        A missing or blank id is made by ``new_id(tool_name)``; a used one gets a suffix. The
        exact twin of a call in the same turn is one proposal sent twice: it is marked, so that it
        doesn't run.
        """
        if len(calls) == 1:
            self._name(calls[0], new_id, ())
            return
        given = [call.call_id for call in calls]
        taken: set[str] = set()
        for call in calls:
            taken.add(self._name(call, new_id, taken))
        _mark_twins(calls, given)

    def _name(self, call: ToolCall, new_id: Callable[[str], str], taken: Collection[str]) -> str:
        wanted = call.call_id if call.call_id.strip() else new_id(call.name)
        candidate, number = wanted, 1
        while candidate in self._used or candidate in taken:
            number += 1
            candidate = f"{wanted}-{number}"
        call.call_id = candidate
        return candidate

    def add(self, message: Message) -> None:
        """What the user says, or the model's answer, whether it is accepted or sent back."""
        self._end_turn()
        self._items.append(message)

    def add_calls(self, calls: Sequence[ToolCall], message: Message) -> None:
        """A turn that calls tools: its message, and the calls that now wait."""
        if self.open:
            self._end_turn()
        for call in calls:
            call_id = call.call_id
            if not call_id or call_id in self._used:
                raise HistoryError(f"Call id {call_id!r} is empty or was used before.")
            self._used.add(call_id)
            self.open[call_id] = call
        self._turn = dict(self.open)
        self._items.append(message)
        self._first = len(self._items)

    def add_observation(self, message: Message) -> None:
        """Answer a call of this turn, in the place that call order gives it.

        A second answer in the turn takes the first one's place.
        """
        call_id = message["call_id"]
        place = self._place(call_id)
        if self.open.pop(call_id, None) is None:
            self._items[place] = message
        else:
            self._items.insert(place, message)

    def reopen(self, call_id: str) -> None:
        """A call of this turn is tried again: what was observed of it doesn't count any more."""
        place = self._place(call_id)
        if call_id not in self.open:
            del self._items[place]
            waiting = {*self.open, call_id}
            self.open = {k: call for k, call in self._turn.items() if k in waiting}

    def _place(self, call_id: str) -> int:
        place = self._first
        for other in self._turn:
            if other == call_id:
                return place
            place += other not in self.open
        raise HistoryError(f"Call {call_id!r} isn't one of this turn.")

    def _end_turn(self) -> None:
        if self.open:
            raise HistoryError(f"Calls without an observation: {', '.join(self.open)}.")
        self._turn = {}
