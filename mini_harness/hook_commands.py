"""A hook that is a command line: any program, in any language, may judge (SEEDS B30).

The command learns what it is about in three ways, all the same JSON object:

- on standard input;
- as ``MINI_HARNESS_HOOK_PAYLOAD`` in the environment;
- as ``ARGUMENTS`` there. Write ``"$ARGUMENTS"``, in double quotes, and it is one word.

The two variables hold no more than LONGEST_VARIABLE bytes. A longer payload is a failure of the
hook, so that no model gets by a guard with long arguments. Only for ``Hook(stdin_only=True)``,
which never has these variables, a payload may be as long as it likes.

``ARGUMENTS`` is a variable and no text that is pasted into the line. The shell never reads a
variable's value as code, so no argument of a model can be one, whatever quotes stand around it.

Exit code 0 lets things go on. 2 blocks, and what the command wrote to standard error is the reason.
Every other end means that it failed. Take care: bash ends with 2 too, for a line that isn't valid.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from mini_harness.tools.process import Ended, NotStarted, run_process
from mini_harness.tools.shell import HeadTail, child_environment

LONGEST_VARIABLE = 100_000
"""The longest payload that goes into the environment, in UTF-8 bytes. Linux takes no string of
more than 131,072 there."""

LONGEST_REASON = 2_000
"""How much of a command's standard error is kept as its reason, in UTF-8 bytes."""

BLOCKED = 2
"""The exit code that means no. Other programs with such hooks use the same one."""

_EVENT, _PAYLOAD, _ARGUMENTS = "MINI_HARNESS_HOOK_EVENT", "MINI_HARNESS_HOOK_PAYLOAD", "ARGUMENTS"
_READS_VARIABLE = re.compile(rf"\b(?:{_PAYLOAD}|{_ARGUMENTS})\b")
# The line is a word of its own, so it stays as it is written. Its own output goes nowhere: what
# is left in the pipe is standard error.
_ONLY_ERRORS = 'exec "$0" -c -- "$1" > /dev/null'


class HookFailed(Exception):
    """A hook ended without a yes or a no. The text says how."""


async def run_hook_command(
    line: str, event: str, payload: str, *, cwd: Path, seconds: float, stdin_only: bool = False
) -> str | None:
    """The reason why this command blocks, or None. It and all that it starts end in ``seconds``.

    It gets the environment that ``bash`` gives, without the secrets: what it reads was written by
    a model. Raises HookFailed, and OSError if there is no room for the payload.
    """
    said = HeadTail(LONGEST_REASON)
    # A file, not a pipe: a command that doesn't read its input can't keep anybody waiting.
    with tempfile.TemporaryFile() as file:
        file.write(payload.encode())
        file.seek(0)
        try:
            ended = await run_process(
                [(shell := _shell()), "-c", "--", _ONLY_ERRORS, shell, line],
                cwd=cwd,
                env=_environment(event, None if stdin_only else payload),
                seconds=seconds,
                receive=said.feed,
                stdin=file.fileno(),
            )
        except NotStarted as error:
            raise HookFailed(f"It was not run. {error}.") from error
    said.finish()
    return _verdict(ended, said.text(LONGEST_REASON).strip(), seconds)


def _shell() -> str:
    shell = shutil.which("bash") or shutil.which("sh")
    if os.name != "posix" or shell is None:
        raise HookFailed("It was not run. It needs bash or sh on Linux, macOS, or WSL on Windows.")
    return shell


def variable_in(line: str) -> str:
    """The name of a variable with the payload that this line mentions, or nothing."""
    found = _READS_VARIABLE.search(line)
    return found[0] if found else ""


def _environment(event: str, payload: str | None) -> dict[str, str]:
    env = child_environment()
    for name in (_PAYLOAD, _ARGUMENTS):
        env.pop(name, None)
    env[_EVENT] = event
    if payload is None:
        return env
    size = len(payload.encode())
    if size > LONGEST_VARIABLE:
        # A script that reads the variable would see nothing, find nothing wrong, and say yes. That
        # a line doesn't mention the variable says nothing about the scripts that it calls.
        raise HookFailed(
            f"It was not run. It would learn of {size:,} bytes, too many for a variable. Let it "
            "read standard input, and say so: Hook(..., stdin_only=True)."
        )
    # As these very bytes, whatever encoding the system has.
    text = os.fsdecode(payload.encode())
    return {**env, _PAYLOAD: text, _ARGUMENTS: text}


def _verdict(ended: Ended, said: str, seconds: float) -> str | None:
    if ended.returncode == 0:
        return None
    if ended.returncode == BLOCKED:
        return said or "It gave no reason."
    how = f"exit code {ended.returncode}"
    if ended.returncode is None:
        how = f"it didn't end within {seconds:g} seconds"
    elif ended.returncode < 0:
        how = f"ended by signal {-ended.returncode}"
    raise HookFailed(f"{how}: {said}" if said else f"{how}.")
