"""Searching in files by a regular expression, in a process that can be ended.

Which files are searched is decided here, and how is the matter of ``grep_child``. A file where
credentials are kept isn't searched, whatever the policy says: the policy sees only the folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import tempfile
from math import ceil
from pathlib import Path
from typing import IO, Any, NamedTuple

from pydantic import BaseModel, Field

from mini_harness.sensitive import is_sensitive
from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult
from mini_harness.tools.files import as_opened, quoted_path, resolve_inside, shown_path
from mini_harness.tools.listing import PathPattern, Walk, explained
from mini_harness.tools.process import Ended, NotStarted, run_process
from mini_harness.tools.shell import child_environment
from mini_harness.visible import counted

MAX_LINES = 200
"""How many matching lines an answer has; those around them don't count."""

MAX_BYTES = 30_000
"""The longest answer, in UTF-8 bytes, its closing notes included."""

SECONDS = 20.0
"""How long a search may take, in real time. Choosing the files comes before that."""

_NOTE_ROOM = 1_000
_STRANGE = 200
_CHILD = Path(__file__).with_name("grep_child.py")


class GrepInput(BaseModel):
    pattern: str = Field(
        min_length=1,
        max_length=2_000,
        description="A regular expression as Python has them. It is looked for in each line.",
    )
    path: str = Field(".", description="The folder or file, relative to the workspace folder.")
    glob: str | None = Field(
        None,
        min_length=1,
        max_length=300,
        description="Search only files whose path fits, like *.{py,md} or src/**/*.md.",
    )
    ignore_case: bool = Field(False, description="Take a and A for the same letter.")
    context: int = Field(0, ge=0, le=5, description="How many lines to show around each match.")


class _Chosen(NamedTuple):
    """The files to search, in order, as parts of their paths seen from the workspace folder."""

    base: str
    """The workspace folder, links resolved."""
    files: list[tuple[str, ...]]
    secret: int
    """How many were left out since credentials may be in them."""
    cut: bool


class Grep(BaseTool):
    """Show the lines of files that match, as ``src/app.py:12: text``.

    Lines around them have "-" for ":", as with the program of that name. An answer has at most
    MAX_LINES matching lines and MAX_BYTES bytes; of a line at most ``grep_child.WIDTH`` characters
    are shown. Binary files aren't searched, links aren't followed. A search that takes longer than
    ``seconds`` is ended.
    """

    name = "grep"
    description = (
        "Search the text files of the workspace folder for lines that match a regular expression. "
        "Binary files, links and files that may hold credentials are left out, and so is what lies "
        "in .git and .mini_harness, unless path names that folder."
    )
    input_model = GrepInput
    idempotent = True

    def __init__(self, seconds: float = SECONDS) -> None:
        """Raises ValueError for a time that isn't more than 0."""
        if not seconds > 0:
            raise ValueError(f"seconds is {seconds}, but must be more than 0.")
        self.seconds = seconds

    def is_read_only(self, arguments: GrepInput) -> bool:
        return True

    def paths(self, arguments: GrepInput) -> list[str]:
        return [as_opened(arguments.path)]

    async def execute(self, arguments: GrepInput, context: ToolExecutionContext) -> ToolResult:
        """Every failure is an error result that names the path or the pattern."""
        try:
            chosen = await asyncio.to_thread(_chosen, context.cwd, arguments)
            reply = _Reply(chosen, arguments)
            if chosen.files:
                await self._search(context.cwd, arguments, reply)
        except NotStarted as error:
            return ToolResult(f"The search was not run. {error}.", is_error=True)
        except (OSError, ValueError) as error:
            return ToolResult(explained(arguments.path, error), is_error=True)
        return reply.result(self.seconds)

    async def _search(self, root: Path, wanted: GrepInput, reply: _Reply) -> None:
        request = {
            **wanted.model_dump(include={"pattern", "ignore_case", "context"}),
            "root": reply.chosen.base,
            "files": reply.chosen.files,
            "lines": MAX_LINES,
            "seconds": ceil(self.seconds) + 1,
        }
        with tempfile.TemporaryFile() as file:
            await asyncio.to_thread(_put, file, json.dumps(request).encode())
            reply.ended = await run_process(
                [sys.executable, "-I", "-S", str(_CHILD)],
                cwd=root,
                env=child_environment(),
                seconds=self.seconds,
                receive=reply.feed,
                stdin=file.fileno(),
            )


def _put(file: IO[bytes], request: bytes) -> None:
    file.write(request)
    file.flush()
    file.seek(0)


def _chosen(root: Path, wanted: GrepInput) -> _Chosen:
    """The files to search. Raises OSError for the path, and ValueError for the glob."""
    place = resolve_inside(root, wanted.path)
    base = os.path.realpath(root)
    # A link that has the name of a secret is taken for one, wherever it leads.
    named = is_sensitive(os.path.normpath(root / wanted.path))
    if stat.S_ISREG(place.stat().st_mode):
        secret = named or is_sensitive(str(place))
        files = [] if secret else [place.relative_to(base).parts]
        return _Chosen(base, files, int(secret), False)
    glob = wanted.glob or "*"
    pattern = PathPattern(glob if "/" in glob else f"**/{glob}")
    walk = Walk(root, place, pattern.leads_into)
    found: list[tuple[str, ...]] = []
    secrets = 0
    for entry in walk:
        if not entry.size or not pattern.fits(walk.below(entry)):
            continue
        if named or is_sensitive(f"{base}/{entry.path}"):
            secrets += 1
        else:
            found.append(entry.parts)
    return _Chosen(base, found, secrets, walk.cut)


class _Reply:
    """What the search says, line by line, and the answer that is made of it."""

    def __init__(self, chosen: _Chosen, wanted: GrepInput) -> None:
        self.chosen = chosen
        self.ended = Ended(0)
        self._wanted = wanted
        self._rest = b""
        self._lines: list[str] = []
        self._room = MAX_BYTES - _NOTE_ROOM
        self._shown = 0
        self._full = False
        self._at = -1
        self._last = (-1, 0)
        self._total: dict[str, Any] = {}
        self._fault = self._strange = ""

    def feed(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            try:
                self._hear(json.loads(line))
            except ValueError:
                # Python's own last words, if something broke.
                self._strange = line.decode(errors="replace")[:_STRANGE]

    def _hear(self, said: dict[str, Any]) -> None:
        if "at" in said:
            self._at = said["at"]
        elif "line" in said:
            self._show(said["line"], said["text"], said["match"])
        elif "fault" in said:
            self._fault = said["fault"]
        else:
            self._total = said

    def _show(self, number: int, text: str, match: bool) -> None:
        file = self._at
        mark = ":" if match else "-"
        lines = [f"{self._path()}{mark}{number}{mark} {text}"]
        if (
            self._wanted.context
            and self._lines
            and self._last
            not in (
                (file, number - 1),
                (file, number),
            )
        ):
            lines.insert(0, "--")
        size = sum(len(line.encode()) + 1 for line in lines)
        self._full = self._full or size > self._room
        if self._full:
            return
        self._room -= size
        self._lines += lines
        self._shown += match
        self._last = (file, number)

    def _path(self) -> str:
        return shown_path("/".join(self.chosen.files[self._at]))

    def result(self, seconds: float) -> ToolResult:
        """The answer: all that was found as far as it is shown, and what to know beyond it."""
        if self._fault:
            text = f"The pattern is no regular expression that can be used: {self._fault}."
            return ToolResult(text, is_error=True)
        broken = self._broken(seconds)
        notes = [f"[{note}]" for note in (broken, self._more(), self._left_out()) if note]
        nothing = [] if self._lines or broken else [self._nothing()]
        text = "\n".join([*self._lines, *nothing, *notes])
        return ToolResult(text, bool(broken), {"timed_out": True} if self.ended.timed_out else {})

    def _nothing(self) -> str:
        if self.chosen.files or self.chosen.secret:
            return "(no line matches)"
        fits = f" whose path fits {shown_path(self._wanted.glob)}" if self._wanted.glob else ""
        return f"(there is no file with anything in it in {quoted_path(self._wanted.path)}{fits})"

    def _broken(self, seconds: float) -> str:
        """Why the search didn't come to its end."""
        at = f" It was at {self._path()[-_STRANGE:]}." if self._at >= 0 else ""
        if self.ended.timed_out:
            return (
                f"The search was ended after {seconds:g} seconds.{at} "
                "Use a simpler pattern, or a narrower path or glob."
            )
        if self.ended.returncode or self.ended.survivors:
            return f"The search broke off: {self._strange or self.ended}.{at}"
        return ""

    def _more(self) -> str:
        total = self._total.get("lines", 0)
        if total <= self._shown:
            return ""
        least, files = "" if self._total["all"] else "At least ", self._total["files"]
        return (
            f"{least}{counted(total, 'line')} in {counted(files, 'file')} match. The first "
            f"{self._shown:,} are shown. Use a stricter pattern, or a narrower path or glob."
        )

    def _left_out(self) -> str:
        kinds = {
            "that may hold credentials": self.chosen.secret,
            "that are binary": self._total.get("binary", 0),
            "that couldn't be read": self._total.get("unread", 0),
        }
        left = [f"{count:,} {kind}" for kind, count in kinds.items() if count]
        said = f"Files that weren't searched: {', '.join(left)}." if left else ""
        if self.chosen.cut:
            said += " Some folders weren't looked at: it is too much, or they may not be read."
        return said.strip()
