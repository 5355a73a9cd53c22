"""All built-in tools, registered in one place (SEEDS B16)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mini_harness.tools.ask import Asker, AskUser
from mini_harness.tools.base import BaseTool
from mini_harness.tools.edit import EditFile
from mini_harness.tools.files import ReadFile
from mini_harness.tools.grep import Grep
from mini_harness.tools.listing import Glob, ListFiles
from mini_harness.tools.registry import ToolRegistry
from mini_harness.tools.search import ToolSearch
from mini_harness.tools.shell import Bash
from mini_harness.tools.todo import Todo
from mini_harness.tools.write import WriteFile

if TYPE_CHECKING:
    from mini_harness.tools.mcp.server import McpServer

BUILT_IN: tuple[Callable[[], BaseTool], ...] = (
    ReadFile,
    WriteFile,
    EditFile,
    ListFiles,
    Glob,
    Grep,
    Bash,
    ToolSearch,
    AskUser,
    Todo,
)
"""To add a tool, add it here. Schema, validation, policy, record and search follow from it."""


def create_default_tool_registry(
    mcp: McpServer | Iterable[McpServer] | None = None, ask: Asker | None = None
) -> ToolRegistry:
    """A registry of all built-in tools, and of the tools of one MCP server or several.

    ``ask`` reaches the person whom ``ask_user`` asks. Raises ValueError if two tools have one
    name: nobody could tell which of them a call means.
    """
    registry = ToolRegistry(make() for make in BUILT_IN)
    if ask is not None:
        registry.register(AskUser(ask))
    for server in _listed(mcp):
        for tool in server.tools():
            if registry.get(tool.name) is not None:
                raise ValueError(f"Two tools are called {tool.name!r}. Rename one of the servers.")
            registry.register(tool)
    return registry


def _listed(mcp: McpServer | Iterable[McpServer] | None) -> Iterable[McpServer]:
    if mcp is None:
        return ()
    servers = tuple(mcp) if isinstance(mcp, Iterable) else (mcp,)
    for server in servers:
        if not hasattr(server, "tools"):
            raise TypeError(
                f"{server!r:.100} is no MCP server: give a McpServer, or a list of them."
            )
    return servers
