"""write_file replaces whole files: only what the run knows, at once, and never outside."""

import asyncio
import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness import Policy, approve_all
from mini_harness.events import Event
from mini_harness.tools import files
from mini_harness.tools.files import MAX_WHOLE, ReadFile
from mini_harness.tools.write import WriteFile
from tests.loops import call, refold, turn
from tests.tools.workshop import OUTSIDE, folder, go_on, harness, only, play, preview, told, use

UNKNOWN = "It exists already, and its content isn't known. Read it first."
CHANGED = "It has changed since it was read. Read it again."


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def read(path: str) -> tuple[str, dict[str, Any]]:
    return "read_file", {"path": path}


# --- what is written


def test_a_new_file_has_exactly_the_given_text_and_its_folders_are_made(tmp_path: Path) -> None:
    """report T02"""
    text = '{"a": 1}\r\nb\n\u2028c\r'
    assert told(play(tmp_path, write("x/y/f.json", text))) == [
        "Created x/y/f.json: 3 lines, 17 bytes."
    ]
    assert (tmp_path / "x/y/f.json").read_bytes() == text.encode()
    only(tmp_path / "x/y", "f.json")


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\nb\n", "x\ny", b"x\ny"),
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\r\n"),
        (b"a\nb\n", "x\r\ny\n", b"x\ny\n"),
        (b"a\r\nb\n", "x\r\ny\nz", b"x\r\ny\nz"),
        (b"ab", "x\r\ny\n", b"x\r\ny\n"),
        (b"", "x\r\ny\n", b"x\r\ny\n"),
        (b"\xef\xbb\xbfa\r\n", "x\ny\n", b"\xef\xbb\xbfx\r\ny\r\n"),
        (b"\xef\xbb\xbfa", "\ufeffx", b"\xef\xbb\xbfx"),
        (b"a\n", "\ufeffx", b"\xef\xbb\xbfx"),
        (b"a\xff\n", "", b""),
        (b"a\rb\r\n", "x\ry\n", b"x\ry\r\n"),
    ],
    ids=repr,
)
def test_line_ends_and_byte_order_mark_of_a_file_stay(
    before: bytes, content: str, after: bytes, tmp_path: Path
) -> None:
    """report B11"""
    (tmp_path / "f").write_bytes(before)
    assert told(play(tmp_path, read("f"), write("f", content)))[1].startswith("Wrote f: ")
    assert (tmp_path / "f").read_bytes() == after


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8")))
def test_a_text_comes_back_as_it_was_written(text: str) -> None:
    """report T02"""
    with folder() as cwd:
        assert not use(WriteFile(), cwd, path="f", content=text).is_error
        assert (cwd / "f").read_bytes() == text.encode()
        only(cwd, "f")


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o4711])
def test_mode_bits_stay_and_a_new_file_has_the_usual_ones(mode: int, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a")
    (tmp_path / "f").chmod(mode)
    play(tmp_path, read("f"), write("f", "b"), write("g", "b"))
    (tmp_path / "usual").touch()
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == mode
    assert (tmp_path / "f").read_bytes() == b"b"
    assert (tmp_path / "g").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_the_owner_stays(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a")
    os.chown(tmp_path / "f", 12345, 23456)
    play(tmp_path, read("f"), write("f", "b"))
    status = (tmp_path / "f").stat()
    assert (status.st_uid, status.st_gid) == (12345, 23456)


# --- what the run knows


def test_an_unknown_file_is_not_replaced(tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(b"theirs")
    assert told(play(tmp_path, write("f", "mine"))) == [f"!Cannot change file: f. {UNKNOWN}"]
    assert use(WriteFile(), tmp_path, path="f", content="mine").output.endswith(UNKNOWN)
    assert (tmp_path / "f").read_bytes() == b"theirs"


@pytest.mark.parametrize("spelling", ["f", "./f", "sub/../f", "link", "here/f", "absolute"])
@pytest.mark.parametrize("other", ["f", "link", "here/f"])
def test_a_stale_write_is_refused_whatever_the_path_is_called(
    spelling: str, other: str, tmp_path: Path
) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(b"A=0\nB=0\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("f")
    (tmp_path / "here").symlink_to(".")
    spelling = str(tmp_path / "f") if spelling == "absolute" else spelling
    first = play(tmp_path, read(spelling))
    second = play(tmp_path, read(other), write(other, "A=1\nB=0\n"))
    assert told(second)[1].startswith("Wrote")
    go_on(first, tmp_path, write(spelling, "A=0\nB=1\n"))
    assert told(first)[1] == f"!Cannot change file: {spelling}. {CHANGED}"
    assert (tmp_path / "f").read_bytes() == b"A=1\nB=0\n"


def test_what_the_run_wrote_or_edited_itself_it_knows(tmp_path: Path) -> None:
    """report O04"""
    edit = ("edit_file", {"path": "./f", "old": "b", "new": "c"})
    run = play(tmp_path, write("f", "a"), write("f", "b"), edit, write("f", "d"))
    assert [text.split()[0] for text in told(run)] == ["Created", "Wrote", "Edited", "Wrote"]
    assert (tmp_path / "f").read_bytes() == b"d"


def test_two_writes_of_one_batch_are_judged_one_after_the_other(tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(b"a")
    batch = turn(*[call(name, **given) for name, given in (read("f"), write("f", "b"))])
    run = asyncio.run(
        harness(tmp_path, [batch, turn(call("write_file", **write("f", "c")[1]))]).run("")
    )
    assert [text.split()[0] for text in told(run)] == ["1", "Wrote", "Wrote"]


def test_what_was_read_is_still_known_after_a_restart(tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(b"a")
    events: list[Event] = []
    asyncio.run(harness(tmp_path, [turn(call("read_file", path="f"))], events).run("go"))
    run = refold(events)
    assert told(go_on(run, tmp_path, write("f", "b")))[1] == "Wrote f: 1 line, 1 byte."
    (tmp_path / "f").write_bytes(b"a")
    assert told(go_on(refold(events), tmp_path, write("f", "b")))[1].startswith("Wrote")
    (tmp_path / "f").write_bytes(b"other")
    assert told(go_on(refold(events), tmp_path, write("f", "b")))[1].endswith(CHANGED)


def test_a_file_that_came_and_went_is_judged_by_what_is_there_now(tmp_path: Path) -> None:
    """report O04"""
    run = play(tmp_path, write("f", "a"))
    (tmp_path / "f").unlink()
    assert told(go_on(run, tmp_path, write("f", "b")))[1].startswith("Created")


def test_a_file_changed_at_the_last_moment_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(b"a")
    run = play(tmp_path, read("f"))
    really_sync = os.fsync

    def sync_and_interfere(descriptor: int) -> None:
        really_sync(descriptor)
        (tmp_path / "f").write_bytes(b"theirs")

    monkeypatch.setattr(os, "fsync", sync_and_interfere)
    text = "It has changed in this very moment. Read it again, then decide anew."
    assert told(go_on(run, tmp_path, write("f", "b")))[1] == f"!Cannot change file: f. {text}"
    assert (tmp_path / "f").read_bytes() == b"theirs"
    only(tmp_path, "f")


# --- where it may be


@pytest.fixture
def links(tmp_path: Path) -> Path:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    room = tmp_path / "workspace"
    (room / "sub").mkdir(parents=True)
    (room / "a").write_bytes(b"a")
    (room / "in").symlink_to("a")
    (room / "new").symlink_to("sub/new")
    (room / "out").symlink_to("../secret")
    (room / "dangling").symlink_to("../nobody")
    (room / "escape").symlink_to("../elsewhere")
    return room


@pytest.mark.parametrize(
    "path",
    ["../secret", "out", "dangling", "escape/x", "escape/../secret", "sub/../../x", "/etc/x", ".."],
)
def test_nothing_is_written_outside(path: str, links: Path) -> None:
    """C24, report B10"""
    result = use(WriteFile(), links, path=path, content="x")
    assert result.output.startswith(f"Cannot change file: {files.quoted_path(path)}. {OUTSIDE}.")
    assert preview(WriteFile(), links, path=path, content="x").startswith("Nothing: ")
    assert (links.parent / "secret").read_bytes() == b"secret"
    only(links.parent, "elsewhere", "secret", "workspace")
    only(links.parent / "elsewhere")


def test_a_link_inside_is_followed_and_stays_a_link(links: Path) -> None:
    """C24"""
    told(play(links, read("in"), write("in", "b"), write("new", "n")))
    assert (links / "in").is_symlink()
    assert (links / "a").read_bytes() == b"b"
    assert (links / "sub/new").read_bytes() == b"n"


@pytest.mark.parametrize("path", ["", ".", "sub", "sub/", "nobody/", "nobody/.", "sub/."])
def test_a_directory_is_named_as_one(path: str, links: Path) -> None:
    result = use(WriteFile(), links, path=path, content="x")
    assert not (links / "nobody").exists()
    shown = repr(path) if path in ("", ".", "nobody/.", "sub/.") else path
    assert result.output == f"Cannot write to a directory: {shown}. Name a file."


def test_a_fifo_is_refused_at_once(links: Path) -> None:
    """report B08"""
    os.mkfifo(links / "p")
    said = "It is a FIFO, not a regular file."
    assert said in use(WriteFile(), links, path="p", content="x").output
    assert said in preview(WriteFile(), links, path="p", content="x")


@pytest.mark.parametrize("path", ["a\0b", "a\udc00\ud800", "x" * 300, "a/b", "s/" * 3000])
def test_a_path_that_cannot_be_gets_a_readable_error(path: str, links: Path) -> None:
    """report B07"""
    result = use(WriteFile(), links, path=path, content="x")
    assert result.is_error
    assert result.output.isprintable()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a\0b", "A text can't hold a NUL character"),
        ("a\ud800", "half of a character"),
        ("x" * (MAX_WHOLE + 1), "more than 10,485,760 bytes"),
    ],
    ids=["NUL", "surrogate", "large"],
)
def test_a_text_that_is_none_is_refused(content: str, reason: str, links: Path) -> None:
    result = use(WriteFile(), links, path="x", content=content)
    assert result.is_error
    assert reason in result.output
    assert not (links / "x").exists()


def test_a_binary_and_a_huge_file_are_not_replaced(links: Path) -> None:
    (links / "b").write_bytes(b"a\0")
    (links / "huge").write_bytes(b"x" * (MAX_WHOLE + 1))
    assert "It is a binary file" in use(WriteFile(), links, path="b", content="x").output
    run = play(links, read("huge"), write("huge", "x"))
    assert "more than 10,485,760 bytes" in told(run)[1]


def test_writing_what_is_there_already_is_said(links: Path) -> None:
    text = told(play(links, read("a"), write("a", "a")))[1]
    assert text == "!Cannot change file: a. Nothing would change: this is what is in it already."


def test_credentials_are_denied_by_the_policy(tmp_path: Path) -> None:
    """B20"""
    policy = Policy(mode="full_auto", approver=approve_all)
    run = play(tmp_path, write(".env", "x"), write("sub/id_rsa", "x"), layers=[policy])
    assert all(text.startswith("!Tool not allowed") for text in told(run))
    only(tmp_path)


# --- what read_file notes


@pytest.mark.parametrize("path", ["a", "./sub/../a", "in", "absolute"])
def test_reading_notes_the_real_file_and_the_hash_of_all_of_it(path: str, links: Path) -> None:
    """report O04"""
    (links / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\xff")
    (links / "sub/b").write_bytes(b"b")
    (links / "here").symlink_to("sub")
    path = str(links / "a") if path == "absolute" else path
    digest = hashlib.sha256(b"\xef\xbb\xbfone\r\ntwo\xff").hexdigest()
    for more in ({}, {"limit": 1}, {"offset": 1}):
        seen = use(ReadFile(), links, path=path, **more)
        assert seen.metadata == {"file": "a", "sha256": digest}
    assert use(ReadFile(), links, path="here/b").metadata["file"] == "sub/b"


def test_reading_no_line_is_to_know_nothing_unless_there_is_none(links: Path) -> None:
    """report O04"""
    blind = ("read_file", {"path": "a", "offset": 99})
    assert told(play(links, blind, write("a", "b")))[1] == f"!Cannot change file: a. {UNKNOWN}"
    assert (links / "a").read_bytes() == b"a"
    (links / "empty").touch()
    assert told(play(links, read("empty"), write("empty", "b")))[1].startswith("Wrote empty: ")


def test_an_error_and_a_file_that_is_too_large_are_not_noted(links: Path) -> None:
    """report O04"""
    (links / "b").write_bytes(b"text\nthen\0")
    for path in ("no", "sub", "b", "../secret"):
        assert use(ReadFile(), links, path=path).metadata == {}
    (links / "big").write_bytes(b"x\n" * (MAX_WHOLE // 2))
    assert use(ReadFile(), links, path="big").metadata["file"] == "big"
    (links / "big").write_bytes(b"x\n" * (MAX_WHOLE // 2 + 1))
    assert use(ReadFile(), links, path="big").metadata == {}


def test_a_file_changed_while_it_is_read_is_noted_with_its_older_content(
    links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """report O04"""
    really_note = files.note_of

    def note_and_interfere(file: str, data: bytes) -> dict[str, str]:
        (links / "a").write_bytes(b"newer")
        return really_note(file, data)

    monkeypatch.setattr(files, "note_of", note_and_interfere)
    seen = use(ReadFile(), links, path="a")
    assert seen.output == "     1\tnewer"
    assert seen.metadata["sha256"] == hashlib.sha256(b"a").hexdigest()


def test_a_name_that_is_no_utf8_can_be_recorded(links: Path) -> None:
    """report O04"""
    (links / "bad\udcff").write_bytes(b"x")
    (links / "good").symlink_to("bad\udcff")
    run = play(links, read("good"), write("good", "y"))
    assert told(run)[1].startswith("Wrote")
    assert run.history.messages[2]["metadata"]["file"] == "bad\\xff"


# --- what the person is shown


def test_the_preview_is_the_diff(tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(b"a\nb\n")
    run = play(tmp_path, read("f"))
    shown = preview(WriteFile(), tmp_path, run, path="f", content="a\nc\n")
    assert shown == "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+c"
    assert preview(WriteFile(), tmp_path, path="x/g", content="a\n") == (
        "--- (a new file)\n+++ x/g\n@@ -1,0 +1,1 @@\n+a"
    )
    assert not (tmp_path / "x").exists()


def test_the_preview_of_a_call_that_would_be_refused_says_so(tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(b"a")
    text = preview(WriteFile(), tmp_path, path="f", content="b")
    assert text == f"Nothing: the call would be refused. Cannot change file: f. {UNKNOWN}"


def test_an_approved_write_that_would_do_something_else_by_now_is_asked_again(
    tmp_path: Path,
) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(b"a\n")
    turns = [turn(call("read_file", path="f")), turn(call("write_file", path="f", content="b\n"))]
    player = harness(tmp_path, turns, layers=[Policy()])
    run = asyncio.run(player.run("go"))
    assert run.pause is not None
    assert "-a\n+b" in run.pause["preview"]
    (tmp_path / "f").write_bytes(b"theirs\n")
    run.approve()
    asyncio.run(player.resume(run))
    assert run.pause is not None
    assert CHANGED in run.pause["preview"]
    assert (tmp_path / "f").read_bytes() == b"theirs\n"


def test_the_schema_says_what_each_field_is() -> None:
    """B05"""
    schema = WriteFile().to_api_schema()["input_schema"]
    assert set(schema["properties"]) == {"path", "content"} == set(schema["required"])
    assert all(each["description"] for each in schema["properties"].values())
    assert not WriteFile().is_read_only(None)
