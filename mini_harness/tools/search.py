"""Finding a tool by words."""

from __future__ import annotations

from pydantic import BaseModel, Field

from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult
from mini_harness.tools.registry import ToolRegistry


class ToolSearchInput(BaseModel):
    query: str = Field(
        "", description="Words in the tool's name or description; none shows all tools."
    )


class ToolSearch(BaseTool):
    """List the tools whose names and descriptions hold all words, in any case (SEEDS C26).

    A word may be a part of a longer one, so a single letter finds nearly all tools. The names of
    what a query found are in the metadata, as ``found``: with ``DeferredTools`` the model sees the
    schemas of these from its next turn on. To list all tools loads none.
    """

    name = "tool_search"
    description = "List the available tools, or those whose name and description hold all words."
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
        wanted = arguments.query.casefold().split()
        found = [tool for tool in registry.list_tools() if _has_all(tool, wanted)]
        lines = [f"{tool.name}: {tool.description}" for tool in found]
        metadata = {"found": [tool.name for tool in found]} if wanted and found else {}
        text = "\n".join(lines) or f"(no tool matches {arguments.query!r})"
        return ToolResult(text, metadata=metadata)


def _has_all(tool: BaseTool, words: list[str]) -> bool:
    text = f"{tool.name}\n{tool.description}".casefold()
    return all(word in text for word in words)
