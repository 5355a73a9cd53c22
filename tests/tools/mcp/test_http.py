"""A server that runs elsewhere, reached by its URL."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mini_harness.protocol import Outcome
from mini_harness.redact import Redactor
from mini_harness.tools.mcp.server import McpServer
from tests.tools.mcp.kit import by_name, call, told
from tests.tools.mcp.stub import Stub


class Elsewhere:
    """The stub behind HTTP on loopback, and the headers that it was sent."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        stub = Stub({"pages": [told("echo", "silent")]})
        seen = self.headers

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                seen.append(dict(self.headers))
                line = self.rfile.read(int(self.headers["Content-Length"]))
                answer = stub.answer(line)
                body = json.dumps(answer).encode() if answer else b""
                self.send_response(200 if answer else 202)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                self.send_error(405)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/mcp"
        self._thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self._thread.join()


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    server = Elsewhere()
    yield server
    server.close()


def test_its_tools_are_called_as_those_of_a_program_are(elsewhere: Elsewhere) -> None:
    """B17"""
    with McpServer("web", url=elsewhere.url) as server:
        seen = call(by_name(server)["echo"], a=1)
        assert json.loads(seen.output)["params"]["arguments"] == {"a": 1}


def test_headers_are_sent_and_dont_get_into_an_error(elsewhere: Elsewhere) -> None:
    secret = "abc-0123456789"
    url = f"{elsewhere.url}?key=also-secret"
    headers = {"Authorization": f"Bearer {secret}", "X-Plain": "text/plain"}
    with McpServer("web", url=url, headers=headers) as server:
        tools = by_name(server)
        assert {sent["Authorization"] for sent in elsewhere.headers} == {f"Bearer {secret}"}
        assert secret not in repr(server)
        assert "also-secret" not in repr(server)
        elsewhere.close()
        seen = call(tools["echo"])
    assert seen.outcome is Outcome.ERROR
    assert secret not in seen.output
    assert "also-secret" not in seen.output
    assert hidden("an answer of text/plain") == "an answer of text/plain"
    assert secret not in hidden(f"the server sent {secret}")


def hidden(text: str) -> str:
    """As a record would show it."""
    redactor = Redactor()
    redactor.look_around()
    shown: str = redactor.hidden(text)
    return shown


def test_a_server_that_has_gone_gives_an_error_and_can_come_back(elsewhere: Elsewhere) -> None:
    with McpServer("web", url=elsewhere.url, timeout_seconds=5) as server:
        tools = by_name(server)
        elsewhere.close()
        seen = call(tools["echo"])
        assert seen.outcome is Outcome.ERROR
        assert "MCP server 'web'" in seen.output
