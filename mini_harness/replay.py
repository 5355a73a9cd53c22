"""A model's answers, recorded once and replayed for ever, without a network (SEEDS A27).

    model = Recorder(AnthropicModel(...), "night.jsonl")   # once, with the real model
    model = ReplayModel("night.jsonl")                     # from then on

A request is found by its whole text: the messages and the tool schemas, without what is listed in
``VOLATILE``. What was never recorded is a ``ReplayMiss``. It is never asked of anybody else.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from mini_harness.cassette import Cassette, Exchange, begin
from mini_harness.frozen import FrozenDict, canonical, freeze
from mini_harness.models.base import Model, ModelError, checked
from mini_harness.protocol import Message
from mini_harness.replies import read, written, written_error
from mini_harness.tools.base import ToolSchema
from mini_harness.volatile import VOLATILE, Reader, Request, Volatile, names_of

_DEPTH = -8
_WIDTH = 60
"""How many characters of a value are shown where two differ."""


class Recorder:
    """Any model, with every answer kept: turns, replies that no harness understands, errors.

    ``cassette`` is what was recorded so far. With a ``path`` each exchange is appended to that
    file at once; there must be none yet. No secret that can be found gets there. An answer in which
    one was hidden is replayed with the mask in it, so a call that needs it doesn't run then.
    """

    def __init__(
        self,
        model: Model,
        path: Path | str | None = None,
        *,
        volatile: Sequence[Volatile] = VOLATILE,
    ) -> None:
        """Raises FileExistsError, and OSError for a file that can't be made."""
        self.model = checked(model)
        self.path = None if path is None else Path(path)
        self._reader = Reader(volatile)
        self.cassette = Cassette(volatile=volatile)
        if self.path is not None:
            begin(self.path, self.cassette)

    def decide(self, history: Sequence[Message], tools: Sequence[ToolSchema]) -> Any:
        request = Request(history, tools, self._reader)
        asked = tuple(freeze(list(history), _DEPTH))
        try:
            reply = self.model.decide(history, tools)
        except Exception as error:
            self._keep(asked, request, written_error(error))
            raise
        if hasattr(reply, "__await__"):
            return self._awaited(asked, request, reply)
        self._keep(asked, request, written(reply))
        return reply

    async def _awaited(
        self, asked: Sequence[Message], request: Request, reply: Awaitable[Any]
    ) -> Any:
        try:
            said = await reply
        except Exception as error:
            self._keep(asked, request, written_error(error))
            raise
        self._keep(asked, request, written(said))
        return said

    def _keep(self, asked: Sequence[Message], request: Request, reply: FrozenDict) -> None:
        self.cassette.record(asked, request, reply, self.path)


class ReplayMiss(ModelError):
    """What was asked isn't recorded, or not once more.

    ``recorded`` and ``asked`` count this very request. Where it was never recorded, ``nearest`` is
    the exchange most like it, and ``field`` the first place in which they differ; else both are
    None.
    """

    def __init__(
        self, text: str, recorded: int, asked: int, nearest: Exchange | None, field: str | None
    ) -> None:
        super().__init__(text)
        self.recorded, self.asked, self.nearest, self.field = recorded, asked, nearest, field


class UnusedRecordings(Exception):
    """A replay ended before all that was recorded had been asked for. ``unused`` are these."""

    def __init__(self, unused: Sequence[Exchange]) -> None:
        names = ", ".join(map(str, unused))
        super().__init__(f"{len(unused)} of the recorded answers were never asked for: {names}.")
        self.unused = tuple(unused)


class ReplayModel:
    """Gives recorded answers. Each is given once; equal requests get theirs in recorded order.

    What was volatile in a request and turns up in its answer is as it is in this run: a folder that
    a tool named is the one that it names now. ``cassette`` may be a file or a Cassette.
    """

    def __init__(
        self, cassette: Cassette | Path | str, *, volatile: Sequence[Volatile] = VOLATILE
    ) -> None:
        """Raises DamagedCassette and OSError, and ValueError if something else was left out when it
        was recorded."""
        self.cassette = cassette if isinstance(cassette, Cassette) else Cassette.load(cassette)
        self._reader = Reader(volatile)
        if names_of(volatile) != self.cassette.volatile:
            raise ValueError(
                f"It was recorded with volatile={self.cassette.volatile}, and is to be replayed "
                f"with {names_of(volatile)}. Give the same, or record again."
            )
        self._waiting: defaultdict[str, deque[Exchange]] = defaultdict(deque)
        for exchange in self.cassette.exchanges:
            self._waiting[exchange.key].append(exchange)
        self._asked: Counter[str] = Counter()
        self._used: set[int] = set()
        self._lock = Lock()

    @classmethod
    def from_list(cls, lines: Sequence[Mapping[str, Any]]) -> ReplayModel:
        """A cassette that is held inline, as ``Cassette.to_list`` gave it."""
        return cls(Cassette.from_list(lines))

    def decide(self, history: Sequence[Message], tools: Sequence[ToolSchema]) -> Any:
        request = Request(history, tools, self._reader)
        with self._lock:
            self._asked[request.key] += 1
            if not self._waiting[request.key]:
                raise self._miss(request)
            exchange = self._waiting[request.key].popleft()
            self._used.add(exchange.number)
        reply, error = read(request.filled(exchange.reply))
        if error is not None:
            raise error
        return reply

    @property
    def unused(self) -> tuple[Exchange, ...]:
        """What was recorded and hasn't been asked for."""
        return tuple(each for each in self.cassette.exchanges if each.number not in self._used)

    def check_all_used(self) -> None:
        """Raises UnusedRecordings if something is left: say it at the end of a test."""
        if unused := self.unused:
            raise UnusedRecordings(unused)

    def drop_unused(self) -> Cassette:
        """A cassette of what was asked for alone. ``save`` it in the place of the old one."""
        return self.cassette.only(frozenset(self._used))

    def __repr__(self) -> str:
        return f"<ReplayModel: {len(self._used)} of {len(self.cassette)} recordings used>"

    def _miss(self, request: Request) -> ReplayMiss:
        asked = self._asked[request.key]
        recorded = sum(each.key == request.key for each in self.cassette.exchanges)
        counts = f"recorded {recorded}, asked {asked}"
        if recorded:
            text = f"No recorded answer is left for this request: {counts}. Record it again."
            return ReplayMiss(text, recorded, asked, None, None)
        nearest = self._nearest(request)
        if nearest is None:
            return ReplayMiss(f"Nothing is recorded here: {counts}.", 0, asked, None, None)
        field, was, now = _difference(_leaves(nearest), _leaves(request))
        text = (
            f"This request isn't recorded: {counts}. The nearest is {nearest}. They differ first "
            f"in {field}: recorded {was}, asked {now}. Record it again, or undo what changed it."
        )
        return ReplayMiss(text, 0, asked, nearest, field)

    def _nearest(self, request: Request) -> Exchange | None:
        here = _leaves(request)

        def likeness(exchange: Exchange) -> tuple[int, int, bool]:
            there = _leaves(exchange)
            same = [there.get(place) == value for place, value in here.items()]
            first = same.index(False) if False in same else len(same)
            return first, sum(same) - len(there), exchange.number not in self._used

        return max(self.cassette.exchanges, key=likeness, default=None)


def _leaves(request: Request | Exchange) -> dict[str, str]:
    """Every single value of a request by its place, such as ``messages[2].tool_result``."""
    return dict([*_values("messages", request.messages), *_values("tools", request.tools)])


def _values(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _values(f"{place}.{key}", value[key])
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _values(f"{place}[{index}]", item)
    else:
        yield place, canonical(value)


def _difference(there: Mapping[str, str], here: Mapping[str, str]) -> tuple[str, str, str]:
    """The first place in which they differ, and what stands there in each."""
    for place in [*here, *there]:
        was, now = there.get(place), here.get(place)
        if was != now:
            return place, *_around(was, now)
    # Only a secret differs, which both have hidden.
    return "a secret", "one", "another"


def _around(was: str | None, now: str | None) -> tuple[str, str]:
    """Both, from shortly before the character in which they differ."""
    if was is None or now is None:
        return tuple("nothing" if e is None else _cut(e, 0) for e in (was, now))  # type: ignore
    same = next((n for n, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), None)
    begin_at = max(0, (min(len(was), len(now)) if same is None else same) - _WIDTH // 3)
    return _cut(was, begin_at), _cut(now, begin_at)


def _cut(text: str, start: int) -> str:
    end = start + _WIDTH
    return ("…" if start else "") + text[start:end] + ("…" if len(text) > end else "")
