"""The client that the MCP conformance suite tests: it lists a server's tools and calls each once.

The suite starts it with the address of its own server as the last argument. Which arguments fit is
read from the schemas, as a model would. Where a server wants an authorization, the SDK's provider
gets one, and what a person would do in a browser is done here.
"""

import asyncio
import json
import os
import sys
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.call import Call, execute
from mini_harness.tools.mcp.server import McpServer
from mini_harness.tools.mcp.tool import McpTool

SAMPLES = {"number": 2, "integer": 2, "string": "text", "boolean": True, "array": [], "object": {}}
CALLBACK = "http://localhost:3030/callback"
CLIENT_ID_DOCUMENT = "https://conformance-test.local/client-metadata.json"


class Memory:
    """Keeps what an authorization is made of, as long as this program lives."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        known = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
        self._client: OAuthClientInformationFull | None = None
        if "client_id" in known:
            self._client = OAuthClientInformationFull(
                client_id=known["client_id"],
                client_secret=known.get("client_secret"),
                token_endpoint_auth_method="client_secret_basic",
                redirect_uris=[AnyUrl(CALLBACK)],
            )

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class Browser:
    """Goes where it is sent, and keeps the code with which it is sent back."""

    def __init__(self) -> None:
        self._back: dict[str, list[str]] = {}

    async def visit(self, address: str) -> None:
        async with httpx2.AsyncClient(follow_redirects=False) as http:
            reply = await http.get(address)
        where = urljoin(address, reply.headers["location"])
        self._back = parse_qs(urlsplit(where).query)

    async def code(self) -> AuthorizationCodeResult:
        back = {name: values[0] for name, values in self._back.items()}
        return AuthorizationCodeResult(
            code=back["code"], state=back.get("state"), iss=back.get("iss")
        )


def authorization(url: str) -> OAuthClientProvider:
    known = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    match os.environ["MCP_CONFORMANCE_SCENARIO"]:
        case "auth/client-credentials-basic":
            return ClientCredentialsOAuthProvider(
                url, Memory(), known["client_id"], known["client_secret"]
            )
        case "auth/client-credentials-jwt":
            signed = SignedJWTParameters(
                issuer=known["client_id"],
                subject=known["client_id"],
                signing_key=known["private_key_pem"],
                signing_algorithm=known["signing_algorithm"],
            )
            assertion = signed.create_assertion_provider()
            return PrivateKeyJWTOAuthProvider(url, Memory(), known["client_id"], assertion)
        case _:
            return by_browser(url)


def by_browser(url: str) -> OAuthClientProvider:
    browser = Browser()
    metadata = OAuthClientMetadata(
        client_name="mini_harness",
        redirect_uris=[AnyUrl(CALLBACK)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    return OAuthClientProvider(
        url,
        metadata,
        Memory(),
        redirect_handler=browser.visit,
        callback_handler=browser.code,
        client_metadata_url=CLIENT_ID_DOCUMENT,
    )


async def main(url: str) -> None:
    settings: dict[str, Any] = {"answer": lambda question, schema: {}}
    if os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith("auth/"):
        settings["auth"] = authorization(url)
    async with McpServer("suite", url=url, **settings) as server:
        for tool in server.tools():
            if isinstance(tool, McpTool):
                properties = tool.to_api_schema()["input_schema"].get("properties", {})
                arguments = {name: SAMPLES[each["type"]] for name, each in properties.items()}
                seen = await execute(Call(tool, "1", arguments), ToolExecutionContext())
                print(tool.name, arguments, seen.outcome.value, seen.output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
