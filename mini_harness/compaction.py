"""Long histories are shortened for the model, and for nobody else (SEEDS A25).

What a model is shown has to fit into its window, and is paid for in every turn. The record stays
whole. What is left out, and how, is an event: so a run that is resumed shows the model the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from mini_harness.events import EventType
from mini_harness.frozen import FrozenDict, canonical, freeze, shown
from mini_harness.layer import Decide, Failed, Layer, Proposal, View
from mini_harness.protocol import Final, Message, Usage, usage_of
from mini_harness.run import Run

SCOPE = "view"
"""By this name the last compaction of a run is found again."""

_AGAIN = 1.25
"""What brought nothing is tried again when the view has grown by this factor."""

_ASK = """\
Summarise the part of a conversation that is given below as JSON lines. It will stand in their
place. Keep: what was asked, decisions and their reasons, what was done and what came of it, names,
numbers and paths that may be needed, errors, and what is still open. Leave out what no longer
matters. Answer with the summary alone, as a final answer.

"""
_SAID = "Earlier messages were left out here. This is a summary of them:\n"


@dataclass(frozen=True)
class Cut:
    """How a history is shown. The first message is always there, and all from ``kept`` on.

    The messages before ``summed`` are replaced by ``summary`` and the last thing that the user
    said among them, which is the message ``asked``, unless that is the first. Of the messages
    between ``summed`` and ``kept`` the outputs of tools are left out. All are places in the
    history, the latter two between turns.
    """

    summed: int = 1
    kept: int = 1
    asked: int = 0
    summary: str = ""


class Strategy(Protocol):
    """A way to make a view shorter."""

    name: str

    async def shorten(
        self, run: Run, cut: Cut, kept: int, next: Decide
    ) -> tuple[Cut, Usage | None] | None:
        """How to show the history when everything before ``kept`` may be shortened, and what it
        cost to find that out. None if there is nothing to do."""


class DropOldOutputs:
    """Leaves out what tools had returned. The calls stay, each with a note that says how long its
    output was."""

    name = "drop_old_outputs"

    async def shorten(
        self, run: Run, cut: Cut, kept: int, next: Decide
    ) -> tuple[Cut, Usage | None] | None:
        return (replace(cut, kept=kept), None) if kept > cut.kept else None


class Summary:
    """Has the model itself summarise, through the layers inside: so a budget and retries count.

    ``ask`` is what it is told; an earlier summary and the messages follow, as JSON lines. No
    answer, or an empty one, is not used.
    """

    name = "summary"

    def __init__(self, ask: str = _ASK) -> None:
        self.ask = ask

    async def shorten(
        self, run: Run, cut: Cut, kept: int, next: Decide
    ) -> tuple[Cut, Usage | None] | None:
        if kept <= cut.summed:
            return None
        old = run.history.messages[cut.summed : kept]
        lines = [cut.summary] * bool(cut.summary) + [canonical(freeze(each)) for each in old]
        asked = freeze({"role": "user", "content": self.ask + "\n".join(lines)})
        try:
            answer = await next(run, View([asked], ()))
        except Failed:
            return None  # The turn itself will fail in the same way, and that is recorded.
        text = shown(answer.output, str).strip() if isinstance(answer, Final) else ""
        said = [n for n, each in enumerate(old, cut.summed) if _is_said(each)]
        cut_here = Cut(kept, kept, said[-1] if said else cut.asked, text)
        return (cut_here if text else cut), usage_of(answer)


class Compaction(Layer):
    """Shows the model a shorter history once it has more than ``limit`` bytes.

    A byte is one of the messages' JSON in UTF-8; about four of them are a token of English. Then
    everything is shortened but for the latest turns: as many as have ``limit`` / 2 bytes, and at
    least one. The strategies are tried in their order until the view fits. What doesn't make it
    shorter isn't used. If it doesn't fit even so, the view goes to the model as it is.

    What the user asked first and last is always shown, and no call without its result. Put it
    outside of the layers that limit and repeat.
    """

    def __init__(self, limit: int, strategies: Iterable[Strategy] | None = None) -> None:
        """Without ``strategies``: DropOldOutputs, then Summary. Raises TypeError and ValueError
        for a limit that isn't a positive integer."""
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise TypeError(f"The limit of a view must be an integer, but it is {limit!r}.")
        if limit < 1:
            raise ValueError(f"The limit of a view is {limit} bytes, but must be at least 1.")
        self.limit = limit
        given = (DropOldOutputs(), Summary()) if strategies is None else strategies
        self.strategies: tuple[Strategy, ...] = tuple(given)
        self._shown: WeakKeyDictionary[Run, _Shown] = WeakKeyDictionary()

    async def decide(self, run: Run, view: View, next: Decide) -> Proposal:
        now = self._shown.get(run)
        if now is None:
            now = self._shown[run] = _Shown(run, _recorded(run))
        now.measure()
        if now.size > max(self.limit, now.in_vain):
            now = self._shown[run] = await self._compacted(run, now, next)
        return await next(run, View(now.messages(), view.tools))

    async def _compacted(self, run: Run, now: _Shown, next: Decide) -> _Shown:
        kept = _place(run, now.cut.kept, self.limit // 2)
        for strategy in self.strategies:
            if now.size <= self.limit:
                break
            found = await strategy.shorten(run, now.cut, kept, next)
            if found is None:
                continue
            cut, usage = found
            other = _Shown(run, cut)
            other.measure()
            is_shorter = other.size < now.size
            _note(run, strategy.name, now, other if is_shorter else now, usage)
            if is_shorter:
                now = other
        if now.size > self.limit:
            now.in_vain = now.size * _AGAIN
        return now


class _Shown:
    """What is shown of one run, and how many bytes that has."""

    def __init__(self, run: Run, cut: Cut) -> None:
        self.cut = cut
        self._all = run.history.messages
        self._head = [self._all[0]]
        """What is shown in the place of what comes before ``cut.kept``."""
        if cut.summary:
            told = {"role": "user", "content": _SAID + cut.summary, "because": "compaction"}
            self._head.append(freeze(told))
            if cut.asked:
                self._head.append(self._all[cut.asked])
        self._head += map(_without_output, self._all[cut.summed : cut.kept])
        self.size = sum(map(_bytes, self._head))
        self._measured = cut.kept
        self.in_vain = 0.0
        """At this size nothing helped, so nothing is tried until there is more."""

    def measure(self) -> None:
        """Count what has come since the last time. No call waits now, so nothing moves any more."""
        self.size += sum(map(_bytes, self._all[self._measured :]))
        self._measured = len(self._all)

    def messages(self) -> Sequence[Message]:
        if self.cut == Cut():
            return self._all
        return [*self._head, *self._all[self.cut.kept :]]


def _recorded(run: Run) -> Cut:
    """What the last compaction of this run had come to, perhaps in another process."""
    note = run.named.get((EventType.COMPACTION, SCOPE))
    return Cut() if note is None else Cut(**{name: note[name] for name in vars(Cut())})


def _note(run: Run, strategy: str, before: _Shown, after: _Shown, usage: Usage | None) -> None:
    data: dict[str, Any] = {"strategy": strategy, "before": before.size, "after": after.size}
    if usage is not None:
        data["usage"] = asdict(usage)
    if after is not before:
        data |= {"scope": SCOPE, **vars(after.cut)}
    run.driver.record.note(run, EventType.COMPACTION, **data)


def _place(run: Run, kept: int, room: int) -> int:
    """From where on the messages have at most so many bytes, but for the last turn, which is always
    among them. Never before ``kept``, and always between two turns."""
    messages = run.history.messages
    place, size = kept, 0
    for index in range(len(messages) - 1, kept, -1):
        size += _bytes(messages[index])
        if messages[index]["role"] == "tool":
            continue
        if place > kept and size > room:
            break
        place = index
        if size > room:
            break
    return place


def _is_said(message: Message) -> bool:
    """Whether the user said it, and not the harness in the user's place."""
    return message["role"] == "user" and "because" not in message


def _without_output(message: Message) -> Message:
    if message["role"] != "tool":
        return message
    length = len(message["tool_result"].encode(errors="backslashreplace"))
    note = f"[{length:,} bytes were left out here.]"
    shorter = FrozenDict({**message, "tool_result": note})
    return shorter if _bytes(shorter) < _bytes(message) else message


def _bytes(message: Message) -> int:
    return len(canonical(message).encode())
