"""Which commands a line of bash runs, and which of them are never run here.

An allow rule for ``git status *`` must not carry ``git status && rm -rf d`` (reports P01, P02).
So a pattern *covers* a line only if the line is plain and every command in it fits; and it
*touches* a line if any command in it fits, at any depth: in substitutions, in ``bash -c`` and
``eval``, behind ``env``, ``timeout`` or ``xargs``.

What is denied here is a seat belt and no sandbox. A command that hides behind a glob, a variable
that isn't set on the line, ``base64 -d | sh`` or ``python -c`` isn't recognised. It isn't allowed
either: bash never only reads, so somebody is asked.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from mini_harness.shell_syntax import Command, read_script
from mini_harness.shell_words import DEEPEST, Unreadable

_SHELLS = frozenset(
    ("sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash", "csh", "tcsh")
)
_EVALUATORS = frozenset(("eval", "trap"))
# fmt: off
_WRAPPERS = frozenset((
    "env", "timeout", "gtimeout", "nice", "ionice", "chrt", "taskset", "nohup", "setsid",
    "stdbuf", "time", "command", "exec", "builtin", "coproc", "function", "xargs", "parallel",
    "busybox", "toybox", "watch", "script", "flock", "strace", "ltrace", "unshare", "nsenter",
    "chroot", "fakeroot", "systemd-run", "caffeinate", "find", "fd", "compgen", "mapfile",
    "readarray", "ssh",
))
# fmt: on
_WRAPS_AFTER = {"find": ("-exec", "-execdir", "-ok", "-okdir"), "fd": ("-x", "--exec", "-X")}
_MOST_WORDS = 200
_NEVER = ("rm", "sudo", "su", "doas", "shutdown", "reboot", "halt", "poweroff", "mkfs*", "dd")
_DEVICE = re.compile(r"//?dev/(?!(?:null|stdout|stderr|tty|fd/\d+|shm/.+)\Z)")
_OPTION = re.compile(r"-\w(?=\w)|--[\w-]+=")
_NOT_IN_PATHS = re.compile(r"[\s=:@,;'\"()<>|&]+")
_OPERATORS = frozenset(";&|<>()$`\n\\'\"")


class CommandPattern:
    """A pattern for one command: each word for one word of it, a last ``*`` for any others."""

    def __init__(self, text: str) -> None:
        """Raises ValueError for a pattern that is blank or holds what only a shell understands."""
        if wrong := _OPERATORS & set(text):
            raise ValueError(
                f"The command pattern {text!r} holds {min(wrong)!r}. A pattern is for a single "
                "command, word by word, as its words are without quotes."
            )
        self._words = text.split()
        if not self._words:
            raise ValueError("A command pattern must not be blank.")

    def fits(self, words: Sequence[str]) -> bool:
        """Whether these are the words of such a command."""
        pattern = self._words
        if pattern[-1] == "*":
            pattern = pattern[:-1]
            words = words[: len(pattern)]
        return len(words) == len(pattern) and all(map(fnmatchcase, words, pattern))


@dataclass
class CommandLine:
    """All that is known of a line. ``plain`` if its words mean exactly what is written."""

    plain: bool = True
    commands: list[tuple[str, ...]] = field(default_factory=list)
    """Every command that it may run, at any depth, as words without quotes."""
    texts: list[str] = field(default_factory=list)
    """Every word, assigned value and target of a redirection."""
    written: list[str] = field(default_factory=list)
    """The targets of the redirections that write."""

    @classmethod
    def read(cls, text: str) -> CommandLine:
        """Take a line apart. Raises Unreadable."""
        line = cls()
        _Finder(line).read(text, 0)
        return line

    def uncovered(self, *patterns: CommandPattern) -> str:
        """Why allow rules with these patterns don't allow the line, or nothing if they do."""
        if not self.plain:
            return "more than plain commands"
        if not self.commands:
            return "no command"
        for words in self.commands:
            if not any(pattern.fits(words) for pattern in patterns):
                return shlex.join(words)
        return ""

    def touched(self, pattern: CommandPattern) -> str:
        """The first command that the pattern is for, whatever path its program has, or nothing."""
        for words in self.commands:
            if pattern.fits(words) or pattern.fits((program(words), *words[1:])):
                return shlex.join(words)
        return ""

    def paths(self) -> Iterator[str]:
        """Every text on the line, and every part of one, that could be a path."""
        for text in dict.fromkeys(self.texts):
            yield text
            pieces = _NOT_IN_PATHS.split(text)
            yield from pieces if len(pieces) > 1 else ()

    def objection(self) -> str:
        """Why this line is never run here, whatever the rules say (SEEDS C22), or nothing."""
        for words in self.commands:
            if any(fnmatchcase(program(words), never) for never in _NEVER):
                return f"{program(words)} isn't run here: {shlex.join(words)}"
        for target in self.written:
            if _DEVICE.match(posixpath.normpath(target)):
                return f"It would write to a device: {target}"
        return ""


def program(words: Sequence[str]) -> str:
    """The name of the program that a command runs, without its folder."""
    return words[0].rpartition("/")[2].casefold()


class _Finder:
    """Adds to a line what runs in it, and what runs in that."""

    def __init__(self, line: CommandLine) -> None:
        self._line = line
        self._seen: set[str] = set()

    def read(self, text: str, depth: int) -> None:
        if text in self._seen:
            return
        if depth > DEEPEST:
            raise Unreadable(f"commands in commands go deeper than {DEEPEST} levels")
        self._seen.add(text)
        script = read_script(text)
        self._line.plain &= script.plain
        inputs = list(script.documents)
        for command in script.commands:
            self._add(command, depth)
            inputs += [r.target for r in command.redirections if r.operator == "<<<"]
        if any(program(words) in _SHELLS for words in self._line.commands):
            # A shell reads commands from its input.
            for each in inputs:
                self.read(each, depth + 1)

    def _add(self, command: Command, depth: int) -> None:
        line = self._line
        line.texts += [*command.words, *command.values]
        for redirection in command.redirections:
            line.texts.append(redirection.target)
            if redirection.operator not in ("<", "<&", "<<<"):
                line.written.append(redirection.target)
        for words in self._commands(tuple(command.words), command.unsure):
            line.commands.append(words)
            for text in _texts_run_by(words):
                self.read(text, depth + 1)

    def _commands(self, words: tuple[str, ...], unsure: bool) -> Iterator[tuple[str, ...]]:
        """The command, and what it may run if it only wraps others: every tail of its words."""
        if not words:
            return
        yield words
        name = program(words)
        if name in _SHELLS or name in _EVALUATORS:
            self._line.plain = False
        if name not in _WRAPPERS and not unsure:
            return
        if len(words) > _MOST_WORDS:
            raise Unreadable(f"a command that may run others has more than {_MOST_WORDS} words")
        marks = None if unsure else _WRAPS_AFTER.get(name)
        starts = [i for i in range(1, len(words)) if marks is None or words[i - 1] in marks]
        self._line.plain &= not starts
        yield from (words[start:] for start in starts)


def _texts_run_by(words: tuple[str, ...]) -> list[str]:
    """The words of a command that are command lines themselves."""
    name, arguments = program(words), words[1:]
    if name in _SHELLS:
        return [each for each in arguments if not each.startswith("-")]
    if name in _EVALUATORS:
        return [" ".join(arguments)] if name == "eval" else list(arguments[:1])
    if name in _WRAPPERS:
        return [_OPTION.sub("", each, count=1) for each in arguments if re.search(r"\s", each)]
    return []
