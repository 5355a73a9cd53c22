"""The functions that checks of v0b have described, and what a server lists for others.

This file has no `from __future__ import annotations`: a learner may take the types as they stand.
"""

from typing import Any

from pydantic import BaseModel


class Window(BaseModel):
    """Lines of a log. It says nothing about unknown keys, as most models do."""

    first: int
    last: int = 9


def tail(build_id: str, lines: int = 3, numbered: bool = False) -> str:
    """Show the end of a build's log."""
    return f"{build_id}, {lines!r}, {numbered!r}"


def cut(build_id: str, windows: list[Window]) -> str:
    """Cut pieces out of a build's log."""
    return f"{build_id}: " + ", ".join(f"{each.first} to {each.last}" for each in windows)


def label(build_id: str, labels: dict[str, str]) -> str:
    """Put labels on a build."""
    return f"{build_id}: {labels}"


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
