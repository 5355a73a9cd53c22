"""Large output goes to a file; the model gets its beginning, its end, and the place (SEEDS C25).

What a model is shown costs tokens in every later turn. What it isn't shown must not be lost. So
the whole text is written to a file inside the workspace, where ``read_file`` and ``grep`` can
reach it, and what stands in the conversation has an upper bound in bytes.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from typing import Any

from mini_harness.layer import Act, Layer
from mini_harness.protocol import Observation
from mini_harness.run import Run
from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult
from mini_harness.tools.call import Call
from mini_harness.tools.places import write_inside

LIMIT = 50 * 1024
"""The longest output that stays in the conversation, in UTF-8 bytes."""

PREVIEW = 30_000
"""The longest preview of an output that doesn't stay, in UTF-8 bytes, its notes included."""

ROOM = 16 * 1024 * 1024
"""How many bytes a tool should keep of an output that it would otherwise cut."""

FOLDER = ".mini_harness/tool-results"
"""Where the files lie, seen from the workspace folder."""

_SMALLEST = 1_000


class LargeOutput(Layer):
    """Keeps every output of more than ``limit`` bytes in a file, and shows ``preview`` bytes of it.

    Put it inside the policy: it belongs to the calls that run. A tool that would cut its output
    finds in ``context.metadata["output_room"]`` how many bytes it may give instead; ``bash`` does.
    Secrets are taken out of the file as they are out of the record.
    """

    def __init__(self, limit: int = LIMIT, *, preview: int = PREVIEW, folder: str = FOLDER) -> None:
        """Raises ValueError for bounds that leave no room for the notes, or exceed each other."""
        if not _SMALLEST <= preview <= limit:
            raise ValueError(
                f"preview is {preview:,} and limit is {limit:,} bytes, "
                f"but {_SMALLEST:,} <= preview <= limit must hold."
            )
        self.limit, self.preview, self.folder = limit, preview, folder

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        bounded = _Bounded(call.tool, self)
        call.tool = bounded
        try:
            seen = await next(run, call)
        finally:
            call.tool = bounded.tool
        if _fits(seen.output, self.limit):
            return seen
        # The text of an error that the tool raised never passed through its result.
        harness = run.driver
        context = ToolExecutionContext(
            harness.cwd, call_id=call.call_id, attempt=0, run=run, harness=harness
        )
        short, place = await self._keep(call.name, seen.output, context)
        return seen.replaced(output=short, metadata={**seen.metadata, **place})

    async def bounded(self, name: str, result: ToolResult, context: Any) -> ToolResult:
        """The result, or one that says where the whole of it lies."""
        if not isinstance(result, ToolResult) or not isinstance(result.output, str):
            return result  # The harness says what is wrong with it.
        if _fits(result.output, self.limit):
            return result
        short, place = await self._keep(name, result.output, context)
        return replace(result, output=short, metadata={**result.metadata, **place})

    async def _keep(
        self, name: str, output: str, context: ToolExecutionContext
    ) -> tuple[str, dict[str, Any]]:
        """Write the file. The preview, and what the metadata say of it."""
        if context.harness is not None:
            output = context.harness.record.redactor.hidden(output)
        data = output.encode(errors="backslashreplace")
        # A call id comes from the model and a run id may come from a file: neither names a file.
        key = f"{context.idempotency_key}:{context.attempt}"
        place = f"{self.folder}/{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.txt"
        try:
            await asyncio.to_thread(write_inside, context.cwd, place, data)
        except OSError as error:
            # The call has had its effect. That its text can't be kept doesn't undo it.
            why = error.strerror or error
            return preview(data, self.preview, f"It couldn't be written to {place}: {why}."), {}
        note = f"Full output written to: {place} ({len(data):,} bytes)."
        return preview(data, self.preview, note), {"externalized_path": place}


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


class _Bounded(BaseTool):
    """A tool whose results are bounded before anybody records them."""

    def __init__(self, tool: BaseTool, keeper: LargeOutput) -> None:
        self.tool, self._keeper = tool, keeper
        self.name, self.description = tool.name, tool.description
        self.input_model, self.idempotent = tool.input_model, tool.idempotent

    def is_read_only(self, arguments: Any) -> bool:
        return self.tool.is_read_only(arguments)

    async def execute(self, arguments: Any, context: ToolExecutionContext) -> ToolResult:
        roomy = replace(context, metadata={**context.metadata, "output_room": ROOM})
        result = await self.tool.execute(arguments, roomy)
        return await self._keeper.bounded(self.name, result, context)
