"""Tools that come from another program: an MCP server (SEEDS B17, B18).

A server is asked for its tools, and each becomes a ``McpTool`` beside the built-in ones: the same
validation, policy, record and errors. A server is somebody else's program, and what it says about
itself is a claim. So its tools count as changing things, whatever their hints say; it gets a small
environment without secrets; and it can't make the harness wait for ever or fetch anything.

The list of tools is as it was when ``tools()`` was called. A server that announces another list
changes nothing in a harness that runs, so that what a person has approved doesn't turn into
something else. Call ``tools()`` again to get it.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mini_harness.tools.base import BaseTool
from mini_harness.tools.mcp.errors import (
    McpError,
    McpRequestFailed,
    McpServerFailed,
    Words,
    shown_url,
)
from mini_harness.tools.mcp.names import checked_server_name
from mini_harness.tools.mcp.process import ServerProcess
from mini_harness.tools.mcp.questions import Answerer
from mini_harness.tools.mcp.session import Session, SessionOver, over_http
from mini_harness.tools.shell import child_environment

if TYPE_CHECKING:
    from mcp.client import Client

__all__ = ["McpError", "McpRequestFailed", "McpServer", "McpServerFailed"]

T = TypeVar("T")
Question = Callable[["Client"], Coroutine[Any, Any, T]]
"""Asks the SDK's client something. It runs in the session's event loop."""

_INHERITED = {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"}
# `bash` marks what it starts, to end it all. A harness in such a command has servers of its own.
_INHERITED_PREFIXES = ("LC_", "MINI_HARNESS_JOB_")


class McpServer:
    """One MCP server: a program that is started here, or one elsewhere that is reached by its URL.

    Use it as a context manager, sync or async, or call ``start`` and ``stop``. It may be used from
    any thread and any event loop. What isn't stopped is ended with the Python process: a server
    whose harness dies sees the end of its input.
    """

    def __init__(  # noqa: PLR0913 - each is a setting of its own, by keyword
        self,
        name: str,
        *,
        command: str | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        auth: Any = None,
        answer: Answerer | None = None,
        timeout_seconds: float = 30,
        trust_read_only: bool = False,
        trust_idempotent: bool = False,
    ) -> None:
        """``name`` becomes part of the name of every tool.

        Either ``command`` with ``args``, ``env`` (added to a small environment without secrets) and
        ``cwd``; or ``url``, with ``headers`` such as an authorization, or with ``auth``, an
        ``httpx2.Auth`` such as the SDK's ``OAuthClientProvider``. ``timeout_seconds`` is how long,
        in real time, the start, a list and a call may take.

        ``answer`` hears what the server asks a person in the middle of a call (``questions``).
        Without it the server is told that nobody can be asked.

        ``trust_read_only``: take the server's word for which of its tools only read. They then run
        without approval. ``trust_idempotent``: take its word for which calls may be repeated.

        Raises ValueError for a name that isn't legal, and unless one of command and url is given.
        """
        if (command is None) == (url is None):
            raise ValueError(f"MCP server {name!r}: give either a command or a url.")
        if timeout_seconds <= 0:
            raise ValueError(f"MCP server {name!r}: timeout_seconds must be more than 0.")
        self.name = checked_server_name(name)
        self.timeout_seconds = timeout_seconds
        self.trust_read_only = trust_read_only
        self.trust_idempotent = trust_idempotent
        self.left_out: Mapping[str, str] = {}
        """What ``tools()`` left out the last time, and why."""
        self._argv = [] if command is None else [command, *args]
        self._env, self._cwd = dict(env or {}), cwd
        self._url, self._headers, self._auth = url, dict(headers or {}), auth
        self._answer = answer
        place = " ".join(map(repr, self._argv[:1])) if url is None else shown_url(url)
        self._words = Words(name, place, self._env, self._headers)
        self._session: Session | None = None
        self._starting: Session | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<MCP server {self.name}: {self._words.place}>"

    # --- start and end ------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the server or connect to it. If it runs already, nothing happens.

        Raises McpServerFailed, and ImportError without the extra ``mcp``.
        """
        _need_sdk()
        with self._lock:
            if self._session is None or self._session.over:
                self._session = self._started()
        return self

    def stop(self) -> None:
        """End the connection, and a program that was started here, with all that it started."""
        for session in (self._starting, self._session):
            if session is not None:
                session.end()
                session.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        try:
            return await asyncio.to_thread(self.start)
        except asyncio.CancelledError:
            await asyncio.to_thread(self.stop)
            raise

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)

    def _started(self) -> Session:
        transport: Any
        if self._url is not None:
            transport = over_http(self._url, self._headers, self._auth)
        else:
            transport = ServerProcess(self._argv, _environment(self._env), self._cwd)
        self._starting = session = Session(self.name, transport, self.timeout_seconds, self._answer)
        try:
            session.start()
        except Exception as error:
            raise self._words.not_started(error, transport, self.timeout_seconds) from error
        finally:
            self._starting = None
        return session

    # --- asking -------------------------------------------------------------------------------

    def tools(self) -> list[BaseTool]:
        """One tool for each of the server's, and two that list and read its resources if it has
        any. Starts the server if that hasn't been done.

        What can't be used is left out, with a warning; see ``left_out``. Raises McpError.
        """
        from mini_harness.tools.mcp.listing import list_tools
        from mini_harness.tools.mcp.tool import make_tools

        if self._session is None:
            self.start()
        listing = self._wait_for(list_tools)
        tools, self.left_out = make_tools(self, listing)
        for what, why in self.left_out.items():
            text = f"MCP server {self.name!r}: {what} is left out, because {why}."
            warnings.warn(text, stacklevel=2)
        return tools

    async def ask(self, question: Question[T]) -> T:
        """Await what ``question`` asks the SDK's client, in the session's own event loop.

        Cancelling tells the server. Raises McpServerFailed and McpRequestFailed.
        """
        session = self._running()
        try:
            with self._words.for_errors(self.timeout_seconds):
                return await asyncio.wrap_future(session.submit(self._in_time(question)))
        except SessionOver:
            # Its last words come with its end.
            await asyncio.to_thread(session.join, self.timeout_seconds)
            raise self._words.over(session.transport, session.stopped) from None

    def _wait_for(self, question: Question[T]) -> T:
        session = self._running()
        try:
            with self._words.for_errors(self.timeout_seconds):
                return _waited_for(session.submit(self._in_time(question)))
        except SessionOver:
            session.join(self.timeout_seconds)
            raise self._words.over(session.transport, session.stopped) from None

    def _running(self) -> Session:
        if self._session is None:
            raise self._words.not_running()
        return self._session

    def _in_time(self, question: Question[T]) -> Question[T]:
        async def asked(client: Client) -> T:
            async with asyncio.timeout(self.timeout_seconds):
                return await question(client)

        return asked


def _waited_for(answer: Future[T]) -> T:
    try:
        return answer.result()
    finally:
        answer.cancel()  # For a person who interrupts the waiting.


def _need_sdk() -> None:
    if find_spec("mcp") is None or find_spec("jsonschema") is None:
        text = "The MCP SDK isn't installed. Install it with: pip install 'mini-harness[mcp]'"
        raise ImportError(text)


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """What a server sees: where it is and in which language, and what it was given."""
    return {
        **{
            name: value
            for name, value in child_environment().items()
            if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
        },
        **given,
    }
