"""However the attempts end and wherever the process dies: no effect twice that isn't declared."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import event as noted
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_harness.clock import VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.loop import Harness
from mini_harness.models.base import ModelError
from mini_harness.protocol import Final, ToolCall
from mini_harness.retry import Retry
from mini_harness.run import Run, Status
from mini_harness.timeout import Timeout
from mini_harness.tools.base import ToolExecutionContext, TransientError
from mini_harness.tools.function import FunctionTool, function_tool
from tests.loops import check, outcomes, refold

LIMIT, GRACE, ATTEMPTS = 10.0, 8.0, 3
TOOLS: dict[str, Any] = {"look": {"read_only": True}, "book": {"idempotent": True}, "pay": {}}

TAKES = {
    "fine": 1.0,
    "transient": 1.0,
    "transient before": 1.0,
    "permanent": 1.0,
    "slow": LIMIT,
    "late": LIMIT + 3,
    "never": LIMIT + GRACE,
}
"""How an attempt ends, and how many seconds of the run it takes."""
MAY_PASS = {"transient", "transient before", "slow", "late", "never"}


class Crash(BaseException):
    """The process dies."""


class Busy(ModelError):
    transient = True


class World:
    """What survives the process: the effects, and the record. It also knows when to kill it."""

    def __init__(self, plan: Sequence[tuple[str, list[str]]], model_fails: int) -> None:
        self.plan, self.model_fails = plan, model_fails
        self.effects: Counter[str] = Counter()
        self.events: list[Event] = []
        self.crashes: list[tuple[int, bool]] = []
        self.tools = [self._tool(name, declared) for name, declared in TOOLS.items()]

    def _tool(self, name: str, declared: Any) -> FunctionTool:
        async def act(number: int, context: ToolExecutionContext) -> str:
            endings = self.plan[number][1]
            attempt = context.attempt - 1
            ending = endings[attempt] if attempt < len(endings) else "fine"
            return await self._do(ending, context)

        return function_tool(act, name=name, description="Act.", **declared)

    async def _do(self, ending: str, context: ToolExecutionContext) -> str:
        sleep = context.clock.sleep
        await sleep(1)
        if ending == "transient before":
            raise TransientError(ending)
        if ending != "never":
            self.effects[context.idempotency_key] += 1
        if ending == "transient":
            raise TransientError(ending)
        if ending == "permanent":
            raise ValueError(ending)
        if ending in ("slow", "late", "never"):
            try:
                await sleep(1000)
            except asyncio.CancelledError:
                if ending == "slow":
                    raise
                await sleep(3 if ending == "late" else 50)
        if ending == "never":
            self.effects[context.idempotency_key] += 1
        return "done"

    def decide(self, history: Any, tools: Any) -> ToolCall | Final:
        if self.model_fails:
            self.model_fails -= 1
            raise Busy("overloaded")
        number = sum("calls" in message for message in history)
        if number == len(self.plan):
            return Final("all done")
        return ToolCall(self.plan[number][0], {"number": number}, f"call-{number}")

    def keep(self, event: Event) -> None:
        """The record. The process may die right before an event is written, or right after."""
        dies = self.crashes and self.crashes[0][0] <= event.sequence
        if dies and self.crashes.pop(0)[1]:
            raise Crash
        self.events.append(event)
        if dies:
            raise Crash

    def harness(self, clock: VirtualClock) -> Harness:
        layers = [Retry(ATTEMPTS), Timeout(LIMIT, grace=GRACE)]
        return Harness(self, self.tools, layers=layers, sinks=[self.keep], clock=clock)

    def live(self) -> Run:
        """Run to the end, in as many processes as it takes."""
        begun = False
        while True:
            clock = VirtualClock()
            harness = self.harness(clock)
            try:
                if not self.events:
                    return asyncio.run(harness.run("go"))
                run = refold(self.events)
                begun = True
                clock.now = run.offset
                return asyncio.run(harness.resume(run))
            except Crash:
                noted("crashed again" if begun else "crashed")


def seconds_of(plan: Sequence[tuple[str, list[str]]], model_fails: int, run: Run) -> float:
    """How long the run takes, if nobody kills it."""
    retry, total = Retry(ATTEMPTS), 0.0
    step_zero = Run(run.id)
    for attempt in range(1, model_fails + 1):
        total += retry.back_off(step_zero, "", attempt)
    for number, (name, endings) in enumerate(plan):
        for attempt in range(1, ATTEMPTS + 1):
            ending = endings[attempt - 1] if attempt <= len(endings) else "fine"
            total += TAKES[ending]
            abandoned = ending == "never" and name == "book"
            if ending not in MAY_PASS or name == "pay" or abandoned or attempt == ATTEMPTS:
                break
            total += retry.back_off(run, f"call-{number}", attempt)
    return total


def check_effects(world: World, run: Run) -> None:
    """At most once, unless declared otherwise; and what the model is told is true."""
    told = dict(outcomes(run))
    for number, (name, _) in enumerate(world.plan):
        call_id = f"call-{number}"
        effects = world.effects[f"{run.id}:{call_id}"]
        if name == "pay":
            assert effects <= 1, world.plan[number]
        if told[call_id] == "ok":
            assert effects >= 1
        if told[call_id] == "not_run":
            assert effects == 0
    assert set(world.effects) <= {f"{run.id}:call-{n}" for n in range(len(world.plan))}


def check_attempts(events: Sequence[Event], crashes: int) -> None:
    """Numbered from 1 without a gap; one begins only where the one before has ended or is in
    doubt; no more of them than allowed, but for one that a crash cut off."""
    attempts: Counter[str] = Counter()
    retried: set[tuple[str, int]] = set()
    for event in events:
        call_id = event.data.get("call_id") or "the model"
        if event.type is EventType.TOOL_START:
            attempts[call_id] += 1
            assert event.data["attempt"] == attempts[call_id]
        if event.type is EventType.RETRY:
            key = f"{call_id}{event.step}", event.data["attempt"]
            assert key not in retried, "one wait is decided once"
            retried.add(key)
    assert all(number <= ATTEMPTS + crashes for number in attempts.values())


PLANS = st.lists(
    st.tuples(st.sampled_from(sorted(TOOLS)), st.lists(st.sampled_from(sorted(TAKES)), max_size=4)),
    min_size=1,
    max_size=3,
)
CRASHES = st.lists(st.tuples(st.integers(2, 30), st.booleans()), max_size=3).map(sorted)


@settings(max_examples=300)
@given(PLANS, st.integers(0, ATTEMPTS - 1))
def test_however_attempts_end_each_effect_happens_as_declared_and_in_its_time(
    plan: list[tuple[str, list[str]]], model_fails: int
) -> None:
    """A20, A21, A22, reports R01, R02"""
    world = World(plan, model_fails)
    run = world.live()
    assert run.status is Status.COMPLETED
    check(run, world.events)
    check_effects(world, run)
    check_attempts(world.events, 0)
    assert run.offset == pytest.approx(seconds_of(plan, model_fails, run))


@settings(max_examples=300)
@given(PLANS, st.integers(0, ATTEMPTS - 1), CRASHES)
def test_wherever_the_process_dies_no_effect_happens_twice_that_is_not_declared_to_be_harmless(
    plan: list[tuple[str, list[str]]], model_fails: int, crashes: list[tuple[int, bool]]
) -> None:
    """A22, rule 3, reports R01, R02"""
    world = World(plan, model_fails)
    world.crashes = list(crashes)
    run = world.live()
    assert run.status is Status.COMPLETED
    check(run, world.events)
    check_effects(world, run)
    check_attempts(world.events, len(crashes) - len(world.crashes))
