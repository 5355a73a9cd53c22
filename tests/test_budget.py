"""A budget is looked at before anything is spent."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mini_harness import Harness, ModelError, Outcome, Run, RunNotCompleted, ScriptedModel, Status
from mini_harness.budget import Budget, BudgetExceeded
from mini_harness.clock import VirtualClock
from mini_harness.protocol import Final, ToolCall, Usage
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.function import tool

LOOK = {"type": "tool", "name": "look", "arguments": {}}
DONE = {"type": "final", "output": "done"}


@tool(read_only=True, paths=())
def look() -> str:
    """Look."""
    return "seen"


@tool(paths=())
def fail() -> str:
    """Fail."""
    raise ValueError("no")


@tool(read_only=True, paths=())
async def wait(seconds: float, context: ToolExecutionContext) -> str:
    """Wait."""
    await context.clock.sleep(seconds)
    return "waited"


class Costly:
    """Calls ``look`` for ever; every turn costs the same."""

    def __init__(self, usage: Usage, turns: int = 10**9) -> None:
        self.usage, self.turns, self.asked = usage, turns, 0

    def decide(self, history: object, tools: object) -> ToolCall | Final:
        self.asked += 1
        if self.asked > self.turns:
            return Final("done", usage=self.usage)
        return ToolCall("look", {}, usage=self.usage)


def pursue(model: Any, budget: Budget, tools: Sequence[Any] = (look, fail, wait)) -> Run:
    harness = Harness(model, tools, layers=[budget], clock=VirtualClock())
    return asyncio.run(harness.run("go"))


def stopped_at(run: Run) -> tuple[str, float, float]:
    assert run.status is Status.STOPPED and run.stop is not None
    assert run.stop["reason"] == "budget"
    with pytest.raises(BudgetExceeded) as caught:
        run.unwrap()
    assert (caught.value.kind, caught.value.limit) == (run.stop["kind"], run.stop["limit"])
    return run.stop["kind"], run.stop["used"], run.stop["limit"]


@pytest.mark.parametrize(
    ("kind", "each"), [("input_tokens", 30), ("output_tokens", 4), ("tokens", 34)]
)
@pytest.mark.parametrize(("turns", "more"), [(1, 0), (3, 0), (3, 1), (3, -1)])
def test_nothing_begins_once_a_limit_is_reached(
    kind: str, each: int, turns: int, more: int
) -> None:
    """The border: what begins just below the limit may end above it, and nothing begins at it"""
    model = Costly(Usage(30, 4))
    limit = turns * each + more
    limits: Any = {kind: limit}
    run = pursue(model, Budget(**limits))
    asked = turns + (more > 0)
    assert stopped_at(run) == (kind, asked * each, limit)
    assert model.asked == asked


@pytest.mark.parametrize("kind", ["input_tokens", "output_tokens", "tokens", "seconds"])
def test_zero_allows_nothing(kind: str) -> None:
    """A limit of 0 is a limit"""
    model = Costly(Usage(1, 1))
    limits: Any = {kind: 0}
    assert stopped_at(pursue(model, Budget(**limits))) == (kind, 0, 0)
    assert model.asked == 0


def test_no_tool_call_is_allowed_by_zero_and_an_answer_is() -> None:
    run = pursue(ScriptedModel([LOOK]), Budget(tool_calls=0))
    assert stopped_at(run) == ("tool_calls", 0, 0)
    assert run.history.messages[-1]["outcome"] == Outcome.NOT_RUN
    assert pursue(ScriptedModel([DONE]), Budget(tool_calls=0)).output == "done"


def test_an_answer_that_ends_at_the_limit_counts() -> None:
    """report R05: what was paid for isn't thrown away"""
    run = pursue(Costly(Usage(5, 5), turns=2), Budget(tokens=21))
    assert run.output == "done"


def test_a_call_that_fails_counts() -> None:
    """report R07: 5 calls are allowed, and every one fails"""
    script = [{"type": "tool", "name": "fail", "arguments": {}}] * 9
    run = pursue(ScriptedModel(script), Budget(tool_calls=5))
    assert stopped_at(run) == ("tool_calls", 5, 5)
    assert [m["outcome"] for m in run.history.messages if m["role"] == "tool"] == [
        *["error"] * 5,
        "not_run",
    ]


def test_within_a_turn_the_calls_beyond_the_limit_do_not_run() -> None:
    run = pursue(
        ScriptedModel([[LOOK] * 2, [{**LOOK, "call_id": str(n)} for n in range(4)]]),
        Budget(tool_calls=3),
    )
    assert stopped_at(run) == ("tool_calls", 3, 3)


def test_a_turn_that_failed_is_paid_for() -> None:
    """The error says what it cost"""

    class Breaks(ModelError):
        usage = Usage(70, 0)

    class Model:
        def decide(self, history: object, tools: object) -> Any:
            raise Breaks("no")

    budget = Budget(tokens=60)
    harness = Harness(Model(), [look], layers=[budget])
    run = asyncio.run(harness.run("go"))
    assert run.status is Status.FAILED
    asyncio.run(harness.resume(run))
    assert stopped_at(run) == ("tokens", 70, 60)


def test_cost_is_what_the_price_says() -> None:
    price: Callable[[Usage], float] = lambda usage: usage.input_tokens * 0.5  # noqa: E731
    run = pursue(Costly(Usage(4, 9)), Budget(cost=5.0, price=price))
    assert stopped_at(run) == ("cost", 6.0, 5.0)


def test_seconds_are_those_of_the_harness_clock() -> None:
    """report R10: monotonic, and virtual in lessons"""
    waits = [{"type": "tool", "name": "wait", "arguments": {"seconds": 4.0}}] * 5
    run = pursue(ScriptedModel(waits), Budget(seconds=10))
    assert stopped_at(run) == ("seconds", 12.0, 10)


def test_the_time_in_which_a_run_was_stopped_is_not_counted() -> None:
    clock = VirtualClock()
    waits = [{"type": "tool", "name": "wait", "arguments": {"seconds": 4.0}}] * 3
    budget = Budget(seconds=13)
    low = Harness(ScriptedModel(waits), [wait], layers=[Budget(seconds=5)], clock=clock)
    run = asyncio.run(low.run("go"))
    assert stopped_at(run) == ("seconds", 8.0, 5)
    clock.now += 1_000
    high = Harness(ScriptedModel([waits[0], DONE]), [wait], layers=[budget], clock=clock)
    asyncio.run(high.resume(run))
    assert run.output == "done" and run.offset == 12.0


def test_what_is_left_can_be_asked() -> None:
    left: list[float | None] = []
    budget = Budget(seconds=10)

    @tool(read_only=True, paths=())
    async def ask(context: ToolExecutionContext) -> str:
        """Ask."""
        assert context.run is not None
        await context.clock.sleep(3)
        left.extend([budget.seconds_left(context.run), Budget().seconds_left(context.run)])
        return ""

    pursue(ScriptedModel([{"type": "tool", "name": "ask", "arguments": {}}, DONE]), budget, [ask])
    assert left == [7.0, None]


# --- runs inside tools ------------------------------------------------------------------------


def specialist(model: Any, *layers: Budget) -> Any:
    """A tool that runs a harness of its own."""

    @tool(read_only=True, paths=())
    async def specialist(n: int, context: ToolExecutionContext) -> str:
        """Ask a specialist."""
        inner = Harness(model, [look], layers=layers, clock=context.clock)
        run = await inner.run("part")
        return str(run.output if run.status is Status.COMPLETED else run.stop)

    return specialist


def delegate(times: int) -> list[Any]:
    calls = [{"type": "tool", "name": "specialist", "arguments": {"n": n}} for n in range(times)]
    return [*calls, DONE]


def test_a_run_inside_a_tool_spends_the_budget_of_the_run_outside() -> None:
    """issue 6: nested for sub-runs; each usage counts once"""
    outer = Budget(tokens=100)
    model = Costly(Usage(30, 0))
    run = pursue(ScriptedModel(delegate(2)), outer, [specialist(model, Budget())])
    assert stopped_at(run) == ("tokens", 120, 100)
    assert model.asked == 4


def test_the_same_layer_inside_counts_once() -> None:
    budget = Budget(tokens=100)
    run = pursue(ScriptedModel(delegate(2)), budget, [specialist(Costly(Usage(30, 0)), budget)])
    assert stopped_at(run) == ("tokens", 120, 100)


def test_a_smaller_budget_inside_ends_the_inner_run_only() -> None:
    inner = Budget(tool_calls=2)
    run = pursue(
        ScriptedModel(delegate(1)), Budget(tool_calls=10), [specialist(Costly(Usage()), inner)]
    )
    assert run.output == "done"
    assert "'limit': 2" in run.history.messages[2]["tool_result"]


def test_calls_inside_count_for_the_run_outside() -> None:
    model = Costly(Usage())
    run = pursue(ScriptedModel(delegate(5)), Budget(tool_calls=4), [specialist(model, Budget())])
    assert stopped_at(run) == ("tool_calls", 4, 4)
    assert model.asked == 4  # one call of the specialist, three of its own, and the turn too many


async def _side_by_side(spent: Usage, limit: int, members: int) -> list[Run]:
    """Sub-runs that begin together inside one tool of a run that has spent something already."""
    runs: list[Run] = []

    class Slow:
        async def decide(self, history: object, tools: object) -> Final:
            await asyncio.sleep(0.001)
            return Final("part", usage=Usage(10, 0))

    @tool(read_only=True, paths=())
    async def team(context: ToolExecutionContext) -> str:
        """Ask all."""
        inner = [Harness(Slow(), layers=[Budget()]) for _ in range(members)]
        runs.extend(await asyncio.gather(*(each.run("part") for each in inner)))
        return "all"

    first = ToolCall("team", {}, usage=spent)
    harness = Harness(ScriptedModel([first, DONE]), [team], layers=[Budget(tokens=limit)])
    await harness.run("go")
    return runs


def test_those_who_begin_together_spend_no_more_than_one_could() -> None:
    """report R07: limit 100, 99 spent, five together of which each costs 10"""
    runs = asyncio.run(_side_by_side(Usage(99, 0), 100, 5))
    assert [run.status for run in runs].count(Status.COMPLETED) == 1
    assert [stopped_at(run)[0] for run in runs if run.stop] == ["tokens"] * 4


def test_where_there_is_enough_all_may_begin_together() -> None:
    runs = asyncio.run(_side_by_side(Usage(10, 0), 100, 5))
    assert {run.status for run in runs} == {Status.COMPLETED}


# --- resume and settings ----------------------------------------------------------------------


def test_a_resumed_run_goes_on_with_what_it_had_spent() -> None:
    """A24: from its record, by another process"""
    events: list[Any] = []
    model = ScriptedModel([LOOK, LOOK, LOOK])
    harness = Harness(model, [look], layers=[Budget(tool_calls=2)], sinks=[events.append])
    asyncio.run(harness.run("go"))
    run = Run.fold(events)
    again = Harness(ScriptedModel([LOOK, LOOK]), [look], layers=[Budget(tool_calls=3)])
    asyncio.run(again.resume(run))
    assert stopped_at(run) == ("tool_calls", 3, 3)


def test_two_runs_of_one_harness_have_a_budget_each() -> None:
    harness = Harness(Costly(Usage(10, 0)), [look], layers=[Budget(tokens=30)])
    for _ in range(2):
        assert stopped_at(asyncio.run(harness.run("go"))) == ("tokens", 30, 30)


@pytest.mark.parametrize("bad", [-1, -0.5, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", ["tokens", "seconds", "tool_calls", "cost"])
def test_what_is_no_limit_is_refused(kind: str, bad: float) -> None:
    """issue 6: nan and negatives are refused"""
    limits: Any = {kind: bad}
    with pytest.raises(ValueError, match="must be 0 or more, and finite"):
        Budget(**limits, price=lambda usage: 0.0)


@pytest.mark.parametrize("bad", [True, "5", [3]])
def test_what_is_no_number_is_refused(bad: Any) -> None:
    with pytest.raises(TypeError, match="tokens must be a number"):
        Budget(tokens=bad)


def test_a_cost_needs_a_price() -> None:
    with pytest.raises(ValueError, match="say what a usage costs"):
        Budget(cost=1.0)


def test_without_limits_nothing_stops() -> None:
    run = pursue(Costly(Usage(10**9, 10**9), turns=3), Budget())
    assert run.output == "done"
    with pytest.raises(RunNotCompleted):
        Run("r").unwrap()
