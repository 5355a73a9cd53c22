"""What the builder has to know about a piece of Markdown: its fences, headings, images, roles."""

import importlib
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any


class ToolMissing(Exception):
    """A development tool that building needs isn't installed."""


@dataclass(frozen=True)
class Fence:
    """A fenced block; its body is `lines[first:last]` of the piece."""

    first: int
    last: int
    info: str


@dataclass(frozen=True)
class Image:
    line: int
    source: str
    alt: str


@dataclass
class Outline:
    """Line numbers count from 0, within the piece."""

    fences: list[Fence] = field(default_factory=list)
    sections: list[tuple[int, str]] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    roles: list[tuple[int, str]] = field(default_factory=list)

    def fenced(self, line: int) -> bool:
        return any(fence.first <= line < fence.last for fence in self.fences)


def outline(text: str) -> Outline:
    """Read a piece of Markdown as CommonMark does, nested fences included."""
    found = Outline()
    tokens = _parser().parse(text)
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "fence":
            found.fences.append(Fence(token.map[0] + 1, token.map[1] - 1, token.info.strip()))
        elif token.type == "heading_open" and token.markup == "##" and token.level == 0:
            found.sections.append((token.map[0], after.content))
        elif token.type == "inline":
            _read_inline(token, found)
    return found


def _read_inline(token: Any, found: Outline) -> None:
    for child in token.children:
        if child.type == "image":
            found.images.append(Image(token.map[0], child.attrs["src"], child.content))
        elif child.type == "myst_role":
            found.roles.append((token.map[0], child.meta["name"]))


def _parser() -> Any:
    parser = development_tool("markdown_it").MarkdownIt("commonmark").enable("table")
    return parser.use(development_tool("mdit_py_plugins.myst_role").myst_role_plugin)


def development_tool(module: str) -> ModuleType:
    """Import a module that comes with jupytext; ToolMissing says how to get it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ToolMissing(
            f"building a lesson needs jupytext, and {error.name} is missing. "
            "Install the development tools: `uv sync`, or `pip install 'jupytext>=1.19,<2'`."
        ) from error
