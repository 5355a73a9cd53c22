"""What a server has: its tools and its resources, page by page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp_types import Resource, ResourceTemplate, Tool

MOST_PAGES = 100
"""How many pages of a list are read. A server may name a next one without end."""


@dataclass
class Pages:
    """A list that came in pages."""

    items: list[Any] = field(default_factory=list)
    cut: str = ""
    """Why there may be more; nothing if this is all."""


@dataclass
class ToolListing:
    tools: list[Tool]
    has_resources: bool
    cut: str


@dataclass
class ResourceListing:
    resources: list[Resource]
    templates: list[ResourceTemplate]
    cut: str


async def list_tools(client: Client) -> ToolListing:
    """All tools. A server that doesn't say that it has tools isn't asked for them."""
    pages = Pages()
    if client.server_capabilities.tools is not None:
        pages = await _pages(lambda cursor: client.list_tools(cursor=cursor), "tools")
    return ToolListing(pages.items, await _has_resources(client), pages.cut)


async def _has_resources(client: Client) -> bool:
    """Whether there is one. Many servers say that they have resources, and have none."""
    from mcp.shared.exceptions import MCPError

    if client.server_capabilities.resources is None:
        return False
    try:
        found = await list_resources(client)
    except MCPError:
        return True  # It says so. What is wrong is seen when somebody lists them.
    return bool(found.resources or found.templates)


async def list_resources(client: Client) -> ResourceListing:
    """All resources, and all templates for the URIs of more of them."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import METHOD_NOT_FOUND

    found = await _pages(lambda cursor: client.list_resources(cursor=cursor), "resources")
    try:
        templates = await _pages(
            lambda cursor: client.list_resource_templates(cursor=cursor), "resource_templates"
        )
    except MCPError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        templates = Pages()  # Not every server with resources has templates.
    return ResourceListing(found.items, templates.items, found.cut or templates.cut)


async def _pages(ask: Callable[[str | None], Awaitable[Any]], name: str) -> Pages:
    pages = Pages()
    cursor: str | None = None
    met: set[str] = set()
    for _ in range(MOST_PAGES):
        page = await ask(cursor)
        pages.items += getattr(page, name)
        cursor = page.next_cursor
        if cursor is None:
            return pages
        if cursor in met:
            pages.cut = "the server leads from one page of the list back to an earlier one"
            return pages
        met.add(cursor)
    pages.cut = f"the list has more than {MOST_PAGES} pages"
    return pages
