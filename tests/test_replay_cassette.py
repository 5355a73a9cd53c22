"""A cassette is one file that a person can read, and whatever was done to it is found out."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.cassette import Cassette, DamagedCassette
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final
from mini_harness.replay import Recorder, ReplayModel

HEAD = (
    '{"cassette":"mini_harness","schema_version":1,'
    '"volatile":["time","duration","uuid","run","call","folder"]}'
)
TOOLS: Any = [{"name": "look", "description": "Look.", "input_schema": {}}]


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


def tape(path: Path) -> Path:
    """A recording of three turns."""
    recorder = Recorder(ScriptedModel(["a", Final("b"), {"type": "dance"}]), path)
    recorder.decide(said("one"), TOOLS)
    recorder.decide(said("one", "two"), TOOLS)
    recorder.decide(said("one", "three"), [])
    return path


def test_a_file_says_what_it_is_and_a_message_once(tmp_path: Path) -> None:
    lines = tape(tmp_path / "tape.jsonl").read_text(encoding="utf-8").splitlines()
    assert lines[0] == HEAD
    assert [json.loads(line) for line in lines[1:]] == [
        {"messages": said("one"), "tools": TOOLS, "reply": {"json": "a"}},
        {"keep": 1, "messages": said("two"), "reply": {"final": {"output": "b"}}},
        {"keep": 1, "messages": said("three"), "tools": [], "reply": {"json": {"type": "dance"}}},
    ]


def test_loading_and_saving_changes_nothing(tmp_path: Path) -> None:
    path = tape(tmp_path / "tape.jsonl")
    before = path.read_bytes()
    loaded = Cassette.load(path)
    loaded.save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["tape.jsonl"]
    inline = json.loads(json.dumps(loaded.to_list()))
    assert Cassette.from_list(inline).exchanges == loaded.exchanges
    assert len(loaded) == 3


def test_each_exchange_is_in_the_file_before_the_next_one_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    recorder = Recorder(ScriptedModel(["a", "b"]), path)
    assert len(Cassette.load(path)) == 0
    recorder.decide(said("one"), [])
    assert len(Cassette.load(path)) == 1


def test_a_recording_is_never_overwritten_by_another(tmp_path: Path) -> None:
    path = tape(tmp_path / "tape.jsonl")
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match=r"tape\.jsonl\. Delete it to record anew"):
        Recorder(ScriptedModel([]), path)
    assert path.read_bytes() == before


def test_a_text_that_was_put_right_by_hand_is_what_counts(tmp_path: Path) -> None:
    path = tape(tmp_path / "tape.jsonl")
    text = path.read_text(encoding="utf-8").replace('"two"', '"2"')
    path.write_text(text, encoding="utf-8")
    assert ReplayModel(path).decide(said("one", "2"), TOOLS) == Final("b")


def changed(line: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {key: item for key, item in {**line, **changes}.items() if item != "gone"}


FINE = {"messages": said("one"), "reply": {"json": "a"}}
HEADS = json.loads(HEAD)


@pytest.mark.parametrize(
    ("number", "line", "why"),
    [
        (1, changed(HEADS, cassette="other"), "isn't the head of a cassette"),
        (1, changed(HEADS, schema_version=2), "schema_version is 2"),
        (1, changed(HEADS, volatile="gone"), "a list volatile"),
        (1, changed(HEADS, more=1), "and no more"),
        (2, changed(FINE, keep=1), "keep is 1, and there are 0 messages before"),
        (2, changed(FINE, keep=-1), "keep is -1"),
        (2, changed(FINE, keep=True), "keep is True"),
        (2, changed(FINE, note="x"), "it has note, which is unknown"),
        (2, changed(FINE, messages="gone"), "it has no 'messages'"),
        (2, changed(FINE, reply="gone"), "it has no 'reply'"),
        (2, changed(FINE, messages=["x"]), "must be lists of objects"),
        (2, changed(FINE, tools=5), "must be lists of objects"),
        (2, changed(FINE, reply=["x"]), "reply an object"),
        (2, changed(FINE, reply={}), "not enough values"),
        (2, changed(FINE, reply={"shout": 1}), "'shout' is no kind of reply"),
        (2, changed(FINE, reply={"final": {"outptu": 1}}), "outptu"),
        (2, changed(FINE, reply={"error": {"class": "os:system", "args": []}}), "no error of this"),
        (2, changed(FINE, reply={"error": {"class": "mini_harness.sync:run_sync"}}), "no error of"),
        (2, changed(FINE, key=5), "its key must be text"),
    ],
)
def test_what_no_recorder_wrote_is_refused_with_its_line(
    number: int, line: Any, why: str, tmp_path: Path
) -> None:
    lines = [HEADS, FINE]
    lines[number - 1] = line
    with pytest.raises(
        DamagedCassette, match=rf"Line {number} of .* is damaged: .*{why}"
    ) as caught:
        Cassette.from_list(lines)
    assert caught.value.line == number
    path = tmp_path / "tape.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    with pytest.raises(DamagedCassette, match=rf"Line {number} of tape\.jsonl is damaged"):
        ReplayModel(path)


def test_true_is_no_number_of_messages_though_python_takes_it_for_one() -> None:
    with pytest.raises(DamagedCassette, match=r"Line 3 of .* keep is True"):
        Cassette.from_list([HEADS, FINE, changed(FINE, keep=True)])


def test_a_save_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        Cassette().save(tmp_path / "folder")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (b"", 1),
        (HEAD.encode(), 1),
        (HEAD.encode() + b"\n\n", 2),
        (HEAD.encode() + b'\n{"messages":[],"reply":{"json":1}', 2),
        (HEAD.encode() + b'\n{"messages":[],"reply":{"json":1},"reply":{"json":2}}\n', 2),
        (HEAD.encode() + b'\n{"messages":[],"reply":{"json":NaN}}\n', 2),
        (HEAD.encode() + b"\n\xff\n", 2),
        (HEAD.encode() + b"\n[]\n", 2),
    ],
)
def test_damaged_bytes_are_refused_with_their_line(
    data: bytes, number: int, tmp_path: Path
) -> None:
    path = tmp_path / "tape.jsonl"
    path.write_bytes(data)
    with pytest.raises(DamagedCassette, match=rf"Line {number} of tape\.jsonl is damaged: ."):
        Cassette.load(path)


def test_a_cut_anywhere_is_seen_or_falls_between_two_lines(tmp_path: Path) -> None:
    path = tape(tmp_path / "tape.jsonl")
    data = path.read_bytes()
    between = {0, *(n + 1 for n, byte in enumerate(data) if byte == ord("\n"))}
    for size in range(len(data)):
        path.write_bytes(data[:size])
        if size in between - {0}:
            Cassette.load(path)
            continue
        with pytest.raises(DamagedCassette):
            Cassette.load(path)


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ReplayModel(tmp_path / "none.jsonl")


TEXTS = st.lists(st.sampled_from(["a", "b", "€", "\u2028", "\udc80"]), max_size=4)


@given(st.lists(st.tuples(TEXTS, st.booleans()), max_size=6), st.sets(st.integers(1, 6)))
def test_any_part_of_a_cassette_is_one(requests: list[Any], kept: set[int]) -> None:
    recorder = Recorder(ScriptedModel(range(len(requests))))
    for texts, has_tools in requests:
        recorder.decide(said(*texts), TOOLS if has_tools else [])
    part = recorder.cassette.only(kept)
    again = Cassette.from_list(json.loads(json.dumps(part.to_list())))
    expected = [n for n in range(len(requests)) if n + 1 in kept]
    assert [each.reply["json"] for each in again.exchanges] == expected
    assert [each.key for each in again.exchanges] == [
        each.key for each in recorder.cassette.exchanges if each.number in kept
    ]
