"""What an MCP server answers, as one text.

A model that reads text is told what else there was: its kind, its type, how large it is. What
isn't text stays in the metadata while it is small, so that a notebook can show it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_types import CallToolResult

MEDIA_ROOM = 64 * 1024
"""How much base64 of one answer is kept in the metadata, in characters. The record holds it too."""


class Flattened:
    """The parts of an answer, one after the other. ``text`` is what the model reads."""

    def __init__(self, reader: str = "") -> None:
        """``reader`` is the name of the tool that reads a resource, if there is one."""
        self._reader = reader
        self._lines: list[str] = []
        self._media: list[dict[str, str]] = []
        self._room = MEDIA_ROOM

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    @property
    def metadata(self) -> dict[str, Any]:
        """``media``: kind, mime_type and data, in base64, of each part that isn't text and fits."""
        return {"media": self._media} if self._media else {}

    def add(self, part: Any) -> None:
        """Add a content block of a tool's result."""
        match part.type:
            case "text":
                self._lines.append(part.text)
            case "image" | "audio":
                self._add_media(part.type, part.mime_type, part.data)
            case "resource_link":
                self._add_link(part)
            case "resource":
                self.add_resource(part.resource)
            case other:
                self._lines.append(f"[{other}: nothing that can be shown here]")

    def add_resource(self, contents: Any) -> None:
        """Add what a resource holds: its text, or how much else."""
        name = f"resource {contents.uri}"
        if (text := getattr(contents, "text", None)) is not None:
            self._lines.append(f"[{_described(name, contents.mime_type)}]\n{text}")
        else:
            self._add_media(name, contents.mime_type, contents.blob)

    def add_structured(self, value: Any) -> None:
        """Add a result that came as data and not as text."""
        self._lines.append(json.dumps(value, ensure_ascii=False))

    def _add_link(self, link: Any) -> None:
        told = _described(f"link to resource {link.uri}", link.name, link.mime_type)
        how = f" Read it with {self._reader}." if self._reader else ""
        self._lines.append(f"[{told}]{how}")
        if link.description:
            self._lines.append(link.description)

    def _add_media(self, kind: str, mime_type: str | None, data: str) -> None:
        size = len(data.rstrip("=")) * 3 // 4
        kept = len(data) <= self._room
        note = "not shown as text" if kept else "not shown as text, and too large to keep"
        self._lines.append(f"[{_described(kind, mime_type, f'{size:,} bytes')}: {note}]")
        if kept:
            self._room -= len(data)
            self._media.append({"kind": kind, "mime_type": mime_type or "", "data": data})


def flatten_result(result: CallToolResult, reader: str = "") -> Flattened:
    """All parts of a tool's result.

    Structured content counts where there is nothing else: beside other parts it says the same once
    more, an image's base64 included.
    """
    flat = Flattened(reader)
    for part in result.content:
        flat.add(part)
    if result.structured_content is not None and not result.content:
        flat.add_structured(result.structured_content)
    return flat


def _described(*words: str | None) -> str:
    return ", ".join(word for word in words if word)
