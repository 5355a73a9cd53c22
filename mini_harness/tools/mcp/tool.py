"""A server's tool as one of ours, and the two that show a server's resources (SEEDS B17, B18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult, ToolSchema
from mini_harness.tools.mcp.arguments import input_model
from mini_harness.tools.mcp.content import Flattened, flatten_result
from mini_harness.tools.mcp.errors import McpError
from mini_harness.tools.mcp.listing import ToolListing, list_resources
from mini_harness.tools.mcp.names import mcp_names
from mini_harness.tools.mcp.schema import Schema, UnusableSchema

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp_types import CallToolResult, Tool

    from mini_harness.tools.mcp.server import McpServer

LONGEST_DESCRIPTION = 4_000
"""In characters. Every turn shows it to the model, and it is a stranger's text."""

_RESOURCES = ("list resources", "read resource")
# With a space, so that a server's own `list_resources` is told apart from them.


class McpTool(BaseTool):
    """One tool of an MCP server.

    The model sees the server's own schema, closed against unknown keys where that changes nothing
    else (``closed``). What it sends is checked against it, and goes to the server unchanged.
    ``paths`` stays unknown, so that a policy takes every text in the arguments for a path.
    """

    def __init__(self, server: McpServer, told: Tool, name: str, reader: str = "") -> None:
        """``reader`` is the tool that reads the server's resources, if it has any.

        Raises UnusableSchema.
        """
        self.server = server
        self.name = name
        self.remote_name = told.name
        """What the server calls it."""
        self.description = _description(told)
        self.input_model, self._schema = input_model(name, told.input_schema)
        hints = told.annotations
        self._read_only = server.trust_read_only and bool(hints and hints.read_only_hint)
        self.idempotent = server.trust_idempotent and bool(hints and hints.idempotent_hint)
        self._reader = reader

    def is_read_only(self, arguments: Any) -> bool:
        """Only if the server says so and the user trusts it in that."""
        return self._read_only

    def to_api_schema(self) -> ToolSchema:
        return {"name": self.name, "description": self.description, "input_schema": self._schema}

    async def execute(self, arguments: Any, context: ToolExecutionContext) -> ToolResult:
        """Every failure is an error result that names the server."""
        try:
            result = await self.server.ask(self._question(arguments.root))
        except McpError as error:
            return ToolResult(str(error), is_error=True)
        if result is None:
            text = f"MCP server {self.server.name!r} wants to ask somebody first. Nobody is asked."
            return ToolResult(text, is_error=True)
        flat = flatten_result(result, self._reader)
        return ToolResult(flat.text or "(no output)", result.is_error, flat.metadata)

    def _question(self, arguments: Schema) -> Any:
        async def call(client: Client) -> CallToolResult | None:
            from mcp_types import (
                CallToolRequest,
                CallToolRequestParams,
                CallToolResult,
                InputRequiredResult,
            )
            from pydantic import TypeAdapter

            asked = CallToolRequestParams(name=self.remote_name, arguments=arguments)
            answers: TypeAdapter[Any] = TypeAdapter(CallToolResult | InputRequiredResult)
            # Not client.call_tool: that checks the answer against the server's output schema, where
            # a pattern can hold up the whole process. What a model reads as text needs no check.
            answer = await client.session.send_request(CallToolRequest(params=asked), answers)
            return answer if isinstance(answer, CallToolResult) else None

        return call


class NoInput(BaseModel):
    pass


class UriInput(BaseModel):
    uri: str = Field(description="The resource's URI, as the server lists it.")


class ListMcpResources(BaseTool):
    """Lists the resources of one server, and the templates of URIs (SEEDS B17)."""

    input_model = NoInput

    def __init__(self, server: McpServer, name: str) -> None:
        self.server = server
        self.name = name
        self.description = f"List the resources that the MCP server {server.name!r} offers to read."

    def is_read_only(self, arguments: NoInput) -> bool:
        return self.server.trust_read_only

    async def execute(self, arguments: NoInput, context: ToolExecutionContext) -> ToolResult:
        try:
            listing = await self.server.ask(list_resources)
        except McpError as error:
            return ToolResult(str(error), is_error=True)
        lines = [_line(each.uri, each) for each in listing.resources]
        lines += [
            _line(f"{each.uri_template} (fill in the braces)", each) for each in listing.templates
        ]
        if listing.cut:
            lines.append(f"[There may be more: {listing.cut}.]")
        return ToolResult("\n".join(lines) or "(no resources)")


class ReadMcpResource(BaseTool):
    """Reads a resource of one server by its URI (SEEDS B17)."""

    input_model = UriInput

    def __init__(self, server: McpServer, name: str) -> None:
        self.server = server
        self.name = name
        self.description = f"Read a resource of the MCP server {server.name!r} by its URI."

    def is_read_only(self, arguments: UriInput) -> bool:
        return self.server.trust_read_only

    async def execute(self, arguments: UriInput, context: ToolExecutionContext) -> ToolResult:
        try:
            answer = await self.server.ask(lambda client: client.read_resource(arguments.uri))
        except McpError as error:
            return ToolResult(str(error), is_error=True)
        flat = Flattened()
        for contents in answer.contents:
            flat.add_resource(contents)
        return ToolResult(flat.text or "(no content)", metadata=flat.metadata)


def make_tools(server: McpServer, listing: ToolListing) -> tuple[list[BaseTool], dict[str, str]]:
    """The tools of a server, and what is left out, with the reason."""
    left_out: dict[str, str] = {"the rest of the list": listing.cut} if listing.cut else {}
    own = _RESOURCES if listing.has_resources else ()
    names = mcp_names(server.name, [*own, *(told.name for told in listing.tools)])
    reader = names[1] if own else ""
    tools: dict[str, BaseTool] = {}
    for told, name in zip(listing.tools, names[len(own) :], strict=True):
        what = f"tool {told.name!r:.100}"
        if name in tools or name in names[: len(own)]:
            left_out[what] = "another one has the same name"
            continue
        try:
            tools[name] = McpTool(server, told, name, reader)
        except UnusableSchema as error:
            left_out[what] = f"its schema can't be used: {error}"
    if own:
        tools |= {names[0]: ListMcpResources(server, names[0])}
        tools |= {reader: ReadMcpResource(server, reader)}
    return list(tools.values()), left_out


def _description(told: Tool) -> str:
    text = told.description or told.title or told.name
    return text if len(text) <= LONGEST_DESCRIPTION else f"{text[:LONGEST_DESCRIPTION]}…"


def _line(place: str, told: Any) -> str:
    words = [place, *filter(None, (told.name, told.mime_type, told.description))]
    return " | ".join(words)
