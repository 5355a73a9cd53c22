"""Finding a tool by a word."""

from __future__ import annotations

from pydantic import BaseModel, Field

from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult
from mini_harness.tools.registry import ToolRegistry


class ToolSearchInput(BaseModel):
    query: str = Field(
        "", description="Text in the tool's name or description; none shows all tools."
    )


class ToolSearch(BaseTool):
    """List the tools whose name or description holds a text, in any case (SEEDS C26)."""

    name = "tool_search"
    description = "List the available tools, or those whose name or description holds a text."
    input_model = ToolSearchInput

    def is_read_only(self, arguments: ToolSearchInput) -> bool:
        return True

    def paths(self, arguments: ToolSearchInput) -> tuple[()]:
        return ()

    async def execute(
        self, arguments: ToolSearchInput, context: ToolExecutionContext
    ) -> ToolResult:
        """One line a tool, in registry order. Raises LookupError if the context has no registry."""
        registry = context.metadata.get("tool_registry")
        if not isinstance(registry, ToolRegistry):
            raise LookupError('There is no registry in context.metadata["tool_registry"].')
        wanted = arguments.query.strip().casefold()
        found = [
            f"{tool.name}: {tool.description}"
            for tool in registry.list_tools()
            if wanted in tool.name.casefold() or wanted in tool.description.casefold()
        ]
        return ToolResult("\n".join(found) or f"(no tool matches {arguments.query!r})")
