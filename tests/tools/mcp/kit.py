"""What the tests of MCP share: servers to start, and calls as a harness makes them."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from mini_harness.protocol import Observation
from mini_harness.tools.base import BaseTool, ToolExecutionContext
from mini_harness.tools.call import Call, execute
from mini_harness.tools.mcp.server import McpServer

STUB = Path(__file__).with_name("stub.py")
ANY = {"type": "object"}


def stub(name: str = "stub", *, settings: dict[str, Any] | None = None, **config: Any) -> McpServer:
    """A server in a process of its own that runs ``stub.py``; ``settings`` are for our side."""
    arguments = ["-I", "-S", str(STUB), json.dumps(config)]
    return McpServer(name, command=sys.executable, args=arguments, **(settings or {}))


def told(*names: str, schema: Any = ANY, **more: Any) -> list[dict[str, Any]]:
    """Tools as a server lists them."""
    return [{"name": name, "inputSchema": schema, **more} for name in names]


def by_name(server: McpServer) -> dict[str, BaseTool]:
    """The server's tools by what stands behind its name."""
    return {tool.name.removeprefix(f"mcp__{server.name}__"): tool for tool in server.tools()}


def call(tool: BaseTool, **arguments: Any) -> Observation:
    return asyncio.run(execute(Call(tool, "1", arguments), ToolExecutionContext()))


def until(over: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for something that comes; fail if it doesn't."""
    deadline = time.monotonic() + seconds
    while not over():
        assert time.monotonic() < deadline, "it didn't come"
        time.sleep(0.01)


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
