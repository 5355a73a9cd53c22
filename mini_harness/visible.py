"""Text that others wrote, made visible: nothing in it may steer a terminal or hide from a person.

What a model, a tool or a file says is shown to people in a terminal, in a notebook, and above all
when somebody is asked to approve it. There a reversed, erased or invisible part would be a lie.
"""

from __future__ import annotations

import re

LONGEST = 4_000
"""How many characters of a text are shown to a person who has to decide about it."""

# Printable by the book, and yet nothing is seen of them: Unicode's Default_Ignorable_Code_Point as
# far as Python prints it, and some empty letters.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
_MANY_SPACES = re.compile(r" {9,}")
_EMPTY_LINES = re.compile(r"\n(?:[ ]*\n){3,}")


def visible(text: str) -> str:
    """The text on one line, in which every character that can't be seen is an escape: ``\\x1b``.

    That covers control characters, line ends, bidirectional and zero-width characters, lone
    surrogates, and letters that look like nothing.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_seen, text))


def visible_lines(text: str) -> str:
    """The same, but lines stay lines."""
    return "\n".join(map(visible, text.replace("\r\n", "\n").split("\n")))


def undisguised(text: str) -> str:
    """Lines for a person who has to decide about them: a long text is shortened, and rows of spaces
    and of empty lines that could push the rest out of sight are replaced by their number."""
    shown = _EMPTY_LINES.sub(_lines, visible_lines(text))
    return _MANY_SPACES.sub(_spaces, shortened(shown))


def _lines(found: re.Match[str]) -> str:
    return f"\n[{found[0].count(chr(10)) - 1:,} empty lines]\n"


def _spaces(found: re.Match[str]) -> str:
    return f" [{len(found[0])} spaces] "


def _seen(char: str) -> str:
    return char if char.isprintable() and not _UNSEEN.match(char) else ascii(char)[1:-1]


def shortened(text: str, longest: int = LONGEST) -> str:
    """Head and tail of a text that is too long to be read, and how much is left out between them
    (SEEDS C37)."""
    if len(text) <= longest:
        return text
    head, tail = longest * 3 // 4, longest // 4
    missing = len(text) - head - tail
    gap = f"[... {missing:,} of {len(text):,} characters are not shown ...]"
    return f"{text[:head]}\n{gap}\n{text[-tail:]}"


def counted(number: int, thing: str) -> str:
    """``1 event``, ``2,000 events``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
