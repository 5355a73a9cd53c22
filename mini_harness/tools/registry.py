"""Which tools there are, by name, in the order in which they were registered (SEEDS A03, B06)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from mini_harness.frozen import freeze
from mini_harness.tools.base import BaseTool, Tool, ToolSchema
from mini_harness.tools.function import function_tool

AnyTool = BaseTool | Tool

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class ToolRegistry:
    """Names to tools. Registering a name again replaces that tool, so that a cell can be re-run."""

    def __init__(self, tools: Iterable[AnyTool] | Mapping[str, AnyTool] = ()) -> None:
        self._tools: dict[str, BaseTool] = {}
        self._schemas: tuple[ToolSchema, ...] | None = None
        if isinstance(tools, BaseTool | Tool) or not isinstance(tools, Iterable):
            raise TypeError(f"Give the tools as a list: [{tools!r}]. What was given is no list.")
        for tool in tools.values() if isinstance(tools, Mapping) else tools:
            self.register(tool)

    def register(self, tool: AnyTool) -> None:
        """Add a tool. Raises TypeError for anything else, ValueError for a name no API takes."""
        if isinstance(tool, Tool):
            tool = function_tool(tool.handler, name=tool.name, description=tool.description)
        if not isinstance(tool, BaseTool):
            what = getattr(tool, "__name__", repr(tool))
            raise TypeError(f"{what} isn't a tool yet: put @tool above it, or make a Tool(...).")
        if not _NAME.fullmatch(tool.name):
            raise ValueError(
                f"Tool name {tool.name!r}: use 1 to 64 ASCII letters, digits, '_' and '-', "
                "beginning with a letter or '_'."
            )
        self._tools[tool.name] = tool
        self._schemas = None

    def get(self, name: str) -> BaseTool | None:
        """The tool of exactly this name, or None."""
        return self._tools.get(name)

    def list_tools(self) -> list[BaseTool]:
        return list(self._tools.values())

    def names(self) -> list[str]:
        return list(self._tools)

    def to_api_schema(self) -> tuple[ToolSchema, ...]:
        """What the model sees of all tools. It is frozen, since every turn shows the same one."""
        if self._schemas is None:
            self._schemas = tuple(freeze(tool.to_api_schema()) for tool in self._tools.values())
        return self._schemas
