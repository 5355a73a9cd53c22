"""A connection to an MCP server, in a thread with an event loop of its own.

A session lives longer than a call, and an event loop that a notebook cell, ``run_sync`` or a test
brings along may not. In a loop of its own it can be used from any of them, and from none.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from mini_harness.tools.mcp.process import ServerProcess
from mini_harness.tools.mcp.questions import Answerer, elicitation

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from mcp.client import Client
    from mcp.client._transport import TransportStreams

T = TypeVar("T")

_AT_EXIT = 10.0
"""Seconds that a program's end waits for its servers' end."""

_HTTP_SECONDS = 30.0
_STREAM_SECONDS = 300.0

for _name in ("mcp", "client"):
    # The SDK's loggers. Else Python prints what they say into a notebook.
    logging.getLogger(_name).addHandler(logging.NullHandler())

_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


class SessionOver(Exception):
    """The session has ended, so nothing can be asked any more."""


class Session:
    """One connection, from its start to its end. A new start is a new session."""

    def __init__(
        self,
        name: str,
        transport: AbstractAsyncContextManager[TransportStreams],
        seconds: float,
        answer: Answerer | None = None,
    ) -> None:
        self.transport = transport
        self._answer = answer
        self.over = False
        """True from the moment on from which nothing is sent any more."""
        self.stopped = False
        """Whether somebody wanted it to end."""
        self._seconds = seconds
        # A server's own end ends the session.
        self._ended = asyncio.Event()
        if isinstance(transport, ServerProcess):
            self._ended = transport.ended
        self._task: asyncio.Task[Any] | None = None
        self._ready: Future[Client] = Future()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=f"mcp-{name}", daemon=True)

    def start(self) -> None:
        """Connect, within ``seconds``. Raises whatever went wrong, TimeoutError included."""
        _sessions.add(self)
        self._thread.start()
        try:
            self._ready.result()
        except BaseException:
            self.end()
            self.join()
            raise

    def end(self) -> None:
        """Let the connection end, and the server if it was started here."""
        self.stopped = self.stopped or not self.over
        with contextlib.suppress(AttributeError, RuntimeError):  # Not yet there, or just ended.
            self._loop.call_soon_threadsafe(self._end)

    def join(self, seconds: float | None = None) -> None:
        """Wait until all has ended."""
        if self._thread.is_alive():
            self._thread.join(seconds)

    def submit(self, ask: Callable[[Client], Coroutine[Any, Any, T]]) -> Future[T]:
        """Ask the server something. Raises SessionOver, also as the future's exception."""
        with self._lock:
            if self.over:
                raise SessionOver
            return asyncio.run_coroutine_threadsafe(self._asked(ask), self._loop)

    async def _asked(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED

        try:
            return await ask(self._ready.result())
        except asyncio.CancelledError:
            # Either the one who asked doesn't want it any more, or there is nobody to ask.
            if self.over:
                raise SessionOver from None
            raise
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                self._ended.set()
                raise SessionOver from None
            raise

    def _work(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # noqa: BLE001 - whoever starts the session raises it
            if not self._ready.done():
                self._ready.set_exception(_first(error))
        finally:
            self.over = True

    async def _live(self) -> None:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        if self.stopped:
            raise SessionOver
        client = _client(self.transport, self._answer)
        async with contextlib.AsyncExitStack() as opened:
            async with asyncio.timeout(self._seconds):
                await opened.enter_async_context(client)
            self._ready.set_result(client)
            try:
                await self._ended.wait()
            finally:
                with self._lock:
                    self.over = True

    def _end(self) -> None:
        self._ended.set()
        if not self._ready.done() and self._task is not None:
            self._task.cancel()


def _client(
    transport: AbstractAsyncContextManager[TransportStreams], answer: Answerer | None
) -> Client:
    from mcp.client import Client
    from mcp_types import Implementation

    us = Implementation(name="mini_harness", version=version("mini-harness"))
    # No cache: who asks for a list wants to know what there is now.
    asked = None if answer is None else elicitation(answer)
    return Client(transport, client_info=us, cache=None, elicitation_callback=asked)


@contextlib.asynccontextmanager
async def over_http(
    url: str, headers: Mapping[str, str], auth: Any = None
) -> AsyncIterator[TransportStreams]:
    """The transport to a server that runs elsewhere, by Streamable HTTP."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    waits = httpx2.Timeout(_HTTP_SECONDS, read=_STREAM_SECONDS)
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=waits, auth=auth) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


def _first(error: BaseException) -> BaseException:
    """The SDK runs tasks in groups, and groups raise groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@atexit.register
def _stop_all() -> None:
    """A program that ends ends its servers, whether anybody has thought of it or not."""
    sessions = list(_sessions)
    for session in sessions:
        session.end()
    for session in sessions:
        session.join(_AT_EXIT)
