"""What layers may rely on, and what can go wrong between a call and its record."""

import asyncio
import threading
from typing import Any

import pytest

from mini_harness.clock import VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.layer import Act, Feedback, Finish, Layer, Pause, Stop
from mini_harness.loop import Harness
from mini_harness.models.base import ModelError
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final, Observation, Outcome, ToolCall, Turn, Usage
from mini_harness.run import Run, RunIsBusy, RunNotCompleted, Status, StopReason
from mini_harness.tools.base import BaseTool, TransientError
from mini_harness.tools.call import Call
from mini_harness.tools.function import tool
from tests.loops import DONE, call

paid: list[int] = []


@tool
def pay(amount: int) -> str:
    """Pay."""
    paid.append(amount)
    return f"paid {amount}"


@tool(idempotent=True)
def book(amount: int) -> str:
    """Book."""
    paid.append(amount)
    return f"booked {amount}"


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    paid.clear()


def harness(*turns: Any, tools: Any = (pay, book), **settings: Any) -> tuple[Harness, list[Event]]:
    events: list[Event] = []
    made = Harness(ScriptedModel(turns), tools, sinks=[events.append], **settings)
    return made, events


def crashed_after(kind: str, turns: list[Any], **settings: Any) -> Run:
    """The run as its record has it, had the process died after the first event of that kind."""
    made, events = harness(*turns, **settings)
    made.run_sync("go")
    last = next(n for n, event in enumerate(events) if event.type == kind)
    return Run.fold(events[: last + 1])


# --- what layers may rely on ------------------------------------------------------------------


def test_a_layer_reaches_the_record_and_the_clock_and_finds_its_notes_again() -> None:
    class Judge(Layer):
        async def act(self, run: Run, call: Call, next: Act) -> Observation:
            assert run.harness is not None
            await run.harness.clock.sleep(2)
            run.harness.record.note(run, EventType.VERDICT, rule="reads", call_id=call.call_id)
            return await next(run, call)

    made, events = harness(call("pay", "a", amount=1), DONE, layers=[Judge()], clock=VirtualClock())
    run = made.run_sync("go")
    assert run.notes[EventType.VERDICT] == [{"rule": "reads", "call_id": "a"}]
    assert Run.fold(events).notes == run.notes
    assert run.harness is None, "nobody drives it any more"
    assert events[-1].offset == 2


def test_a_paused_run_says_what_it_waits_for() -> None:
    class Ask(Layer):
        async def act(self, run: Run, call: Call, next: Act) -> Observation:
            raise Pause(risk="high", call_id=call.call_id)

    made, events = harness(call("pay", "a", amount=1), layers=[Ask()])
    run = made.run_sync("go")
    assert run.pause == {"risk": "high", "call_id": "a"} == Run.fold(events).pause


def test_the_error_of_a_stop_is_what_unwrap_raises() -> None:
    """A13, A14"""

    class MaxStepsExceeded(RuntimeError):
        pass

    class Limit(Layer):
        async def decide(self, run: Run, view: Any, next: Any) -> Any:
            raise Stop(StopReason.MAX_STEPS, MaxStepsExceeded("max_steps exceeded: 0"), limit=0)

    made, _ = harness(DONE, layers=[Limit()])
    run = made.run_sync("go")
    assert run.stop is not None
    assert (run.stop["reason"], run.stop["limit"]) == ("max_steps", 0)
    with pytest.raises(MaxStepsExceeded, match="exceeded: 0"):
        run.unwrap()


def test_a_stop_without_an_error_says_its_reason_and_numbers() -> None:
    class Limit(Layer):
        async def decide(self, run: Run, view: Any, next: Any) -> Any:
            raise Stop(StopReason.BUDGET, used=3, limit=2)

    made, _ = harness(DONE, layers=[Limit()])
    with pytest.raises(RunNotCompleted, match=r"stopped: budget \(used 3, limit 2\)"):
        made.run_sync("go").unwrap()


@pytest.mark.parametrize("wrong", [Layer, object(), print])
def test_what_is_no_layer_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(TypeError, match="isn't a layer"):
        harness(DONE, layers=[wrong])


def test_an_async_sink_is_refused_at_once() -> None:
    async def lost(event: Event) -> None: ...

    with pytest.raises(TypeError, match="async"):
        Harness(ScriptedModel([DONE]), sinks=[lost])  # type: ignore[list-item]


def test_a_guard_that_is_set_on_an_instance_guards() -> None:
    async def deny(run: Run, call: Call, following: Act) -> Observation:
        return Observation(call.call_id, call.name, "no", Outcome.DENIED)

    guard = Layer()
    guard.act = deny  # type: ignore[method-assign, assignment]
    made, _ = harness(call("pay", "a", amount=1), DONE, layers=[guard])
    made.run_sync("go")
    assert paid == []


# --- one record, one driver -------------------------------------------------------------------


def test_a_run_has_one_driver_at_a_time() -> None:
    @tool
    async def slow() -> str:
        """Wait."""
        await asyncio.sleep(0)
        return "done"

    made, events = harness(call("slow", "a"), DONE, tools=[slow])
    run = Run("r")
    made.record.message(run, "go")

    async def twice() -> list[Any]:
        both = made.resume(run), made.resume(run)
        return list(await asyncio.gather(*both, return_exceptions=True))

    first, second = asyncio.run(twice())
    assert first is run
    assert isinstance(second, RunIsBusy)
    assert Run.fold(events).status is Status.COMPLETED


def test_the_user_may_speak_while_calls_wait() -> None:
    class Ask(Layer):
        async def act(self, run: Run, call: Call, next: Act) -> Observation:
            raise Pause()

    made, events = harness(call("pay", "a", amount=1), DONE, layers=[Ask()])
    run = made.run_sync("go")
    made.record.message(run, "No, use the test account.")
    assert run.history.messages[2]["outcome"] == "not_run"
    assert Run.fold(events).history.messages == run.history.messages
    assert asyncio.run(made.resume(run)).status is Status.COMPLETED


def test_an_end_that_comes_too_late_is_noted_and_changes_nothing() -> None:
    made, events = harness(call("pay", "a", amount=1), DONE)
    run = made.run_sync("go")
    done = Call(pay, "a", {"amount": 1})
    made.record.end(run, done, Observation("a", "pay", "paid twice"))
    assert run.notes[EventType.LATE_RESULT][0]["tool_result"] == "paid twice"
    assert run.history.messages[2]["tool_result"] == "paid 1"
    assert Run.fold(events).history.messages == run.history.messages


def test_a_read_back_run_counts_its_own_time_and_not_the_machines() -> None:
    made, events = harness(call("pay", "a", amount=1), DONE)
    made.run_sync("go")
    run = Run.fold(events[:2])
    made.record.note(run, EventType.APPROVAL, call_id="a")
    assert events[-1].offset - events[1].offset < 60


# --- effects ----------------------------------------------------------------------------------


def test_a_failure_that_may_pass_is_not_tried_again_after_a_crash_if_that_may_do_harm() -> None:
    """A22, rule 3"""

    @tool
    def order() -> str:
        """Order."""
        paid.append(1)
        raise TransientError("line cut")

    run = crashed_after("tool_error", [call("order", "a"), DONE], tools=[order])
    made, _ = harness(DONE, tools=[order])
    asyncio.run(made.resume(run))
    assert paid == [1]


def test_a_call_in_doubt_never_runs_with_other_arguments() -> None:
    """Rules 2 and 3: the key stands for the arguments it was first used with."""

    class Edit(Layer):
        def __init__(self, amount: int) -> None:
            self.amount = amount

        async def act(self, run: Run, call: Call, next: Act) -> Observation:
            return await next(run, call.with_arguments({"amount": self.amount}))

    turns = [call("book", "a", amount=1000), DONE]
    for later, expected in ((2, [1]), (1, [1, 1])):
        paid.clear()
        run = crashed_after("tool_start", turns, layers=[Edit(1)])
        made, _ = harness(DONE, layers=[Edit(later)])
        asyncio.run(made.resume(run))
        assert paid == expected


def test_a_person_may_decide_that_a_call_in_doubt_runs_again() -> None:
    class Asked(Layer):
        async def act(self, run: Run, call: Call, next: Act) -> Observation:
            if run.doubts(call):
                assert run.harness is not None
                run.harness.record.note(run, EventType.RETRY, call_id=call.call_id, by="a person")
            return await next(run, call)

    run = crashed_after("tool_start", [call("pay", "a", amount=7), DONE])
    made, events = harness(DONE, layers=[Asked()])
    paid.clear()
    asyncio.run(made.resume(run))
    assert paid == [7]
    assert events[1].data["attempt"] == 2


@pytest.mark.parametrize("answer", ["coroutine", "raise"])
def test_a_tool_that_cannot_tell_whether_it_only_reads_has_not_said_so(answer: str) -> None:
    """Rule 1"""

    class Vague(BaseTool):
        name, description, input_model = "vague", "Vague.", pay.input_model
        execute = pay.execute

        def is_read_only(self, arguments: Any) -> Any:
            if answer == "raise":
                raise ValueError
            return object()

    assert Call(Vague(), "a", {"amount": 1}).repeatable is False


def test_a_second_attempt_is_in_doubt_until_it_ends() -> None:
    class Insist(Layer):
        async def act(self, run: Run, call: Call, next: Act) -> Observation:
            first = await next(run, call)
            return await next(run, call) if first.is_error else first

    attempts: list[int] = []
    hangs = asyncio.Event()

    @tool
    async def shaky() -> str:
        """Fail once, then hang."""
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("exit code 1")
        hangs.set()
        await asyncio.Event().wait()
        return ""

    made, events = harness(call("shaky", "a"), DONE, tools=[shaky], layers=[Insist()])

    async def cancelled() -> None:
        task = asyncio.create_task(made.run("go"))
        await hangs.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled())
    run = Run.fold(events)
    assert [e.data["attempt"] for e in events if e.type == "tool_start"] == [1, 2]
    assert [m["outcome"] for m in run.history.messages if m["role"] == "tool"] == ["unknown"]
    assert not run.in_doubt


# --- turns, money, time -----------------------------------------------------------------------


def test_observations_stand_in_call_order_whoever_was_first() -> None:
    """B24"""
    waits = {"a": 3, "b": 1, "c": 2}

    @tool(read_only=True)
    async def look(what: str) -> str:
        """Look."""
        for _ in range(waits[what]):
            await asyncio.sleep(0)
        return what

    class SideBySide(Layer):
        def __init__(self) -> None:
            self.tasks: dict[str, asyncio.Task[Observation]] = {}

        async def act(self, run: Run, call: Call, next: Act) -> Observation:
            if call.call_id not in self.tasks:
                assert isinstance(run.pending, tuple)
                for waiting in run.pending:
                    ready = Call(look, waiting.call_id, waiting.arguments)
                    task = asyncio.create_task(self._run(run, ready, next))
                    self.tasks[waiting.call_id] = task
            return await self.tasks[call.call_id]

        async def _run(self, run: Run, call: Call, next: Act) -> Observation:
            return await next(run, call)

    turn = [call("look", name, what=name) for name in waits]
    made, events = harness(turn, DONE, tools=[look], layers=[SideBySide()])
    run = made.run_sync("go")
    ends = [e.data["call_id"] for e in events if e.type == "tool_result"]
    assert ends == ["b", "c", "a"], "they really ran side by side"
    assert [m["call_id"] for m in run.history.messages if m["role"] == "tool"] == ["a", "b", "c"]
    assert Run.fold(events).history.messages == run.history.messages


def test_what_a_failed_turn_cost_is_counted() -> None:
    class Refused(ModelError):
        usage = Usage(1000, 5)

    unreadable = Turn((), usage=Usage(10, 1))
    within = Turn((ToolCall("pay", {"amount": 1}, usage=Usage(1, 1), thought="hm"),))
    made, events = harness(unreadable, within, Refused())
    run = made.run_sync("go")
    assert run.status is Status.FAILED
    assert run.usage == Usage(1011, 7) == Run.fold(events).usage
    assert run.history.messages[2]["content"] == "hm"


def test_a_turn_without_calls_from_a_layer_is_refused() -> None:
    class Empty(Layer):
        async def decide(self, run: Run, view: Any, next: Any) -> Any:
            return Turn(())

    made, _ = harness(DONE, layers=[Empty()])
    with pytest.raises(TypeError, match="a layer returned"):
        made.run_sync("go")


def test_rejections_stay_bounded_whatever_comes_between() -> None:
    class No(Layer):
        async def finish(self, run: Run, final: Final, next: Finish) -> Any:
            return Feedback("no")

    turns = [DONE, "nonsense", DONE, DONE, "nonsense", DONE, DONE, DONE, DONE, DONE, DONE]
    made, _ = harness(*turns, layers=[No()])
    run = made.run_sync("go")
    assert run.stop is not None
    assert (run.stop["reason"], run.step) == ("rejected", 6)
    made.record.message(run, "Look at the log.")
    asyncio.run(made.resume(run))
    assert (run.stop["reason"], run.step) == ("rejected", 10)


def test_of_several_sleepers_the_earliest_wakes_first() -> None:
    clock = VirtualClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await clock.sleep(nap)
            woken.append((name, clock.now))

    async def all_of_them() -> None:
        await asyncio.gather(sleeper("a", 5), sleeper("b", 1, 2, 4), sleeper("c", 3.5))

    asyncio.run(all_of_them())
    assert woken == [("b", 1), ("b", 3), ("c", 3.5), ("a", 5), ("b", 7)]


def test_a_sleeper_that_is_cancelled_holds_nobody_up() -> None:
    clock = VirtualClock()

    async def first_of_two() -> None:
        long, short = (asyncio.create_task(clock.sleep(s)) for s in (60, 5))
        await asyncio.wait({long, short}, return_when=asyncio.FIRST_COMPLETED)
        assert not long.done()
        long.cancel()
        await asyncio.gather(long, return_exceptions=True)
        await clock.sleep(1)

    asyncio.run(first_of_two())
    assert clock.now == 6


def test_a_blocking_tool_keeps_nobody_waiting() -> None:
    """Rule 5"""
    never = threading.Event()
    started = threading.Semaphore(0)

    @tool(blocking=True)
    def stuck() -> str:
        """Wait for ever."""
        started.release()
        never.wait()
        return ""

    made, _ = harness(*[call("stuck", "a")] * 50, tools=[stuck])

    async def given_up() -> None:
        tasks = [asyncio.create_task(made.run("go")) for _ in range(50)]
        await asyncio.sleep(0)
        for _ in tasks:
            assert started.acquire(timeout=30)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(given_up())
    never.set()


def test_a_blocking_function_that_raises_stop_iteration_is_observed() -> None:
    @tool(blocking=True)
    def empty() -> str:
        """Take the first of nothing."""
        return next(iter([]))

    made, _ = harness(call("empty", "a"), DONE, tools=[empty])
    assert "StopIteration" in made.run_sync("go").history.messages[2]["tool_result"]


def test_an_event_is_read_back_as_it_was_written() -> None:
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    made, events = harness(ToolCall("pay", {"amount": deep}, "a"), DONE)
    made.run_sync("go")
    assert [Event.from_json(event.to_json()) for event in events] == events
    with pytest.raises(AttributeError):
        events[0].step = 7  # type: ignore[misc]
