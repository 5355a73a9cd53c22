"""A session on the disk: what is written, where, by whom, and what is read back."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from mini_harness.clock import VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.layer import Stop
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.run import Status, StopReason
from mini_harness.session import Session
from mini_harness.session_files import workspace_id
from mini_harness.tools.builds import TOOLS
from mini_harness.tools.function import function_tool
from mini_harness.transcript import SessionIsBusy
from tests.loops import DONE, call
from tests.sessions import TOUR, Halt, drive, new, same

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
    monkeypatch.setenv("MINI_HARNESS_SESSIONS", str(tmp_path))
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


def test_a_late_result_neither_ends_a_run_nor_takes_one_up(tmp_path: Path) -> None:
    session = new(tmp_path)

    def be_late() -> None:
        first = next(session.events())
        event = first._replace(sequence=3, type=EventType.LATE_RESULT)
        session(event)
        with pytest.raises(SessionIsBusy):
            drive(Session.open("s1", tmp_path))
        raise Stop(StopReason.CANCELLED)

    with pytest.raises(ValueError, match="after run-1:3 comes run-1:3"):
        drive(session, TOUR, TOOLS, layers=[Halt(be_late)])
    session(next(session.events())._replace(sequence=4, type=EventType.LATE_RESULT))
    assert drive(Session.open("s1", tmp_path)).id == "run-2"


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
    assert Session.open("s1", tmp_path).run().sequence == 4
    assert drive(Session.open("s1", tmp_path)).status is Status.COMPLETED


def test_an_interrupt_that_nobody_records_lets_others_write(tmp_path: Path) -> None:
    """A kernel that is interrupted in a model's own code."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive(session := new(tmp_path), [interrupted])
    other = Session.open("s1", tmp_path)
    harness = Harness(ScriptedModel([DONE]), TOOLS, sinks=[other], clock=other.clock())
    run = harness.run_sync("again")
    assert run.status == "completed"
    assert other.runs == session.runs != (run.id,)


def test_the_list_has_the_last_used_first(tmp_path: Path) -> None:
    """C03"""
    for name in ("a", "b", "c"):
        Session.create(tmp_path, session_id=name)
    for number, name in enumerate(("b", "c", "a")):
        path = Session.open(name, tmp_path).path
        os.utime(path, (4e9 + number, 4e9 + number))
    assert [info.id for info in Session.list(tmp_path)] == ["a", "c", "b"]
