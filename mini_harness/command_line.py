"""Which commands a line of bash runs, and which of them are never run here.

An allow rule for ``git status *`` must not carry ``git status && rm -rf d`` (reports P01, P02).
So a pattern *covers* a line only if the line is plain and every command in it fits; and it
*touches* a line if any command in it fits, at any depth: in substitutions, in ``bash -c`` and
``eval``, behind ``env``, ``timeout`` or ``xargs``.

What is denied here is a seat belt and no sandbox. A command that hides behind a glob, a variable
that isn't set on the line, or ``base64 -d | sh`` isn't recognised. But such a line isn't plain, and
so somebody is asked about it in every mode. A plain command that is a program of its own, such as
``python -c``, ``awk``, ``make`` or ``find -delete``, may do anything, and nothing of it is seen.
"""

from __future__ import annotations

import itertools
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from mini_harness.sensitive import path_texts
from mini_harness.shell_syntax import Command, read_script
from mini_harness.shell_words import DEEPEST, Unreadable

_SHELLS = frozenset(
    ("sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash", "csh", "tcsh")
)
_EVALUATORS = frozenset(("eval", "trap", ".", "source"))
_INTERPRETER = re.compile(r"(?:python|pypy|perl|ruby|node|php|lua|tclsh|deno|bun)[\d.]*")
_ONLY_TELLS = frozenset(("-h", "--help", "-v", "-V", "-VV", "--version"))
_INPUT = frozenset(("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))
# fmt: off
_WRAPPERS = frozenset((
    "env", "timeout", "gtimeout", "nice", "ionice", "chrt", "taskset", "nohup", "setsid",
    "stdbuf", "time", "command", "exec", "builtin", "coproc", "function", "xargs", "parallel",
    "busybox", "toybox", "watch", "script", "flock", "strace", "ltrace", "unshare", "nsenter",
    "chroot", "fakeroot", "systemd-run", "caffeinate", "find", "fd", "compgen", "mapfile",
    "readarray", "ssh", "prlimit", "setarch", "linux32", "linux64", "setpriv", "choom", "pkexec",
    "run0", "runuser", "coresched", "uv", "npx",
))
# fmt: on
_WRAPS_AFTER = {
    "find": ("-exec", "-execdir", "-ok", "-okdir"),
    "fd": ("-x", "--exec", "-X", "--exec-batch"),
}
_REDEFINES = frozenset(("alias", "hash", "enable"))
# `printf -v 'a[$(x)]'` and other builtins evaluate what stands in the brackets, quoted or not.
_SUBSCRIPT = re.compile(r"\[.*[$`]", re.DOTALL)
_MOST_WORDS = 200
_MOST_FOLDERS = 64
_UNTOLD_FOLDER = re.compile(r"-|[-+]\d+")
_FOLDER_OPTION = re.compile(r"--|-[PLen@]+")
_NEVER = ("rm", "sudo", "su", "doas", "shutdown", "reboot", "halt", "poweroff", "mkfs*", "dd")
_DEVICE = re.compile(r"//?dev/(?!(?:null|stdout|stderr|tty|fd/\d+|shm/.+)\Z)")
_OPTION = re.compile(r"-\w(?=\w)|--[\w-]+=")
_WILD = re.compile(r"[*?[]")
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

    def meets(self, words: Sequence[str]) -> bool:
        """Whether this may be such a command: the same program, whatever its path, and somewhere
        behind it, in this order, the other words of the pattern."""
        first, *others = (word for at, word in enumerate(self._words) if word != "*" or not at)
        named = first if _WILD.search(first) else first.rpartition("/")[2]
        if not (fnmatchcase(words[0], first) or fnmatchcase(program(words), named.casefold())):
            return False
        left = iter(words[1:])
        return all(any(fnmatchcase(word, other) for word in left) for other in others)


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
    folders: list[str] = field(default_factory=lambda: [""])
    """Where its commands may run, seen from where the line starts."""

    @classmethod
    def read(cls, text: str) -> CommandLine:
        """Take a line apart. Raises Unreadable."""
        line = cls()
        _Finder(line).read(text, 0)
        for folder in filter(None, map(_folder, line.commands)):
            line.folders += [posixpath.join(each, folder) for each in line.folders]
            line.folders = list(dict.fromkeys(line.folders))
            if len(line.folders) > _MOST_FOLDERS:
                raise Unreadable("it changes its folder too often")
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

    def uses(self, pattern: CommandPattern) -> bool:
        """Whether some command of it is allowed by this pattern."""
        return any(map(pattern.fits, self.commands))

    def touched(self, pattern: CommandPattern) -> str:
        """The first command that the pattern is for, whatever path its program has, or nothing."""
        for words in self.commands:
            if pattern.meets(words):
                return shlex.join(words)
        return ""

    def paths(self) -> Iterator[str]:
        """Every text on the line, and every part of one, that could be a path."""
        for text in dict.fromkeys(self.texts):
            yield from path_texts(text)

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


def _folder(words: tuple[str, ...]) -> str:
    """The folder that a command goes to, or works in, or nothing."""
    others = words[1:]
    if program(words) in ("cd", "pushd"):
        found = next((each for each in others if not _FOLDER_OPTION.fullmatch(each)), "~")
    else:
        found = next((other for each, other in itertools.pairwise(others) if each == "-C"), "")
    return posixpath.expanduser(found)


def _unforeseen(words: tuple[str, ...]) -> bool:
    """Whether a command does what isn't on the line: it runs its input, or goes back somewhere."""
    name, others = program(words), words[1:]
    if name in _SHELLS or name in _EVALUATORS or name == "popd":
        return True
    if name in ("cd", "pushd"):
        return any(map(_UNTOLD_FOLDER.fullmatch, others)) or (name == "pushd" and not others)
    if not _INTERPRETER.fullmatch(name) or (others and _ONLY_TELLS.issuperset(others)):
        return False
    return not _INPUT.isdisjoint(others) or all(each.startswith("-") for each in others)


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
        if _unforeseen(words) or name in _REDEFINES or any(map(_SUBSCRIPT.search, words)):
            self._line.plain = False
        if name not in _WRAPPERS and not unsure:
            return
        # Without a command to wrap, some run a shell.
        self._line.plain &= name in _WRAPS_AFTER
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
