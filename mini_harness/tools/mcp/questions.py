"""What a server asks a person in the middle of a call. MCP calls it elicitation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from mini_harness.sync import in_own_thread

if TYPE_CHECKING:
    from mcp.client.session import ElicitationFnT
    from mcp_types import ElicitRequestParams, ElicitResult

Given: TypeAlias = Mapping[str, Any] | None
Answerer: TypeAlias = Callable[[str, Mapping[str, Any]], Given | Awaitable[Given]]
"""Gets the server's question and the JSON schema of the fields that it wants, and returns values
for them, or None to decline. One that isn't async gets a thread: it may wait for a person."""


def elicitation(answer: Answerer) -> ElicitationFnT:
    """The SDK's callback that hands a question on. Fields left out get the schema's defaults.

    A server that wants a person to visit an address is declined.
    """

    async def callback(context: Any, params: ElicitRequestParams) -> ElicitResult:
        from mcp_types import ElicitRequestFormParams, ElicitResult

        if not isinstance(params, ElicitRequestFormParams):
            return ElicitResult(action="decline")
        schema = dict(params.requested_schema)
        given: Any = await in_own_thread(partial(answer, params.message, schema))
        if isinstance(given, Awaitable):
            given = await given
        if given is None:
            return ElicitResult(action="decline")
        fields: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
        defaults = {name: each["default"] for name, each in fields.items() if "default" in each}
        return ElicitResult(action="accept", content={**defaults, **given})

    return callback
