"""The one source of whatever differs between two runs: time, waiting, and fresh names.

Offline lessons run on the virtual clock. There nothing really sleeps, and two runs print the
same text on any machine, durations included.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Protocol

SETTLING = 16
"""How many turns of the event loop the others get to act before virtual time goes on."""


class Clock(Protocol):
    """Times are in seconds."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never runs backwards."""

    def time(self) -> float:
        """Seconds since the Unix epoch."""

    async def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass."""

    def fresh(self) -> str:
        """A name that this clock never gave before: letters, digits and dashes."""


class RealClock:
    """The machine's clock, and random names."""

    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)
    sleep = staticmethod(asyncio.sleep)

    def fresh(self) -> str:
        return secrets.token_hex(6)


class VirtualClock:
    """Starts at zero, moves only when somebody sleeps, and counts its names.

    Of several sleepers the one with the earliest end wakes first, and the clock moves to that.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._wakes: list[tuple[float, asyncio.AbstractEventLoop]] = []
        self._given = 0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        wake = self.now + max(0.0, seconds)
        self._wakes.append((wake, loop))
        try:
            quiet = 0
            while quiet < SETTLING:
                before = self.now, len(self._wakes)
                await asyncio.sleep(0)
                # A loop that waits for this one, by run_sync, has sleepers that can't wake now.
                first = min(end for end, where in self._wakes if where is loop)
                still = wake == first and before == (self.now, len(self._wakes))
                quiet = quiet + 1 if still else 0
            self.now = max(self.now, wake)
        finally:
            self._wakes.remove((wake, loop))

    def fresh(self) -> str:
        self._given += 1
        return str(self._given)
