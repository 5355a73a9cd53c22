"""Large output goes to a file; the model gets its beginning, its end, and the place (SEEDS C25).

What a model is shown costs tokens in every later turn. What it isn't shown must not be lost. So
the whole text is written to a file inside the workspace, where ``read_file`` and ``grep`` can
reach it, and what stands in the conversation has an upper bound in bytes.
"""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from mini_harness.frozen import shown
from mini_harness.layer import Act, Layer
from mini_harness.protocol import Observation
from mini_harness.run import Run
from mini_harness.sensitive import is_sensitive
from mini_harness.sync import in_own_thread
from mini_harness.tools.base import (
    BaseTool,
    ToolExecutionContext,
    ToolResult,
    TransientError,
    wait_asked_by,
)
from mini_harness.tools.call import Call
from mini_harness.tools.places import hold_file, make_folder, whole

LIMIT = 50 * 1024
"""The longest output that stays in the conversation, in UTF-8 bytes."""

PREVIEW = 30_000
"""The longest preview of an output that doesn't stay, in UTF-8 bytes, its notes included."""

ERROR_PREVIEW = 4_000
"""The same for the text of an error: an event holds that more than once."""

ROOM = 4 * 1024 * 1024
"""How many bytes a tool should keep of an output that it would otherwise cut. To look for secrets
in so many takes seconds."""

FOLDER = ".mini_harness/tool-results"
"""Where the files lie, seen from the workspace folder."""

_SMALLEST = 1_000
_PIECE, _AROUND = 32 * 1024, 4 * 1024


class LongError(Exception):
    """What a tool raised had a very long text. This is the beginning and the end of it, and
    ``__cause__`` is the error itself."""


class LargeOutput(Layer):
    """Keeps every output of more than ``limit`` bytes in a file, and shows ``preview`` bytes of it.

    Put it inside the policy: it belongs to the calls that run. A tool that would cut its output
    finds in ``context.metadata["output_room"]`` how many bytes it may give instead; ``bash`` does.
    What it had to cut all the same it gives as ``lost_bytes`` in its metadata, and the note says
    so. Secrets are taken out of the file as they are out of the record.

    What a tool raises at such length becomes a LongError; a TransientError stays one. Metadata
    aren't bounded: they are the tool's own, and it should keep them small.

    A file has the hash of its content in its name, so two runs never write over each other's.
    Only its owner may read it. Nobody ever deletes it: clean the folder when you like. The tools
    can change it, and ``beside`` can't be reached by them: a second copy is kept there, under
    ``tool-results``. Give it a session's folder: ``LargeOutput(beside=session.folder)``.
    """

    def __init__(
        self,
        limit: int = LIMIT,
        *,
        preview: int = PREVIEW,
        folder: str = FOLDER,
        beside: Path | None = None,
    ) -> None:
        """Raises TypeError for a folder that isn't text, and ValueError for one that isn't a
        relative path inside the workspace, or is a place of credentials. Raises ValueError also
        for bounds that leave no room for the notes, or exceed each other."""
        if not _SMALLEST <= preview <= limit:
            raise ValueError(
                f"preview is {preview:,} and limit is {limit:,} bytes, "
                f"but {_SMALLEST:,} <= preview <= limit must hold."
            )
        self.limit, self.preview, self.folder = limit, preview, _checked(folder)
        self.beside = beside

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        tool = call.tool
        call.tool = self._bounding(tool)
        try:
            seen = await next(run, call)
        finally:
            call.tool = tool
        if _fits(seen.output, self.limit):
            return seen
        # What a layer inside has made of it never passed through the tool's result.
        context = ToolExecutionContext(run.driver.cwd, run=run, harness=run.driver)
        short, place = await self._keep(call.name, seen.output, context, self.preview)
        return seen.replaced(output=short, metadata={**seen.metadata, **place})

    def _bounding(self, tool: BaseTool) -> BaseTool:
        """A tool that differs in nothing but its results, which are bounded before anybody
        records them. A policy inside this layer judges its calls as it would those of the tool."""

        async def execute(arguments: Any, context: ToolExecutionContext) -> ToolResult:
            roomy = replace(context, metadata={**context.metadata, "output_room": ROOM})
            try:
                result = await tool.execute(arguments, roomy)
            except (Exception, SystemExit) as error:
                await self._bound_error(tool.name, error, context)
                raise
            return await self._bounded(tool.name, result, context)

        twin = copy.copy(tool)
        vars(twin)["execute"] = execute
        return twin

    async def _bounded(
        self, name: str, result: ToolResult, context: ToolExecutionContext
    ) -> ToolResult:
        """The result, or one that says where the whole of it lies."""
        if not isinstance(result, ToolResult) or not isinstance(result.output, str):
            return result  # The harness says what is wrong with it.
        if _fits(result.output, self.limit):
            return result
        lost = result.metadata.get("lost_bytes")
        lost = lost if isinstance(lost, int) else 0
        short, place = await self._keep(name, result.output, context, self.preview, lost)
        return replace(result, output=short, metadata={**result.metadata, **place})

    async def _bound_error(
        self, name: str, error: BaseException, context: ToolExecutionContext
    ) -> None:
        """Raise a shorter error if the text of this one is too long."""
        text = f"{type(error).__name__}: {shown(error, str)}"
        if _fits(text, self.limit):
            return
        short, _ = await self._keep(name, text, context, min(self.preview, ERROR_PREVIEW))
        if isinstance(error, TransientError):
            raise TransientError(short, retry_after=wait_asked_by(error)) from error
        raise LongError(short) from error

    async def _keep(
        self, name: str, output: str, context: ToolExecutionContext, room: int, lost: int = 0
    ) -> tuple[str, dict[str, Any]]:
        """Write the file. The preview, and what the metadata say of it."""
        if context.harness is not None:
            hidden = context.harness.record.redactor.hidden
            output = await in_own_thread(partial(in_pieces, hidden, output))
        data = output.encode(errors="backslashreplace")
        # A call id comes from the model and a run id may come from a file: neither names a file.
        file = f"{name}-{hashlib.sha256(data).hexdigest()[:16]}.txt"
        place = f"{self.folder}/{file}"
        try:
            if self.beside is not None:
                self.beside.mkdir(mode=0o700, parents=True, exist_ok=True)
                await whole(_write, self.beside, f"tool-results/{file}", data)
            await whole(_write, context.cwd, place, data)
        except OSError as error:
            # The call has had its effect. That its text can't be kept doesn't undo it.
            why = error.strerror or error
            return preview(data, room, f"It couldn't be written to {place}: {why}."), {}
        note = f"Full output written to: {place} ({len(data):,} bytes)."
        if lost:
            note = (
                f"Output written to: {place} ({len(data):,} bytes). It isn't all: {lost:,} bytes "
                "of its middle were more than could be kept, and are lost."
            )
        return preview(data, room, note), {"externalized_path": place}


def in_pieces(hidden: Callable[[str], str], text: str) -> str:
    """``hidden(text)``, in pieces so short that other threads get their turn between them.

    It is cut only where ``hidden`` finds nothing on either side. A single secret of more than
    4,096 characters could get by there.
    """
    parts, start = [], 0
    while start < len(text):
        end = start + _PIECE
        while end < len(text):
            around = text[end - _AROUND : end + _AROUND]
            if hidden(around) == around:
                break
            end += _AROUND
        parts.append(hidden(text[start:end]))
        start = end
    return "".join(parts)


def preview(data: bytes, limit: int, note: str) -> str:
    """Beginning and end of a UTF-8 text and a note, in at most ``limit`` bytes together.

    No character is broken.
    """
    last = f"\n[{note}]"
    room = limit - len(last.encode()) - len(_gap(len(data)).encode())
    head = data[: max(0, room) // 5].decode(errors="ignore")
    rest = max(0, room) - len(head.encode())
    tail = data[len(data) - rest :].decode(errors="ignore")
    missing = len(data) - len(head.encode()) - len(tail.encode())
    return f"{head}{_gap(missing)}{tail}{last}"


def _gap(missing: int) -> str:
    return f"\n[... {missing:,} bytes left out here ...]\n"


def _fits(text: str, limit: int) -> bool:
    # A character takes 1 to 6 bytes: most texts need no counting.
    if len(text) * 6 <= limit:
        return True
    return len(text) <= limit and len(text.encode(errors="backslashreplace")) <= limit


def _checked(folder: object) -> str:
    if not isinstance(folder, str):
        raise TypeError(f"The folder must be text, but it is {shown(folder):.100}.")
    parts = folder.split("/")
    if not folder or "\0" in folder or ".." in parts or Path(folder).is_absolute():
        raise ValueError(f"The folder must be a path inside the workspace, not {folder!r:.100}.")
    if is_sensitive(f"/{folder}/"):
        raise ValueError(f"The folder {folder!r:.100} is one for credentials. Choose another.")
    return folder


def _write(root: Path, place: str, data: bytes) -> None:
    with hold_file(root, place, make_folder) as held:
        # What replaces a file takes over who may read it.
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with suppress(FileExistsError):
            os.close(os.open(held.name, new, 0o600, dir_fd=held.folder))
        held.overwrite(data)
