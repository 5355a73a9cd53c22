"""Claude as a model of the harness, over the Messages API and the vendor's own SDK.

The SDK is loaded when the first turn is asked for. It never retries here: trying again costs
time and money, so that is for the harness to decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from mini_harness.models.anthropic_failures import from_silence, from_status
from mini_harness.models.anthropic_reply import Reply, read_reply, to_turn
from mini_harness.models.anthropic_request import encodable, sendable, to_messages
from mini_harness.models.errors import ModelMisconfigured, ServiceError
from mini_harness.protocol import Final, Message, Turn
from mini_harness.tools.base import ToolSchema

if TYPE_CHECKING:
    import ssl

    from anthropic import AsyncAnthropic

MAX_PAUSES = 4
"""How often one turn may pause and be continued before that is an error."""


class AnthropicModel:
    """A Claude model. Each turn is one request, unless the API pauses it half-way.

    ``api_key`` is used as given and never looked up. ``max_tokens`` limits the output of one
    request. ``timeout`` is in seconds, for one request from connecting to the last byte.
    ``base_url`` is for a proxy or a test server.

    Raises ModelMisconfigured for a blank key or model id, and for settings no API takes.
    """

    def __init__(
        self,
        model_id: str,
        *,
        api_key: str,
        max_tokens: int = 4096,
        system: str | None = None,
        base_url: str | None = None,
        timeout: float = 600.0,
    ) -> None:
        self.model_id = (model_id or "").strip()
        self._key = SecretStr((api_key or "").strip())
        self.max_tokens = max_tokens
        self.system = system
        self.base_url = base_url
        self.timeout = timeout
        self._check()

    def _check(self) -> None:
        key = self._key.get_secret_value()
        if not self.model_id:
            raise ModelMisconfigured("The model id is blank: set MODEL_ID.")
        if not key:
            raise ModelMisconfigured("The API key is blank: set ANTHROPIC_API_KEY.")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ModelMisconfigured("The API key holds characters no key has: copy it again.")
        if self.max_tokens < 1 or self.timeout <= 0:
            raise ModelMisconfigured("max_tokens and timeout have to be greater than zero.")
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ModelMisconfigured(f"base_url {self.base_url!r} isn't an http(s) address.")

    def __repr__(self) -> str:
        return f"AnthropicModel({self.model_id!r})"

    async def decide(self, history: Sequence[Message], tools: Sequence[ToolSchema]) -> Turn | Final:
        """Ask for the next turn (SEEDS A18). Raises ServiceError.

        Text beside a call is the turn's thought. ``raw`` holds the content blocks as they came,
        thinking and unknown ones included: they go back with the next request.
        """
        request = self._request(history, tools)
        said = request["messages"]
        async with self._client() as client:
            reply = await self._ask(client, request)
            for _ in range(MAX_PAUSES):
                if not reply.is_paused:
                    break
                so_far = encodable(sendable(reply.content))
                pause = [{"role": "assistant", "content": so_far}] if so_far else []
                more = await self._ask(client, request | {"messages": said + pause})
                reply = more.after(reply)
        return to_turn(reply, self.max_tokens)

    def _request(self, history: Sequence[Message], tools: Sequence[ToolSchema]) -> dict[str, Any]:
        request: dict[str, Any] = {"model": self.model_id, "max_tokens": self.max_tokens}
        if self.system and self.system.strip():
            request["system"] = encodable(self.system)
        if tools:
            request["tools"] = encodable(tools)
        return request | {"messages": to_messages(history)}

    async def _ask(self, client: AsyncAnthropic, request: dict[str, Any]) -> Reply:
        answer = await self._send(client, request)
        # Not raised where it was caught: the SDK's error holds the request, with the key in it,
        # and would travel along as the context of ours.
        if isinstance(answer, ServiceError):
            raise answer
        return answer

    async def _send(self, client: AsyncAnthropic, request: dict[str, Any]) -> Reply | ServiceError:
        import anthropic
        import httpx2

        try:
            # The SDK's own time-out starts anew with every byte. This one doesn't.
            async with asyncio.timeout(self.timeout):
                response = await client.messages.with_raw_response.create(**request)
        except anthropic.APIStatusError as error:
            return from_status(error, self.model_id, self._hide)
        except (anthropic.APIError, httpx2.HTTPError, TimeoutError) as error:
            return from_silence(error, self.model_id, self._hide)
        return read_reply(response.http_response.text, response.request_id, self._hide)

    def _client(self) -> AsyncAnthropic:
        """A client for one turn: its connections belong to the event loop that runs now."""
        import anthropic

        return anthropic.AsyncAnthropic(
            api_key=self._key.get_secret_value(),
            base_url=self.base_url,
            timeout=self.timeout,
            max_retries=0,
            open_telemetry=False,
            http_client=anthropic.DefaultAsyncHttpxClient(verify=self._tls),
        )

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Reading the certificates costs more than all the rest of a client."""
        import httpx2

        return httpx2.create_ssl_context()

    def _hide(self, text: str) -> str:
        return text.replace(self._key.get_secret_value(), "[key]")
