"""Replacing a passage of a text file, and nothing beside it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice

from pydantic import BaseModel, Field

from mini_harness.tools.files import MAX_WHOLE, shown_path
from mini_harness.tools.write import BOM, Change, FileChange, Refused, encoded, with_ending
from mini_harness.visible import counted

MOST = 100_000
"""How many passages one call may replace."""

_NAMED = 10
_ENDING = re.compile(rb"\r?\n")


class EditFileInput(BaseModel):
    path: str = Field(description="The file, relative to the workspace folder.")
    old: str = Field(
        min_length=1,
        description="The passage to replace, exactly as it stands in the file, without the line "
        "numbers that read_file shows. It must be there once: give enough lines around it.",
    )
    new: str = Field(description="What stands there afterwards. Empty to delete the passage.")
    replace_all: bool = Field(False, description="Replace every passage that is like this one.")


class EditFile(FileChange):
    """Replace a passage that is in a text file exactly once, or all that are like it (report O04).

    Passages that overlap count, too: "aa" is twice in "aaa", and all of them are replaced from the
    left. Nothing beside the passage changes, not a byte, whatever the encoding is. LF and CRLF
    count as the same; a line end in ``new`` becomes what stood in its place, and what the passage
    or the lines around it have where nothing did. At most ``files.MAX_WHOLE`` bytes.
    """

    name = "edit_file"
    description = (
        "Replace a passage of a text file in the workspace folder. The passage must be in it "
        "exactly once, or replace_all be true. Everything else in the file stays as it is."
    )
    input_model = EditFileInput

    def change(self, wanted: EditFileInput, before: bytes | None, seen: str | None) -> Change:
        if before is None:
            raise FileNotFoundError
        text = _Text(before)
        old, new = with_ending(encoded(wanted.old), b"\n"), encoded(wanted.new)
        if b"\n" in before:
            new = with_ending(new, b"\n")
        if old == new:
            raise Refused("old and new are the same")
        step = len(old) if wanted.replace_all else 1
        most = MOST if wanted.replace_all else _NAMED
        found = list(islice(text.places(old, step), most + 1))
        _check(found, text, old, wanted.replace_all)
        grown = len(before) + len(found) * (len(new) - len(old))
        if grown > MAX_WHOLE:
            raise Refused(f"It would have more than {MAX_WHOLE:,} bytes. Write less")
        lines = ", ".join(f"{text.line(place):,}" for place in found[:_NAMED])
        at = f"line {lines}" if len(found) == 1 else f"lines {lines}"
        more = " and more" if len(found) > _NAMED else ""
        many = counted(len(found), "passage")
        said = f"Edited {shown_path(wanted.path)}: replaced {many}, at {at}{more}."
        return Change(text.replaced(found, len(old), new), said)


def _check(found: list[int], text: _Text, old: bytes, replace_all: bool) -> None:
    """Raise Refused unless the passages are as many as the call wants."""
    if not found:
        raise Refused(f"The passage isn't in it. {text.hint(old)}")
    if replace_all and len(found) > MOST:
        raise Refused(f"The passage is in it more than {MOST:,} times. Use a shell command")
    if not replace_all and len(found) > 1:
        lines = ", ".join(f"{text.line(place):,}" for place in found[:_NAMED])
        times = f"{len(found)} times" if len(found) <= _NAMED else f"more than {_NAMED} times"
        raise Refused(
            f"The passage is in it {times}, at lines {lines}. "
            "Give more of the lines around it, or replace_all"
        )


class _Text:
    """The bytes of a file, searched as if every line ended with LF.

    A place is counted in that plain form. ``_pairs`` are the places of the line ends that have a
    CR before them in the file.
    """

    def __init__(self, data: bytes) -> None:
        self.mark = BOM if data.startswith(BOM) else b""
        self.data = data.removeprefix(BOM)
        self.plain = with_ending(self.data, b"\n")
        self._pairs: list[int] = []
        if len(self.plain) < len(self.data):
            pairs = (match.start() for match in re.finditer(rb"\r\n", self.data))
            self._pairs = [start - count for count, start in enumerate(pairs)]
        # From here to there, this is the next line end: it is asked for in order, again and again.
        self._next = (0, -1, b"")

    def places(self, old: bytes, step: int) -> Iterator[int]:
        """Where a passage begins, each at least ``step`` bytes after the last one."""
        at = self.plain.find(old)
        while at >= 0:
            yield at
            at = self.plain.find(old, at + step)

    def line(self, place: int) -> int:
        return self.plain.count(b"\n", 0, place) + 1

    def replaced(self, places: list[int], length: int, new: bytes) -> bytes:
        """All bytes of the file, with ``new`` for the passages of this plain length."""
        pieces, at = [self.mark], 0
        for place in places:
            start, end = self._in_data(place), self._in_data(place + length)
            pieces += [self.data[at:start], self._adapted(new, start, end)]
            at = end
        return b"".join([*pieces, self.data[at:]])

    def _in_data(self, place: int) -> int:
        return place + bisect_left(self._pairs, place)

    def _adapted(self, new: bytes, start: int, end: int) -> bytes:
        """``new`` with the line ends of what it replaces, one by one, and then of its last one."""
        if b"\n" not in new:
            return new
        ends = _ENDING.findall(self.data, start, end) or [self._near(start)]
        first, *rest = new.split(b"\n")
        ends += [ends[-1]] * (len(rest) - len(ends))
        return first + b"".join(ending + line for ending, line in zip(ends, rest, strict=False))

    def _near(self, start: int) -> bytes:
        """The next line end, or the one before if that was the last line."""
        begin, end, ending = self._next
        if begin <= start <= end:
            return ending
        at = self.data.find(b"\n", start)
        end = len(self.data) if at < 0 else at
        at = self.data.rfind(b"\n", 0, start) if at < 0 else at
        ending = b"\r\n" if at > 0 and self.data[at - 1 : at] == b"\r" else b"\n"
        self._next = (start, end, ending)
        return ending

    def hint(self, old: bytes) -> str:
        """Where something similar is, if it is."""
        wanted = old.strip().split(b"\n")[0].strip()
        lines = self.plain.split(b"\n")
        for number, line in enumerate(lines, 1):
            if wanted and wanted in line:
                return (
                    f"The text of its first line is in line {number:,}, but the rest differs, "
                    "perhaps in its white space. Read the file again and copy it exactly"
                )
        return "Read the file again and copy it exactly"
