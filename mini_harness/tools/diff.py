"""What would change in a file, for the person who is asked: a unified diff with bounds.

It is made in a bounded time, too, whatever is compared. First what both have in common at the
beginning and at the end is left out, then lines that each side has exactly once are taken for the
same line (the idea of patience diff), and only the small gaps between those are compared in full.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

MAX_BYTES = 8 * 1024
"""The longest diff, in UTF-8 bytes, its closing note included."""

MAX_LINE = 240
"""The longest line in it, in bytes of the file."""

MAX_RUN = 60
"""How many lines that are removed or added in one place are shown."""

MAX_COMPARED = 100_000
"""If the first and the last difference are further apart, in lines, all between them counts as
changed: who asks for a preview waits for it."""

_CONTEXT = 3
_NOTE_ROOM = 256
_STEPS = 4_000_000
"""How many steps of comparing are affordable: about one second."""
_LEAD = 60


class _Change(NamedTuple):
    """Lines a1 to a2 of the old text become lines b1 to b2 of the new one; the ends don't count."""

    a1: int
    a2: int
    b1: int
    b2: int


def unified_diff(name: str, before: bytes | None, after: bytes) -> str:
    """The diff in at most MAX_BYTES. If something isn't shown, the last line says so.

    That line names a fingerprint of the whole change: of two new contents that one file could get,
    the texts are never the same. ``before`` is None for a file that isn't there yet.
    """
    lines = [f"--- {name}" if before is not None else "--- (a new file)", f"+++ {name}"]
    room = MAX_BYTES - _NOTE_ROOM - sum(len(line.encode()) + 1 for line in lines)
    whole = True
    for line, complete in _diff(before or b"", after):
        room -= len(line.encode()) + 1
        whole = whole and complete and room >= 0
        if room < 0:
            break
        lines.append(line)
    if not whole:
        mark = hashlib.sha256(after + hashlib.sha256(before or b"").digest()).hexdigest()[:16]
        lines.append(f"[Not all of it is shown. The whole change has the fingerprint {mark}.]")
    return "\n".join(lines)


def _diff(before: bytes, after: bytes) -> Iterator[tuple[str, bool]]:
    """The lines of all hunks, each with whether it shows all that it stands for."""
    start, old, new = _middle(before, after)
    a, b = _lines(old), _lines(new)
    first = before.count(b"\n", 0, start) + 1
    # Where nothing was, or no line end, those that come are worth seeing.
    plain = b"\r\n" in before and _all_crlf(before) and _all_crlf(after)
    for hunk in _hunks(_changes(a, b)):
        low, high = max(0, hunk[0].a1 - _CONTEXT), min(len(a), hunk[-1].a2 + _CONTEXT)
        b_low, b_high = max(0, hunk[0].b1 - _CONTEXT), min(len(b), hunk[-1].b2 + _CONTEXT)
        yield f"@@ -{first + low},{high - low} +{first + b_low},{b_high - b_low} @@", True
        at = low
        for change in hunk:
            yield from _run(" ", a[at : change.a1], (), plain)
            removed, added = a[change.a1 : change.a2], b[change.b1 : change.b2]
            yield from _run("-", removed, added, plain)
            yield from _run("+", added, removed, plain)
            at = change.a2
        yield from _run(" ", a[at:high], (), plain)


def _middle(before: bytes, after: bytes) -> tuple[int, bytes, bytes]:
    """Where the first difference is, some lines earlier, and from there what differs, and some
    lines more."""
    start = _common(before, after)
    ending = _common(before[start:][::-1], after[start:][::-1])
    for _ in range(_CONTEXT + 1):
        start = before.rfind(b"\n", 0, max(0, start - 1)) + 1 if start else 0
    end = len(before) - ending
    for _ in range(_CONTEXT + 1):
        end = before.find(b"\n", end) + 1 or len(before)
    return start, before[start:end], after[start : end + len(after) - len(before)]


def _common(a: bytes, b: bytes) -> int:
    """How many bytes are the same at the beginning."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        half = (low + high + 1) // 2
        if a[low:half] == b[low:half]:
            low = half
        else:
            high = half - 1
    return low


def _lines(data: bytes) -> list[bytes]:
    *ended, last = data.split(b"\n")
    return [line + b"\n" for line in ended] + ([last] if last else [])


def _all_crlf(data: bytes) -> bool:
    return data.count(b"\r\n") == data.count(b"\n")


def _changes(a: Sequence[bytes], b: Sequence[bytes]) -> list[_Change]:
    """The places that differ, in order."""
    if max(len(a), len(b)) > MAX_COMPARED:
        return [_trimmed(a, b, _Change(0, len(a), 0, len(b)))]
    found: list[_Change] = []
    steps = _STEPS
    i = j = 0
    for next_i, next_j in [*_anchors(a, b), (len(a), len(b))]:
        gap = _trimmed(a, b, _Change(i, next_i, j, next_j))
        i, j = next_i + 1, next_j + 1
        height, width = gap.a2 - gap.a1, gap.b2 - gap.b1
        steps -= height * width * min(height, width)
        if height and width and steps > 0:
            found += _compared(a, b, gap)
        elif height or width:
            found.append(gap)
    return found


def _trimmed(a: Sequence[bytes], b: Sequence[bytes], gap: _Change) -> _Change:
    """The gap without the lines that are the same at its two ends."""
    a1, a2, b1, b2 = gap
    while a1 < a2 and b1 < b2 and a[a1] == b[b1]:
        a1, b1 = a1 + 1, b1 + 1
    while a1 < a2 and b1 < b2 and a[a2 - 1] == b[b2 - 1]:
        a2, b2 = a2 - 1, b2 - 1
    return _Change(a1, a2, b1, b2)


def _anchors(a: Sequence[bytes], b: Sequence[bytes]) -> list[tuple[int, int]]:
    """The longest row of lines that both have exactly once and in the same order."""
    single = _once(a) & _once(b)
    places = {line: j for j, line in enumerate(b) if line in single}
    # For each length the row that ends first: where in b it ends, and its last link.
    ends: list[int] = []
    tops: list[int] = []
    links: list[tuple[int, int, int]] = []
    for i, line in enumerate(a):
        if (j := places.get(line)) is None:
            continue
        length = bisect_left(ends, j)
        ends[length : length + 1] = [j]
        tops[length : length + 1] = [len(links)]
        links.append((i, j, tops[length - 1] if length else -1))
    row: list[tuple[int, int]] = []
    at = tops[-1] if tops else -1
    while at >= 0:
        i, j, at = links[at]
        row.append((i, j))
    return row[::-1]


def _once(lines: Sequence[bytes]) -> set[bytes]:
    return {line for line, count in Counter(lines).items() if count == 1}


def _compared(a: Sequence[bytes], b: Sequence[bytes], gap: _Change) -> Iterator[_Change]:
    a1, a2, b1, b2 = gap
    matcher = SequenceMatcher(None, a[a1:a2], b[b1:b2], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            yield _Change(a1 + i1, a1 + i2, b1 + j1, b1 + j2)


def _hunks(changes: Sequence[_Change]) -> list[list[_Change]]:
    """Changes whose surroundings touch are shown together."""
    hunks: list[list[_Change]] = []
    for change in changes:
        if hunks and change.a1 - hunks[-1][-1].a2 <= 2 * _CONTEXT:
            hunks[-1].append(change)
        else:
            hunks.append([change])
    return hunks


def _run(
    mark: str, lines: Sequence[bytes], others: Sequence[bytes], plain: bool
) -> Iterator[tuple[str, bool]]:
    """Lines of one kind. If as many others stand against them, long ones show where they differ."""
    pairs = others if len(others) == len(lines) else ()
    for line, other in zip_longest(lines[:MAX_RUN], pairs[:MAX_RUN], fillvalue=b""):
        yield _shown(mark, line, other, plain)
        if not line.endswith(b"\n"):
            yield "\\ No newline at end of file", True
    if len(lines) > MAX_RUN:
        yield f"{mark}[{len(lines) - MAX_RUN:,} more lines]", False


def _shown(mark: str, line: bytes, other: bytes, plain: bool) -> tuple[str, bool]:
    body = line.removesuffix(b"\n")
    if plain:
        body = body.removesuffix(b"\r")
    start = max(0, _common(body, other) - _LEAD) if len(body) > MAX_LINE else 0
    text = body[start : start + MAX_LINE].decode(errors="backslashreplace")
    if text.endswith("\r"):
        text = f"{text[:-1]}\\r"
    complete = text.encode() == body
    left = len(body) - start - MAX_LINE
    text = f"[{start:,} bytes] {text}" if start else text
    return mark + (f"{text} [{left:,} more bytes]" if left > 0 else text), complete
