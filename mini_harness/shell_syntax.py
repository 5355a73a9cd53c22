"""Reads a line of bash well enough to be safe: which commands are in it, at any depth.

This is no shell. It takes quotes, operators, substitutions, here-documents and redirections
apart, and it knows the difference between a line whose words mean exactly what is written and any
other line. Where it can't follow, it raises Unreadable, and nobody allows what can't be read. Of
all that has branches (``if``, ``case``, ``||``) every branch counts.

The parser for bash that is on PyPI, bashlex, has had no release since 2023 and a licence (GPL)
that this package can't take in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from mini_harness.shell_words import SPLIT, Unreadable, WordReader

LONGEST = 100_000
"""Longer lines, in characters, are not read."""


@dataclass(frozen=True, slots=True)
class Redirection:
    operator: str
    target: str

    @property
    def harmless(self) -> bool:
        """Whether it opens no file: ``2>&1``, ``/dev/null``, or what is open already."""
        duplicates = self.operator in (">&", "<&") and _DESCRIPTOR.fullmatch(self.target)
        nowhere = self.target == "/dev/null" and self.operator in (*_WRITES, "<")
        again = self.target in ("/dev/stdout", "/dev/stderr") and self.operator in _WRITES
        return bool(duplicates or nowhere or again)


@dataclass(slots=True)
class Command:
    """One simple command. Words are without their quotes; what expands to nothing is left out."""

    words: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    """What it assigns in front of its first word."""
    redirections: list[Redirection] = field(default_factory=list)
    loops: bool = False
    """Whether it is the head of a loop: a variable, "in", and its values."""
    unsure: bool = False
    """Whether its first word may be another one, or none, once a shell expands it."""


@dataclass(slots=True)
class Script:
    """All commands of a line. ``plain`` if nothing in it means anything but what is written."""

    commands: list[Command] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    """The bodies of its here-documents."""
    plain: bool = True


_OPERATOR = re.compile(r"&&|\|\||\|&|;;&|;;|;&|[;&|\n]")
_REDIRECTION = re.compile(r"([0-9]+|\{\w+\})?(<<<|<<-|<<|<>|<&|>>|>&|>\||<|>)|(&>>|&>)")
_WRITES = (">", ">>", "&>", "&>>")
_DESCRIPTOR = re.compile(r"[0-9]+|-")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?(\+?)=(.*)", re.DOTALL)
# fmt: off
_KEYWORDS = frozenset((
    "!", "{", "}", "[[", "if", "then", "elif", "else", "fi", "while", "until", "do", "done",
    "for", "select", "case", "esac", "in",
))
# fmt: on


def read_script(text: str) -> Script:
    """Take a line apart. Raises Unreadable, and nothing else."""
    if len(text) > LONGEST:
        raise Unreadable(f"it is longer than {LONGEST:,} characters")
    if "\0" in text:
        raise Unreadable("it holds a NUL character")
    script, known = Script(), {"HOME": str(Path.home()), "IFS": " "}
    variables = {**known}
    _Reader(text, script, variables, 0).commands()
    if variables != known:
        # What was set in a subshell or for one command doesn't hold elsewhere. So read it again
        # as if nothing had been set: the commands of both readings count.
        _Reader(text, script, _Unset(known), 0).commands()
    return script


class _Unset(dict[str, str]):
    """Variables that no assignment sets."""

    def __setitem__(self, name: str, value: str) -> None:
        return None


class _Reader(WordReader):
    """Reads commands, and adds them to the script."""

    def __init__(self, text: str, script: Script, variables: dict[str, str], depth: int) -> None:
        super().__init__(text, variables, depth)
        self.script = script
        self.cases = 0
        self.pending: list[tuple[str, bool, bool]] = []

    def commands(self, closing: str = "") -> None:
        """Read commands up to ``closing``, or to the end of the text."""
        if self.pending:
            raise Unreadable("a here-document stands beside parentheses")
        command = Command()
        while (char := self._token()) != closing:
            if not char:
                raise Unreadable(f"a {closing} is missing")
            if char == "(":
                command = self._finish(command)
                self.group()
            elif char == ")":
                self._end_of_pattern()
                command = self._finish(command)
            elif (found := self.match(_REDIRECTION)) and not self.substitutes():
                self._redirect(command, found)
            elif found := self.match(_OPERATOR):
                command = self._finish(command)
                self.at = found.end()
                if found[0] == "\n":
                    self._documents()
            else:
                self._add_word(command)
        self._finish(command)
        if self.pending:
            raise Unreadable("a here-document has no text")

    def _token(self) -> str:
        """Go to the next token, over blanks and comments. Its first character, or ""."""
        while char := self.text[self.at : self.at + 1]:
            if self.text.startswith("\\\n", self.at):
                self.odd()
                self.at += 2
            elif char in " \t":
                self.at += 1
            elif char == "#":
                self.forbid_in_arithmetic("a comment")
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                break
        return char

    def odd(self) -> None:
        self.script.plain = False

    def inside(self, text: str) -> _Reader:
        return _Reader(text, self.script, self.variables, self.depth + 1)

    def _finish(self, command: Command) -> Command:
        if command.words or command.values or command.redirections:
            self.script.commands.append(command)
        if command.loops and command.words:
            self.variables[command.words[0]] = " ".join(command.words[2:])
        return Command()

    def _end_of_pattern(self) -> None:
        if not self.cases:
            raise Unreadable("a ) closes nothing")
        self.at += 1

    # Words

    def _add_word(self, command: Command) -> None:
        start = self.at
        words = self.word()
        written = self.text[start : self.at]
        if command.words:
            command.words += words
        elif written in _KEYWORDS:
            self._keyword(written)
            command.loops = written in ("for", "select")
        elif found := _ASSIGNMENT.fullmatch(SPLIT.join(words)) if "=" in written else None:
            self.odd()
            value = found[3].replace(SPLIT, " ")
            before = self.variables.get(found[1], "") if found[2] else ""
            self.variables[found[1]] = before + value
            command.values.append(value)
        else:
            if words != [written]:
                self.odd()
            command.unsure = command.unsure or any(char in written for char in "$`*?[{~")
            command.words += words

    def _keyword(self, word: str) -> None:
        self.odd()
        if word == "case":
            if self.depth:
                raise Unreadable("a case stands in a substitution or a subshell")
            self.cases += 1
        elif word == "esac":
            self.cases = max(0, self.cases - 1)

    # Redirections

    def _redirect(self, command: Command, found: re.Match[str]) -> None:
        self.at = found.end()
        operator = found[2] or found[3]
        self._token()
        start = self.at
        words = self.word()
        written = self.text[start : self.at]
        if not written:
            raise Unreadable(f"a target is missing after {operator}")
        if operator in ("<<", "<<-"):
            return self._expect_document(operator, written, words)
        for word in words or [""]:
            redirection = Redirection(operator, word)
            command.redirections.append(redirection)
            if not redirection.harmless or (found[1] or "").startswith("{"):
                self.odd()
        return None

    def _expect_document(self, operator: str, written: str, words: list[str]) -> None:
        self.odd()
        self.forbid_in_arithmetic("a here-document")
        if len(words) != 1 or any(char in written for char in "$`\n"):
            raise Unreadable("the end of a here-document can't be told")
        self.pending.append((words[0], operator == "<<-", words[0] != written))

    def _documents(self) -> None:
        """Read the texts that were announced on the line that ends here."""
        pending, self.pending = self.pending, []
        for end, indented, quoted in pending:
            body = self._body(end, indented, quoted)
            self.script.documents.append(body)
            if not quoted:
                self.inside(body).quoted()

    def _body(self, end: str, indented: bool, quoted: bool) -> str:
        lines: list[str] = []
        while self.at < len(self.text):
            line = self._line()
            while not quoted and (len(line) - len(line.rstrip("\\"))) % 2:
                line = line[:-1] + self._line()
            line = line.lstrip("\t") if indented else line
            if line == end:
                return "\n".join(lines)
            lines.append(line)
        raise Unreadable(f"a here-document isn't ended by {end}")

    def _line(self) -> str:
        if self.at >= len(self.text):
            raise Unreadable("a here-document never ends")
        start, end = self.at, self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        self.at = end + 1
        return self.text[start:end]
