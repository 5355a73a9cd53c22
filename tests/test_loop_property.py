"""Whatever a model and its tools do: every call is observed once, and the record is the run."""

import asyncio
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from mini_harness.clock import VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.layer import Feedback, Layer, Pause, Stop
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final, Observation, Outcome, ToolCall, Turn, Usage
from mini_harness.run import Run, Status, StopReason
from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult, TransientError
from mini_harness.tools.call import Call
from mini_harness.tools.function import tool
from tests.loops import DONE, check, tool_messages


class BadText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Options(BaseModel):
    force: bool = False
    more: dict[str, Any] = {}


class Arguments(BaseModel):
    how: int
    items: list[Any] = []
    options: Options = Options()


ENDINGS: list[Any] = [
    ValueError(""),
    ValueError("text"),
    TransientError(),
    TransientError("busy"),
    Stop(StopReason.DENIED),
    Pause(),
    asyncio.CancelledError(),
    SystemExit(1),
    BadText(),
    None,
    "text",
    ToolResult(7),  # type: ignore[arg-type]
    ToolResult("nan", metadata={"a": [math.nan]}),
    ToolResult("keys", metadata={1: 2}),  # type: ignore[dict-item]
    ToolResult("fine", metadata={"a": [1, {"b": None}]}),
    ToolResult("\ud800\u2028\n"),
    ToolResult(""),
    ToolResult("said no", is_error=True),
]


class Misbehaving(BaseTool):
    """Changes what it was given, then returns or raises anything."""

    name = "misbehave"
    description = "Do something wrong."
    input_model = Arguments

    def is_read_only(self, arguments: Arguments) -> bool:
        return arguments.how % 2 == 0

    async def execute(self, arguments: Arguments, context: ToolExecutionContext) -> ToolResult:
        arguments.items.append(object())
        arguments.options.more["changed"] = arguments.items
        ending = ENDINGS[arguments.how % len(ENDINGS)]
        arguments.how = -1
        await context.clock.sleep(1.0)
        if isinstance(ending, BaseException):
            raise ending
        result: ToolResult = ending
        return result


@tool(read_only=True)
def echo(text: str, number: int = 0) -> str:
    """Say it again."""
    return text * (number % 3)


class Again(Layer):
    """Tries a call that failed a second time, with a policy that meddles."""

    async def act(self, run: Run, call: Call, next: Any) -> Observation:
        vars(call.parsed).clear()
        first: Observation = await next(run, call)
        if isinstance(first.error, TransientError):
            first = await next(run, call)
        return first


class Replace(Layer):
    async def act(self, run: Run, call: Call, next: Any) -> Observation:
        seen: Observation = await next(run, call)
        return Observation(call.call_id, call.name, "(hidden)", Outcome.DENIED, seen.error)


class Choosy(Layer):
    """Denies, pauses and stops, each once; sends the first answer back."""

    def __init__(self) -> None:
        self.todo: list[Any] = [None, Pause(), None, Stop(StopReason.BUDGET, spent=1)]

    async def act(self, run: Run, call: Call, next: Any) -> Observation:
        raised = self.todo.pop(0) if self.todo else None
        if raised is not None:
            raise raised
        seen: Observation = await next(run, call)
        return seen

    async def finish(self, run: Run, final: Final, next: Any) -> Any:
        return await next(run, final) if run.rejections else Feedback("Once more.")


# The high half of a surrogate pair only: JSON has no text for two lone halves side by side.
TEXT = st.text(alphabet="ab7 \n\u2028é\ud800\x00", max_size=4)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"in": [value]}
    return value


def pick(values: list[Any]) -> st.SearchStrategy[Any]:
    """One of these, also of those that have no repr."""
    return st.integers(0, len(values) - 1).map(lambda index: values[index])


def odd(kind: Any, *arguments: Any) -> Any:
    """An instance that a type checker wouldn't let through."""
    return kind(*arguments)


SCALARS = [None, True, 0, 1.0, -0.0, math.nan, math.inf, 2**70, 10**5000, object(), b"x"]
VALUES = st.recursive(
    pick(SCALARS) | st.sampled_from([1, 5, 31, 32, 33, 40, 2000]).map(nested) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXT | pick([1, None, True, (1, 2)]), inner, max_size=3)
    ),
    max_leaves=5,
)
HOW = st.integers(0, len(ENDINGS) - 1)
FITTING = st.one_of(
    st.tuples(st.just("misbehave"), st.fixed_dictionaries({"how": HOW})),
    st.tuples(
        st.just("misbehave"),
        st.fixed_dictionaries(
            {"how": HOW, "items": st.lists(VALUES, max_size=2)},
            optional={"options": st.dictionaries(st.sampled_from(["force", "more", "x"]), VALUES)},
        ),
    ),
    st.tuples(st.just("echo"), st.fixed_dictionaries({"text": TEXT})),
    st.tuples(st.just("echo"), st.dictionaries(st.sampled_from(["text", "number", "x"]), VALUES)),
    st.tuples(st.sampled_from(["echo", "misbehave", "Echo", " echo", "nobody"]) | TEXT, VALUES),
)
IDS = st.sampled_from(["", " ", "a", "a", "a-2", "b", "\ud800", "call_echo_0_1"]) | TEXT
USAGE = st.builds(Usage, st.integers(0, 9), st.integers(0, 9))
CALLS = st.builds(
    lambda what, call_id, usage: ToolCall(what[0], what[1], call_id, usage=usage),
    FITTING,
    IDS,
    st.none() | USAGE,
)
WIRE = CALLS.map(
    lambda made: {
        "type": "tool",
        "name": made.name,
        "arguments": made.arguments,
        "call_id": made.call_id,
    }
)
JUNK = pick(
    [
        *[None, "done", "", 7, {}, [], (), object(), ToolCall, Exception, math.nan],
        *[{"type": "dance"}, {"type": "tool", "name": "echo"}, {"output": 1}, [{"output": 1}]],
        *[odd(ToolCall, None, {}), odd(ToolCall, "echo", {}, 7), odd(Final, 1, 7), Final(math.nan)],
        *[Turn(()), odd(Turn, None), odd(Turn, ("echo",)), odd(Turn, (Final(1),))],
        *[Turn((ToolCall("echo", {"text": "x"}),), raw=object()), BadText],
    ]
)
ERRORS = pick([ValueError(""), BadText(), asyncio.CancelledError(), Pause(), KeyError("x")])
TURNS = st.one_of(
    CALLS,
    WIRE,
    st.builds(
        lambda calls, usage: Turn(tuple(calls), usage=usage),
        st.lists(CALLS, min_size=1, max_size=4),
        st.none() | USAGE,
    ),
    st.lists(WIRE, max_size=3),
    st.builds(Final, VALUES),
    VALUES,
    JUNK,
    ERRORS,
)
LAYERS = st.lists(st.sampled_from([Again, Replace, Choosy]), unique=True)


@settings(max_examples=400)
@given(st.lists(TURNS, min_size=1, max_size=6), LAYERS)
def test_every_call_is_observed_once_and_the_events_are_the_run(
    turns: list[Any], kinds: list[type[Layer]]
) -> None:
    """A04, A14 to A16, B23, T04, T08, T13, rule 2, DESIGN Observation"""
    events: list[Event] = []
    written: list[str] = []
    harness = Harness(
        ScriptedModel([*turns, *[DONE] * 5]),
        [Misbehaving(), echo],
        layers=[kind() for kind in kinds],
        sinks=[events.append, lambda event: written.append(event.to_json())],
        clock=VirtualClock(),
    )

    async def story() -> Run:
        run = await harness.run("go")
        while run.status in (Status.PAUSED, Status.STOPPED, Status.FAILED):
            check(run, events)
            run = await harness.resume(run)
        return run

    run = asyncio.run(story())
    check(run, events)
    assert run.status is Status.COMPLETED
    assert [event.to_json() for event in events] == written
    proposed = [
        made["call_id"]
        for event in events
        if event.type is EventType.MODEL_DECISION
        for made in event.data.get("calls", ())
    ]
    assert proposed == [seen["call_id"] for seen in tool_messages(run)]
    started = [event.data for event in events if event.type is EventType.TOOL_START]
    assert {start["call_id"] for start in started} <= set(proposed)
    assert len({(start["call_id"], start["attempt"]) for start in started}) == len(started)
