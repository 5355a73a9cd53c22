"""A recording is found again on another day, in another folder, and by its whole text."""

import asyncio
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.clock import RealClock
from mini_harness.layer import Feedback, Layer
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final, ToolCall
from mini_harness.replay import Recorder, ReplayMiss, ReplayModel
from mini_harness.run import Run
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.function import tool
from mini_harness.volatile import VOLATILE, Reader, Request, Volatile
from tests.loops import tool_messages


def seen(text: str, user: str = "go", **arguments: Any) -> list[dict[str, Any]]:
    """A history whose last message is this result of a tool."""
    call = {"type": "tool", "name": "look", "arguments": arguments, "call_id": "c1"}
    return [
        {"role": "user", "content": user},
        {"role": "assistant", "content": None, "calls": [call]},
        {"role": "tool", "tool": "look", "tool_result": text, "call_id": "c1", "is_error": False},
    ]


def key(text: str, **more: Any) -> str:
    return Request(seen(text, **more), []).key


TMP = "/tmp"
ID, OTHER_ID = "3f2b8c1e-0d4a-4f6b-9c7d-1a2b3c4d5e6f", "9a8b7c6d-5e4f-4a3b-8c2d-1e0f9a8b7c6d"


@tool(read_only=True, paths=())
def begin(context: ToolExecutionContext) -> str:
    """Begin a job."""
    folder = context.cwd / "job"
    folder.mkdir()
    (folder / "log.txt").write_text("all is well", encoding="utf-8")
    now = datetime.now(UTC).isoformat()
    return f"Began {uuid.uuid4()} at {now}. Its folder is {folder}."


@tool(read_only=True)
def read_text(path: str) -> str:
    """Read a file."""
    return Path(path).read_text(encoding="utf-8")


class Working:
    """A model that does what its last tool result says."""

    def decide(self, history: Any, tools: Any) -> Any:
        last = history[-1]
        if last["role"] == "user":
            return ToolCall("begin", {})
        if last["tool"] == "begin":
            folder = last["tool_result"].rpartition(" is ")[2].rstrip(".")
            return ToolCall("read_text", {"path": f"{folder}/log.txt"})
        return Final(last["tool_result"])


def worked(model: Any, folder: Path) -> Run:
    folder.mkdir(parents=True)
    tools = [begin, read_text]
    return asyncio.run(Harness(model, tools, clock=RealClock(), cwd=folder).run("Do the job."))


def test_a_run_replays_in_another_folder_on_another_day(tmp_path: Path) -> None:
    """report C02: a real run, with real ids, times, uuids and folders"""
    recorder = Recorder(Working(), tmp_path / "tape.jsonl")
    first = worked(recorder, tmp_path / "one")
    replay = ReplayModel(tmp_path / "tape.jsonl")
    again = worked(replay, tmp_path / "elsewhere" / "deep")
    assert first.output == again.output == "all is well"
    assert replay.unused == ()
    # The folder that the recorded answer speaks of is the one of this run.
    (call,) = again.history.messages[3]["calls"]
    assert call["arguments"]["path"] == str(tmp_path / "elsewhere" / "deep" / "job" / "log.txt")
    assert tool_messages(first)[0] != tool_messages(again)[0]


def test_two_recordings_of_the_same_run_are_the_same_file(tmp_path: Path) -> None:
    """report C02: the fingerprints of two recordings are equal"""
    for name in ("one", "two"):
        worked(Recorder(Working(), tmp_path / f"{name}.jsonl"), tmp_path / name)
    one, two = ((tmp_path / f"{name}.jsonl").read_bytes() for name in ("one", "two"))
    assert one == two
    assert str(tmp_path).encode() not in one


def test_the_order_of_keys_is_no_matter() -> None:
    """report C02"""
    one = key("ok", a=f"at {ID}", b=f"and {OTHER_ID}")
    assert one == key("ok", b=f"and {OTHER_ID}", a=f"at {ID}")
    assert one != key("ok", a=1)

    def failed(**more: str) -> str:
        return Request([{"role": "tool", **more}], []).key

    assert failed(error=ID, tool_result=OTHER_ID) == failed(tool_result=OTHER_ID, error=ID)


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("time", "at 2026-01-02T03:04:05Z", "at 2026-11-12T13:14:15Z"),
        ("time", "at 2026-01-02 03:04", "at 2026-11-12 13:14"),
        ("time", "at 2026-01-02T03:04:05.123+02:00", "at 2027-01-02T03:04:05.9-07:00"),
        ("time", "Fri, 02 Jan 2026 03:04:05 GMT", "Sun, 04 Jan 2026 13:04:05 GMT"),
        ("time", "[03:04:05] up", "[13:14:15] up"),
        ("time", "t=1767323045.25", "t=1790000000.5"),
        ("duration", "5 passed in 0.12s", "5 passed in 3.40s"),
        ("uuid", f"job {ID}", f"job {OTHER_ID.upper()}"),
        ("run", "run-0123456789ab", "run-ba9876543210"),
        ("call", "call_look_1767323045000_1", "call_look_1790000000000_1"),
        ("call", "toolu_01AbCdEfGhIjKl", "toolu_01ZyXwVuTsRqPo"),
        ("folder", f"in {TMP}/pytest-of-me/pytest-3/t0", f"in {TMP}/tmpx3k_9/a/b"),
        ("folder", f"{TMP}/one/notes.txt: 3 lines", f"{TMP}/two/deep/notes.txt: 3 lines"),
        ("folder", f"{TMP}/tmpab12cd34.txt.", "/var/folders/x1/y_2/T/tmpzz.txt."),
        ("folder", f"see '/private{TMP}/a'", "see '/dev/shm/b'"),
        ("folder", r"C:\Users\me\AppData\Local\Temp\a\n.txt", r"C:\Windows\Temp\b\c\n.txt"),
    ],
)
def test_what_is_listed_as_volatile_does_not_matter(name: str, one: str, other: str) -> None:
    """report C02"""
    assert key(one) == key(other)
    assert f"⟦{name} " in Request(seen(one), []).messages[2]["tool_result"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("failed", "passed"),
        ("5 passed", "4 passed"),
        ("due 2026-01-02", "due 2026-01-03"),
        ("line 12:30", "line 12:31"),
        ("waits 30s", "waits 31s"),
        ("/home/a/notes.txt", "/home/b/notes.txt"),
        (f"/home/me{TMP}/a", f"/home/me{TMP}/b"),
        (f"{TMP}/one/notes.txt", f"{TMP}/one/other.txt"),
        ("run-1", "run-2"),
        ("order 1767323045", "order 1767323046"),
        (f"{ID} {ID}", f"{ID} {OTHER_ID}"),
        (f"{TMP}/a and {TMP}/a", f"{TMP}/a and {TMP}/b"),
        ("⟦uuid 1⟧", ID),
        ("⟦literal⟧", "⟦"),
        (f"{ID} then {OTHER_ID} not {ID}", f"{ID} then {OTHER_ID} not {OTHER_ID}"),
    ],
)
def test_what_is_not_listed_matters(one: str, other: str) -> None:
    """report C02: normalisation is a listed set, not "ignore the body" """
    assert key(one) != key(other)


def test_what_a_user_said_is_taken_literally_but_not_what_the_harness_says_for_them() -> None:
    assert key("ok", user=f"Delete {ID}") != key("ok", user=f"Delete {OTHER_ID}")

    def sent_back(name: str) -> str:
        said = {"role": "user", "content": f"Not {name}.", "because": "rejected"}
        return Request([*seen("ok"), said], []).key

    assert sent_back(ID) == sent_back(OTHER_ID)


def test_a_rejected_answer_names_ids_and_the_run_replays_all_the_same() -> None:
    class Once(Layer):
        async def finish(self, run: Run, final: Final, next: Any) -> Any:
            if run.rejections:
                return await next(run, final)
            return Feedback(f"You didn't look, {run.id}.")

    def done(model: Any) -> Run:
        return asyncio.run(Harness(model, layers=[Once()]).run("go"))

    recorder = Recorder(ScriptedModel([Final("guess"), Final("known")]))
    first = done(recorder)
    again = done(ReplayModel(recorder.cassette))
    assert first.id != again.id
    assert first.output == again.output == "known"


def test_times_may_coincide_in_one_run_and_not_in_the_other() -> None:
    same = "from 2026-01-02T03:04:05Z to 2026-01-02T03:04:05Z"
    assert key(same) == key("from 2026-01-02T03:04:05Z to 2026-01-02T03:04:06Z")


def test_an_answer_says_again_what_is_volatile_here_and_keeps_what_only_looks_like_it() -> None:
    def reply(one: str, folder: str) -> dict[str, Any]:
        text = f"{one} in {folder}/new/x.py, not {folder}2, nor ⟦uuid 1⟧ nor ⟦literal⟧ {'f' * 8}"
        return {"type": "final", "output": [text, OTHER_ID[:-1] + "0"]}

    recorder = Recorder(ScriptedModel([reply(ID, f"{TMP}/a")]))
    recorder.decide(seen(f"{ID} {TMP}/a"), [])
    again = ReplayModel(recorder.cassette).decide(seen(f"{OTHER_ID} {TMP}/bb/c"), [])
    expected = reply(OTHER_ID, f"{TMP}/bb/c")
    expected["output"][0] = expected["output"][0].replace(f"{TMP}/bb/c2", f"{TMP}/a2")
    assert again == expected


def test_of_a_folder_and_one_within_it_the_inner_one_is_meant() -> None:
    recorder = Recorder(ScriptedModel([f"{TMP}/a/b/x.py"]))
    recorder.decide(seen(f"{TMP}/a and {TMP}/a/b"), [])
    replay = ReplayModel(recorder.cassette)
    assert replay.decide(seen(f"{TMP}/c and {TMP}/d"), []) == f"{TMP}/d/x.py"


def test_an_id_as_short_as_a_word_is_not_taken_for_what_an_answer_says() -> None:
    recorder = Recorder(ScriptedModel(["c1 is a square"]))
    recorder.decide(seen("ok"), [])
    history = seen("ok")
    history[2]["call_id"] = history[1]["calls"][0]["call_id"] = "e4"
    assert ReplayModel(recorder.cassette).decide(history, []) == "c1 is a square"


def test_ones_own_kinds_can_be_added_and_must_be_given_again() -> None:
    more = (*VOLATILE, Volatile("build", r"\bbuild-\d+\b", "Builds are numbered."))
    recorder = Recorder(ScriptedModel(["ok build-7"]), volatile=more)
    recorder.decide(seen("build-7 is red"), [])
    replay = ReplayModel(recorder.cassette, volatile=more)
    assert replay.decide(seen("build-9 is red"), []) == "ok build-9"
    with pytest.raises(ValueError, match=r"recorded with volatile=.*'build'\], and is to be"):
        ReplayModel(recorder.cassette)


@pytest.mark.parametrize(
    ("name", "pattern"), [("two words", "a"), ("literal", "a"), ("x", "("), ("x", "a*")]
)
def test_a_kind_that_cannot_work_is_refused(name: str, pattern: str) -> None:
    with pytest.raises(ValueError, match=r"can't be|is found in an empty text"):
        Volatile(name, pattern, "why")


def test_every_kind_that_is_left_out_says_why() -> None:
    assert len({each.name for each in VOLATILE}) == len(VOLATILE)
    assert all(each.why.endswith(".") for each in VOLATILE)
    with pytest.raises(ValueError, match="must differ"):
        Reader((*VOLATILE, VOLATILE[0]))


WORDS = st.sampled_from(["ok", "⟦uuid 1⟧", "⟦", f"{TMP}/a", "2026-01-02T03:04:05Z", ID, " "])
TEXTS = st.lists(WORDS | st.text(max_size=3), max_size=6).map(" ".join)


@given(TEXTS, TEXTS)
def test_an_answer_to_the_same_request_is_exactly_the_recorded_one(text: str, reply: str) -> None:
    recorder = Recorder(ScriptedModel([reply]))
    recorder.decide(seen(text), [])
    assert ReplayModel(recorder.cassette).decide(seen(text), []) == reply


@given(TEXTS, TEXTS)
def test_texts_without_anything_volatile_are_told_apart(one: str, other: str) -> None:
    plain = [
        text.replace(ID, "a").replace(f"{TMP}/a", "b").replace("2026-", "") for text in (one, other)
    ]
    recorder = Recorder(ScriptedModel(["yes"]))
    recorder.decide(seen(plain[0]), [])
    replay = ReplayModel(recorder.cassette)
    if plain[0] == plain[1]:
        assert replay.decide(seen(plain[1]), []) == "yes"
    else:
        with pytest.raises(ReplayMiss):
            replay.decide(seen(plain[1]), [])
