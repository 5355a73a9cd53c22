"""A session on the disk: what is read back, what is refused, and what a full disk costs."""

import asyncio
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mini_harness.checkpoint import StoredRun
from mini_harness.clock import VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.layer import Layer, Pause
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.run import Run, Status
from mini_harness.session import Session
from mini_harness.session_files import workspace_id
from mini_harness.tools.builds import TOOLS
from mini_harness.tools.function import function_tool
from mini_harness.transcript import DamagedSession, SessionIsBusy
from tests.course.disks import make_read_only, small_disk
from tests.loops import DONE, call

TOUR = [call("read_build", build_id="build-101"), call("read_build", build_id="build-102"), DONE]


def new(root: Path, **more: Any) -> Session:
    return Session.create(root, session_id="s1", **more)


def drive(session: Session, turns: Iterable[Any] = TOUR, tools: Any = TOOLS, **parts: Any) -> Run:
    harness = Harness(ScriptedModel(turns), tools, sinks=[session], clock=session.clock(), **parts)
    return harness.run_sync("Why did it fail? ✓")


def same(one: Run, other: Run) -> None:
    """Both are one state, whichever way they were read."""
    for name in ("id", "goal", "status", "step", "sequence", "offset", "usage", "output", "stop"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("pause", "pending", "rejections", "calls", "begun", "in_doubt", "failed"):
        assert getattr(one, name) == getattr(other, name), name
    assert list(one.history.messages) == list(other.history.messages)
    assert one.history.open == other.history.open
    assert one.notes == other.notes


# --- what is written, and in which order --------------------------------------------------------


def test_a_run_is_on_the_disk_and_comes_back_as_it_was(tmp_path: Path) -> None:
    """A24, C04, C05: message, then each call with its result, then the answer"""
    session = new(tmp_path, cwd=tmp_path, title="Nightly")
    run = drive(session)
    session.close()
    again = Session.open("s1", tmp_path)
    same(again.run(), run)
    kinds = [event.type for event in again.events()]
    step = ["model_decision", "tool_start", "tool_result"]
    assert kinds == ["message", *step, *step, "model_decision", "final"]
    assert again.trace().to_jsonl().encode() == again.path.read_bytes().split(b"\n", 1)[1]
    assert (again.info.cwd, again.info.title) == (str(tmp_path), "Nightly")


def test_a_tools_start_is_on_the_disk_before_the_tool_runs(tmp_path: Path) -> None:
    """C06, C07"""
    session = new(tmp_path)
    seen: list[str] = []

    def look() -> str:
        """Look at the transcript."""
        seen.extend(session.path.read_text(encoding="utf-8").splitlines()[-1:])
        return "looked"

    run = drive(session, [call("look"), DONE], [function_tool(look)])
    event = json.loads(seen[0])
    assert (event["type"], event["sequence"]) == ("tool_start", 3)
    assert event["event_id"] == f"{run.id}:3"
    assert event["event_id"] in {each.event_id for each in session.events()}


@pytest.mark.parametrize("durable", [EventType.TOOL_START])
def test_one_fsync_is_paid_for_each_call_and_for_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: EventType
) -> None:
    session, synced = new(tmp_path), []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.append(json.loads(session.path.read_bytes().split(b"\n")[-2])["type"])

    monkeypatch.setattr(os, "fsync", fsync)
    drive(session)
    assert synced == [durable, durable]


def test_a_later_message_belongs_to_the_same_session(tmp_path: Path) -> None:
    """report S11: after resume the session's own file grows, and no other appears"""
    drive(new(tmp_path))
    before = {path.name for path in tmp_path.rglob("*")}
    again = Session.open("s1", tmp_path)
    size = again.path.stat().st_size
    run = again.run()
    harness = Harness(ScriptedModel([DONE]), TOOLS, sinks=[again], clock=again.clock())
    harness.record.message(run, "And now?")
    asyncio.run(harness.resume(run))
    assert again.path.stat().st_size > size
    assert {path.name for path in tmp_path.rglob("*")} == before
    assert len(Session.open("s1", tmp_path).runs) == 1


def test_a_run_inside_a_call_isnt_the_one_to_resume(tmp_path: Path) -> None:
    session = new(tmp_path)
    clock = VirtualClock()

    async def ask() -> str:
        """Ask a specialist."""
        inner = Harness(ScriptedModel([DONE]), sinks=[session], clock=clock)
        return str((await inner.run("a part")).unwrap())

    outer = Harness(
        ScriptedModel([call("ask"), DONE]), [function_tool(ask)], sinks=[session], clock=clock
    )
    asyncio.run(outer.run("all"))
    assert session.runs == ("run-1", "run-2")
    assert session.run().id == "run-1"
    assert session.run("run-2").goal == "a part"
    with pytest.raises(LookupError, match=r"has no run run-9. It has: run-1, run-2"):
        session.run("run-9")


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


# --- ids and places ------------------------------------------------------------------------------

BAD = [
    "../../x",
    "/etc/x",
    "a/b",
    "a\\b",
    "",
    ".",
    "CON",
    "nul",
    "com1",
    "x" * 300,
    "a\0",
    "ä",
    "a\n",
]


@pytest.mark.parametrize("name", BAD)
def test_an_id_is_never_a_path_and_no_file_is_touched(tmp_path: Path, name: str) -> None:
    """report S11"""
    with pytest.raises(ValueError, match=r"1 to 64 letters|name of a device"):
        Session.create(tmp_path, session_id=name)
    with pytest.raises(ValueError, match=r"1 to 64 letters|name of a device"):
        Session.open(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_two_ids_never_share_a_file(tmp_path: Path) -> None:
    """report S11: as on a disk that doesn't tell "A" from "a\""""
    Session.create(tmp_path, session_id="a")
    sessions = tmp_path / "sessions"
    (sessions / "A.json").write_bytes((sessions / "a.json").read_bytes())
    with pytest.raises(FileNotFoundError, match=r"no session A .* but a"):
        Session.open("A", tmp_path)
    with pytest.raises(FileExistsError, match="couldn't be made"):
        Session.create(tmp_path, session_id="a")


def test_a_session_that_isnt_there_is_answered_with_those_there_are(tmp_path: Path) -> None:
    new(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no session s2 .*The latest there: s1"):
        Session.open("s2", tmp_path)


@pytest.mark.parametrize(
    ("cwd", "name"),
    [("/", "root"), ("/home/ann/my shop", "home-ann-my_shop"), ("/a/b/", "a-b")],
)
def test_a_workspace_has_a_folder(cwd: str, name: str) -> None:
    """C02"""
    assert workspace_id(cwd) == name


def test_a_very_long_folder_still_has_a_name_of_its_own(tmp_path: Path) -> None:
    names = {workspace_id("/" + "ä" * 400), workspace_id("/" + "ä" * 401)}
    assert len(names) == 2
    assert all(len(name.encode()) <= 120 for name in names)


def test_the_home_is_what_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C01"""
    monkeypatch.setenv("MINI_HARNESS_HOME", str(tmp_path))
    session = Session.create(title="here")
    assert session.path.is_relative_to(tmp_path)
    assert [info.id for info in Session.list()] == [session.id]
    assert Session.open(session.id).info.title == "here"


def test_nobody_else_may_read_what_was_said(tmp_path: Path) -> None:
    session = new(tmp_path / "home")
    drive(session)
    modes = {oct(path.stat().st_mode & 0o077) for path in (tmp_path / "home").rglob("*.json*")}
    assert modes == {"0o0"}


# --- one writer ----------------------------------------------------------------------------------


class Halt(Layer):
    """Lets somebody look at the moment of a call, and pauses if told so."""

    def __init__(self, look: Any, *, pauses: bool = False) -> None:
        self.look, self.pauses = look, pauses

    async def act(self, run: Run, call: Any, next: Any) -> Any:
        self.look()
        if self.pauses:
            raise Pause(waits="for a person")
        return await next(run, call)


def test_while_a_run_goes_on_nobody_else_writes_and_everybody_reads(tmp_path: Path) -> None:
    session = new(tmp_path)
    said: list[str] = []

    def interfere() -> None:
        other = Session.open("s1", tmp_path)
        said.append(other.run().id)
        with pytest.raises(SessionIsBusy, match="Somebody else is writing to session s1"):
            drive(other)

    drive(session, TOUR, TOOLS, layers=[Halt(interfere)])
    assert said == ["run-1", "run-1"]
    assert session.runs == ("run-1",)


def test_after_a_pause_anybody_may_go_on(tmp_path: Path) -> None:
    session = new(tmp_path)
    mine = drive(session, TOUR, TOOLS, layers=[Halt(lambda: None, pauses=True)])
    other = Session.open("s1", tmp_path)
    run = other.run()
    assert (run.status, run.pause) == (Status.PAUSED, {"waits": "for a person"})
    harness = Harness(ScriptedModel(TOUR, asked=1), TOOLS, sinks=[other], clock=other.clock())
    assert asyncio.run(harness.resume(run)).status is Status.COMPLETED
    # Whoever still holds the run of before is told, and nothing is written twice.
    behind = Harness(ScriptedModel(TOUR, asked=1), TOOLS, sinks=[session], clock=session.clock())
    size = session.path.stat().st_size
    with pytest.raises(ValueError, match="went on elsewhere"):
        asyncio.run(behind.resume(mine))
    assert session.path.stat().st_size == size
    same(session.run(), run)


def test_two_clocks_that_begin_at_zero_dont_mix_two_runs(tmp_path: Path) -> None:
    session = new(tmp_path)
    drive(session)
    harness = Harness(ScriptedModel([DONE]), sinks=[session], clock=VirtualClock())
    with pytest.raises(ValueError, match="there is a run-1 already"):
        asyncio.run(harness.run("again"))
    assert drive(session).id == "run-2"


def test_a_closed_session_writes_nothing(tmp_path: Path) -> None:
    session = new(tmp_path)
    session.close()
    session.close()
    with pytest.raises(ValueError, match=r"is closed. Open it again"):
        drive(session)


def test_what_fails_between_two_events_lets_others_write(tmp_path: Path) -> None:
    session = new(tmp_path)

    def fail(event: Event) -> None:
        if event.type == "tool_result":
            raise RuntimeError("another sink is broken")

    harness = Harness(ScriptedModel(TOUR), TOOLS, sinks=[session, fail], clock=VirtualClock())
    with pytest.raises(RuntimeError, match="another sink"):
        asyncio.run(harness.run("go"))
    session.close()
    assert Session.open("s1", tmp_path).run().sequence == 4
    assert drive(Session.open("s1", tmp_path)).status is Status.COMPLETED


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


def test_the_list_has_the_last_used_first(tmp_path: Path) -> None:
    """C03"""
    for name in ("a", "b", "c"):
        Session.create(tmp_path, session_id=name)
    for number, name in enumerate(("b", "c", "a")):
        path = Session.open(name, tmp_path).path
        os.utime(path, (4e9 + number, 4e9 + number))
    assert [info.id for info in Session.list(tmp_path)] == ["a", "c", "b"]
