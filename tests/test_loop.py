"""The loop: the model proposes, the harness decides what happens, the record remembers."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from mini_harness.events import Event
from mini_harness.layer import Layer, Pause, Stop
from mini_harness.loop import Harness
from mini_harness.models.base import ModelError
from mini_harness.models.scripted import DemoModel, ScriptedModel
from mini_harness.protocol import Final, Observation, Outcome, ToolCall, Turn
from mini_harness.run import Run, Status, StopReason
from mini_harness.tools.base import (
    BaseTool,
    Tool,
    ToolExecutionContext,
    ToolResult,
    TransientError,
)
from mini_harness.tools.builds import TOOLS, add, read_build
from mini_harness.tools.call import Call
from mini_harness.tools.function import FunctionTool, function_tool, tool
from tests.loops import (
    DONE,
    call,
    check,
    go_on,
    harness,
    kinds,
    outcomes,
    play,
    refold,
    tool_messages,
    turn,
)


class Sync:
    def decide(self, history: Any, tools: Any) -> Any:
        return DemoModel().decide(history, tools)


class Async:
    async def decide(self, history: Any, tools: Any) -> Any:
        await asyncio.sleep(0)
        return DemoModel().decide(history, tools)


class Later:
    """Returns something to await, without being a coroutine function."""

    def decide(self, history: Any, tools: Any) -> Awaitable[Any]:
        return asyncio.ensure_future(Async().decide(history, tools))


class Instances:
    def decide(self, history: Any, tools: Any) -> Any:
        said = DemoModel().decide(history, tools)
        if said["type"] == "final":
            return Final(said["output"])
        return Turn((ToolCall(said["name"], said["arguments"]),))


@pytest.mark.parametrize("model", [DemoModel(), Sync(), Async(), Later(), Instances()])
def test_changing_the_model_changes_nothing_else(model: Any) -> None:
    """A05, A18, A19"""
    events: list[Event] = []
    run = asyncio.run(Harness(model, TOOLS, sinks=[events.append]).run("How is build-102?"))
    check(run, events)
    assert run.unwrap() == "The build status is: failed"
    assert len(events) == 6


def test_the_history_is_the_goal_and_then_what_happened() -> None:
    """A17"""
    run, _ = play([call("read_build", "a", build_id="build-102"), DONE], [read_build])
    goal, proposal, seen, final = run.history.messages
    assert goal == {"role": "user", "content": "go"}
    assert proposal["calls"] == [
        {
            "type": "tool",
            "name": "read_build",
            "arguments": {"build_id": "build-102"},
            "call_id": "a",
        }
    ]
    assert {key: seen[key] for key in ("role", "tool", "tool_result")} == {
        "role": "tool",
        "tool": "read_build",
        "tool_result": "failed",
    }
    assert (final["role"], final["content"]) == ("assistant", "done")


def test_tools_can_be_given_as_a_dict_a_list_or_a_registry() -> None:
    """A01, A03"""
    simple = Tool("read_build", "Read build status.", read_build.handler)
    for tools in (TOOLS, list(TOOLS.values()), [simple], Harness(DemoModel(), TOOLS).tools):
        run = asyncio.run(Harness(DemoModel(), tools).run("go"))
        assert run.unwrap() == "The build status is: failed"


def test_the_folder_of_the_harness_is_absolute(tmp_path: Path) -> None:
    """B03"""
    assert Harness(DemoModel(), cwd=tmp_path / "x" / "..").cwd == tmp_path.resolve()
    assert Harness(DemoModel()).cwd == Path.cwd()


def raising(error: BaseException) -> FunctionTool:
    def broken() -> str:
        raise error

    return function_tool(broken, description="Fail.")


class BadText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


RAISED = [
    (ValueError("wrong"), "Tool broken failed: ValueError: wrong"),
    (ValueError(), "Tool broken failed: ValueError"),
    (ValueError(""), "Tool broken failed: ValueError"),
    (KeyError("x"), "Tool broken failed: KeyError: 'x'"),
    (TransientError("busy"), "Tool broken failed: TransientError: busy"),
    (TransientError(), "Tool broken failed: TransientError"),
    (PermissionError(13, "denied"), "Tool broken failed: PermissionError: [Errno 13] denied"),
    (TimeoutError(), "Tool broken failed: TimeoutError"),
    (AssertionError(), "Tool broken failed: AssertionError"),
    (StopAsyncIteration(), "Tool broken failed: StopAsyncIteration"),
    (RecursionError(), "Tool broken failed: RecursionError"),
    (
        ExceptionGroup("two", [ValueError(), KeyError()]),
        "Tool broken failed: ExceptionGroup: two (2 sub-exceptions)",
    ),
    (Stop(StopReason.DENIED), "Tool broken failed: Stop: denied"),
    (Pause(), "Tool broken failed: Pause: paused"),
    (asyncio.CancelledError(), "Tool broken failed: CancelledError"),
    (SystemExit(2), "Tool broken failed: SystemExit: 2"),
    (BadText(), "Tool broken failed: BadText: <a BadText that can't be shown: RuntimeError>"),
]


@pytest.mark.parametrize(("error", "text"), RAISED, ids=[type(e).__name__ for e, _ in RAISED])
def test_what_a_tool_raises_becomes_an_observation(error: BaseException, text: str) -> None:
    """A16, B23, C32: the very exception is kept, and the loop goes on"""
    kept: list[BaseException | None] = []

    class Look(Layer):
        async def act(self, run: Run, call: Call, next: Any) -> Observation:
            seen: Observation = await next(run, call)
            kept.append(seen.error)
            return seen

    calls = turn(call("broken", "a"), call("add", "b", a=1, b=2))
    run, events = play([calls, DONE], [raising(error), add], layers=[Look()])
    assert kept == [error, None]
    assert outcomes(run) == [("a", "error"), ("b", "ok")]
    assert tool_messages(run)[0]["tool_result"] == text
    failures = [event for event in events if event.type == "tool_error"]
    assert all(type(error).__name__ in event.data["error"] for event in failures)
    assert run.unwrap() == "done"


RETURNED = [None, "text", 7, {"output": "x"}, ToolResult(7), ToolResult(None)]  # type: ignore[arg-type]


@pytest.mark.parametrize("result", RETURNED, ids=repr)
def test_a_tool_that_returns_something_else_is_an_error_that_names_it(result: Any) -> None:
    """B02"""

    class Wrong(FunctionTool):
        async def execute(self, arguments: Any, context: Any) -> Any:
            return result

    run, _ = play([call("add", "a", a=1, b=2), DONE], [Wrong(add.handler, "add", "Add.")])
    assert outcomes(run) == [("a", "error")]
    assert f"returned {result!r}" in tool_messages(run)[0]["tool_result"]


def test_a_tool_that_says_it_failed_has_failed() -> None:
    """B02"""
    no = function_tool(lambda: ToolResult("no", is_error=True), name="no", description="No.")
    run, events = play([call("no", "a"), DONE], [no])
    assert outcomes(run) == [("a", "error")]
    assert tool_messages(run)[0]["tool_result"] == "no"
    assert kinds(events)[3] == "tool_error"


@pytest.mark.parametrize(
    "error",
    [
        ModelError("overloaded"),
        ValueError(""),
        KeyError(),
        StopIteration(),
        asyncio.CancelledError(),
        Stop(StopReason.BUDGET),
        Pause(),
        BadText(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_the_model_raises_ends_the_run_as_failed(error: BaseException) -> None:
    """DESIGN: unwrap raises it, and the trace is kept"""

    def fail(history: Any, tools: Any) -> Any:
        raise error

    class Plain:
        decide: ClassVar[Any] = staticmethod(fail)

    for model in (Plain(), ScriptedModel([call("add", a=1, b=2), error])):
        events: list[Event] = []
        run = asyncio.run(Harness(model, [add], sinks=[events.append]).run("go"))
        check(run, events)
        assert run.status is Status.FAILED
        assert kinds(events)[-1] == "stop"
        assert events[-1].data["reason"] == "error"
        assert run.error is error or isinstance(error, StopIteration)
        with pytest.raises(BaseException) as raised:
            run.unwrap()
        assert raised.value is run.error
    resumed, _ = go_on(run, [DONE])
    assert resumed.unwrap() == "done"


@pytest.mark.parametrize("name", ["read_fil", "Read_Build", " read_build ", "", "READ_BUILD"])
def test_an_invented_tool_gets_the_same_answer_with_a_policy_and_without(name: str) -> None:
    """A15, C20, report T11: nobody is asked to approve it, and it counts as a step"""
    asked: list[Call] = []

    class Policy(Layer):
        async def act(self, run: Run, call: Call, next: Any) -> Observation:
            asked.append(call)
            return Observation(call.call_id, call.name, "denied", Outcome.DENIED)

    said: list[str] = []
    for layers in ([], [Policy()]):
        run, _ = play([call(name, "a"), DONE], TOOLS.values(), layers=layers)
        said.append(tool_messages(run)[0]["tool_result"])
        assert run.step == 2
    assert said[0] == said[1]
    assert "The tools here are: add, read_build" in said[0]
    assert asked == []


def test_a_call_that_is_sent_twice_has_its_effect_once() -> None:
    """report T08"""
    written: list[str] = []

    def write(path: str) -> str:
        """Write."""
        written.append(path)
        return path

    calls = [call("write", "d1", path=path) for path in ("a", "b", "a", "b")]
    run, _ = play([turn(*calls), DONE], [function_tool(write)])
    assert written == ["a", "b"]
    assert outcomes(run) == [
        ("d1", "ok"),
        ("d1-2", "ok"),
        ("d1-3", "not_run"),
        ("d1-4", "not_run"),
    ]


# Cancellation at each await.


async def awhile() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


class Slow(Layer):
    """Waits before and after, at every seam."""

    async def _wait(self, inner: Any) -> Any:
        await awhile()
        result = await inner()
        await awhile()
        return result

    async def decide(self, run: Run, view: Any, next: Any) -> Any:
        return await self._wait(lambda: next(run, view))

    async def act(self, run: Run, call: Call, next: Any) -> Any:
        return await self._wait(lambda: next(run, call))

    async def finish(self, run: Run, final: Final, next: Any) -> Any:
        return await self._wait(lambda: next(run, final))


class SlowModel:
    async def decide(self, history: Any, tools: Any) -> Any:
        await awhile()
        if history[-1]["role"] == "tool":
            return DONE
        return turn(*[call("slow", name) for name in "abc"])


def slow_harness() -> tuple[Harness, list[Event], list[str]]:
    """The harness, its events, and the calls whose tool began."""
    began: list[str] = []

    @tool
    async def slow() -> str:
        """Take a while."""
        began.append("x")
        await awhile()
        return "ran"

    events: list[Event] = []
    return Harness(SlowModel(), [slow], layers=[Slow()], sinks=[events.append]), events, began


def cancelled_after(turns_of_the_loop: int) -> tuple[list[Event], int] | None:
    """The events of a run cancelled that late, and how many tools began; None if it was over."""
    player, events, began = slow_harness()

    async def story() -> bool:
        task = asyncio.create_task(player.run("go"))
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
        if task.done():
            return False
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return True

    return (events, len(began)) if asyncio.run(story()) else None


def test_a_run_that_is_cancelled_at_any_await_is_recorded_and_can_be_resumed() -> None:
    """DESIGN: the running call is outcome unknown, the rest not run, then it goes on up"""
    late, met = 1, set()
    while (seen := cancelled_after(late)) is not None:
        events, began = seen
        run = refold(events)
        check(run, events)
        assert run.stop == {"reason": "cancelled"}
        assert kinds(events)[-1] == "stop"
        assert kinds(events).count("stop") == 1
        ends = [how for _, how in outcomes(run)]
        ran, unknown = ends.count("ok"), ends.count("unknown")
        assert ends == ["ok"] * ran + ["unknown"] * unknown + ["not_run"] * (
            len(ends) - ran - unknown
        )
        assert unknown == kinds(events).count("tool_start") - ran <= 1
        assert began in (ran + unknown, ran + unknown - 1)
        met.add(tuple(ends))
        again, more, _ = slow_harness()
        assert asyncio.run(again.resume(run)).unwrap() == "done"
        check(run, [*events, *more])
        late += 1
    assert late > 50
    # Every way there is to be cancelled was met: before the calls, and at each of the three.
    rest = ["not_run"] * 3
    for done in range(3):
        assert ("ok",) * done + tuple(rest[done:]) in met
        assert ("ok",) * done + ("unknown",) + tuple(rest[done + 1 :]) in met
    assert {(), ("ok",) * 3} <= met


def test_a_cancelled_run_keeps_its_state_for_the_one_who_holds_it() -> None:
    """DESIGN: the stop is recorded, then the cancellation goes on up"""
    player, events, _ = slow_harness()

    async def story() -> Run:
        run = Run("run-1")
        player.record.message(run, "go")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):
                await player.resume(run)
        assert run.stop == {"reason": "cancelled"}
        return await player.resume(run)

    assert asyncio.run(story()).unwrap() == "done"
    assert kinds(events).count("resume") == 1


def test_a_time_limit_inside_a_tool_is_the_tools_own_failure() -> None:
    """A21: nobody cancelled the run"""

    @tool
    async def slow() -> str:
        """Give up."""
        async with asyncio.timeout(0):
            await asyncio.sleep(60)
        return "never"

    run, _ = play([call("slow", "a"), DONE], [slow])
    assert tool_messages(run)[0]["tool_result"] == "Tool slow failed: TimeoutError"
    assert run.unwrap() == "done"


def child(wait: Callable[[asyncio.Task[None]], Awaitable[Any]]) -> BaseTool:
    @tool
    async def parent() -> str:
        """Cancel a child of its own."""
        task = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
        await wait(task)
        return "went on"

    return parent


def test_a_task_that_a_tool_cancels_itself_is_the_tools_own_failure() -> None:
    run, _ = play([call("parent", "a"), DONE], [child(lambda task: task)])
    assert outcomes(run) == [("a", "error")]
    assert run.unwrap() == "done"


def test_a_tool_may_run_a_harness() -> None:
    """DESIGN: clock and sinks come down through the context, never through model text"""

    @tool
    async def ask(question: str, context: ToolExecutionContext) -> str:
        """Ask a specialist."""
        outer = context.harness
        assert outer is not None
        model = ScriptedModel([Final(f"about {question}")], clock=context.clock, latency=2.0)
        inner = Harness(model, sinks=outer.record.sinks, clock=context.clock)
        return str((await inner.run(question)).unwrap())

    player, events = harness([call("ask", question="builds"), DONE], [ask])
    run = asyncio.run(player.run("go"))
    check(run, [event for event in events if event.run_id == run.id])
    assert tool_messages(run)[0]["tool_result"] == "about builds"
    inner = ["message", "model_decision", "final"]
    outer = ["message", "model_decision", "tool_start", *inner, "tool_result"]
    assert kinds(events) == [*outer, "model_decision", "final"]
    assert events[-1].offset == 2.0
