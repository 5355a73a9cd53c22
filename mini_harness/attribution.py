"""Whose exit code a shell line's is (report V01).

``pytest | tail -5`` ends with the code of ``tail``, and ``pytest || true`` with that of ``true``.
An exit code proves something of every program on a line only if the line fails whenever one of
them does: for one plain command, for several with ``&&`` between them, and for a pipe once
``set -o pipefail`` has been said. Of any other line this isn't known, and could not judge is never
yes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mini_harness.command_line import CommandLine, program
from mini_harness.shell_syntax import read_script
from mini_harness.shell_words import Unreadable

_OPTIONS = re.compile(r"set (?:-[eux]+ )?-[eux]*o pipefail|set -[eux]+")
"""How a line may say first what it wants of the shell."""

_PIECE = re.compile(
    r"""(?P<operator>&&|\|\||\|&|;;|[;\n]|(?<![<>])\|(?!&)|(?<![<>])&)"""
    r"""|(?P<unclear>\$['"(\[]|`|[()]|<<|(?<![^\s])\#)"""
    r"""|'[^']*'|"(?P<inside>(?:[^"\\]|\\.)*)"|\\.|[^'"\\]""",
    re.DOTALL,
)
_SUBSTITUTION = re.compile(r"`|\$[(\[]")

# fmt: off
_KEYWORDS = frozenset((
    "!", "{", "}", "[[", "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for",
    "select", "case", "esac", "in", "function", "coproc",
))
_STEERING = frozenset((
    "exec", "exit", "return", "break", "continue", "logout", "suspend", "trap", "set", "shopt",
    "enable", "alias", "hash", "eval", "source", ".", "builtin",
))
"""What may end the line early, or give a later word of it another meaning."""
_TRANSPARENT = frozenset((
    "env", "timeout", "gtimeout", "nice", "ionice", "stdbuf", "time", "nohup", "command", "uv",
))
"""What runs another program and ends with its exit code, or with a failure of its own."""
_RUNNERS = frozenset((
    "find", "fd", "xargs", "parallel", "ssh", "script", "watch", "flock", "busybox", "toybox",
    "npx", "setsid", "systemd-run", "unshare", "chroot", "strace", "ltrace",
))
"""What runs another program and may hide how that ended."""
# fmt: on


def attributable(line: str) -> bool:
    """Whether this line ends with 0 only if every program on it did."""
    return not why_not_attributable(line)


def why_not_attributable(line: str) -> str:
    """Why the exit code of this line proves nothing of its programs, or nothing if it does."""
    try:
        return _objection(line)
    except Unreadable as error:
        return f"the line can't be read: {error}"


def _objection(line: str) -> str:
    """Raises Unreadable."""
    parts = list(_parts(line.strip()))
    if len(parts) > 1 and not parts[-1][0] and parts[-2][1] == ";":
        parts[-2:] = [(parts[-2][0], "")]
    count, pipefail = len(parts), False
    if len(parts) > 1 and parts[0][1] in (";", "\n", "&&") and _OPTIONS.fullmatch(parts[0][0]):
        pipefail = parts.pop(0)[0].endswith("pipefail")
    for text, operator in parts:
        if operator not in ("", "&&") and not (operator in ("|", "|&") and pipefail):
            return _WHY.get(operator, f"{operator!r} stands on it")
        if why := _unclear_command(text):
            return why
    # A line that sets variables is read twice.
    if len(read_script(line).commands) not in (count, 2 * count):
        return "its commands can't be told apart"
    return ""


_WHY = {
    "|": "the exit code is that of the last program of a pipe; say `set -o pipefail;` first",
    "|&": "the exit code is that of the last program of a pipe; say `set -o pipefail;` first",
    "||": "after || another program gives the exit code",
    ";": "after ; another program gives the exit code; use &&",
    "\n": "on the next line another program gives the exit code; use &&",
    "&": "nobody waits for what runs in the background",
}


def _parts(line: str) -> Iterator[tuple[str, str]]:
    """The commands of a line, each with the operator behind it. Raises Unreadable for what could
    hold further commands."""
    start = at = 0
    while at < len(line):
        found = _PIECE.match(line, at)
        if found is None:
            raise Unreadable("a quote isn't closed")
        if found["unclear"] or _SUBSTITUTION.search(found["inside"] or ""):
            raise Unreadable("commands stand within commands, or a comment does")
        at = found.end()
        if found["operator"]:
            yield line[start : found.start()].strip(), found["operator"]
            start = at
    yield line[start:].strip(), ""


def _unclear_command(text: str) -> str:
    """Why this isn't one simple command that ends with its program's exit code, or nothing.

    Raises Unreadable.
    """
    first = next(iter(text.split()), "")
    if not first or first in _KEYWORDS:
        return f"{first or 'a missing command'} changes what the exit code means"
    script = read_script(text)
    # With a variable in it, a line is read twice: the commands of both readings count.
    if not script.commands or script.documents or any(each.unsure for each in script.commands):
        return f"it can't be told which program `{text}` runs"
    known: set[tuple[str, ...]] = set()
    for words in (tuple(each.words) for each in script.commands):
        if not words or program(words) in _STEERING:
            return f"`{text}` is no program, or changes what comes after it"
        known |= {words[start:] for start in range(_wrapped(words) + 1)}
    # Whatever else runs on the line is run by one of these.
    hidden = any(each not in known for each in CommandLine.read(text).commands)
    if hidden or any(program(words) in _RUNNERS for words in known):
        return f"`{text}` runs other commands and may hide how they ended"
    return ""


def _wrapped(words: tuple[str, ...]) -> int:
    """How many of its words may be left out in front of a command that it runs."""
    return len(words) - 1 if program(words) in _TRANSPARENT else 0
