"""Layers may change what happens: decide, act, finish, and the ways to interrupt."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mini_harness.events import Event
from mini_harness.layer import Failed, Feedback, Interrupt, Layer, Pause, Stop, View, chain
from mini_harness.loop import MAX_REJECTIONS, Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final, Observation, Outcome, ToolCall, Turn, UnknownDecision
from mini_harness.run import Run, RunNotCompleted, Status, StopReason
from mini_harness.tools.builds import TOOLS, add
from mini_harness.tools.call import Call, InvalidArguments
from mini_harness.tools.function import tool
from mini_harness.tools.registry import ToolRegistry
from tests.loops import (
    DONE,
    Played,
    call,
    check,
    go_on,
    kinds,
    outcomes,
    play,
    refold,
    tool_messages,
    turn,
)

THREE = turn(*[call("note", name, text=name) for name in "abc"])


class Notes:
    def __init__(self) -> None:
        self.seen: list[str] = []

        @tool
        def note(text: str) -> str:
            """Write it down."""
            self.seen.append(text)
            return f"noted {text}"

        self.tool = note


class Act(Layer):
    """A layer made of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    async def act(self, run: Run, call: Call, next: Any) -> Any:
        return await self.function(run, call, next)


class At(Layer):
    """Raises something before the call of this id, once."""

    def __init__(self, call_id: str, raised: BaseException) -> None:
        self.call_id = call_id
        self.raised: BaseException | None = raised

    async def act(self, run: Run, call: Call, next: Any) -> Observation:
        if call.call_id == self.call_id and self.raised is not None:
            raised, self.raised = self.raised, None
            raise raised
        seen: Observation = await next(run, call)
        return seen


class Logging(Layer):
    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    async def _around(self, seam: str, inner: Any) -> Any:
        self.log.append(f"{self.name} {seam}")
        result = await inner
        self.log.append(f"{seam} {self.name}")
        return result

    async def decide(self, run: Run, view: View, next: Any) -> Any:
        return await self._around("decide", next(run, view))

    async def act(self, run: Run, call: Call, next: Any) -> Any:
        return await self._around("act", next(run, call))

    async def finish(self, run: Run, final: Final, next: Any) -> Any:
        return await self._around("finish", next(run, final))


def test_the_first_layer_is_the_outermost_at_every_seam() -> None:
    """DESIGN, layers: outermost first, like the skins of an onion"""
    log: list[str] = []
    play([call("add", a=1, b=2), DONE], [add], layers=[Logging("A", log), Logging("B", log)])
    onion = ("A {0}", "B {0}", "{0} B", "{0} A")
    seams = ("decide", "act", "decide", "finish")
    assert log == [line.format(seam) for seam in seams for line in onion]


def test_a_layer_that_overrides_nothing_is_not_in_the_chain() -> None:
    """DESIGN, layers: it costs nothing"""

    async def inner(*_: Any) -> Any:
        return None

    class OnlyAct(Layer):
        async def act(self, run: Run, call: Call, next: Any) -> Observation:
            return Observation("", "", "")

    for seam in ("decide", "act", "finish"):
        assert chain([Layer(), Layer()], seam, inner) is inner
    assert chain([Layer(), OnlyAct()], "decide", inner) is inner
    assert chain([Layer(), OnlyAct()], "act", inner) is not inner


def test_a_layer_never_sees_an_unknown_tool_or_invalid_arguments() -> None:
    """B08, report T11: lookup, validation, then layers, then the tool"""
    log: list[str] = []

    class Registry(ToolRegistry):
        def get(self, name: str) -> Any:
            log.append(f"look up {name}")
            return super().get(name)

    @tool
    def double(n: int) -> int:
        """Double it."""
        log.append(f"run with {n}")
        return 2 * n

    async def judge(run: Run, call: Call, next: Any) -> Any:
        log.append(f"judge {call.parsed}")
        return await next(run, call)

    calls = [call("nobody", "a"), call("double", "b", n="1"), call("double", "c", n=1)]
    harness = Harness(ScriptedModel([turn(*calls), DONE]), Registry([double]), layers=[Act(judge)])
    run = asyncio.run(harness.run("go"))
    assert log == ["look up nobody", "look up double", "look up double", "judge n=1", "run with 1"]
    assert outcomes(run) == [("a", "unknown_tool"), ("b", "invalid_arguments"), ("c", "ok")]


def test_a_layer_may_deny_a_call_without_running_it() -> None:
    """A08, B07: whatever the model says, the handler isn't called"""

    async def deny(run: Run, call: Call, next: Any) -> Observation:
        return Observation(call.call_id, call.name, "Tool not allowed: note", Outcome.DENIED)

    notes = Notes()
    run, events = play([THREE, DONE], [notes.tool], layers=[Act(deny)])
    assert outcomes(run) == [(name, "denied") for name in "abc"]
    assert notes.seen == []
    assert "tool_start" not in kinds(events)


def test_a_layer_may_replace_an_observation_and_the_model_sees_the_new_one() -> None:
    """DESIGN, Observation: exactly one in the history; the record has both"""

    async def redact(run: Run, call: Call, next: Any) -> Any:
        return (await next(run, call))._replace(output="(hidden)")

    notes = Notes()
    run, events = play([THREE, DONE], [notes.tool], layers=[Act(redact)])
    assert [seen["tool_result"] for seen in tool_messages(run)] == ["(hidden)"] * 3
    results = [event.data["tool_result"] for event in events if event.type == "tool_result"]
    assert results == ["noted a", "(hidden)", "noted b", "(hidden)", "noted c", "(hidden)"]
    assert notes.seen == ["a", "b", "c"]


def test_a_layer_cannot_change_an_observation_behind_the_back_of_the_record() -> None:
    async def meddle(run: Run, call: Call, next: Any) -> Observation:
        seen: Observation = await next(run, call)
        seen.output = "(hidden)"  # type: ignore[misc]
        return seen

    with pytest.raises(AttributeError):
        play([THREE, DONE], [Notes().tool], layers=[Act(meddle)])


def test_what_was_edited_is_what_runs_and_what_the_record_says_ran() -> None:
    """Rule 2: edited arguments are validated again and recorded as edited"""

    async def edit(run: Run, call: Call, next: Any) -> Observation:
        seen: Observation = await next(run, call.with_arguments({"text": "edited"}))
        return seen

    notes = Notes()
    _, events = play([call("note", "a", text="sent"), DONE], [notes.tool], layers=[Act(edit)])
    assert notes.seen == ["edited"]
    assert events[1].data["calls"][0]["arguments"] == {"text": "sent"}
    assert events[2].data["arguments"] == {"text": "edited"}
    assert events[2].data["call_id"] == "a"


def test_an_edit_that_does_not_fit_never_reaches_the_tool() -> None:
    """Rule 2"""

    async def edit(run: Run, call: Call, next: Any) -> Any:
        return await next(run, call.with_arguments({"text": 7}))

    notes = Notes()
    with pytest.raises(InvalidArguments, match="text"):
        play([THREE, DONE], [notes.tool], layers=[Act(edit)])
    assert notes.seen == []


def test_changing_the_parsed_arguments_changes_nothing_that_runs() -> None:
    """Rule 2: what was approved is what runs"""
    judged: list[str] = []

    async def meddle(run: Run, call: Call, next: Any) -> Any:
        judged.append(getattr(call.parsed, "text"))  # noqa: B009 - a generated model
        setattr(call.parsed, "text", "changed")  # noqa: B010
        return await next(run, call)

    notes = Notes()
    _, events = play([THREE, DONE], [notes.tool], layers=[Act(meddle), Act(meddle)])
    assert notes.seen == ["a", "b", "c"]
    assert judged == ["a", "a", "b", "b", "c", "c"]
    assert events[2].data["arguments"] == {"text": "a"}


JUNK: list[tuple[Any, str]] = [
    (None, "None"),
    ("denied", "'denied'"),
    ({"output": "x"}, "'output'"),
    (Observation("other", "note", "x"), "call_id='other'"),
    (Observation("a", "note", 7), "output=7"),  # type: ignore[arg-type]
    (Observation("a", "note", None), "output=None"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("junk", "named"), JUNK, ids=[named for _, named in JUNK])
@pytest.mark.parametrize("after", [False, True])
def test_what_is_no_observation_of_this_call_is_named(junk: Any, named: str, after: bool) -> None:
    """DESIGN: a layer's own bug propagates, and says what it is"""

    async def broken(run: Run, call: Call, next: Any) -> Any:
        if after:
            await next(run, call)
        return junk

    with pytest.raises(TypeError, match=f"For call a, a layer returned .*{named}"):
        play([THREE, DONE], [Notes().tool], layers=[Act(broken)])


class Decide(Layer):
    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)

    async def decide(self, run: Run, view: View, next: Any) -> Any:
        return self.replies.pop(0) if self.replies else await next(run, view)


@pytest.mark.parametrize("junk", [None, "done", {"type": "final", "output": 1}, [], 7])
def test_what_is_no_decision_is_named(junk: Any) -> None:
    with pytest.raises(TypeError, match="For a decision, a layer returned"):
        play([DONE], layers=[Decide(junk)])


def test_a_layer_may_decide_in_the_models_place_and_the_record_is_frozen_all_the_same() -> None:
    """DESIGN, Event"""
    arguments: dict[str, Any] = {"text": "x", "deep": []}
    output: dict[str, Any] = {"deep": []}
    layer = Decide(Turn((ToolCall("note", arguments),), raw=arguments), Final(output, raw=output))
    _, events = play([], [Notes().tool], layers=[layer])
    arguments["deep"].append("late")
    output["deep"].append("late")
    said = events[1].data
    assert said["calls"][0]["arguments"]["deep"] == said["raw"]["deep"] == []
    assert events[3].data["content"]["deep"] == events[3].data["raw"]["deep"] == []


def test_a_layer_shortens_what_the_model_sees_and_not_the_record() -> None:
    """DESIGN: decide passes a view"""
    seen: list[tuple[int, int]] = []

    class Shorten(Layer):
        async def decide(self, run: Run, view: View, next: Any) -> Any:
            return await next(run, View(view.messages[-1:], view.tools[:1]))

    def look(history: Any, tools: Any) -> Any:
        seen.append((len(history), len(tools)))
        return DONE

    script = [call("add", a=1, b=2), look]
    run, _ = play(script, TOOLS.values(), layers=[Shorten()])
    assert seen == [(1, 1)]
    assert len(run.history.messages) == 4


class Reject(Layer):
    def __init__(self, times: int) -> None:
        self.times = times

    async def finish(self, run: Run, final: Final, next: Any) -> Any:
        if self.times == 0:
            return await next(run, final)
        self.times -= 1
        return Feedback("Where is the evidence?")


@pytest.mark.parametrize("times", range(MAX_REJECTIONS + 1))
def test_a_rejected_answer_goes_back_with_the_reason(times: int) -> None:
    """DESIGN: finish may send an answer back"""
    answers = [Final(number) for number in range(times + 1)]
    run, _ = play(answers, layers=[Reject(times)])
    assert run.unwrap() == times
    assert run.rejections == times
    told = [message["content"] for message in run.history.messages[2::2]]
    assert told == ["Where is the evidence?"] * times


def test_an_answer_goes_back_a_bounded_number_of_times() -> None:
    """DESIGN: a bounded number of times; every way to stop has a closed reason"""
    run, events = play([DONE] * 9, layers=[Reject(99)])
    assert run.status is Status.STOPPED
    assert run.stop == {"reason": "rejected", "limit": 3, "because": "Where is the evidence?"}
    assert kinds(events).count("model_decision") == MAX_REJECTIONS + 1
    with pytest.raises(RunNotCompleted, match="rejected"):
        run.unwrap()


@pytest.mark.parametrize("output", [0, "", False, None])
def test_finish_may_change_the_answer_to_any_value(output: Any) -> None:
    """Rule 1"""

    class Change(Layer):
        async def finish(self, run: Run, final: Final, next: Any) -> Any:
            return output

    run, events = play([DONE], layers=[Change()])
    assert run.unwrap() is output
    assert events[1].data["content"] == "done"


def test_a_stop_before_the_second_of_three_calls() -> None:
    """DESIGN: stop in the middle; the history stays one that any model accepts"""
    notes = Notes()
    run, events = play([THREE], [notes.tool], layers=[At("b", Stop(StopReason.BUDGET, spent=7))])
    assert outcomes(run) == [("a", "ok"), ("b", "not_run"), ("c", "not_run")]
    assert notes.seen == ["a"]
    assert (run.status, run.stop) == (Status.STOPPED, {"reason": "budget", "spent": 7})
    assert kinds(events)[2:] == ["tool_start", "tool_result", "tool_error", "tool_error", "stop"]
    resumed, more = go_on(refold(events), [DONE], [notes.tool])
    check(resumed, [*events, *more])
    assert resumed.unwrap() == "done"


def test_a_stop_after_a_call_keeps_its_observation() -> None:
    async def stop(run: Run, call: Call, next: Any) -> Any:
        await next(run, call)
        raise Stop(StopReason.REPEATED_CALL)

    run, _ = play([THREE], [Notes().tool], layers=[Act(stop)])
    assert outcomes(run) == [("a", "ok"), ("b", "not_run"), ("c", "not_run")]


def test_a_pause_before_the_second_of_three_calls() -> None:
    """DESIGN: pending holds the second and the rest; the first keeps its observation"""
    notes = Notes()
    run, events = play([THREE], [notes.tool], layers=[At("b", Pause(risk="high"))])
    assert run.status is Status.PAUSED
    assert isinstance(run.pending, tuple)
    assert [made.call_id for made in run.pending] == ["b", "c"]
    assert outcomes(run) == [("a", "ok")]
    assert events[-1].data == {"risk": "high"}
    for again in (run, refold(events)):
        notes.seen[:] = ["a"]
        resumed, more = go_on(again, [DONE], [notes.tool])
        check(resumed, [*events, *more])
        assert notes.seen == ["a", "b", "c"]
        assert outcomes(resumed) == [(name, "ok") for name in "abc"]
        assert kinds(more)[0] == "resume"


class Before(Layer):
    def __init__(self, seam: str, raised: BaseException) -> None:
        self.seam = seam
        self.raised = raised

    async def decide(self, run: Run, view: View, next: Any) -> Any:
        if self.seam == "decide":
            raise self.raised
        return await next(run, view)

    async def finish(self, run: Run, final: Final, next: Any) -> Any:
        raise self.raised


@pytest.mark.parametrize("seam", ["decide", "finish"])
@pytest.mark.parametrize(
    ("raised", "status", "last"),
    [
        (Stop(StopReason.MAX_STEPS, limit=8), Status.STOPPED, {"reason": "max_steps", "limit": 8}),
        (Pause(), Status.PAUSED, {}),
        (
            Failed(OSError("disk")),
            Status.FAILED,
            {"reason": "error", "error": "OSError('disk')"},
        ),
    ],
)
def test_an_interrupt_at_every_seam_is_obeyed_and_the_run_goes_on_later(
    seam: str, raised: Interrupt, status: Status, last: dict[str, Any]
) -> None:
    """A13, DESIGN Interrupt: a layer raises, the loop obeys"""
    run, events = play([DONE], layers=[Before(seam, raised)])
    assert run.status is status
    assert events[-1].data == last
    resumed, more = go_on(refold(events), [DONE])
    check(resumed, [*events, *more])
    assert resumed.unwrap() == "done"


def test_a_run_that_a_layer_failed_raises_that_error() -> None:
    error = OSError("disk")
    run, _ = play([DONE], layers=[Before("decide", Failed(error))])
    with pytest.raises(OSError) as raised:
        run.unwrap()
    assert raised.value is error


class Strange(Interrupt):
    """Neither Stop nor Pause."""


@pytest.mark.parametrize("raised", [ValueError("a bug"), KeyError(), Strange(), SystemExit(1)])
@pytest.mark.parametrize("seam", ["decide", "act", "finish"])
def test_a_layers_own_bug_propagates_untouched(seam: str, raised: BaseException) -> None:
    """DESIGN: what a layer's own bug raises propagates untouched"""
    events: list[Event] = []
    layer = At("a", raised) if seam == "act" else Before(seam, raised)
    notes = Notes()
    harness = Harness(
        ScriptedModel([THREE, DONE]), [notes.tool], layers=[layer], sinks=[events.append]
    )
    with pytest.raises(type(raised)) as caught:
        asyncio.run(harness.run("go"))
    assert caught.value is raised
    assert "stop" not in kinds(events)
    assert refold(events).status is Status.RUNNING
    script = [THREE, DONE] if seam == "decide" else [DONE]
    resumed, _ = go_on(refold(events), script, [notes.tool])
    assert resumed.unwrap() == "done"
    assert notes.seen == ["a", "b", "c"]


class FailFast(Layer):
    async def decide(self, run: Run, view: View, next: Any) -> Any:
        wrong = [seen.error for seen in run.observed.values() if seen.error]
        turn = wrong[0] if wrong else await next(run, view)
        if isinstance(turn, BaseException):
            raise Failed(turn)
        return turn


def fail_fast(*turns: Any, tools: Any = ()) -> Played:
    return play([*turns, DONE], tools, layers=[FailFast()])


def test_fail_fast_raises_at_once_what_an_observation_carries() -> None:
    """A14, A15, A16, "Where the documents disagree": exactly these errors and texts"""
    error = ConnectionError("the farm is down")

    @tool
    def broken() -> str:
        """Fail."""
        raise error

    with pytest.raises(ValueError, match=r"^Unknown decision type$") as unknown:
        fail_fast({"type": "dance"}).run.unwrap()
    assert isinstance(unknown.value, UnknownDecision)
    with pytest.raises(KeyError) as no_tool:
        fail_fast(call("frobnicate")).run.unwrap()
    assert no_tool.value.args == ("Unknown tool: frobnicate",)
    with pytest.raises(ConnectionError) as raised:
        fail_fast(call("broken"), tools=[broken]).run.unwrap()
    assert raised.value is error
    with pytest.raises(InvalidArguments):
        fail_fast(call("broken", a=1), tools=[broken]).run.unwrap()
    assert fail_fast(call("add", a=1, b=2), tools=[add]).run.unwrap() == "done"


def test_a_lone_layer_in_the_place_of_a_list_is_told_so() -> None:
    with pytest.raises(TypeError, match=r"Give the layers as a list: \["):
        Harness(ScriptedModel([]), layers=Layer())  # type: ignore[arg-type]
