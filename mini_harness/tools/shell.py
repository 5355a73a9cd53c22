"""The tool that runs shell commands.

It is no sandbox. A command may do whatever the user who runs the harness may do, anywhere on
the machine; its folder is where it starts, not where it must stay. What keeps it in bounds is
the policy that judges a call before it runs. What this tool promises is an end: no command waits
for ever, floods the memory, or leaves a process behind.
"""

from __future__ import annotations

import codecs
import os
import shutil
import signal
import sys
from pathlib import Path

from pydantic import BaseModel, Field

from mini_harness.redact import is_secret_variable
from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult
from mini_harness.tools.files import as_opened, resolve_inside, unusable
from mini_harness.tools.interactive import asks_questions
from mini_harness.tools.process import Ended, NotStarted, run_process

OUTPUT_LIMIT = 30_000
"""The longest answer of ``bash``, in UTF-8 bytes, its notes included."""

_SMALLEST_LIMIT = 1_000
_MARKER_ROOM = 128
# What the kernel of a notebook, a terminal or a test run says about itself. A command that
# believed it would print other text in a notebook than elsewhere.
_SURROUNDINGS = {"CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LINES"}


class BashInput(BaseModel):
    command: str = Field(description="The command line.")
    cwd: str | None = Field(None, description="A folder inside the workspace folder to start in.")
    timeout_seconds: int = Field(30, ge=1, le=600, description="When the command is ended.")


class Bash(BaseTool):
    """Run a command with bash, or with sh where there is no bash (SEEDS B13, B14).

    The answer is standard output and error as one text. A longer one than ``output_limit`` UTF-8
    bytes keeps its head and its tail, with a marker between that says how much is missing. An
    exit code other than 0, a time-out and a process that can't be ended make it an error. The
    metadata are ``returncode`` (None after a time-out), ``timed_out``, and ``lost_bytes`` if
    something is missing. Needs a POSIX system.
    """

    name = "bash"
    description = (
        "Run a shell command in the workspace folder. Output and errors come back as one text. "
        "The command has no terminal and no input, and all that it starts ends with it."
    )
    input_model = BashInput

    def __init__(self, output_limit: int = OUTPUT_LIMIT) -> None:
        """Raises ValueError for a limit that has no room for the notes."""
        if output_limit < _SMALLEST_LIMIT:
            raise ValueError(f"output_limit is {output_limit}, but must be at least 1,000 bytes.")
        self.output_limit = output_limit

    def paths(self, arguments: BashInput) -> list[str]:
        """Where the command starts. What it touches is for the rules on its command line."""
        return [as_opened(arguments.cwd or ".")]

    def command(self, arguments: BashInput) -> str:
        return arguments.command

    async def execute(self, arguments: BashInput, context: ToolExecutionContext) -> ToolResult:
        if part := asks_questions(arguments.command):
            return ToolResult(
                f"The command was not run: `{part}` would ask questions, and nobody can answer "
                "them. Add its flag for that, such as --yes, -y or --no-input.",
                is_error=True,
                metadata={"interactive_required": True},
            )
        # A layer that keeps large outputs gives more room.
        limit = context.metadata.get("output_room", self.output_limit)
        output = HeadTail(limit)
        try:
            ended = await run_process(
                [_shell(), "-c", "--", _checked(arguments.command)],
                cwd=_folder(context.cwd, arguments.cwd),
                env=child_environment(),
                seconds=arguments.timeout_seconds,
                receive=output.feed,
            )
        except NotStarted as error:
            return ToolResult(f"The command was not run. {error}.", is_error=True)
        output.finish()
        return _result(arguments, ended, output, limit)


def _result(arguments: BashInput, ended: Ended, output: HeadTail, limit: int) -> ToolResult:
    first = ""
    last = _verdict(ended)
    if ended.timed_out:
        first = f"Command timed out after {arguments.timeout_seconds} seconds.\n"
    room = limit - len(first) - len(last)
    metadata = {"returncode": ended.returncode, "timed_out": ended.timed_out}
    if lost := output.missing(room):
        metadata["lost_bytes"] = lost
    is_error = bool(ended.returncode != 0 or ended.survivors)
    return ToolResult(first + (output.text(room) or "(no output)") + last, is_error, metadata)


def child_environment() -> dict[str, str]:
    """The environment of this process, for a command that a model wrote.

    Secrets stay here, by the last word of their names. Nothing of a surrounding pytest or
    terminal goes along either, so that a pytest inside is a clean one.
    """
    env = {
        name: value
        for name, value in os.environ.items()
        if not (is_secret_variable(name) or name.startswith("PYTEST_") or name in _SURROUNDINGS)
    }
    if sys.executable:
        # `python` must be the Python that the harness runs on, with its packages: a kernel or a
        # script may run in a virtual environment that nobody has activated.
        here = str(Path(sys.executable).parent)
        env["PATH"] = os.pathsep.join([here, env.get("PATH", os.defpath)])
    return env


def _checked(command: str) -> str:
    if reason := unusable(command):
        raise NotStarted(f"{reason}, and no shell takes that")
    return command


def _shell() -> str:
    if os.name != "posix":
        raise NotStarted("The bash tool needs Linux, macOS, or WSL on Windows")
    shell = shutil.which("bash") or shutil.which("sh")
    if shell is None:
        raise NotStarted("There is neither bash nor sh on the PATH")
    return shell


def _folder(root: Path, wanted: str | None) -> Path:
    if wanted is None:
        return root
    try:
        folder = resolve_inside(root, wanted)
    except OSError as error:
        raise NotStarted(f"{error.strerror}: {wanted!r}") from error
    if not folder.is_dir():
        raise NotStarted(f"There is no such folder: {wanted!r}")
    return folder


def _verdict(ended: Ended) -> str:
    """What the model must know beyond the output."""
    lines = [""]
    if ended.returncode is not None and ended.returncode < 0:
        number = -ended.returncode
        lines.append(f"[ended by signal {number}: {signal.strsignal(number)}]")
    elif ended.returncode:
        lines.append(f"[exit code {ended.returncode}]")
    if ended.survivors:
        ids = ", ".join(map(str, ended.survivors[:10]))
        lines.append(f"[even KILL did not end these processes: {ids}]")
    return "\n".join(lines)


class HeadTail:
    """A text that comes in pieces of bytes, kept whole or, if it is too long, head and tail.

    Takes at most about twice ``limit`` bytes of memory. Bad UTF-8 becomes U+FFFD; a character
    is neither broken where two pieces meet nor where the text is cut.
    """

    def __init__(self, limit: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head, self._tail = bytearray(), bytearray()
        self._sizes = limit // 5, limit - limit // 5
        self._total = 0

    def feed(self, piece: bytes) -> None:
        self._keep(self._decoder.decode(piece))

    def finish(self) -> None:
        """There is no more: an unfinished character at the end becomes one U+FFFD."""
        self._keep(self._decoder.decode(b"", final=True))

    def text(self, room: int) -> str:
        """What was kept, in at most ``room`` UTF-8 bytes, without the line ends at the end."""
        if self._total <= room:
            return (self._head + self._tail).decode().rstrip("\n")
        head, tail = self._ends(room)
        return f"{head}\n[... {self.missing(room):,} bytes left out here ...]\n{tail}".rstrip("\n")

    def missing(self, room: int) -> int:
        """How many UTF-8 bytes ``text(room)`` leaves out."""
        if self._total <= room:
            return 0
        return self._total - sum(len(end.encode()) for end in self._ends(room))

    def _ends(self, room: int) -> tuple[str, str]:
        head = self._head[: room // 5].decode(errors="ignore")
        tail = self._tail[-(room - room // 5 - _MARKER_ROOM) :].decode(errors="ignore")
        return head, tail

    def _keep(self, text: str) -> None:
        data = text.encode()
        self._total += len(data)
        head_size, tail_size = self._sizes
        room = head_size - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: max(0, len(self._tail) - tail_size)]
