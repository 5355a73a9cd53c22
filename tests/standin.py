"""A stand-in for the Messages API on loopback: scripted answers, faults, and the wire's rules.

    with StandIn([reply(tool_use("add", {"a": 1, "b": 2})), reply(text("3"))]) as api:
        model = AnthropicModel("claude-haiku-5-5", api_key=api.key, base_url=api.url)

A request that breaks one of the rules in `wire_rules` is answered with 400, as the real API
does. Rules and texts are modelled on its documentation and on errors that people have reported;
they aren't recordings.
"""

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from email.message import Message
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.wire_rules import check_rules

KEY = "test-key-that-is-no-secret"
REQUEST_ID = "req_standin"
PATIENCE = 30.0
"""How long, in seconds, a fault that stays silent waits for the test to end."""

Json = dict[str, Any]

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class Answer:
    """What one request gets."""

    body: Json | bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Fault(Enum):
    """What happens instead of an answer."""

    RESET = "the connection is reset before any answer"
    SHORT = "the body ends before its announced length"
    SILENCE = "the connection stays open and nothing comes"
    TRICKLE = "a byte comes now and then, and the answer never ends"


Action = Answer | Fault
Script = Iterable[Action | Callable[[Json], Action]]


def text(content: str) -> Json:
    return {"type": "text", "text": content}


def tool_use(name: str, arguments: Any, call_id: str = "toolu_1") -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def reply(*blocks: Json, stop: str | None = None, **fields: Any) -> Answer:
    """A message. The reason to stop follows from the blocks unless given."""
    calls = any(block["type"] == "tool_use" for block in blocks)
    message = {
        "id": "msg_standin",
        "type": "message",
        "role": "assistant",
        "model": "claude-standin",
        "content": list(blocks),
        "stop_reason": stop or ("tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    return Answer(message | fields)


def error(status: int, message: str = "injected", **details: Any) -> Answer:
    """An error as the API words it. ``headers`` are its headers; other details go into it."""
    headers = details.pop("headers", {})
    kind = details.pop("type", ERROR_TYPES.get(status, "api_error"))
    found = {"type": kind, "message": message} | ({"details": details} if details else {})
    return Answer({"type": "error", "error": found, "request_id": REQUEST_ID}, status, headers)


@dataclass(frozen=True)
class Request:
    """One request that came in."""

    path: str
    headers: Message
    body: Json

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


class StandIn(ThreadingHTTPServer):
    """Answers one request after the other from its script, and remembers them in ``seen``."""

    def __init__(self, script: Script = (), key: str = KEY) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.key = key
        self.seen: list[Request] = []
        self.ended = threading.Event()
        self.script = list(script)
        self._turn = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def bodies(self) -> list[Json]:
        return [request.body for request in self.seen]

    def answer(self, request: Request) -> Action:
        with self._turn:
            self.seen.append(request)
            refused = self._refusal(request)
            if refused:
                return refused
            if not self.script:
                return error(400, "The script of the stand-in has no answer left.")
            action = self.script.pop(0)
        return action(request.body) if callable(action) else action

    def _refusal(self, request: Request) -> Answer | None:
        if request.path != "/v1/messages":
            return error(404, f"Not found: {request.path}")
        if request.key != self.key:
            return error(401, "invalid bearer token")
        if not request.headers.get("anthropic-version"):
            return error(400, "anthropic-version: header is required")
        rule = check_rules(request.body)
        return error(400, rule) if rule else None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.ended.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the test's own output is what counts."""

    def handle(self) -> None:
        try:
            super().handle()
        except (BrokenPipeError, ConnectionResetError):
            # The client has given up, as some tests want it to.
            self.close_connection = True

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length))
        match self.server.answer(Request(self.path, self.headers, body)):
            case Answer() as answer:
                self._send(answer.status, len(answer.data), answer.headers)
                self.wfile.write(answer.data)
            case Fault() as fault:
                self.close_connection = True
                self._fail(fault)

    def _send(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        standard = {"content-type": "application/json", "request-id": REQUEST_ID}
        for name, value in (standard | headers | {"content-length": str(length)}).items():
            self.send_header(name, value)
        self.end_headers()

    def _fail(self, fault: Fault) -> None:
        match fault:
            case Fault.RESET:
                # Lingering for no time makes the kernel send RST in the place of FIN.
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
            case Fault.SHORT:
                self._send(200, 999, {})
                self.wfile.write(b'{"id": "msg')
            case Fault.SILENCE:
                self.server.ended.wait(PATIENCE)
            case Fault.TRICKLE:
                self._send(200, 999_999, {})
                for _ in range(int(PATIENCE / 0.02)):
                    if self.server.ended.wait(0.02):
                        break
                    self.wfile.write(b" ")
