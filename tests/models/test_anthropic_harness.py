"""The real SDK, the real loop and real tools, end to end over loopback."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mini_harness.events import Event, EventType
from mini_harness.frozen import freeze
from mini_harness.layer import Act, Feedback, Finish, Layer, Stop
from mini_harness.loop import Harness
from mini_harness.models.anthropic import AnthropicModel
from mini_harness.models.errors import ModelUnavailable
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final, Observation, Outcome, Usage
from mini_harness.run import Run, Status, StopReason
from mini_harness.tools.base import Tool
from mini_harness.tools.call import Call
from tests.standin import KEY, StandIn, error, reply, text, tool_use


def add(a: int, b: int) -> int:
    return a + b


def refuse() -> str:
    raise OSError("the disk is full")


def be_silent() -> None:
    """Does its work and has nothing to say."""


TOOLS = (
    Tool("add", "Add two integers.", add),
    Tool("refuse", "Always fails.", refuse),
    Tool("be_silent", "Says nothing.", be_silent),
)


def harness_on(api: StandIn, tools: Iterable[Tool] = TOOLS, **parts: Any) -> Harness:
    model = AnthropicModel("claude-haiku-5-5", api_key=api.key, base_url=api.url)
    return Harness(model, tools, **parts)


def run_on(api: StandIn, goal: str = "What is 2 + 3?", **parts: Any) -> Run:
    return asyncio.run(harness_on(api, **parts).run(goal))


def results_in(body: dict[str, Any]) -> list[tuple[str, str | None, bool]]:
    """Id, content and is_error of each block in the last message of a request."""
    blocks = body["messages"][-1]["content"]
    return [(b["tool_use_id"], b.get("content"), b["is_error"]) for b in blocks]


class Counting(Layer):
    """Counts the calls that pass its seam, and lets them pass."""

    def __init__(self) -> None:
        self.acted: list[str] = []

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        self.acted.append(call.call_id)
        return await next(run, call)


class Deny(Layer):
    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        return Observation(call.call_id, call.name, "Tool not allowed: add", Outcome.DENIED)


class StopBefore(Layer):
    """Ends the run before one call."""

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        if call.call_id == self.call_id:
            raise Stop(StopReason.BUDGET, limit=1)
        return await next(run, call)


class SayItAgain(Layer):
    """Sends the first answer back."""

    async def finish(self, run: Run, final: Final, next: Finish) -> Any:
        return await next(run, final) if run.rejections else Feedback("Say more.")


def test_a_tool_loop_runs_from_goal_to_answer() -> None:
    """A18, A19, B08, row 1"""
    use = tool_use("add", {"a": 2, "b": 3}, "toolu_1")
    with StandIn([reply(text("Adding."), use), reply(text("It is 5."))]) as api:
        run = run_on(api)
    assert run.unwrap() == "It is 5."
    assert api.bodies[1]["messages"] == [
        {"role": "user", "content": [text("What is 2 + 3?")]},
        {"role": "assistant", "content": [text("Adding."), use]},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "is_error": False,
                    "content": "5",
                }
            ],
        },
    ]
    assert run.usage == Usage(input_tokens=20, output_tokens=10)


def test_each_call_of_a_turn_is_acted_on_alone_and_all_are_answered_at_once() -> None:
    """A18, row 2"""
    uses = [tool_use("add", {"a": n, "b": n}, f"t{n}") for n in range(3)]
    counting = Counting()
    with StandIn([reply(*uses), reply(text("Done."))]) as api:
        run_on(api, layers=[counting]).unwrap()
    assert counting.acted == ["t0", "t1", "t2"]
    assert results_in(api.bodies[1]) == [("t0", "0", False), ("t1", "2", False), ("t2", "4", False)]


def test_whatever_went_wrong_with_a_call_is_answered_as_an_error() -> None:
    """B23, row 4, reports T11 and T01"""
    uses = [
        tool_use("Add", {}, "unknown"),
        tool_use("add", {"a": "2", "b": 3}, "invalid"),
        tool_use("add", '{"a": 2, "b": 3}', "text"),
        tool_use("refuse", {}, "raising"),
        tool_use("be_silent", {}, "fine"),
    ]
    with StandIn([reply(*uses), reply(text("I see."))]) as api:
        run_on(api).unwrap()
    answered = {
        call_id: (content or "", failed) for call_id, content, failed in results_in(api.bodies[1])
    }
    assert list(answered) == ["unknown", "invalid", "text", "raising", "fine"]
    assert [failed for _, failed in answered.values()] == [True, True, True, True, False]
    assert "Unknown tool: Add" in answered["unknown"][0]
    assert "- a:" in answered["invalid"][0]
    assert "object" in answered["text"][0]
    assert "the disk is full" in answered["raising"][0]
    assert answered["fine"][0] == ""


def test_a_denied_call_is_answered_as_an_error() -> None:
    """B23, row 4"""
    with StandIn([reply(tool_use("add", {"a": 1, "b": 1}, "t1")), reply(text("Pity."))]) as api:
        run_on(api, layers=[Deny()]).unwrap()
    assert results_in(api.bodies[1]) == [("t1", "Tool not allowed: add", True)]


def test_a_run_that_was_stopped_in_the_middle_of_a_turn_can_go_on() -> None:
    """Row 4"""
    events: list[Event] = []
    uses = [tool_use("add", {"a": 1, "b": n}, f"t{n}") for n in range(2)]
    with StandIn([reply(*uses), reply(text("Half of it."))]) as api:
        stopped = run_on(api, layers=[StopBefore("t1")], sinks=[events.append])
        assert stopped.status is Status.STOPPED
        run = asyncio.run(harness_on(api).resume(Run.fold(map(read_back, events))))
    assert run.unwrap() == "Half of it."
    first, second = results_in(api.bodies[1])
    assert first == ("t0", "1", False)
    assert second[0::2] == ("t1", True)
    assert api.bodies[1]["messages"][1]["content"] == uses


def read_back(event: Event) -> Event:
    """The event as a transcript gives it back."""
    data = freeze(json.loads(event.to_json())["data"])
    place = (event.run_id, event.sequence, event.step, event.type, event.offset, event.time)
    return Event(*place, data)


def test_calls_with_one_id_get_an_id_each_and_no_result_is_lost() -> None:
    """Report T08, row 28"""
    counting = Counting()
    uses = [
        tool_use("add", {"a": 1, "b": 1}, "d1"),
        tool_use("add", {"a": 2, "b": 2}, "d1"),
        tool_use("add", {"a": 1, "b": 1}, "d1"),
        tool_use("add", {"a": 3, "b": 3}, ""),
    ]
    answers = [reply(*uses), reply(tool_use("add", {"a": 4, "b": 4}, "d1")), reply(text("Done."))]
    with StandIn(answers) as api:
        run_on(api, layers=[counting]).unwrap()
    results = results_in(api.bodies[1])
    assert len({call_id for call_id, _, _ in results}) == 4
    assert [content for _, content, failed in results if not failed] == ["2", "4", "6"]
    assert len(counting.acted) == 4
    assert results_in(api.bodies[2])[0][1] == "8"


def test_a_call_that_the_output_limit_cut_off_never_runs(tmp_path: Path) -> None:
    """Report T10, row 7"""
    target = tmp_path / "notes.txt"

    def write_file(content: str) -> None:
        target.write_text(content, encoding="utf-8")

    cut = reply(tool_use("write_file", {"content": "line1"}, "t1"), stop="max_tokens")
    with StandIn([cut, reply(text("I'll write less."))]) as api:
        run = run_on(api, tools=[Tool("write_file", "Write the notes.", write_file)])
    assert not target.exists()
    call_id, told, failed = results_in(api.bodies[1])[0]
    assert (call_id, failed) == ("t1", True)
    assert "cut the reply off" in str(told)
    assert run.usage == Usage(input_tokens=20, output_tokens=10)


def test_what_is_no_decision_does_not_brick_the_conversation() -> None:
    """A14"""
    deep: Any = {}
    for _ in range(100):
        deep = {"deeper": deep}
    odd = reply(text("Adding."), tool_use("add", deep, "t1"))
    with StandIn([odd, reply(text("It is 5."))]) as api:
        run = run_on(api)
    assert run.unwrap() == "It is 5."
    (message,) = api.bodies[1]["messages"]
    assert message["content"][0] == text("What is 2 + 3?")
    assert "Unknown decision type" in message["content"][1]["text"]


def test_an_empty_reply_completes_the_run_with_empty_text() -> None:
    """Row 6, report M01"""
    with StandIn([reply()]) as api:
        run = run_on(api)
    assert (run.status, run.unwrap()) == (Status.COMPLETED, "")


def test_an_answer_that_was_sent_back_is_part_of_the_conversation() -> None:
    """Row 30"""
    with StandIn([reply(text("5 ")), reply(text("2 + 3 is 5."))]) as api:
        run = run_on(api, layers=[SayItAgain()])
    assert run.unwrap() == "2 + 3 is 5."
    assert [m["content"] for m in api.bodies[1]["messages"][1:]] == [
        [text("5 ")],
        [text("Say more.")],
    ]


def test_a_run_that_another_model_began_goes_on_with_this_one() -> None:
    """A05, A19"""
    begun = ScriptedModel(
        [
            {"type": "tool", "name": "add", "arguments": {"a": 1, "b": 1}, "call_id": "call 1"},
            ModelUnavailable("Busy."),
        ]
    )
    run = asyncio.run(Harness(begun, TOOLS).run("What is 1 + 1?"))
    assert run.status is Status.FAILED
    with StandIn([reply(text("It is 2."))]) as api:
        assert asyncio.run(harness_on(api).resume(run)).unwrap() == "It is 2."


def test_a_failed_request_fails_the_run_and_the_record_holds_no_key() -> None:
    """A20, row 18"""
    events: list[Event] = []
    with StandIn([error(529, f"overloaded, {KEY}"), reply(text("It is 5."))]) as api:
        harness = harness_on(api, sinks=[events.append])
        run = asyncio.run(harness.run("What is 2 + 3?"))
        assert run.status is Status.FAILED
        assert isinstance(run.error, ModelUnavailable)
        assert len(api.seen) == 1
        assert asyncio.run(harness.resume(run)).unwrap() == "It is 5."
    assert EventType.STOP in [event.type for event in events]
    assert not [event for event in events if KEY in event.to_json()]
