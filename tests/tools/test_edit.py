"""edit_file replaces a passage that is there exactly once, and nothing beside it."""

import asyncio
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mini_harness import Policy, approve_all
from mini_harness.tools.edit import MOST, EditFile
from mini_harness.tools.files import MAX_WHOLE
from mini_harness.tools.write import Refused
from tests.loops import call, turn
from tests.tools.workshop import folder, harness, only, play, preview, told, use

EDIT = EditFile()


def edited(before: bytes, old: str, new: str, **more: Any) -> bytes:
    """What becomes of a file. Raises Refused."""
    wanted = EDIT.input_model(path="f", old=old, new=new, **more)
    return EDIT.change(wanted, before, None).data


def edit(old: str, new: str, path: str = "f", **more: Any) -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": path, "old": old, "new": new, **more}


# --- which passage


def test_a_passage_that_is_there_once_is_replaced(tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(b"A=0\nB=0\n")
    run = play(tmp_path, edit("B=0", "B=1"))
    assert told(run) == ["Edited f: replaced 1 passage, at line 2."]
    assert (tmp_path / "f").read_bytes() == b"A=0\nB=1\n"
    only(tmp_path, "f")


@pytest.mark.parametrize(
    ("before", "old", "said"),
    [
        (b"a\nb\na\n", "a", "The passage is in it 2 times, at lines 1, 3. Give more"),
        (b"aaa", "aa", "The passage is in it 2 times, at lines 1, 1. Give more"),
        (b"a\r\na\na\r\n", "a\na", "The passage is in it 2 times, at lines 1, 2. Give more"),
        (b"x" * 50, "xxx", "The passage is in it more than 10 times, at lines 1, 1, 1, 1"),
        (b"ab", "b\n", "The passage isn't in it. "),
        (b"", "b", "The passage isn't in it. "),
        (b"if a:\n    b()\n", "if a:\n  b()", "text of its first line is in line 1, but"),
        (b"a", "a", "old and new are the same."),
        (b"a\nb", "a\r\nb", "old and new are the same."),
    ],
)
def test_an_edit_that_is_ambiguous_or_leads_nowhere_is_refused(
    before: bytes, old: str, said: str, tmp_path: Path
) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(before)
    new = old.replace("\r", "") if "same" in said else "x"
    result = use(EDIT, tmp_path, path="f", old=old, new=new)
    assert result.is_error
    assert result.output.startswith("Cannot change file: f. ")
    assert said in result.output
    assert (tmp_path / "f").read_bytes() == before


def test_all_passages_are_replaced_from_the_left_if_so_wanted(tmp_path: Path) -> None:
    assert edited(b"aaa-aa", "aa", "b", replace_all=True) == b"ba-b"
    assert edited(b"a\r\nb\na\r\nb\n", "a\nb", "c", replace_all=True) == b"c\nc\n"
    (tmp_path / "f").write_bytes(b"a\n" * 12)
    text = use(EDIT, tmp_path, path="f", old="a", new="", replace_all=True).output
    assert text == (
        "Edited f: replaced 12 passages, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more."
    )


@given(st.text("ab\n", max_size=30), st.text("ab\n", min_size=1, max_size=3), st.text("ab\n"))
def test_one_passage_is_replaced_if_and_only_if_there_is_one(text: str, old: str, new: str) -> None:
    """report O04"""
    assume(old != new)
    places = [at for at in range(len(text)) if text.startswith(old, at)]
    try:
        after = edited(text.encode(), old, new)
    except Refused:
        assert len(places) != 1
    else:
        assert len(places) == 1
        assert after == (text[: places[0]] + new + text[places[0] + len(old) :]).encode()
    if places:
        every = edited(text.encode(), old, new, replace_all=True)
        assert every == text.replace(old, new).encode()


# --- nothing beside it


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        (b"a\r\nb\nc\r\n", "b", "b\nb", b"a\r\nb\nb\nc\r\n"),
        (b"a\r\nb\nc\r\n", "a\nb\nc", "a\nB\nc", b"a\r\nB\nc\r\n"),
        (b"a\r\nb\nc", "c", "c\nd", b"a\r\nb\nc\nd"),
        (b"a\nb\r\nc", "c", "c\nd", b"a\nb\r\nc\r\nd"),
        (b"ab", "b", "x\r\ny\n", b"ax\r\ny\n"),
        (b"a\r\nb", "\n", "", b"ab"),
        (b"a\r\nb", "\n", "\n\n", b"a\r\n\r\nb"),
        (b"a\rb\r\n", "b", "c\n", b"a\rc\r\n\r\n"),
        (b"\xef\xbb\xbfa\r\n", "a", "b", b"\xef\xbb\xbfb\r\n"),
        (b"\xff\xfea\xe2\x82 b\n", "a", "\u20ac", b"\xff\xfe\xe2\x82\xac\xe2\x82 b\n"),
        (b"no end", "end", "END", b"no END"),
    ],
    ids=repr,
)
def test_line_ends_marks_and_bad_bytes_stay(
    before: bytes, old: str, new: str, after: bytes
) -> None:
    """report B11"""
    assert edited(before, old, new) == after


def _parts() -> st.SearchStrategy[bytes]:
    """Bytes of a file without NUL: any at all, and those in which line ends meet."""
    some = st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\r", b"\xef\xbb\xbf", b"\xff", b"\xc3"])
    return st.one_of(
        st.lists(some, max_size=12).map(b"".join),
        st.binary(max_size=40).map(lambda data: data.replace(b"\0", b"")),
    )


@given(_parts(), _parts(), st.text("aé\n\r", max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_everything_outside_the_passage_is_the_same_byte_for_byte(
    before: bytes, after: bytes, new: str, ending: str
) -> None:
    """report B11, O04"""
    old = f"<{ending}old{ending}>"
    for passage in (b"<\nold\n>", b"<\r\nold\r\n>", b"<\nold\r\n>"):
        result = edited(before + passage + after, old, f"[{new}]")
        assert result.startswith(before + b"[")
        assert result.endswith(b"]" + after)
        middle = result[len(before) : len(result) - len(after)]
        assert re.sub(rb"\r*\n", b"\n", middle) == re.sub(r"\r*\n", "\n", f"[{new}]").encode()


@given(_parts(), st.booleans())
def test_an_edit_on_the_disk_is_the_same_as_in_memory(before: bytes, crlf: bool) -> None:
    """report B11"""
    data = before + b"<old>" + (b"\r\n" if crlf else b"")
    with folder() as cwd:
        (cwd / "f").write_bytes(data)
        assert not use(EDIT, cwd, path="f", old="<old>", new="<new>").is_error
        assert (cwd / "f").read_bytes() == data.replace(b"<old>", b"<new>")
        only(cwd, "f")


# --- others at the same place


def test_two_edits_in_one_batch_are_both_there(tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(b"A=0\nB=0\n")
    (tmp_path / "link").symlink_to("f")
    edits = [edit("A=0", "A=1"), edit("B=0", "B=1", path="./link")]
    batch = turn(*[call(name, **given) for name, given in edits])
    run = asyncio.run(harness(tmp_path, [batch]).run("go"))
    assert [text[:8] for text in told(run)] == ["Edited f", "Edited ."]
    assert (tmp_path / "f").read_bytes() == b"A=1\nB=1\n"


@pytest.mark.parametrize("asked", ["at once", "later"])
def test_two_approved_edits_are_both_there(asked: str, tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(b"A=0\nB=0\n")
    batch = turn(*[call(name, **given) for name, given in (edit("A=0", "A=1"), edit("B=0", "B=1"))])
    policy = Policy(approver=approve_all if asked == "at once" else None)
    player = harness(tmp_path, [batch], layers=[policy])
    run = asyncio.run(player.run("go"))
    for wanted in ("+A=1", "+B=1"):
        if asked == "later":
            assert run.pause is not None
            assert wanted in run.pause["preview"]
            run.approve()
            asyncio.run(player.resume(run))
    assert (tmp_path / "f").read_bytes() == b"A=1\nB=1\n"
    assert run.unwrap() == "done"


def test_of_two_edits_of_one_line_the_second_is_refused(tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(b"A=0\n")
    seen = told(play(tmp_path, edit("A=0", "A=1"), edit("A=0", "A=2")))
    assert seen[1].startswith("!Cannot change file: f. The passage isn't in it.")
    assert (tmp_path / "f").read_bytes() == b"A=1\n"


def test_an_edit_says_which_content_the_run_knows_then(tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(b"A=0\n")
    written = ("write_file", {"path": "f", "content": "B"})
    assert told(play(tmp_path, edit("A=0", "A=1"), written))[1].startswith("Wrote")


def test_many_passages_of_one_long_line_take_no_longer_than_few(tmp_path: Path) -> None:
    """B11: the next line end of the file, looked for once and not once a passage"""
    data = (b"ab" + b"x" * 18) * MOST
    begun = time.monotonic()
    assert edited(data + b"\r\n", "ab", "c\n", replace_all=True).count(b"\r\n") == MOST + 1
    assert edited(b"\r\n" + data, "ab", "c\n", replace_all=True).count(b"\r\n") == MOST + 1
    assert time.monotonic() - begun < 5


def test_a_new_line_end_is_that_of_the_next_one() -> None:
    """B11"""
    before = b"xx\r\nx\nx\r\nx"
    assert edited(before, "x", "y\n", replace_all=True) == b"y\r\ny\r\n\r\ny\n\ny\r\n\r\ny\r\n"


# --- what can't be edited


def test_what_is_no_text_file_is_not_edited(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"a\0")
    (tmp_path / "huge").write_bytes(b"a" + b"x" * MAX_WHOLE)
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "p")
    (tmp_path / "out").symlink_to("../nobody")
    wanted = {
        "b": "Cannot change file: b. It is a binary file",
        "huge": "Cannot change file: huge. It has more than 10,485,760 bytes",
        "d": "Cannot write to a directory: d. Name a file.",
        "p": "Cannot change file: p. It is a FIFO, not a regular file.",
        "out": "Cannot change file: out. With its links followed, it lies outside",
        "no": "File not found: no",
        "no/no": "File not found: no/no",
    }
    for path, said in wanted.items():
        result = use(EDIT, tmp_path, path=path, old="a", new="b")
        assert result.is_error
        assert result.output.startswith(said)
        shown = preview(EDIT, tmp_path, path=path, old="a", new="b")
        assert shown.startswith(f"Nothing: the call would be refused. {said}")
    only(tmp_path, "b", "huge", "d", "p", "out")


def test_an_edit_stays_within_its_bounds(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="more than 10,485,760 bytes"):
        edited(b"a" * 20_000, "a", "x" * 1_000, replace_all=True)
    with pytest.raises(Refused, match="more than 100,000 times"):
        edited(b"a" * (MOST + 1), "a", "b", replace_all=True)
    with pytest.raises(Refused, match="more than 10 times"):
        edited(b"a" * MAX_WHOLE, "a" * (MAX_WHOLE // 2), "b")
    (tmp_path / "f").write_bytes(b"a")
    assert "NUL" in use(EDIT, tmp_path, path="f", old="a", new="\0").output
    assert "surrogate" in use(EDIT, tmp_path, path="f", old="a", new="\ud800").output
    run = play(tmp_path, edit("", "b"))
    assert "old: String should have at least 1 character" in told(run)[0]


# --- what the person is shown


def test_the_preview_is_the_diff(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\r\nb\r\nc\r\n")
    shown = preview(EDIT, tmp_path, path="f", old="b", new="B\nB")
    assert shown == "--- f\n+++ f\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n+B\n c"
    refused = preview(EDIT, tmp_path, path="f", old="x", new="")
    assert refused.startswith("Nothing: the call would be refused. Cannot change file: f. The pass")
