"""The record remembers: what is written, when, and what happens when writing fails."""

import asyncio
import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from mini_harness.events import Event, EventType, Sink
from mini_harness.frozen import NotJson
from mini_harness.layer import Finish, Layer, Pause, Stop
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final, Observation, Turn, Usage
from mini_harness.run import Run, Status, StopReason
from mini_harness.tools.base import BaseTool, ToolResult
from mini_harness.tools.builds import TOOLS
from mini_harness.tools.call import Call
from mini_harness.tools.function import function_tool, tool
from tests.loops import DONE, call, check, kinds, outcomes, play, turn

TURN = ["model_decision", "tool_start", "tool_result"]


class Disk:
    """A sink that keeps events until it fails: at one type of event, as often as told."""

    def __init__(self, fails_at: str, error: BaseException, times: int = 1) -> None:
        self.events: list[Event] = []
        self.fails_at = fails_at
        self.error = error
        self.times = times

    def __call__(self, event: Event) -> None:
        if event.type == self.fails_at and self.times:
            self.times -= 1
            raise self.error
        self.events.append(event)


class Counting:
    """A tool that counts how often it ran."""

    def __init__(self) -> None:
        self.ran = 0
        self.tool: BaseTool = function_tool(self.order)

    def order(self) -> str:
        """Order once."""
        self.ran += 1
        return "ordered"


class Capture(Layer):
    """Keeps the run that passes, also where the caller never gets it."""

    run: Run

    async def decide(self, run: Run, view: Any, next: Any) -> Any:
        self.run = run
        return await next(run, view)


def test_a_happy_run_leaves_exactly_these_events() -> None:
    """A10, A11"""
    _, events = play([call("read_build", "a", build_id="build-102"), DONE], TOOLS.values())
    assert kinds(events) == ["message", *TURN, "model_decision", "final"]
    assert [event.step for event in events] == [0, 1, 1, 1, 2, 2]
    start, result = events[2].data, events[3].data
    assert start == {
        "tool": "read_build",
        "arguments": {"build_id": "build-102"},
        "call_id": "a",
        "attempt": 1,
    }
    assert (result["tool"], result["tool_result"]) == ("read_build", "failed")
    assert events[5].data == {"output": "done"}


def test_the_start_is_recorded_before_the_tool_runs_and_its_result_after() -> None:
    """C06, rule 3: write before, write after"""
    log: list[str] = []

    @tool
    def order() -> str:
        """Order."""
        log.append("the tool runs")
        return ""

    harness = Harness(
        ScriptedModel([call("order"), DONE]), [order], sinks=[lambda e: log.append(e.type.value)]
    )
    asyncio.run(harness.run("go"))
    assert log[2:5] == ["tool_start", "the tool runs", "tool_result"]


ERRORS = [OSError("disk full"), KeyError("x"), PermissionError("no"), TimeoutError(), ValueError()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("fails_at", ["model_decision", "tool_start", "tool_result", "final"])
def test_a_recording_failure_reaches_the_caller_and_is_no_tool_failure(
    fails_at: str, error: Exception
) -> None:
    """A16, C32, C33, C34, C36, rule 4: the place decides, not the type"""
    order, disk, capture = Counting(), Disk(fails_at, error), Capture()
    script = [call("order", "a"), DONE]
    harness = Harness(ScriptedModel(script), [order.tool], layers=[capture], sinks=[disk])
    with pytest.raises(type(error)) as raised:
        asyncio.run(harness.run("go"))
    assert raised.value is error
    expected = ["message", *TURN, "model_decision", "final"]
    cut = len(expected) - 1 if fails_at == "final" else expected.index(fails_at)
    assert kinds(disk.events) == expected[:cut]
    assert order.ran == (0 if fails_at in ("model_decision", "tool_start") else 1)
    run = capture.run
    check(run, disk.events)
    assert set(run.in_doubt) == ({"a"} if fails_at == "tool_result" else set())


@pytest.mark.parametrize("fails_at", ["model_decision", "tool_start", "tool_result", "final"])
def test_after_a_recording_failure_the_run_can_be_resumed(fails_at: str) -> None:
    """C33, C35, rule 4: never a second run of the tool"""
    order, disk, capture = Counting(), Disk(fails_at, OSError()), Capture()

    def answer(history: Any, tools: Any) -> Any:
        return DONE if history[-1]["role"] == "tool" else call("order", "a")

    harness = Harness(ScriptedModel([answer] * 5), [order.tool], layers=[capture], sinks=[disk])
    with pytest.raises(OSError):
        asyncio.run(harness.run("go"))
    run = asyncio.run(harness.resume(capture.run))
    check(run, disk.events)
    assert run.unwrap() == "done"
    assert order.ran == 1
    assert outcomes(run) == [("a", "unknown" if fails_at == "tool_result" else "ok")]


@pytest.mark.parametrize("fails_at", ["model_decision", "tool_start", "tool_result", "final"])
def test_what_the_first_sink_has_happened_though_the_second_one_failed(fails_at: str) -> None:
    """C34, rule 4: the caller gets the OSError, the history ends there, and can be read back"""
    order, capture, error = Counting(), Capture(), OSError("the audit chain is broken")
    first: list[Event] = []
    sinks: list[Sink] = [first.append, Disk(fails_at, error)]
    script = [call("order", "a"), DONE]
    harness = Harness(ScriptedModel(script), [order.tool], layers=[capture], sinks=sinks)
    with pytest.raises(OSError) as raised:
        asyncio.run(harness.run("go"))
    assert raised.value is error
    assert kinds(first)[-1] == fails_at
    if fails_at == "tool_result":
        assert kinds(first) == ["message", *TURN]
    check(capture.run, first)
    run = asyncio.run(harness.resume(capture.run))
    check(run, first)
    assert run.unwrap() == "done"
    assert order.ran == (0 if fails_at == "tool_start" else 1)


@pytest.mark.parametrize("fails_at", ["stop", "pause", "tool_error"])
def test_a_failure_to_record_an_interrupt_reaches_the_caller_too(fails_at: str) -> None:
    """Rule 4"""
    error = OSError("disk full")

    class Halt(Layer):
        async def act(self, run: Run, call: Call, next: Any) -> Observation:
            raise Pause if fails_at == "pause" else Stop(StopReason.BUDGET)

    disk = Disk(fails_at, error)
    order = Counting()
    harness = Harness(ScriptedModel([call("order")]), [order.tool], layers=[Halt()], sinks=[disk])
    with pytest.raises(OSError) as raised:
        asyncio.run(harness.run("go"))
    assert raised.value is error
    assert order.ran == 0


def test_a_run_without_sinks_runs_like_any_other() -> None:
    run = asyncio.run(Harness(ScriptedModel([DONE])).run("go"))
    assert (run.unwrap(), run.sequence) == ("done", 3)


def test_an_event_is_frozen_at_the_moment_it_is_recorded() -> None:
    """DESIGN, Event: later mutation by a tool can't rewrite it"""
    metadata: dict[str, Any] = {"lines": [1]}

    @tool
    def meddle(items: list[str], options: dict[str, Any]) -> ToolResult:
        """Change what it was given."""
        items.append("changed")
        options["changed"] = True
        return ToolResult("done", metadata=metadata)

    def later(history: Any, tools: Any) -> Any:
        metadata["lines"].append("changed")
        return DONE

    arguments: dict[str, Any] = {"items": ["a"], "options": {"deep": {}}}
    said = {"type": "tool", "name": "meddle", "arguments": arguments}
    run, events = play([said, later], [meddle])
    arguments["items"].append("changed")
    expected = {"items": ["a"], "options": {"deep": {}}}
    assert events[1].data["calls"][0]["arguments"] == expected
    assert events[2].data["arguments"] == expected
    assert events[3].data["metadata"] == {"lines": [1]}
    assert run.history.messages[1]["calls"][0]["arguments"] == expected
    for event in events:
        with pytest.raises(TypeError):
            event.data["new"] = 1


def test_what_a_model_keeps_of_its_turn_does_not_reach_the_record() -> None:
    """DESIGN, Event"""
    raw = {"blocks": [{"text": "hm"}]}
    usage = Usage(1, 2)
    output = {"a": [1]}

    def meddle(history: Any, tools: Any) -> Any:
        raw["blocks"].clear()
        usage.input_tokens = 99
        return Final(output, raw=raw)

    run, events = play([Turn((call("nobody"),), "hm", usage, raw), meddle])
    output["a"].clear()
    raw["late"] = []
    assert events[1].data["raw"] == {"blocks": [{"text": "hm"}]}
    assert events[1].data["usage"]["input_tokens"] == 1
    assert events[3].data["raw"] == {"blocks": []}
    assert run.unwrap() == {"a": [1]}
    assert run.usage == Usage(1, 2)


def test_a_layer_may_note_what_it_decided() -> None:
    """DESIGN, Event: data frozen at the moment of recording"""
    events: list[Event] = []
    seen = [1]

    class Noting(Layer):
        async def decide(self, run: Run, view: Any, next: Any) -> Any:
            player.record.note(run, EventType.VERDICT, rule="allow", seen=seen)
            seen.append(2)
            return await next(run, view)

    player = Harness(ScriptedModel([DONE]), layers=[Noting()], sinks=[events.append])
    run = asyncio.run(player.run("go"))
    check(run, events)
    assert kinds(events) == ["message", "verdict", "model_decision", "final"]
    assert events[1].data == {"rule": "allow", "seen": [1]}


@pytest.mark.parametrize("wrong", [float("nan"), object(), {1: 2}])
def test_a_note_that_is_not_json_is_the_layers_own_error(wrong: Any) -> None:
    """DESIGN, Event: serialised strictly"""
    events: list[Event] = []
    player = Harness(ScriptedModel([DONE]), sinks=[events.append])
    with pytest.raises(NotJson):
        player.record.note(Run("r"), EventType.VERDICT, wrong=wrong)
    assert events == []


LOOPS_OWN = {
    *["message", "model_decision", "tool_start", "tool_result", "tool_error"],
    *["final", "stop", "pause", "resume"],
}


@pytest.mark.parametrize("type", EventType)
def test_a_note_never_looks_like_what_the_loop_records(type: EventType) -> None:
    """DESIGN, Run: a run is the fold of its events, whatever layers note"""
    events: list[Event] = []
    player = Harness(ScriptedModel([DONE]), sinks=[events.append])
    run = asyncio.run(player.run("go"))
    refused = pytest.raises(ValueError) if type in LOOPS_OWN else nullcontext()
    with refused:
        player.record.note(run, type, usage="high", content=[], call_id=None)
    assert len(events) == (3 if type in LOOPS_OWN else 4)
    check(run, events)


def test_a_line_of_the_record_is_strict_json_on_one_line() -> None:
    """C04, DESIGN Event: U+2028 safe, one line"""
    text = "a\u2028b\u2029c\nd\r\ud800 é 工 \x1b[31m"
    _, events = play([call("nobody", text=text), Final(text)])
    for event in events:
        line = event.to_json()
        assert not {"\n", "\r", "\u2028", "\u2029", "\x1b"} & set(line)
        line.encode()
        parsed = json.loads(line)
        assert parsed["event_id"] == event.event_id == f"{event.run_id}:{event.sequence}"
        assert parsed["data"] == event.data
        assert set(parsed) == {
            *["event_id", "run_id", "sequence", "step", "type", "offset", "time", "data"]
        }
    assert json.loads(events[-1].to_json())["data"]["output"] == text


def test_the_types_of_events_are_a_closed_list() -> None:
    """B31, DESIGN Event"""
    with pytest.raises(ValueError, match="surprise"):
        EventType("surprise")
    assert len(EventType) == 17


@pytest.mark.parametrize(
    "show",
    [
        lambda event: event.to_json().encode(),
        lambda event: str(event).encode(),
        print,
    ],
    ids=["json", "text", "print"],
)
def test_any_text_a_tool_returns_can_be_shown(show: Callable[[Event], Any]) -> None:
    """Rule 6, rule 4: what a sink raises stops the run, so showing must not"""

    @tool
    def odd(text: str) -> str:
        """Give odd text."""
        return "\ud800 \udfff\x00\x1b[31m\u2028"

    run, events = play([call("odd", text="x"), call("\udc80"), Final("\ud800"), DONE], [odd])
    for event in events:
        show(event)
    assert run.status is Status.COMPLETED


def test_the_same_script_leaves_the_same_record_letter_by_letter() -> None:
    """T08, DESIGN determinism: ids and suffixes too"""

    def lines() -> list[str]:
        script = [turn(call("add"), call("add", "d"), call("add", "d")), "junk", OSError("wire")]
        return [event.to_json() for event in play(script, TOOLS.values()).events]

    assert lines() == lines()


def test_calls_of_one_turn_are_carried_out_in_order() -> None:
    """B24, DESIGN: in order by default"""
    order = Counting()
    _, events = play([turn(call("order", "a"), call("order", "b")), DONE], [order.tool])
    assert [(e.type.value, e.data["call_id"]) for e in events[2:6]] == [
        *[("tool_start", "a"), ("tool_result", "a"), ("tool_start", "b"), ("tool_result", "b")]
    ]


def test_what_came_beside_an_answer_reaches_the_record_and_those_who_judge_it() -> None:
    """A cut-off answer looks like a whole one, but for its note."""
    judged: list[Final] = []
    events: list[Event] = []

    class Judge(Layer):
        async def finish(self, run: Run, final: Final, next: Finish) -> Any:
            judged.append(final)
            return await next(run, final)

    said = Final("42", thought="adding up", note="cut off", raw=[{"type": "text"}])
    harness = Harness(ScriptedModel([said]), layers=[Judge()], sinks=[events.append])
    harness.run_sync("go")
    assert judged == [said]
    assert (events[1].data["note"], events[1].data["thought"]) == ("cut off", "adding up")


def test_a_run_that_begins_inside_a_call_says_within_which() -> None:
    events: list[Event] = []

    async def ask() -> str:
        """Ask a specialist."""
        inner = Harness(
            ScriptedModel([{"type": "final", "output": "inside"}]), sinks=[events.append]
        )
        return str((await inner.run("a part")).unwrap())

    asking = function_tool(ask)
    turns = [call("ask"), DONE]
    outer = asyncio.run(Harness(ScriptedModel(turns), [asking], sinks=[events.append]).run("all"))
    later = asyncio.run(Harness(ScriptedModel([DONE]), sinks=[events.append]).run("more"))
    began = {each.run_id: each.data.get("within") for each in events if each.sequence == 1}
    started = next(each for each in events if each.type == "tool_start")
    assert began.pop(outer.id) is None
    assert began.pop(later.id) is None
    assert list(began.values()) == [f"{outer.id}:{started.data['call_id']}"]
