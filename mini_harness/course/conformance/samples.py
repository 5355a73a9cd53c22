"""The functions that checks of v0b have described, and what a server lists for others.

This file has no `from __future__ import annotations`: a learner may take the types as they stand.
"""

import inspect
from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Any

from pydantic import BaseModel


class Window(BaseModel):
    """Lines of a log. It says nothing about unknown keys, as most models do."""

    first: int
    last: int = 9


class Kind(Enum):
    """What a machine does. On the wire it is a text."""

    NIGHTLY = "nightly"
    RELEASE = "release"


def last_of(build_id: str, lines: int = 3, numbered: bool = False) -> str:
    """Show the end of a build's log."""
    return f"{build_id}, {lines!r}, {numbered!r}"


def cut_out(build_id: str, windows: list[Window]) -> str:
    """Cut pieces out of a build's log."""
    return f"{build_id}: " + ", ".join(f"{each.first} to {each.last}" for each in windows)


def label(build_id: str, labels: dict[str, str]) -> str:
    """Put labels on a build."""
    return f"{build_id}: {labels}"


def book(machine: str, day: date, kind: Kind, hours: tuple[int, int]) -> str:
    """Book a machine of the farm."""
    return f"{machine}: {day:%d.%m.%Y}, {kind.name}, {hours[0]} to {hours[1]}"


def signature(function: Callable[..., Any]) -> str:
    """One of these as a learner would write it, with the types that belong to it."""
    known = {
        "Window": f"Window({', '.join(map(str, inspect.signature(Window).parameters.values()))})",
        "Kind": f"Kind is {' or '.join(repr(each.value) for each in Kind)}",
    }
    shown = f"{function.__name__}{inspect.signature(function)}".replace(f"{__name__}.", "")
    return ", and ".join([shown, *(words for name, words in known.items() if name in shown)])


WHO = {
    "name": "who_is_on_call",
    "description": "Say who is on call.",
    "inputSchema": {
        "type": "object",
        "properties": {"team": {"type": "string"}, "at": {"type": ["string", "null"]}},
        "required": ["team"],
    },
}


def listed(name: str, **more: Any) -> dict[str, Any]:
    """What a server lists of one more tool."""
    return {**WHO, "name": name, **more}


def text(words: str, **more: Any) -> dict[str, Any]:
    """A result of one piece of text, as the protocol has it."""
    return {"content": [{"type": "text", "text": words}], **more}
