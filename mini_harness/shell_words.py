"""Reads the words of bash: quotes, escapes, and expansions as far as their values are known."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable

DEEPEST = 20
"""Deeper nesting is not read."""

SPLIT = "\0"
"""Stands where an expansion breaks a word. It can't stand in a command line."""

_PLAIN = re.compile(r"[\w./:=@%+,^-]+")
_VARIABLE = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_BRACED = re.compile(r"\$\{[#!]?(\w+|[@*#?$!-])(:?[-=+])?")
_BACKQUOTED = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
_ANSI_NAMED = dict(zip("abefnrtvE", "\a\b\x1b\f\n\r\t\v\x1b", strict=True))
# Only what can't hold a command, a comment or a here-document.
_ARITHMETIC = re.compile(r"\(\([\w \t+*/%=!&|?:,^~<>$-]*\)\)")
_BLANKS = re.compile(r"[ \t\n]+")


class Unreadable(ValueError):
    """A command line couldn't be taken apart. The text says why."""


class WordReader(ABC):
    """Reads one text from left to right. ``at`` is where it is."""

    def __init__(self, text: str, variables: dict[str, str], depth: int) -> None:
        """Raises Unreadable if this text lies too deep in others."""
        self.text, self.variables, self.depth = text, variables, depth
        self.at = 0
        self.arithmetic = 0
        self.check_depth()

    @abstractmethod
    def odd(self) -> None:
        """Something means more than what is written."""

    @abstractmethod
    def commands(self, closing: str = "") -> None:
        """Read commands up to ``closing``, or to the end of the text."""

    @abstractmethod
    def inside(self, text: str) -> WordReader:
        """A reader for a text within this text."""

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return pattern.match(self.text, self.at)

    def substitutes(self) -> bool:
        return self.text.startswith(("<(", ">("), self.at)

    def forbid_in_arithmetic(self, what: str) -> None:
        if self.arithmetic:
            raise Unreadable(f"{what} stands between double parentheses")

    def group(self) -> None:
        """A subshell, the parentheses of a function or a list, or arithmetic."""
        self.odd()
        if found := self.match(_ARITHMETIC):
            self.at = found.end()
            return
        twice = self.text.startswith("((", self.at)
        self.at += 1
        self.arithmetic += twice
        self.nested()
        self.arithmetic -= twice

    def nested(self) -> None:
        self.odd()
        self.depth += 1
        self.check_depth()
        self.commands(")")
        self.depth -= 1
        self.at += 1

    def check_depth(self) -> None:
        if self.depth > DEEPEST:
            raise Unreadable(f"it is nested deeper than {DEEPEST} levels")

    def word(self) -> list[str]:
        """One word as written. It may be several, or none, once its expansions are done."""
        parts, quoted = [""], False
        while char := self.text[self.at : self.at + 1]:
            if found := self.match(_PLAIN):
                parts.append(found[0])
                self.at = found.end()
            elif char in " \t\n;&|()" or (char in "<>" and not self.substitutes()):
                break
            else:
                quoted = quoted or char in "'\"" or self.text.startswith(("$'", '$"'), self.at)
                parts.append(self._piece(char))
        words = [word for word in "".join(parts).split(SPLIT) if word]
        return words or ([""] if quoted else [])

    def _piece(self, char: str) -> str:
        """What is no plain text, outside of quotes."""
        readers: dict[str, Callable[[], str]] = {
            "'": self._single,
            '"': self._double,
            "\\": self._escaped,
            "$": self._unquoted_expansion,
            "`": self._backquoted,
        }
        if char in readers:
            return readers[char]()
        self.odd()
        if char in "<>":
            self.at += 2
            self.nested()
            return ""
        if char.isspace() or not char.isprintable():
            raise Unreadable(f"it holds {char!a} outside of quotes")
        self.at += 1
        return char

    def _single(self) -> str:
        self.forbid_in_arithmetic("a quote")
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unreadable("a ' is never closed")
        inside = self.text[self.at + 1 : end]
        self.at = end + 1
        return inside

    def _double(self) -> str:
        self.at += 1
        inside = self.quoted('"')
        self.at += 1
        return inside

    def _escaped(self) -> str:
        char = self.text[self.at + 1 : self.at + 2]
        if not char:
            raise Unreadable("it ends with a backslash")
        self.at += 2
        if char == "\n":
            self.odd()
            return ""
        return char

    def quoted(self, closing: str = "") -> str:
        """Read as between double quotes, up to ``closing`` or to the end of the text."""
        parts = []
        while (char := self.text[self.at : self.at + 1]) != closing:
            if not char:
                raise Unreadable('a " is never closed')
            following = self.text[self.at + 1 : self.at + 2]
            if char == "\\" and following and following in '$`"\\\n':
                parts.append(self._escaped())
            elif char == "$" and following != "'":
                parts.append(self._expansion())
            elif char == "`":
                parts.append(self._backquoted())
            else:
                parts.append(char)
                self.at += 1
        return "".join(parts)

    # Expansions: what is known of their values, else nothing

    def _unquoted_expansion(self) -> str:
        if self.text.startswith('$"', self.at):
            self.odd()
            self.at += 1
            return self._double()
        if found := self.match(_ANSI):
            self.odd()
            self.at = found.end()
            return _ANSI_ESCAPE.sub(_unescape, found[1]).split("\0")[0]
        return _BLANKS.sub(SPLIT, self._expansion())

    def _expansion(self) -> str:
        self.odd()
        self.at += 1
        if found := self.match(_ARITHMETIC):
            self.at = found.end()
        elif self.text.startswith("(", self.at):
            self.group()
        elif self.text.startswith("{", self.at):
            self.at -= 1
            return self._braced()
        elif found := self.match(_VARIABLE):
            self.at = found.end()
            return self.variables.get(found[0], "")
        elif self.text.startswith(("[", "'", "\\\n"), self.at):
            raise Unreadable(f"it holds ${self.text[self.at]}")
        else:
            return "$"
        return ""

    def _braced(self) -> str:
        found = self.match(_BRACED)
        if found is None:
            raise Unreadable("it holds a ${ that isn't followed by a name")
        self.at = found.end()
        parts = []
        while (char := self.text[self.at : self.at + 1]) != "}":
            if not char or char == "'" or self.substitutes():
                raise Unreadable("it holds a ${...} that can't be followed")
            if char in '"\\$`':
                parts.append(self._piece(char))
            else:
                parts.append(char)
                self.at += 1
        self.at += 1
        otherwise = "".join(parts) if found[2] else ""
        if "+" in (found[2] or ""):
            # Of a variable that may be set or not, it may be there or not.
            return otherwise if found[1] in self.variables else otherwise + SPLIT
        return self.variables.get(found[1], otherwise)

    def _backquoted(self) -> str:
        self.odd()
        found = self.match(_BACKQUOTED)
        if found is None or '\\"' in found[1]:
            raise Unreadable("it holds a ` that can't be followed")
        self.at = found.end()
        self.inside(re.sub(r"\\([`$\\])", r"\1", found[1])).commands()
        return ""


def _unescape(found: re.Match[str]) -> str:
    two, four, eight, octal, control, named = found.groups()
    if number := two or four or eight:
        code = int(number, 16)
    elif octal:
        code = int(octal, 8) & 0xFF
    elif control:
        code = ord(control) & 0x1F
    else:
        return _ANSI_NAMED.get(named, named if named in "\\'\"?" else f"\\{named}")
    if code > 0x10FFFF:
        raise Unreadable("it names a character that there isn't")
    return chr(code)
