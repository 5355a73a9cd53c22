"""What passes is tried again, and never what might then happen twice."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from mini_harness.budget import Budget
from mini_harness.clock import VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.frozen import freeze
from mini_harness.layer import Act, Layer, Stop
from mini_harness.loop import Harness
from mini_harness.models.anthropic import AnthropicModel
from mini_harness.models.base import ModelError
from mini_harness.protocol import Final, Observation, Outcome, Usage
from mini_harness.retry import Retry
from mini_harness.run import Run, Status, StopReason
from mini_harness.spans import NOT_RUN, Ending, Kind, tell
from mini_harness.timeout import Timeout
from mini_harness.tools.base import ToolExecutionContext, TransientError
from mini_harness.tools.call import Call
from mini_harness.tools.function import FunctionTool, function_tool
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
from tests.standin import Answer, Fault, StandIn, error, reply, text

EFFECTS: dict[str, Any] = {
    "plain": {},
    "idempotent": {"idempotent": True},
    "read-only": {"read_only": True},
}


class Busy(ModelError):
    """The service is overloaded."""

    transient = True

    def __init__(self, retry_after: float | None = None, usage: Usage | None = None) -> None:
        super().__init__("overloaded")
        self.retry_after, self.usage = retry_after, usage


class Flaky:
    """A tool that does its effect, then ends as the list says; after that it succeeds."""

    def __init__(self, *endings: BaseException, **declared: bool) -> None:
        self.endings = list(endings)
        self.keys: list[str] = []
        self.at: list[float] = []
        self.attempts: list[int] = []
        self.tool = self._made(declared)

    def _made(self, declared: Any) -> FunctionTool:
        def order(context: ToolExecutionContext) -> str:
            self.keys.append(context.idempotency_key)
            self.at.append(context.clock.monotonic())
            self.attempts.append(context.attempt)
            if self.endings:
                raise self.endings.pop(0)
            return "ordered"

        return function_tool(order, description="Order.", **declared)


def ordered(*endings: BaseException, layers: Sequence[Layer] = (), **declared: bool) -> Any:
    flaky = Flaky(*endings, **declared)
    played = play([call("order", "a"), DONE], [flaky.tool], layers=layers or [Retry(jitter=0)])
    return flaky, played


def retries(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [dict(event.data) for event in events if event.type is EventType.RETRY]


# --- tools ------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", EFFECTS)
def test_only_what_does_no_harm_is_repeated(declared: str) -> None:
    """A22, reports R01, R02: one effect, or three attempts in total under one key"""
    flaky, (run, _) = ordered(*[TransientError("cut")] * 5, **EFFECTS[declared])
    if declared == "plain":
        assert len(flaky.keys) == 1
        assert outcomes(run) == [("a", "unknown")]
        assert "wasn't tried again" in tool_messages(run)[0]["tool_result"]
    else:
        assert flaky.keys == [f"{run.id}:a"] * 3
        assert flaky.attempts == [1, 2, 3]
        assert outcomes(run) == [("a", "error")]
        assert "tried 3 times" in tool_messages(run)[0]["tool_result"]


@pytest.mark.parametrize("declared", EFFECTS)
def test_what_is_not_declared_to_pass_is_final(declared: str) -> None:
    """A20: nothing is guessed from a name or a text"""
    for permanent in (ValueError("no"), ConnectionError("try again later"), TimeoutError("busy")):
        flaky, (run, events) = ordered(permanent, **EFFECTS[declared])
        assert len(flaky.keys) == 1
        assert outcomes(run) == [("a", "error")]
        assert retries(events) == []


def test_two_calls_with_the_same_arguments_are_two_calls() -> None:
    """report R02"""
    flaky = Flaky(TransientError(), TransientError(), idempotent=True)
    run, _ = play(
        [turn(call("order", "a"), call("order", "b")), DONE], [flaky.tool], layers=[Retry()]
    )
    assert flaky.keys == [f"{run.id}:a"] * 3 + [f"{run.id}:b"]
    assert outcomes(run) == [("a", "ok"), ("b", "ok")]


def test_every_attempt_is_an_event_and_so_is_every_wait() -> None:
    """A20, DESIGN: tool_start and its end once per attempt"""
    _, (_, events) = ordered(TransientError("one"), TransientError("two"), read_only=True)
    assert kinds(events)[2:10] == [
        *["tool_start", "tool_error", "retry", "tool_start", "tool_error", "retry"],
        *["tool_start", "tool_result"],
    ]
    assert [event.data["attempt"] for event in events if event.type == "tool_start"] == [1, 2, 3]
    assert ["transient" in event.data for event in events if event.type == "tool_error"] == [
        True
    ] * 2
    assert retries(events) == [
        {"call_id": "a", "tool": "order", "attempt": n, "seconds": seconds, "because": because}
        for n, seconds, because in (
            (1, 1.0, "TransientError('one')"),
            (2, 2.0, "TransientError('two')"),
        )
    ]


def test_a_call_that_failed_for_good_is_not_shown_as_one_that_never_ran() -> None:
    """DESIGN: the timeline reads the one stream of events"""

    class Leave(Layer):
        async def act(self, run: Run, call: Call, next: Act) -> Observation:
            await next(run, call)
            raise Stop(StopReason.BUDGET)

    for layers in ([Retry()], [Leave()]):
        _, (_, events) = ordered(*[TransientError()] * 5, layers=layers, read_only=True)
        spans, moments, _ = tell(events)
        assert NOT_RUN not in {moment.subject for moment in moments}
        tried = [span for span in spans if span.kind is Kind.TOOL]
        assert len(tried) == kinds(events).count("tool_start")
        assert {span.ending for span in tried} == {Ending.FAILED}


def test_a_call_that_never_began_had_no_effect() -> None:
    """A layer inside said no before the tool was started."""

    class NotNow(Layer):
        async def act(self, run: Run, call: Call, next: Act) -> Observation:
            return Observation(
                call.call_id, call.name, "Not now.", Outcome.ERROR, TransientError("not now")
            )

    flaky, (run, _) = ordered(layers=[Retry(), NotNow()])
    assert (flaky.keys, outcomes(run)) == ([], [("a", "error")])
    _, (run, events) = ordered(layers=[Retry(), NotNow()], read_only=True)
    assert [retry["attempt"] for retry in retries(events)] == [1, 2]
    assert "tried 3 times" in tool_messages(run)[0]["tool_result"]


# --- waiting ----------------------------------------------------------------------------------


def waits(**settings: Any) -> list[float]:
    many = [TransientError()] * (settings.get("attempts", 3) - 1)
    flaky, _ = ordered(*many, layers=[Retry(**settings)], read_only=True)
    return [round(b - a, 6) for a, b in pairwise(flaky.at)]


def test_the_wait_doubles_up_to_the_cap() -> None:
    """B26: 1 s × 2^n capped 30 s"""
    assert waits(attempts=8, jitter=0) == [1, 2, 4, 8, 16, 30, 30]
    assert waits(attempts=4, base=0.5, cap=0.75, jitter=0) == [0.5, 0.75, 0.75]
    assert waits(attempts=3, base=0) == [0, 0]


def test_a_share_of_the_wait_is_left_to_chance_and_a_rerun_draws_the_same() -> None:
    """B26: +0 to 25 %"""
    first, again, other = waits(attempts=8), waits(attempts=8), waits(attempts=8, seed=1)
    assert first == again != other
    shares = [wait / plain - 1 for wait, plain in zip(first, [1, 2, 4, 8, 16, 30, 30], strict=True)]
    assert all(0 <= share <= 0.25 for share in shares)
    assert len(set(shares)) == 7


def test_two_runs_two_calls_and_two_attempts_do_not_come_back_at_the_same_moment() -> None:
    retry = Retry(base=10)
    drawn = {
        retry.back_off(Run(run_id), call_id, 1)
        for run_id in ("run-1", "run-2")
        for call_id in ("a", "b", "")
    }
    assert len(drawn) == 6


def test_a_wait_that_is_asked_for_is_obeyed_if_it_is_longer() -> None:
    """B26: honours Retry-After"""
    flaky, _ = ordered(
        TransientError(retry_after=12.5), TransientError(retry_after=0), read_only=True
    )
    assert [b - a for a, b in pairwise(flaky.at)] == [12.5, 2]


def test_a_wait_beyond_the_cap_is_not_waited_for_and_the_model_is_told() -> None:
    """B26, issue: never past the cap"""
    flaky, (run, events) = ordered(TransientError(retry_after=31), read_only=True)
    assert (len(flaky.at), events[-1].offset) == (1, 0)
    assert "31 seconds is asked for, and 30 is the longest" in tool_messages(run)[0]["tool_result"]


def test_a_wait_that_leaves_no_time_is_not_waited_for() -> None:
    """Nor past what a budget leaves"""
    layers = [Retry(jitter=0), Budget(seconds=2.5)]
    flaky, (run, events) = ordered(*[TransientError()] * 2, layers=layers, read_only=True)
    assert (flaky.at, events[-1].offset) == ([0, 1], 1)
    assert "the run has 1.5 left" in tool_messages(run)[0]["tool_result"]


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), "5", True])
def test_a_wait_that_is_no_number_of_seconds_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="must be seconds"):
        TransientError("busy", retry_after=bad)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        *[({"attempts": bad}, ValueError) for bad in (0, -1)],
        *[({"attempts": bad}, TypeError) for bad in (1.0, True, "3", None)],
        *[({name: -1}, ValueError) for name in ("base", "cap", "jitter")],
        *[({name: float("nan")}, ValueError) for name in ("base", "cap", "jitter")],
        *[({name: True}, TypeError) for name in ("base", "cap", "jitter")],
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        Retry(**settings)


# --- the model --------------------------------------------------------------------------------


def test_a_model_that_fails_in_a_passing_way_is_asked_again() -> None:
    """A20, B26"""
    run, events = play([Busy(), Busy(retry_after=7), DONE], layers=[Retry(jitter=0)])
    assert run.unwrap() == "done"
    assert [(r["call_id"], r["attempt"], r["seconds"]) for r in retries(events)] == [
        (None, 1, 1.0),
        (None, 2, 7.0),
    ]
    assert (run.step, events[-1].offset) == (1, 8)


def test_each_turn_has_its_own_attempts() -> None:
    flaky = Flaky()
    turns = [Busy(), Busy(), call("order", "a"), Busy(), Busy(), DONE]
    run, _ = play(turns, [flaky.tool], layers=[Retry()])
    assert run.unwrap() == "done"


def test_what_is_permanent_ends_the_run_at_once_and_so_does_the_last_attempt() -> None:
    """A20"""
    permanent = ModelError("no such model")
    run, events = play([permanent, DONE], layers=[Retry()])
    assert (run.error, kinds(events)) == (permanent, ["message", "stop"])
    last = Busy()
    run, _ = play([Busy(), Busy(), last, DONE], layers=[Retry()])
    assert run.status is Status.FAILED
    assert run.stop is not None
    assert (run.error, run.stop["attempts"]) == (last, 3)


def test_what_each_attempt_cost_is_counted_once() -> None:
    """report R04: every attempt is in the trace and in the budget"""
    spent = Usage(10, 1)
    run, events = play(
        [Busy(usage=spent), Busy(usage=spent), Final("done", usage=Usage(5, 5))], layers=[Retry()]
    )
    assert run.usage == Usage(25, 7) == refold(events).usage
    run, _ = play([Busy(usage=spent)] * 3, layers=[Retry()])
    assert run.usage == Usage(30, 3)
    layers = [Retry(), Budget(tokens=11)]
    run, events = play([Busy(usage=spent), DONE], layers=layers)
    assert run.stop is not None
    assert (run.stop["reason"], run.stop["used"]) == ("budget", 11)


def test_what_a_layer_stops_is_not_tried_again() -> None:
    class Enough(Layer):
        async def decide(self, run: Run, view: Any, next: Any) -> Any:
            raise Stop(StopReason.BUDGET, Busy())

    _, events = play([DONE], layers=[Retry(), Enough()])
    assert kinds(events) == ["message", "stop"]


def asked(script: list[Any]) -> tuple[Run, int, list[Event]]:
    """A run with a real client against a server on loopback, and how many requests came."""
    events: list[Event] = []
    with StandIn(script) as api:
        model = AnthropicModel("claude-standin", api_key=api.key, base_url=api.url, timeout=20)
        harness = Harness(
            model, layers=[Retry(base=0.1)], sinks=[events.append], clock=VirtualClock()
        )
        run = asyncio.run(harness.run("go"))
        return run, len(api.seen), events


@pytest.mark.parametrize(
    "failure",
    [error(529), error(429), error(500), error(502), error(503), Fault.RESET],
    ids=lambda each: str(getattr(each, "status", each)),
)
def test_the_attempts_do_not_multiply_with_those_of_the_client(failure: Any) -> None:
    """report R04: exactly 3 requests"""
    run, requests, events = asked([failure] * 12)
    assert (run.status, requests, len(retries(events))) == (Status.FAILED, 3, 2)
    run, requests, _ = asked([failure, reply(text("fine"))])
    assert (run.unwrap(), requests) == ("fine", 2)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_request_that_can_only_fail_again_is_sent_once(status: int) -> None:
    """report R04"""
    run, requests, _ = asked([error(status)] * 5)
    assert (run.status, requests) == (Status.FAILED, 1)


@pytest.mark.parametrize(("asks", "requests", "offset"), [("7", 2, 7), ("31", 1, 0)])
def test_a_server_that_asks_for_a_wait_gets_it_within_the_cap(
    asks: str, requests: int, offset: float
) -> None:
    """B26: Retry-After, cap 30 s"""
    busy: Answer = error(429, headers={"retry-after": asks})
    run, seen, events = asked([busy, reply(text("fine"))])
    assert (seen, events[-1].offset) == (requests, offset)
    if run.stop is not None:
        assert "31 seconds is asked for" in run.stop["because"]


# --- interrupted ------------------------------------------------------------------------------


def test_wherever_the_process_dies_the_attempts_go_on_and_the_story_is_the_same() -> None:
    """Issue: a resumed run on the virtual clock equals the uninterrupted one, event for event"""
    failures: list[Callable[[], list[BaseException]]] = [
        lambda: [TransientError("one"), TransientError("two", retry_after=6)],
        lambda: [TransientError("one"), TransientError("two"), TransientError("three")],
        lambda: [TransientError("one"), TransientError("two", retry_after=60)],
    ]
    for made in failures:
        whole = story_of(made())
        for cut in range(2, len(whole)):
            before = whole[:cut]
            run = refold(before)
            if run.in_doubt:
                continue  # That attempt is made again, so it has one more start.
            done = sum(event.type == "tool_start" for event in before)
            turns = [DONE] if run.step else [call("order", "a"), DONE]
            flaky = Flaky(*made()[done:], idempotent=True)
            _, after = resumed_at(run, turns, flaky)
            assert [told(event) for event in [*before, *after]] == [told(e) for e in whole], cut


def test_an_attempt_that_the_process_died_in_is_made_again_at_once() -> None:
    """Rule 3: under the same key, with the next number"""
    whole = story_of([TransientError("one"), TransientError("two")])
    second = [event.type for event in whole].index(EventType.RETRY) + 1
    assert whole[second].type is EventType.TOOL_START
    flaky = Flaky(idempotent=True)
    run, after = resumed_at(refold(whole[: second + 1]), [DONE], flaky)
    assert kinds(after)[:2] == ["tool_start", "tool_result"]
    assert (flaky.attempts, flaky.keys) == ([3], [f"{run.id}:a"])


def story_of(failures: list[BaseException]) -> list[Event]:
    _, (_, events) = ordered(*failures, layers=[Retry()], idempotent=True)
    found: list[Event] = events
    return found


def resumed_at(run: Run, turns: list[Any], flaky: Flaky) -> Played:
    """Another process, whose clock goes on from where the first one's was."""
    clock = VirtualClock()
    clock.now = run.offset
    return go_on(run, turns, [flaky.tool], layers=[Retry()], clock=clock)


def told(event: Event) -> tuple[Any, ...]:
    return event.sequence, event.step, event.type, round(event.offset, 6), dict(event.data)


def test_a_model_that_was_being_waited_for_is_asked_when_it_would_have_been() -> None:
    _, whole = play([Busy(), Busy(), DONE], layers=[Retry()])
    for cut in (2, 3):
        _, after = go_on(refold(whole[:cut]), [*[Busy()] * (3 - cut), DONE], layers=[Retry()])
        assert [e.type for e in [*whole[:cut], *after]] == [e.type for e in whole]
        assert after[-1].offset == pytest.approx(whole[-1].offset)


def test_a_run_that_failed_gets_all_attempts_anew_when_somebody_resumes_it() -> None:
    run, _ = play([Busy()] * 3, layers=[Retry()])
    again, events = go_on(run, [Busy(), Busy(), DONE], layers=[Retry()])
    assert again.unwrap() == "done"
    assert [retry["attempt"] for retry in retries(events)] == [1, 2]


def test_side_by_side_each_attempt_keeps_its_own_limit() -> None:
    """DESIGN: retry outside time-out, each attempt with its own deadline"""
    starts: list[float] = []

    async def slow(context: ToolExecutionContext) -> str:
        starts.append(context.clock.monotonic())
        await context.clock.sleep(60 if len(starts) < 3 else 9)
        return "there"

    made = function_tool(slow, description="Slow.", read_only=True)
    layers = [Retry(jitter=0), Timeout(10)]
    run, events = play([call("slow", "a"), DONE], [made], layers=layers)
    assert starts == [0, 11, 23]
    assert (events[-1].offset, outcomes(run)) == (32, [("a", "ok")])
    check(run, events)


def test_a_retry_reads_well_in_a_line() -> None:
    data = freeze({"call_id": "c1", "attempt": 1, "seconds": 1.25, "because": "busy"})
    event = Event("run-1", 4, 1, EventType.RETRY, 0.0, 0.0, data)
    assert str(event).endswith("after attempt 1, in 1.25 s: busy")
