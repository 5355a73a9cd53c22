"""An MCP server that is a program: started here, spoken to over its input and output, and ended.

The SDK has such a transport too. This one keeps what the server says beside the protocol, for error
messages, in place of printing it; takes no message of more than LARGEST bytes; and ends whatever
the server has started.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

LARGEST = 16 * 1024 * 1024
"""The longest message that is taken from a server, in bytes."""

PATIENCE = 2.0
"""Seconds in which a server may end by itself when its input ends."""

GRACE = 0.5
"""Seconds between TERM and KILL."""

_CHUNK = 65_536
_TICK = 0.01
_REMEMBERED = 4_096


class ServerProcess:
    """One run of a server's program. Use it once, as an async context manager: an SDK transport."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | Path | None) -> None:
        self.argv = argv
        self.cwd = cwd
        self._mark = f"MINI_HARNESS_MCP_{secrets.token_hex(8)}"
        self.env = {**env, self._mark: "1"}
        self.ended = asyncio.Event()
        """Set when the server's output has ended: no answer can come any more."""
        self.returncode: int | None = None
        self._said = bytearray()
        self._open: set[str | int] = set()

    @property
    def said(self) -> str:
        """The last of what the server wrote beside the protocol, at most some 4,000 bytes."""
        return bytes(self._said).decode(errors="replace").strip()

    async def __aenter__(self) -> TransportStreams:
        """Raises OSError if there is no such program, ValueError for a NUL byte."""
        import anyio

        self._process = await asyncio.create_subprocess_exec(
            *self.argv,
            cwd=self.cwd,
            env=self.env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        to_client: tuple[MemoryObjectSendStream[SessionMessage | Exception], Any]
        to_client = anyio.create_memory_object_stream(0)
        from_client: tuple[Any, MemoryObjectReceiveStream[SessionMessage]]
        from_client = anyio.create_memory_object_stream(0)
        self._streams = (*to_client, *from_client)
        self._tasks = [
            asyncio.create_task(self._read(to_client[0])),
            asyncio.create_task(self._write(from_client[1])),
            asyncio.create_task(self._listen()),
        ]
        return to_client[1], from_client[0]

    async def __aexit__(self, *_: object) -> None:
        await end_tree(self._process, self._mark)
        self.returncode = self._process.returncode
        # What it said last is still in the pipe.
        await asyncio.wait(self._tasks[2:], timeout=GRACE)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in self._streams:
            stream.close()

    async def _read(self, client: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        import anyio

        assert self._process.stdout is not None
        try:
            async for line in _lines(self._process.stdout):
                for message in self._messages(line):
                    await client.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # Nobody listens any more: it is being ended.
        finally:
            self.ended.set()
            client.close()

    async def _write(self, client: MemoryObjectReceiveStream[SessionMessage]) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            async for sent in client:
                message: Any = sent.message
                text = message.model_dump_json(by_alias=True, exclude_unset=True)
                if hasattr(message, "id") and hasattr(message, "method"):
                    self._open.add(message.id)
                stdin.write(text.encode() + b"\n")
                await stdin.drain()
        except ConnectionError:
            self.ended.set()

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while piece := await self._process.stderr.read(_CHUNK):
            self._remember(piece)

    def _remember(self, piece: bytes) -> None:
        self._said += piece[-_REMEMBERED:]
        del self._said[:-_REMEMBERED]

    def _messages(self, line: bytes | None) -> Iterator[SessionMessage]:
        """The message in a line. What is none is remembered; of what is too long, all that wait
        are told, since nobody knows which of them it was for."""
        from mcp.shared.message import SessionMessage
        from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

        if line is None:
            text = f"The server sent a message of more than {LARGEST:,} bytes. It was not taken."
            fault = ErrorData(code=INTERNAL_ERROR, message=text)
            for request in sorted(self._open, key=str):
                yield SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=fault))
            self._open.clear()
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._remember(line + b"\n")
            return
        if not hasattr(message, "method"):
            self._open.discard(message.id)
        yield SessionMessage(message)


async def _lines(source: asyncio.StreamReader) -> AsyncIterator[bytes | None]:
    """Line by line, without the line ends; None for one of more than LARGEST bytes."""
    pieces: list[bytes] = []
    size = 0
    while piece := await source.read(_CHUNK):
        *ended, rest = piece.split(b"\n")
        for end in ended:
            yield b"".join([*pieces, end]) if size + len(end) <= LARGEST else None
            pieces, size = [], 0
        size += len(rest)
        pieces = [*pieces, rest] if size <= LARGEST else []


# --- the end ----------------------------------------------------------------------------------


async def end_tree(process: asyncio.subprocess.Process, mark: str) -> None:
    """End a server and all that it started: first its input, then TERM, then KILL.

    Whoever is in its session or has the mark in its environment belongs to it. Takes at most some
    seconds, whatever the server does.
    """
    if process.stdin is not None:
        process.stdin.close()
    await _until(lambda: process.returncode is not None, PATIENCE)
    for tell, seconds in ((psutil.Process.terminate, GRACE), (psutil.Process.kill, PATIENCE)):
        family = _family(process.pid, mark)
        for member in family:
            with contextlib.suppress(psutil.Error):
                tell(member)
        await _until(partial(_have_ended, family), seconds)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), GRACE)


async def _until(over: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    # What all ends of processes have in common is that one can look.
    while not over() and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(_TICK)


def _family(leader: int, mark: str) -> list[psutil.Process]:
    return [each for each in psutil.process_iter() if _belongs(each, leader, mark)]


def _belongs(process: psutil.Process, leader: int, mark: str) -> bool:
    try:
        in_session = hasattr(os, "getsid") and os.getsid(process.pid) == leader
        return _runs(process) and (in_session or mark in process.environ())
    except (psutil.Error, OSError):
        return False  # It has just ended, or is another user's.


def _have_ended(family: Sequence[psutil.Process]) -> bool:
    return not any(map(_runs, family))


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
