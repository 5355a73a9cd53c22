"""What a model answered is replayed, each answer in its place, or it is missed loudly."""

import asyncio
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.cassette import Cassette
from mini_harness.clock import VirtualClock
from mini_harness.events import Event
from mini_harness.loop import Harness
from mini_harness.models.base import ModelError
from mini_harness.models.errors import ContextWindowExceeded, ModelUnavailable
from mini_harness.models.scripted import ScriptedModel, ScriptEnded
from mini_harness.protocol import Final, ToolCall, Turn, Usage, read_turn
from mini_harness.replay import Recorder, ReplayMiss, ReplayModel, UnusedRecordings
from mini_harness.replies import RecordedError
from mini_harness.retry import Retry
from mini_harness.run import Run
from mini_harness.timeout import ModelTimedOut
from mini_harness.tools.builds import TOOLS
from tests.loops import check

GO = [{"role": "user", "content": "go"}]


def recorded(*replies: Any, history: Any = GO) -> Cassette:
    """A cassette of one request with these answers."""
    recorder = Recorder(ScriptedModel(replies))
    for _ in replies:
        asked(recorder, history)
    return recorder.cassette


def asked(model: Any, history: Any = GO) -> Any:
    """What the model answers, or the error it raises."""
    try:
        return model.decide(history, [])
    except Exception as error:  # noqa: BLE001 - it is looked at
        return error


def run(model: Any, goal: str = "go", **parts: Any) -> tuple[Run, list[Event]]:
    events: list[Event] = []
    tools = [TOOLS["read_build"], TOOLS["add"]]
    parts.setdefault("clock", VirtualClock())
    done = asyncio.run(Harness(model, tools, sinks=[events.append], **parts).run(goal))
    check(done, events)
    return done, events


def lines(events: Sequence[Event]) -> list[str]:
    return [event.to_json() for event in events]


class Odd:
    def __repr__(self) -> str:
        return "<something odd>"


class Flaky(ModelError):
    """A class of somebody else."""

    transient: ClassVar[bool] = True


LOOK = ToolCall("read_build", {"build_id": "build-102"}, "c1", "let me see", Usage(10, 2))
TWO = Turn((LOOK, ToolCall("add", {"a": 1, "b": 2})), "both", Usage(3, 1, 2, 0), {"id": [1, None]})
NAN = float("nan")
REPLIES: list[Any] = [
    Final("done", "hm", Usage(1, 2, 3, 4), "cut off", {"blocks": [{"type": "text"}]}),
    Final(0),
    Final({"a": [False, None, 1.5, "€\u2028"]}),
    LOOK,
    ToolCall("x", {}, defect="cut off"),
    TWO,
    [LOOK, ToolCall("add", {"a": 1, "b": 2}, "c2")],
    [{"type": "tool", "name": "add", "arguments": {"a": 1, "b": 2}}],
    {"type": "final", "output": "done"},
    {"type": "tool", "name": "read_build", "arguments": {"build_id": "build-102"}},
    {"type": "dance"},
    "I think I am done.",
    None,
    0,
    [],
    [Final("a"), LOOK],
    Odd(),
    b"bytes",
    {"type": "final", "output": NAN},
    ToolCall("add", {"a": NAN, "b": 1}, usage=Usage(7, 7)),
    Turn((LOOK, "no call")),  # type: ignore[arg-type]
    Final("x", usage="much"),  # type: ignore[arg-type]
    {"type": "tool", "name": "add", "arguments": {1: 2}},
]


@pytest.mark.parametrize("reply", REPLIES, ids=repr)
def test_a_harness_makes_of_a_replayed_answer_what_it_made_of_the_first(reply: Any) -> None:
    first = recorded(reply)
    again = ReplayModel.from_list(json.loads(json.dumps(first.to_list()))).decide(GO, [])
    once, twice = read_turn(reply), read_turn(again)
    assert type(once) is type(twice)
    assert repr(once) == repr(twice)
    for name in ("said", "reason", "usage", "raw", "note", "calls"):
        assert getattr(once, name, None) == getattr(twice, name, None)


@pytest.mark.parametrize("reply", REPLIES[:15], ids=repr)
def test_what_json_can_hold_comes_back_as_it_was(reply: Any) -> None:
    again = ReplayModel(recorded(reply)).decide(GO, [])
    assert again == reply
    assert type(again) is type(reply) or isinstance(again, type(reply))


def test_a_whole_run_replays_event_for_event(tmp_path: Path) -> None:
    """A27"""
    script = [LOOK, {"type": "dance"}, ModelUnavailable("busy", retry_after=9), TWO, Final("ok")]
    path = tmp_path / "run.jsonl"
    first = run(Recorder(ScriptedModel(script), path), layers=[Retry()])
    replay = ReplayModel(path)
    again = run(replay, layers=[Retry()])
    assert lines(first[1]) == lines(again[1])
    assert (again[0].output, again[0].usage, replay.unused) == ("ok", first[0].usage, ())


def test_an_async_model_is_recorded_as_any_other_and_changes_nothing() -> None:
    class Later:
        async def decide(self, history: Any, tools: Any) -> Any:
            await asyncio.sleep(0)
            if len(history) == 1:
                return LOOK
            raise ContextWindowExceeded("too long", status=400, usage=Usage(5, 0))

    recorder = Recorder(Later())
    first = run(recorder)
    again = run(ReplayModel(recorder.cassette))
    assert lines(first[1]) == lines(again[1])
    assert isinstance(again[0].error, ContextWindowExceeded)
    assert (again[0].error.status, again[0].error.usage) == (400, Usage(5, 0))


@pytest.mark.parametrize(
    "error",
    [
        ModelUnavailable("busy", retry_after=2.5, status=529, request_id="r1"),
        ModelTimedOut(30, Usage(1, 1)),
        ScriptEnded("no more"),
        ModelError("plain"),
    ],
    ids=repr,
)
def test_an_error_of_this_package_is_raised_again_as_itself(error: ModelError) -> None:
    again = asked(ReplayModel(recorded(error)))
    assert type(again) is type(error)
    assert (again.args, vars(again), repr(again)) == (error.args, vars(error), repr(error))
    assert again.transient is error.transient


def test_an_error_of_anybody_else_keeps_its_text_and_whether_it_may_pass() -> None:
    passing, fatal = (asked(ReplayModel(recorded(e))) for e in (Flaky("hm"), ValueError("bad")))
    assert isinstance(passing, RecordedError)
    assert isinstance(fatal, RecordedError)
    assert (str(passing), passing.transient) == ("hm", True)
    assert (repr(fatal), fatal.transient, fatal.kind) == (
        "ValueError('bad')",
        False,
        "builtins:ValueError",
    )


def test_what_an_error_of_anybody_else_cost_and_how_long_it_asks_to_wait_is_kept() -> None:
    error = Flaky("hm")
    error.retry_after, error.usage = 4, Usage(5, 6)  # type: ignore[attr-defined]
    again: Any = asked(ReplayModel(recorded(error)))
    assert (again.retry_after, again.usage) == (4, Usage(5, 6))


def test_equal_requests_get_their_answers_in_order_and_then_a_miss() -> None:
    """report C01"""
    replay = ReplayModel(recorded("bar", "whee"))
    assert [asked(replay), asked(replay)] == ["bar", "whee"]
    miss = asked(replay)
    assert isinstance(miss, ReplayMiss)
    assert "recorded 2, asked 3" in str(miss)
    assert (miss.recorded, miss.asked, miss.transient) == (2, 3, False)
    assert "recorded 2, asked 4" in str(asked(replay))


def test_each_answer_is_given_once_also_to_threads_that_ask_at_once() -> None:
    """report C01"""
    answers = [f"answer {n}" for n in range(60)]
    replay = ReplayModel(recorded(*answers))
    ready = threading.Barrier(8)

    def ask(_: int) -> list[Any]:
        ready.wait()
        return [asked(replay) for _ in range(10)]

    with ThreadPoolExecutor(8) as pool:
        given_out = [each for part in pool.map(ask, range(8)) for each in part]
    misses = [each for each in given_out if isinstance(each, ReplayMiss)]
    assert sorted(e for e in given_out if isinstance(e, str)) == sorted(answers)
    assert sorted(miss.asked for miss in misses) == list(range(61, 81))


def test_threads_record_every_exchange_whole(tmp_path: Path) -> None:
    """report C01"""

    class Echo:
        def decide(self, history: Any, tools: Any) -> str:
            return str(history[0]["content"]) * 50

    path = tmp_path / "many.jsonl"
    recorder = Recorder(Echo(), path)
    with ThreadPoolExecutor(8) as pool:
        said = [[{"role": "user", "content": f"question {n % 20}"}] for n in range(200)]
        list(pool.map(lambda each: recorder.decide(each, []), said))
    replay = ReplayModel(path)
    assert [asked(replay, each) for each in said] == [each[0]["content"] * 50 for each in said]
    assert replay.unused == ()


def test_what_nobody_asked_for_is_reported_and_can_be_dropped(tmp_path: Path) -> None:
    """report C01"""
    replay = ReplayModel(recorded("bar", "whee"))
    asked(replay)
    assert [each.number for each in replay.unused] == [2]
    assert repr(replay) == "<ReplayModel: 1 of 2 recordings used>"
    with pytest.raises(UnusedRecordings, match=r"1 of the recorded .* recording 2 \(1 messages"):
        replay.check_all_used()
    replay.drop_unused().save(tmp_path / "less.jsonl")
    less = ReplayModel(tmp_path / "less.jsonl")
    assert asked(less) == "bar"
    less.check_all_used()
    assert "recorded 1, asked 2" in str(asked(less))


def test_a_miss_names_the_nearest_recording_and_the_first_field_that_differs() -> None:
    recorder = Recorder(ScriptedModel([LOOK, Final("ok"), Final("else")]))
    run(recorder, "Why is build-102 red?")
    other = [{"role": "user", "content": "Something else"}]
    recorder.decide(other, [])
    done, _ = run(ReplayModel(recorder.cassette), "Why is build-103 red?")
    miss = done.error
    assert isinstance(miss, ReplayMiss)
    assert (miss.recorded, miss.asked, miss.field) == (0, 1, "messages[0].content")
    assert miss.nearest is not None
    assert miss.nearest.number == 1
    assert 'build-102 red?"' in str(miss)
    assert 'build-103 red?"' in str(miss)


CHANGED = "messages[1].calls[0].arguments.n"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda h, t: h[2].update(tool_result="passed"), "messages[2].tool_result"),
        (lambda h, t: h.pop(), "messages[2].call_id"),
        (lambda h, t: h.append({"role": "user", "content": "?"}), "messages[3].content"),
        (lambda h, t: t[0].update(description="Other."), "tools[0].description"),
        (lambda h, t: t.pop(), "tools"),
        (lambda h, t: h[1]["calls"][0].update(arguments={"n": 2}), CHANGED),
        (lambda h, t: h[1]["calls"][0].update(arguments={"n": True}), CHANGED),
    ],
)
def test_whatever_is_changed_in_a_request_is_a_miss_that_says_where(
    change: Any, field: str
) -> None:
    def request() -> tuple[list[Any], list[Any]]:
        call = {"type": "tool", "name": "look", "arguments": {"n": 1}, "call_id": "c1"}
        seen = {"role": "tool", "tool": "look", "tool_result": "failed", "call_id": "c1"}
        said = [GO[0], {"role": "assistant", "content": None, "calls": [call]}, seen]
        return said, [{"name": "look", "description": "Look.", "input_schema": {}}]

    recorder = Recorder(ScriptedModel(["yes"]))
    recorder.decide(*request())
    assert ReplayModel(recorder.cassette).decide(*request()) == "yes"
    history, tools = request()
    change(history, tools)
    with pytest.raises(ReplayMiss) as caught:
        ReplayModel(recorder.cassette).decide(history, tools)
    assert caught.value.field == field


def test_long_values_are_shown_from_where_they_differ() -> None:
    long = [{"role": "user", "content": "x" * 5000 + what} for what in ("left", "right")]
    miss = str(asked(ReplayModel(recorded("a", history=[long[0]])), [long[1]]))
    assert "xxleft" in miss
    assert "xxright" in miss
    assert len(miss) < 500


def test_an_empty_cassette_misses_too() -> None:
    assert "Nothing is recorded here: recorded 0, asked 1" in str(asked(ReplayModel(Cassette())))


def test_what_cannot_be_asked_for_a_turn_cannot_be_recorded() -> None:
    with pytest.raises(TypeError, match="isn't a model"):
        Recorder("gpt")  # type: ignore[arg-type]


# No text of these can be, or name, a secret.
LETTERS = "abc0 €⟦⟧/\u2028\x00"
SCALARS = st.none() | st.booleans() | st.integers(-99, 99) | st.text(LETTERS, max_size=12)
KEYS = st.text(LETTERS, max_size=5)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
CALLS = st.builds(ToolCall, st.just("look") | KEYS, JSON, KEYS)
TURNS = (
    st.builds(Final, JSON, st.none() | KEYS, st.none() | st.builds(Usage), raw=JSON)
    | st.builds(Turn, st.lists(CALLS, min_size=1, max_size=3).map(tuple), raw=JSON)
    | CALLS
    | JSON
)


@given(st.lists(st.tuples(st.lists(KEYS, max_size=3), TURNS), max_size=8))
def test_any_recording_replays_in_order_also_from_its_text(exchanges: list[Any]) -> None:
    recorder = Recorder(ScriptedModel([reply for _, reply in exchanges]))
    asked_for = [[{"role": "user", "content": text} for text in texts] for texts, _ in exchanges]
    replies = [asked(recorder, history) for history in asked_for]
    text = json.dumps(recorder.cassette.to_list())
    replay = ReplayModel.from_list(json.loads(text))
    assert [asked(replay, history) for history in asked_for] == replies
    replay.check_all_used()
