"""What can go wrong with an MCP server, in words: which server, what happened, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from mini_harness.redact import MASK, SHORTEST, hide, is_secret_variable
from mini_harness.tools.mcp.session import SessionOver

_HEADERS = {"authorization", "cookie", "proxy-authorization"}
_LINES, _CHARACTERS = 10, 1_000
_UNKNOWN = "Whether the request took effect is unknown."


class McpError(Exception):
    """Something went wrong with an MCP server. ``server`` is its name."""

    def __init__(self, text: str, server: str) -> None:
        super().__init__(text)
        self.server = server


class McpServerFailed(McpError):
    """The server didn't start, has ended, or was stopped: nothing can be asked of it."""


class McpRequestFailed(McpError):
    """The server runs, but this request got an error, no answer in time, or one that is no MCP."""


class Words:
    """Writes the errors of one server. What it was given as a secret doesn't get into them."""

    def __init__(
        self, server: str, place: str, env: Mapping[str, str], headers: Mapping[str, str]
    ) -> None:
        self.server = server
        self.place = place
        self._secrets = sorted(_secrets(env, headers), key=len, reverse=True)
        for secret in self._secrets:
            hide(secret)

    def not_started(self, error: Exception, transport: Any, seconds: float) -> McpServerFailed:
        match error:
            case FileNotFoundError() if error.filename == str(getattr(transport, "cwd", "")):
                why = f"There is no folder {error.filename!r}."
            case FileNotFoundError():
                why = "There is no such program on the PATH. Install it, or give its whole path."
            case PermissionError():
                why = "That program may not be run: it isn't executable."
            case TimeoutError():
                why = f"It gave no answer within {seconds:g} seconds. Is it an MCP server?"
            case _ if getattr(transport, "returncode", None) is not None:
                why = f"It ended before it answered, with exit code {transport.returncode}."
            case _:
                why = f"{type(error).__name__}: {error}"
        return self._failed(f"couldn't be started ({self.place}). {why}", transport)

    def over(self, transport: Any, stopped: bool) -> McpServerFailed:
        if stopped:
            return self._failed("isn't running: it was stopped. Start it again with start().", None)
        code = getattr(transport, "returncode", None)
        how = "" if code is None else f" It ended with exit code {code}."
        text = f"is lost.{how} {_UNKNOWN} Start it again with start()."
        return self._failed(text, transport)

    def not_running(self) -> McpServerFailed:
        return self._failed("isn't running. Start it with start().", None)

    @contextmanager
    def for_errors(self, seconds: float) -> Iterator[None]:
        """What a request raises inside is said in the words of this class; SessionOver passes."""
        try:
            yield
        except SessionOver:
            raise
        except TimeoutError:
            raise self._no_answer(seconds) from None
        except Exception as error:
            raise self._refused(error) from error

    def _no_answer(self, seconds: float) -> McpRequestFailed:
        text = f"gave no answer within {seconds:g} seconds. {_UNKNOWN} It can be asked again."
        return McpRequestFailed(f"MCP server {self.server!r} {text}", self.server)

    def _refused(self, error: Exception) -> McpRequestFailed:
        """An error that the server answered with, or what the SDK made of an answer."""
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        if isinstance(error, MCPError):
            text = f"answered with error {error.code}: {error.message}"
        elif isinstance(error, ValidationError):
            text = f"gave an answer that MCP doesn't allow: {error.errors()[0]['msg']}. {_UNKNOWN}"
        else:
            text = f"couldn't be asked: {type(error).__name__}: {error}"
        return McpRequestFailed(self._hidden(f"MCP server {self.server!r} {text}"), self.server)

    def _failed(self, text: str, transport: Any) -> McpServerFailed:
        lines = getattr(transport, "said", "").splitlines()[-_LINES:]
        said = "\n".join(lines)[-_CHARACTERS:]
        last = f"\nThe last that it said:\n{said}" if said else ""
        text = self._hidden(f"MCP server {self.server!r} {text}{last}")
        return McpServerFailed(text, self.server)

    def _hidden(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


def shown_url(url: str) -> str:
    """An address without what may be a secret: user, password and query."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"


def _secrets(env: Mapping[str, str], headers: Mapping[str, str]) -> set[str]:
    """The values of what has the name of a secret, without a word like "Bearer" in front."""
    found = {
        value.rpartition(" ")[2]
        for name, value in (*env.items(), *headers.items())
        if is_secret_variable(name) or name.lower() in _HEADERS
    }
    return {value for value in found if len(value) >= SHORTEST}
