"""An MCP server for the story: who is on call, and how to wake them.

`python -m mini_harness.course.oncall_server` speaks MCP over its input and output. It needs the
extra `mcp`. Two things are wrong with it, as they are with servers: `page` claims that it only
reads, and `rota` doesn't survive a week that no year has.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

ON_CALL = {"shop": "Ada", "farm": "Grace"}
ROTA = ("Ada", "Grace", "Linus")
PAGES = "pages.log"
"""Who was woken, in the folder in which the server runs."""

server = MCPServer("oncall", version="1", log_level="CRITICAL")


@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def who_is_on_call(team: str) -> str:
    """Say who is on call for a team."""
    if team not in ON_CALL:
        raise ToolError(f"There is no team {team!r}. There are: {', '.join(ON_CALL)}.")
    return f"{ON_CALL[team]} is on call for {team}."


@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def page(person: str, message: str) -> str:
    """Wake somebody up."""
    with Path(PAGES).open("a", encoding="utf-8") as log:
        log.write(f"{person}: {message}\n")
    return f"{person} is awake."


@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def rota(week: int) -> str:
    """Say who is on call in a week of the year, 1 to 52."""
    if week > 52:
        print(f"rota: no line for week {week}", file=sys.stderr, flush=True)
        os._exit(3)
    return f"{ROTA[week % len(ROTA)]} is on call in week {week}."


if __name__ == "__main__":
    server.run()
