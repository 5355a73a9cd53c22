"""A diff shows what changes, within bounds, and says so where it doesn't."""

import random
import re
import time
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.tools.diff import MAX_BYTES, MAX_COMPARED, unified_diff

NOTE = re.compile(
    r"\[Not all of it is shown\. The whole change has the fingerprint [0-9a-f]{16}\.\]"
)
SHORT = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "\n"]), max_size=30).map("".join)


def applied(before: str, diff: str) -> str:
    """The text after a diff: an oracle that knows only what a hunk means."""
    old = iter(before.splitlines(keepends=True))
    after: list[str] = []
    at = 0
    for line in diff.splitlines()[2:]:
        if hunk := re.fullmatch(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@", line):
            begin = int(hunk[1]) - 1
            after += islice(old, begin - at)
            at = begin
            assert len(after) == int(hunk[3]) - 1
        elif line[0] == "+":
            after.append(line[1:] + "\n")
        else:
            assert next(old) == line[1:] + "\n"
            at += 1
            after += [line[1:] + "\n"] * (line[0] == " ")
    return "".join([*after, *old])


@given(SHORT, SHORT)
def test_a_diff_that_is_whole_says_how_to_get_from_one_to_the_other(
    before: str, after: str
) -> None:
    """report O04"""
    diff = unified_diff("f", before.encode(), after.encode())
    assert not NOTE.search(diff)
    assert applied(before, diff) == after


@given(st.randoms(use_true_random=False))
def test_changes_far_apart_are_shown_with_their_surroundings_only(chance: random.Random) -> None:
    lines = [f"line {number}\n" for number in range(3_000)]
    changed = sorted(chance.sample(range(3_000), 5))
    after = [f"new {line}" if at in changed else line for at, line in enumerate(lines)]
    diff = unified_diff("f", "".join(lines).encode(), "".join(after).encode())
    assert applied("".join(lines), diff) == "".join(after)
    assert sum(line[0] in "+-" for line in diff.splitlines()[2:]) == 10
    assert len(diff.splitlines()) <= 2 + 5 * (1 + 6 + 2)


def test_what_the_eye_cannot_see_is_shown() -> None:
    """report B11"""
    assert "-a\\r\n+a" in unified_diff("f", b"a\r\nb\r\n", b"a\nb\r\n")
    assert "-a\n\\ No newline at end of file\n+a" in unified_diff("f", b"a", b"a\n")
    assert "-\\xff" in unified_diff("f", b"\xff\n", b"x\n")
    assert unified_diff("f", None, b"").splitlines() == ["--- (a new file)", "+++ f"]


@pytest.mark.parametrize("before", [None, b"", b"a"])
def test_line_ends_that_come_are_shown(before: bytes | None) -> None:
    """report B11: what a person approved is what happens"""
    plain, pairs = (unified_diff("f", before, b"a%sb%s" % (e, e)) for e in (b"\n", b"\r\n"))
    assert plain != pairs
    assert "+b\\r" in pairs
    kept = unified_diff("f", b"a\r\nb\r\n", b"a\r\nc\r\n")
    assert "\\r" not in kept


def _cases() -> dict[str, tuple[bytes, bytes]]:
    chance = random.Random(1)
    noise = [bytes(chance.choices(b"ab\n", k=300_000)) for _ in range(2)]
    mixed = [b"".join(chance.choices([b"a\n", b"b\n"], k=5_000)) for _ in range(2)]
    return {
        "one line of ten megabytes": (b"x" * 10**7, b"x" * (5 * 10**6) + b"y" * (5 * 10**6)),
        "ten million lines": (b"\n" * 10**7, b"\n" * 10**7 + b"x"),
        "nothing in common": (b"a\n" * 10**6, b"b\n" * 10**6),
        "noise": (noise[0], noise[1]),
        "many equal lines": (mixed[0], mixed[1]),
        "bad bytes": (b"\xff" * 10**6, b"\xfe" * 10**6),
        "everything is new": (b"", "\u20ac\n".encode() * 10**6),
        "everything goes": ("\U0001f600".encode() * 10**6, b""),
    }


@pytest.mark.parametrize("case", _cases())
def test_a_diff_is_bounded_in_size_and_time(case: str) -> None:
    before, after = _cases()[case]
    begun = time.monotonic()
    diff = unified_diff("f", before, after)
    assert time.monotonic() - begun < 20
    assert len(diff.encode()) <= MAX_BYTES
    assert case == "ten million lines" or NOTE.fullmatch(diff.splitlines()[-1])


@pytest.mark.parametrize(("apart", "places"), [(MAX_COMPARED - 10, 2), (MAX_COMPARED, 1)])
def test_differences_very_far_apart_are_shown_as_one(apart: int, places: int) -> None:
    between = b"".join(b"%d\n" % number for number in range(apart))
    diff = unified_diff("f", b"a\n" + between + b"b\n", b"A\n" + between + b"B\n")
    assert diff.count("\n@@") == places


def test_of_a_large_change_both_sides_are_shown() -> None:
    diff = unified_diff("f", b"old\n" * 10_000, b"new\n" * 10_000)
    assert diff.count("\n-old") == diff.count("\n+new") == 60
    assert "\n-[9,940 more lines]" in diff
    assert "\n+[9,940 more lines]" in diff


def test_a_change_that_is_not_shown_changes_the_last_line() -> None:
    """report O04"""
    before = b"".join(b"line %d\n" % number for number in range(5_000))
    one = unified_diff("f", before, before.upper())
    other = unified_diff("f", before, before.upper()[:-3] + b"!\n")
    assert one.splitlines()[:-2] == other.splitlines()[:-2]
    assert one.splitlines()[-1] != other.splitlines()[-1]
    longer = unified_diff("f", before + b"x\n", before.upper() + b"x\n")
    assert one.splitlines()[-1] != longer.splitlines()[-1]
