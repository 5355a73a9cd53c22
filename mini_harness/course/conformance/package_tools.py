"""The package's own tools behind the functions that a learner writes in v0b."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mini_harness.sync import run_sync
from mini_harness.tools.base import Tool, ToolExecutionContext, ToolResult
from mini_harness.tools.call import Call, InvalidArguments
from mini_harness.tools.edit import EditFile
from mini_harness.tools.function import function_tool
from mini_harness.tools.mcp.errors import Words
from mini_harness.tools.mcp.listing import ToolListing
from mini_harness.tools.mcp.server import McpServer
from mini_harness.tools.mcp.tool import McpTool, make_tools


def describe(function: Callable[..., Any]) -> dict[str, Any]:
    return {**function_tool(function).to_api_schema()}


def check_arguments(function: Callable[..., Any], arguments: Any) -> dict[str, Any] | str:
    try:
        return dict(Call(function_tool(function), "call-1", arguments).parsed)
    except InvalidArguments as error:
        return str(error)


def edit(path: str, old: str, new: str) -> str:
    file = Path(path)
    wanted = {"path": file.name, "old": old, "new": new}
    try:
        call = Call(EditFile(), "call-1", wanted)
    except InvalidArguments as error:
        raise ValueError(str(error)) from None
    context = ToolExecutionContext(cwd=file.parent)
    return _said(call.tool.execute(call.fresh(), context), ValueError)


def _said(work: Coroutine[Any, Any, ToolResult], kind: type[Exception]) -> str:
    result = run_sync(work)
    if result.is_error:
        raise kind(result.output)
    return result.output


@dataclass
class RemoteTool(Tool):
    """A server's tool as a learner's harness knows it."""

    input_schema: Mapping[str, Any]
    read_only: bool


class _Told(McpServer):
    """A server that is nothing but a function: no program is started."""

    def __init__(self, name: str, call: Callable[[str, Any], Any]) -> None:
        super().__init__(name, command="nothing")
        self.session = self
        self._call = call

    async def ask(self, question: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        client: Any = self
        with Words(self.name, "a function", {}, {}).for_errors(self.timeout_seconds):
            return await question(client)

    async def send_request(self, request: Any, answers: Any) -> Any:
        """As the SDK's session does, but for the way that it takes."""
        said = self._call(request.params.name, request.params.arguments)
        return answers.validate_python(said, by_name=False)


def adapt(server: str, listed: Sequence[Mapping[str, Any]], call: Any) -> dict[str, RemoteTool]:
    from mcp_types import Tool as Listed

    told = [Listed.model_validate(each, by_name=False) for each in listed]
    made, _ = make_tools(_Told(server, call), ToolListing(told, has_resources=False, cut=""))
    return {tool.name: _remote(tool) for tool in made if isinstance(tool, McpTool)}


def _remote(tool: McpTool) -> RemoteTool:
    def handler(**arguments: Any) -> str:
        call = Call(tool, "call-1", arguments)
        return _said(tool.execute(call.fresh(), ToolExecutionContext()), RuntimeError)

    schema = tool.to_api_schema()["input_schema"]
    return RemoteTool(tool.name, tool.description, handler, schema, tool.is_read_only(None))
