"""A cell that waits for a person: what a click brings, and whether buttons work at all.

A front end delivers a click to a cell that awaits. Whether it can draw buttons at all is seen only
by trying.
"""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import ipywidgets
from IPython.core.getipython import get_ipython
from IPython.display import display

T = TypeVar("T")

HEARTBEAT = 0.1
"""Seconds. A cell that only waits doesn't notice the Stop button; one that wakes up does."""

HANDSHAKE = 10.0
"""Seconds that a front end has to say that it has drawn its first buttons. On a machine that thirty
people share it may take some."""

NO_BUTTONS = "Buttons don't work in this front end. Answer below."


class Answer(Generic[T]):
    """What a person will have said. The first word counts, on whatever thread it comes."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._given: asyncio.Future[T] = self._loop.create_future()

    def give(self, value: T) -> None:
        self._loop.call_soon_threadsafe(_set, self._given, value)

    async def shown(self, box: ipywidgets.Widget, button: ipywidgets.Button) -> bool:
        """Display the box. Whether the front end has drawn it, which is known by that button."""
        drawn: asyncio.Future[None] = self._loop.create_future()
        # The front end counts the views that it has drawn, if the count is there to begin with.
        button._view_count = 0
        button.observe(lambda _: self._loop.call_soon_threadsafe(_set, drawn, None), "_view_count")
        display(box)
        here = _front_end()
        # One that has drawn buttons can draw these, however long it takes.
        if here not in _drawing:
            await _until(drawn, HANDSHAKE)
            if not drawn.done():
                return False
            _drawing.add(here)
        return True

    async def waited_for(self) -> T:
        await _until(self._given)
        return self._given.result()


def my_turn() -> asyncio.Lock:
    """``async with my_turn():`` asks a person one thing at a time, in each event loop."""
    return _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


_drawing: set[str] = set()
"""The front ends that have drawn buttons of this kernel."""


def somebody_is_here() -> bool:
    """Whether a person can answer: a front end says so with every cell that it sends."""
    return bool(_sent().get("content", {}).get("allow_stdin"))


def _front_end() -> str:
    """The page, or the terminal, from which the running cell was sent."""
    return str(_sent().get("header", {}).get("session", ""))


def _sent() -> dict[str, Any]:
    """The message with which the running cell was sent, if there is one."""
    kernel = getattr(get_ipython(), "kernel", None)
    return kernel.get_parent() if kernel is not None else {}


def _set(future: asyncio.Future[T], value: T) -> None:
    if not future.done():
        future.set_result(value)


async def _until(future: asyncio.Future[T], seconds: float | None = None) -> None:
    """Wait, and wake up again and again, so that the Stop button is noticed."""
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    while not future.done() and (end is None or loop.time() < end):
        await asyncio.wait({future}, timeout=HEARTBEAT)
