"""The client that the MCP conformance suite tests: it lists a server's tools and calls each once.

The suite starts it with the address of its own server as the last argument. Which arguments fit is
read from the schemas, as a model would.
"""

import asyncio
import sys

from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.call import Call, execute
from mini_harness.tools.mcp.server import McpServer
from mini_harness.tools.mcp.tool import McpTool

SAMPLES = {"number": 2, "integer": 2, "string": "text", "boolean": True, "array": [], "object": {}}


async def main(url: str) -> None:
    async with McpServer("suite", url=url) as server:
        for tool in server.tools():
            if isinstance(tool, McpTool):
                properties = tool.to_api_schema()["input_schema"].get("properties", {})
                arguments = {name: SAMPLES[each["type"]] for name, each in properties.items()}
                seen = await execute(Call(tool, "1", arguments), ToolExecutionContext())
                print(tool.name, arguments, seen.outcome.value, seen.output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
