"""Torn tails, damage, full disks, and checkpoints that don't fit: what is lost, and what isn't."""

import asyncio
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mini_harness.checkpoint import StoredRun
from mini_harness.clock import VirtualClock
from mini_harness.layer import Layer
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.run import Run, Status
from mini_harness.session import Session
from mini_harness.tools.builds import TOOLS
from mini_harness.tools.function import function_tool
from mini_harness.transcript import DamagedSession
from tests.course.disks import make_read_only, small_disk
from tests.loops import DONE, call
from tests.sessions import TOUR, Halt, drive, new, same

# --- a torn tail ---------------------------------------------------------------------------------


def torn_copies(tmp_path: Path) -> Iterable[tuple[Path, int]]:
    """The session's file, cut at every byte of its last record, one after the other."""
    session = new(tmp_path)
    drive(session, [call("read_build", build_id="ü✓😀"), DONE])
    session.close()
    whole = session.path.read_bytes()
    last = whole.rstrip(b"\n").rindex(b"\n") + 1
    for cut in range(last, len(whole)):
        session.path.write_bytes(whole[:cut])
        yield session.path, cut - last


def test_a_record_torn_at_any_byte_is_left_out_and_nothing_else(tmp_path: Path) -> None:
    """report S01: also whole JSON without its line end"""
    for _, torn in torn_copies(tmp_path):
        session = Session.open("s1", tmp_path)
        assert [event.sequence for event in session.events()] == [1, 2, 3, 4, 5]
        assert (f"{torn} torn bytes" in repr(session)) is (torn > 0)
        assert session.run().status is Status.RUNNING


def test_what_is_appended_after_a_torn_record_stands_in_a_line_of_its_own(tmp_path: Path) -> None:
    """report S02"""
    for path, torn in torn_copies(tmp_path):
        with Session.open("s1", tmp_path) as session:
            run = session.run()
            harness = Harness(ScriptedModel(()), TOOLS, sinks=[session], clock=session.clock())
            assert asyncio.run(harness.resume(run)).status is Status.COMPLETED
            assert len(session.repairs) == (torn > 0)
        lines = path.read_bytes().split(b"\n")
        assert lines.pop() == b""
        assert [json.loads(line).get("sequence") for line in lines] == [None, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("text", ["a\u2028b\u0085c\x0bd\x1ce\rf\n", "\ud83d", "\udcff", "😀"])
def test_any_text_is_one_line_and_comes_back_equal(tmp_path: Path, text: str) -> None:
    """reports S04 and S05"""
    session = new(tmp_path)
    harness = Harness(ScriptedModel([DONE]), sinks=[session], clock=VirtualClock())
    asyncio.run(harness.run(text))
    data = session.path.read_bytes()
    assert data.decode("utf-8").count("\n") == 4
    assert Session.open("s1", tmp_path).run().goal == text


# --- damage --------------------------------------------------------------------------------------


def damaged(path: Path, number: int, how: str) -> None:
    lines = path.read_bytes().split(b"\n")
    at = number - 1
    match how:
        case "cut":
            lines[at] = lines[at][:-3]
        case "lost":
            del lines[at]
        case "twice":
            lines.insert(at, lines[at])
        case "swapped":
            lines[at : at + 2] = lines[at + 1], lines[at]
        case "garbage":
            lines[at] = b"\x00\xff" * 20
        case "blank":
            lines[at] = b""
    path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize("how", ["cut", "lost", "twice", "swapped", "garbage", "blank"])
@pytest.mark.parametrize("number", [2, 3, 5, 7])
def test_damage_in_the_middle_is_refused_and_its_line_is_named(
    tmp_path: Path, number: int, how: str
) -> None:
    """C10"""
    session = new(tmp_path)
    drive(session)
    damaged(session.path, number, how)
    line = number + (how == "twice")
    with pytest.raises(DamagedSession, match=f"^Line {line} of s1.jsonl is damaged") as caught:
        Session.open("s1", tmp_path)
    assert caught.value.line == line


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b'{"schema_version":1,"session_id":"s2"}\n',
        b'{"schema_version":2,"session_id":"s1"}\n',
        b"[]\n",
    ],
)
def test_an_empty_a_foreign_or_a_newer_transcript_is_damage(tmp_path: Path, header: bytes) -> None:
    """report S07, C10: it is never read as a fresh session"""
    session = new(tmp_path)
    drive(session)
    events = session.path.read_bytes().split(b"\n", 1)[1]
    session.path.write_bytes(header and header + events)
    with pytest.raises(DamagedSession, match=r"Line 1 of s1.jsonl"):
        Session.open("s1", tmp_path)


def test_what_grew_shorter_while_it_was_open_is_damage(tmp_path: Path) -> None:
    session = new(tmp_path)
    drive(session)
    os.truncate(session.path, 200)
    with pytest.raises(DamagedSession, match="what was there is missing"):
        session.run()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"id": "s1"}', '{"schema_version": 2}'])
def test_an_unreadable_record_is_named_on_opening_and_left_out_of_the_list(
    tmp_path: Path, content: str
) -> None:
    """C03, report S07"""
    new(tmp_path)
    Session.create(tmp_path, session_id="s2")
    (tmp_path / "sessions" / "s1.json").write_text(content, encoding="utf-8")
    assert [info.id for info in Session.list(tmp_path)] == ["s2"]
    with pytest.raises(DamagedSession, match=r"Line 1 of s1\.json"):
        Session.open("s1", tmp_path)


# --- when the disk doesn't take it ---------------------------------------------------------------


def test_a_full_disk_is_said_and_what_was_kept_is_whole() -> None:
    with small_disk("64k") as disk:
        session = new(disk)

        def long() -> str:
            """Say much."""
            return "x" * 9000

        with pytest.raises(OSError, match=r"No space left on device. Free some space") as caught:
            drive(session, [call("long")] * 20, [function_tool(long)])
        assert caught.value.filename == str(session.path)
        run, kept = session.run(), session.path.read_bytes()
        assert kept.endswith(b"\n")
        filler = next(disk.glob("sessions/*.json"))
        assert filler.exists()
        same(Session.open("s1", disk).run(), run)


def test_space_that_was_freed_lets_the_same_run_go_on() -> None:
    with small_disk("64k") as disk:
        filler = disk / "filler"
        session = new(disk)
        filler.write_bytes(b"x" * 48_000)
        runs: list[Run] = []

        def long() -> str:
            """Say much."""
            return "x" * 9000

        class Hold(Layer):
            async def act(self, run: Run, call: Any, next: Any) -> Any:
                runs[:] = [run]
                return await next(run, call)

        turns = [call("long"), call("long"), DONE]
        tools = [function_tool(long)]
        with pytest.raises(OSError, match="No space left"):
            drive(session, turns, tools, layers=[Hold()])
        filler.unlink()
        run = session.run()
        same(run, runs[0])
        harness = Harness(
            ScriptedModel(turns, asked=run.step), tools, sinks=[session], clock=session.clock()
        )
        assert asyncio.run(harness.resume(run)).status is Status.COMPLETED


def test_a_read_only_disk_can_be_read_and_says_why_it_cant_be_written() -> None:
    with small_disk("64k") as disk:
        drive(new(disk))
        make_read_only(disk)
        session = Session.open("s1", disk)
        assert session.run().output == "done"
        with pytest.raises(OSError, match=r"Read-only file system. Choose a folder"):
            drive(session)
        with pytest.raises(OSError, match="Read-only file system"):
            Session.create(disk)


def test_a_folder_that_vanishes_in_mid_run_is_said_at_once(tmp_path: Path) -> None:
    session = new(tmp_path)

    def vanish() -> None:
        session.path.unlink()

    with pytest.raises(FileNotFoundError, match="Somebody has removed it"):
        drive(session, TOUR, TOOLS, layers=[Halt(vanish)])


def test_a_failed_fsync_keeps_the_tool_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C35: nothing is in the file that the run doesn't know"""
    session, ran = new(tmp_path), []

    def effect() -> str:
        """Do it."""
        ran.append(1)
        return "done"

    def broken(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output error"):
        drive(session, [call("effect"), DONE], [function_tool(effect)])
    assert not ran
    assert [event.type for event in session.events()] == ["message", "model_decision"]


def test_a_disk_that_takes_a_few_bytes_at_a_time_gets_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the header: a session whose header is torn could never be opened"""
    real = os.write
    monkeypatch.setattr(os, "write", lambda held, data: real(held, bytes(data[:7])))
    drive(new(tmp_path))
    assert Session.open("s1", tmp_path).run().status is Status.COMPLETED


# --- checkpoints ---------------------------------------------------------------------------------


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints come often, so that a short run has some."""
    monkeypatch.setattr("mini_harness.checkpoint.EVERY", FEW)


FEW = 16
pytestmark = pytest.mark.usefixtures("often")


def long_session(root: Path) -> Session:
    session = new(root)
    names = [f"build-{number}" for number in range(2 * FEW)]
    drive(session, [*[call("read_build", build_id=name) for name in names], DONE])
    return session


def test_a_run_from_a_checkpoint_is_the_run_of_all_events(tmp_path: Path) -> None:
    long_session(tmp_path).close()
    session = Session.open("s1", tmp_path)
    run = session.run()
    assert isinstance(run, StoredRun)
    same(run, Run.fold(session.events()))
    messages = run.history.messages
    whole = list(messages)
    assert messages[-1] == whole[-1]
    assert messages[3] == whole[3]
    assert messages[2:50:7] == whole[2:50:7]
    with pytest.raises(IndexError):
        messages[len(whole)]


CONTENTS = [b"", b"{", b"[]", b'{"schema_version": 1}', b"\xff"]


@pytest.mark.parametrize("content", CONTENTS)
def test_a_damaged_checkpoint_is_left_out_and_said(tmp_path: Path, content: bytes) -> None:
    """report S07"""
    session = long_session(tmp_path)
    (session.folder / "checkpoint.json").write_bytes(content)
    again = Session.open("s1", tmp_path)
    assert "checkpoint was left out" in again.repairs[0]
    same(again.run(), Run.fold(session.events()))


def test_a_checkpoint_of_another_file_or_of_a_later_one_is_left_out(tmp_path: Path) -> None:
    session = long_session(tmp_path)
    whole = session.path.read_bytes()
    lines = whole.split(b"\n")
    session.path.write_bytes(b"\n".join(lines[:40]) + b"\n")
    again = Session.open("s1", tmp_path)
    assert "doesn't fit the transcript" in again.repairs[0]
    assert again.run().sequence == 39


def test_an_id_that_a_model_gave_before_the_checkpoint_isnt_given_again(tmp_path: Path) -> None:
    session = new(tmp_path)
    turns = [
        call("read_build", "mine" if number == 3 else "", build_id="b") for number in range(FEW)
    ]
    drive(session, [*turns, DONE])
    run = Session.open("s1", tmp_path).run()
    assert isinstance(run, StoredRun)
    again = Session.open("s1", tmp_path)
    harness = Harness(
        ScriptedModel(
            [call("read_build", "mine", build_id="b"), call("read_build", build_id="b"), DONE]
        ),
        TOOLS,
        sinks=[again],
        clock=again.clock(),
    )
    harness.record.message(run, "More.")
    asyncio.run(harness.resume(run))
    given = [each["call_id"] for each in run.history.messages if each["role"] == "tool"]
    assert given[-2:] == ["mine-2", f"call_read_build_0_{FEW + 2}"]
    assert len(set(given)) == len(given)


def test_a_checkpoint_that_cant_be_written_stops_nothing(tmp_path: Path) -> None:
    session = new(tmp_path)
    session.folder.write_text("in the way", encoding="utf-8")
    drive(session, [*[call("read_build", build_id="b")] * FEW, DONE])
    assert "couldn't be written" in session.repairs[0]
    assert session.run().status is Status.COMPLETED
