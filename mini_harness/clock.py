"""The one source of whatever differs between two runs: time, waiting, and fresh names.

Offline lessons run on the virtual clock. There nothing really sleeps, and two runs print the
same text on any machine, durations included.

Virtual time passes only by sleeping, and only at a moment at which the event loop has nothing left
to do but wait: for a whole turn nothing else ran in it, nothing had arrived, and no real work is
known to be under way. Then it jumps to the earliest sleeper, or to a deadline on the way there.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

SETTLING = 16
"""How many turns of the event loop the others get to act, where one can't see whether they do."""

POLLING = 1000
"""After how many turns somebody who only looks again and again doesn't hold up time any more."""

HUNG = 60.0
"""Real seconds after which a deadline counts as reached though virtual time stands still."""


class Clock(Protocol):
    """Times are in seconds."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never runs backwards."""

    def time(self) -> float:
        """Seconds since the Unix epoch."""

    async def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass."""

    def deadline(self, seconds: float, then: Callable[[], object]) -> AbstractContextManager[None]:
        """Call ``then`` in the running event loop once ``seconds`` have passed inside the block.

        What takes exactly as long is in time.
        """

    def fresh(self) -> str:
        """A name that this clock never gave before: letters, digits and dashes."""


class RealClock:
    """The machine's clock, and random names."""

    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)
    sleep = staticmethod(asyncio.sleep)

    @contextmanager
    def deadline(self, seconds: float, then: Callable[[], object]) -> Iterator[None]:
        handle = asyncio.get_running_loop().call_later(seconds, then)
        try:
            yield
        finally:
            handle.cancel()

    def fresh(self) -> str:
        return secrets.token_hex(6)


@dataclass(eq=False)
class _Wait:
    """Somebody who wants to hear when it is ``when``, in one event loop."""

    when: float
    loop: asyncio.AbstractEventLoop
    then: Callable[[], object]


class VirtualClock:
    """Starts at zero, moves only when somebody sleeps, and counts its names.

    Of several sleepers the one with the earliest end wakes first, and the clock moves to that. A
    deadline moves nothing: it is reached when a sleeper would jump over it. One that no virtual
    time can reach, because the work inside hangs, counts as reached after ``hung`` real seconds,
    or its own if that is longer; the clock stays where it is.

    ``now`` and ``names``, how many it has given, are for one that goes on where another ended.
    """

    def __init__(self, *, now: float = 0.0, names: int = 0, hung: float = HUNG) -> None:
        self.now = now
        self.hung = hung
        self._sleepers: list[_Wait] = []
        self._deadlines: list[_Wait] = []
        # By run_sync, several event loops in several threads can share a clock.
        self._lock = Lock()
        self._names = count(names + 1)

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        with self._waiting(self._sleepers, seconds, lambda: _wake(woken)):
            _watch(loop).look(loop, self)
            await woken

    @contextmanager
    def deadline(self, seconds: float, then: Callable[[], object]) -> Iterator[None]:
        handle = asyncio.get_running_loop().call_later(max(seconds, self.hung), then)
        try:
            with self._waiting(self._deadlines, seconds, then):
                yield
        finally:
            handle.cancel()

    def fresh(self) -> str:
        return str(next(self._names))

    @contextmanager
    def _waiting(
        self, waits: list[_Wait], seconds: float, then: Callable[[], object]
    ) -> Iterator[None]:
        wait = _Wait(self.now + max(0.0, seconds), asyncio.get_running_loop(), then)
        with self._lock:
            waits.append(wait)
        try:
            yield
        finally:
            with self._lock:
                if wait in waits:
                    waits.remove(wait)

    def go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let time pass up to the next of those who sleep in this loop, or to a deadline before."""
        with self._lock:
            # A loop that waits for this one, by run_sync, has sleepers that can't wake now.
            waits, here = self._sleepers, [each for each in self._sleepers if each.loop is loop]
            if not here:
                return
            until = min(each.when for each in here)
            if passed := [each for each in self._deadlines if each.when < until]:
                waits, here, until = self._deadlines, passed, min(each.when for each in passed)
            self.now = max(self.now, until)
            due = [each for each in here if each.when <= until]
            for each in due:
                waits.remove(each)
        for each in due:
            with suppress(RuntimeError):  # The loop of a deadline may be closed by now.
                each.loop.call_soon_threadsafe(each.then)
        _watch(loop).look(loop, self)


def real_work(future: asyncio.Future[T]) -> asyncio.Future[T]:
    """The future itself. Until it is done, no virtual time passes in its event loop.

    For what takes real time outside of the loop, such as a process or a thread.
    """
    loop = future.get_loop()
    _watch(loop).work += 1
    future.add_done_callback(_work_ended)
    return future


def _work_ended(future: asyncio.Future[T]) -> None:
    loop = future.get_loop()
    watch = _watch(loop)
    watch.work -= 1
    watch.look(loop)


class _Watch:
    """Finds the moments at which an event loop has nothing left to do but wait.

    In each turn a loop looks what has arrived and which timers are due, then runs what is ready.
    ``_turn`` is run once a turn. Two turns in a row it found nothing else that is ready, so in the
    whole turn between them nothing else ran, and nothing had come in.
    """

    def __init__(self) -> None:
        self.work = 0
        """How much real work is under way."""
        self._clocks: list[VirtualClock] = []
        """Those that want to go on at such a moment."""
        self._is_looking = False
        self._turns = self._still = 0

    def look(self, loop: asyncio.AbstractEventLoop, *clocks: VirtualClock) -> None:
        self._clocks += [each for each in clocks if each not in self._clocks]
        self._turns = 0
        if self._clocks and not self.work and not self._is_looking:
            self._still = 0
            self._next(loop)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_looking = True
        loop.call_soon(self._turn, loop)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_looking = False
        # What is ready isn't public. All loops of the standard library keep it here.
        ready = getattr(loop, "_ready", None)
        self._turns += 1
        self._still = self._still + 1 if ready is not None and not ready else 0
        if self._still < 2 and self._turns < (SETTLING if ready is None else POLLING):
            self._next(loop)
        elif not self.work:
            clocks, self._clocks = self._clocks, []
            for clock in clocks:
                clock.go_on(loop)


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch] = WeakKeyDictionary()


def _watch(loop: asyncio.AbstractEventLoop) -> _Watch:
    return _watches.setdefault(loop, _Watch())


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
