"""The programs that come from npm: three servers and the conformance suite."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

HOW = (
    "To get them: copy package.json and package-lock.json from tests/tools/mcp into an empty "
    "folder, run `npm ci --ignore-scripts` there, and set MINI_HARNESS_NODE_MODULES to its "
    "node_modules"
)


@dataclass(frozen=True)
class Node:
    """Where npm has put its packages, and the node that came with them."""

    modules: Path

    @property
    def program(self) -> str:
        return str(next(self.modules.glob("node-linux-*/bin/node")))

    def script(self, package: str) -> str:
        return str(self.modules / "@modelcontextprotocol" / package / "dist" / "index.js")


@pytest.fixture(scope="session")
def node() -> Node:
    modules = os.environ.get("MINI_HARNESS_NODE_MODULES", "")
    if modules and list(Path(modules).glob("node-linux-*/bin/node")):
        return Node(Path(modules))
    reason = f"the MCP servers from npm aren't here. {HOW}"
    if os.environ.get("MINI_HARNESS_REQUIRE_MCP") == "1":
        pytest.fail(f"{reason}. MINI_HARNESS_REQUIRE_MCP=1 asks for them")
    pytest.skip(reason)
