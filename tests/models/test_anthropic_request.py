"""What the history becomes on the wire: no history of ours may break one of its rules."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from itertools import cycle, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_harness.layer import Decide, Feedback, Finish, Layer, Proposal, View
from mini_harness.loop import Harness
from mini_harness.models.anthropic_reply import read_reply, to_turn
from mini_harness.models.anthropic_request import FAILED_SILENTLY, SILENCE, to_messages
from mini_harness.protocol import Final, ToolCall, Turn
from mini_harness.run import Run, StopReason
from mini_harness.tools.base import Tool, ToolResult, ToolSchema
from tests.standin import reply, text, tool_use
from tests.wire_rules import check_rules

Entry = dict[str, Any]


def user(content: str) -> Entry:
    return {"role": "user", "content": content}


def said(content: Any, *calls: Entry, raw: Any = None) -> Entry:
    entry = {"role": "assistant", "content": content, "raw": raw}
    return entry | ({"calls": list(calls)} if calls else {})


def call(call_id: str, name: str = "add", arguments: Any = None) -> Entry:
    return {"call_id": call_id, "name": name, "arguments": arguments or {}}


def result(call_id: str, output: str = "5", is_error: bool = False) -> Entry:
    return {
        "role": "tool",
        "tool": "add",
        "tool_result": output,
        "call_id": call_id,
        "is_error": is_error,
    }


def result_block(call_id: str, content: str | None = "5", is_error: bool = False) -> Entry:
    block = {"type": "tool_result", "tool_use_id": call_id, "is_error": is_error}
    return block if content is None else block | {"content": content}


def accepted(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages, which keep every rule of the wire."""
    messages = to_messages(history)
    assert check_rules({"model": "m", "max_tokens": 1, "messages": messages}) is None
    json.dumps(messages, ensure_ascii=False).encode("utf-8")
    assert all(before["role"] != after["role"] for before, after in pairwise(messages))
    return messages


class TestPairing:
    def test_all_results_of_a_turn_are_in_the_one_next_message_in_call_order(self) -> None:
        """Row 2"""
        history = [user("go"), said(None, call("a"), call("b")), result("b", "2"), result("a", "1")]
        assert accepted(history)[-1] == {
            "role": "user",
            "content": [result_block("a", "1"), result_block("b", "2")],
        }

    def test_what_the_user_says_next_comes_after_the_results(self) -> None:
        """Row 2"""
        history = [user("go"), said(None, call("a")), result("a"), user("Unknown decision type")]
        assert accepted(history)[-1]["content"] == [
            result_block("a"),
            text("Unknown decision type"),
        ]

    def test_a_failure_says_that_it_is_one(self) -> None:
        """Row 4"""
        history = [user("go"), said(None, call("a")), result("a", "Not allowed.", is_error=True)]
        assert accepted(history)[-1]["content"] == [result_block("a", "Not allowed.", True)]

    @pytest.mark.parametrize("call_id", ["call 1", "a.b|c", "é", "\ud800", "x" * 65, "a\n"])
    def test_an_id_that_the_wire_refuses_is_replaced_in_call_and_result(self, call_id: str) -> None:
        """Row 28"""
        messages = accepted([user("go"), said(None, call(call_id)), result(call_id)])
        assert messages[1]["content"][0]["id"] == messages[2]["content"][0]["tool_use_id"]

    def test_different_ids_stay_different(self) -> None:
        """Row 28"""
        first, second = "call 1", "call_1"
        calls = said(None, call(first), call(second))
        accepted([user("go"), calls, result(first), result(second)])

    @pytest.mark.parametrize("name", ["", "Read File!", "é", "x" * 300])
    def test_an_invented_tool_name_does_not_brick_the_conversation(self, name: str) -> None:
        """Row 28, report T11"""
        accepted([user("go"), said(None, call("a", name)), result("a", "Unknown tool", True)])

    @pytest.mark.parametrize("arguments", ["text", [1], 7, True])
    def test_arguments_that_are_no_object_go_back_inside_of_one(self, arguments: Any) -> None:
        """Row 28, report T01"""
        history = [user("go"), said(None, call("a", arguments=arguments)), result("a")]
        assert accepted(history)[1]["content"][0]["input"] == {"not_an_object": arguments}


class TestRaw:
    BLOCKS = (
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        text("Adding. "),
        {"type": "hologram", "light": [1, {"x": None}]},
        {**tool_use("add", {"a": 1}, "toolu_1"), "caller": {"type": "direct"}},
        tool_use("add", {"a": 2}, "toolu_1"),
    )
    CALLS = (call("toolu_1", arguments={"a": 1}), call("toolu_1-2", arguments={"a": 2}))
    RESULTS = (result("toolu_1"), result("toolu_1-2"))

    def test_what_the_model_sent_goes_back_with_the_ids_of_the_harness(self) -> None:
        """Report T08, A18"""
        entry = said("Adding. ", *self.CALLS, raw=list(self.BLOCKS))
        sent = accepted([user("go"), entry, *self.RESULTS])[1]["content"]
        assert sent == [*self.BLOCKS[:4], {**self.BLOCKS[4], "id": "toolu_1-2"}]

    def test_blank_texts_are_left_out(self) -> None:
        """Report M01"""
        raw = [text(""), *self.BLOCKS[3:], text(" \n")]
        sent = accepted([user("go"), said(None, *self.CALLS, raw=raw), *self.RESULTS])
        assert [block["type"] for block in sent[1]["content"]] == ["tool_use", "tool_use"]

    @pytest.mark.parametrize(
        "entry",
        [
            said("[redacted]", *CALLS, raw=list(BLOCKS)),
            said("Adding. ", CALLS[0], call("toolu_1-2", arguments={}), raw=list(BLOCKS)),
        ],
        ids=["text", "arguments"],
    )
    def test_raw_is_not_sent_where_a_layer_changed_what_is_shown(self, entry: Entry) -> None:
        """A layer that takes a secret out of the view must not see it come back by way of raw."""
        sent = accepted([user("go"), entry, *self.RESULTS])[1]["content"]
        assert sent[0] == text(entry["content"])
        assert [block["input"] for block in sent[1:]] == [c["arguments"] for c in entry["calls"]]

    @pytest.mark.parametrize(
        "raw",
        [
            {"choices": []},
            "text",
            [{"role": "assistant"}],
            [{"type": "text"}],
            [{"type": "message", "content": "It is red."}],
            [{"type": "tool_use", "id": "t1"}],
        ],
    )
    def test_the_raw_form_of_another_vendor_is_not_sent(self, raw: Any) -> None:
        """A19"""
        messages = accepted([user("go"), said("It is red.", raw=raw), user("Sure?")])
        assert messages[1]["content"] == [text("It is red.")]


class TestSilence:
    @pytest.mark.parametrize("output", ["", " \n"])
    def test_a_tool_that_says_nothing_gives_a_result_without_content(self, output: str) -> None:
        """Report M01"""
        messages = accepted([user("go"), said(None, call("a")), result("a", output)])
        assert messages[-1]["content"] == [result_block("a", None)]

    def test_a_tool_that_fails_and_says_nothing_gets_a_text(self) -> None:
        """Row 4"""
        messages = accepted([user("go"), said(None, call("a")), result("a", "", is_error=True)])
        assert messages[-1]["content"] == [result_block("a", FAILED_SILENTLY, is_error=True)]

    def test_an_empty_answer_that_was_sent_back_leaves_one_user_message(self) -> None:
        """Report M01, row 30"""
        messages = accepted([user("go"), said("", raw=[]), user("Say something.")])
        assert messages == [{"role": "user", "content": [text("go"), text("Say something.")]}]

    @pytest.mark.parametrize("history", [[], [user("")], [said("It is red.")]])
    def test_a_user_message_stands_at_the_beginning_and_at_the_end(self, history: Any) -> None:
        """Row 30"""
        messages = accepted(history)
        assert messages[0]["content"] == messages[-1]["content"] == [text(SILENCE)]

    @pytest.mark.parametrize(
        ("output", "shown"), [(0, "0"), (False, "false"), (None, "null"), ({"b": [1]}, '{"b":[1]}')]
    )
    def test_an_answer_that_is_no_text_goes_back_as_json(self, output: Any, shown: str) -> None:
        messages = accepted([user("go"), said(output), user("Sure?")])
        assert messages[1]["content"] == [text(shown)]


# What a model may do at its worst. Names and ids repeat often, since that is where trouble is.
ODD_TEXTS = st.sampled_from(["", " ", "\n", "\u2028", "\ud800", "ok"]) | st.text(max_size=8)
ODD_NAMES = st.sampled_from(["echo", "", "Echo!", "x" * 201]) | ODD_TEXTS
ODD_IDS = st.sampled_from(["", "d1", "d1-2", "call 1", "call_1"]) | ODD_TEXTS
ODD_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | ODD_TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(ODD_TEXTS, inner, max_size=2),
    max_leaves=4,
)
ODD_RAWS = ODD_VALUES | st.lists(st.sampled_from([text("x"), tool_use("echo", {})]), max_size=2)
SCRIPTED_CALLS = st.builds(ToolCall, name=ODD_NAMES, arguments=ODD_VALUES, call_id=ODD_IDS)
SCRIPTED_TURNS = st.builds(
    Turn,
    calls=st.lists(SCRIPTED_CALLS, min_size=1, max_size=3).map(tuple),
    thought=st.none() | ODD_TEXTS,
    raw=ODD_RAWS,
)
SCRIPTED_FINALS = st.builds(Final, output=ODD_VALUES, raw=ODD_RAWS)
BLOCKS = st.one_of(
    st.builds(text, ODD_TEXTS),
    st.builds(tool_use, ODD_NAMES, ODD_VALUES, ODD_IDS),
    st.just({"type": "thinking", "thinking": "", "signature": "s"}),
    st.just({"type": "hologram"}),
)


@st.composite
def replied_turns(draw: st.DrawFn) -> Turn | Final:
    """A turn of this adapter's own making, from an odd reply."""
    blocks = draw(st.lists(BLOCKS, max_size=4))
    cut = draw(st.sampled_from([None, "max_tokens"]))
    body = reply(*blocks, stop=cut).data.decode()
    return to_turn(read_reply(body, None, str), 99)


TURNS = st.one_of(SCRIPTED_TURNS, SCRIPTED_FINALS, replied_turns(), st.just("no decision"))


class Checked:
    """A model that looks at every history it gets, as the real adapter would send it."""

    def __init__(self, turns: list[Any]) -> None:
        self.turns = iter(turns)

    def decide(self, history: Sequence[Mapping[str, Any]], tools: Sequence[ToolSchema]) -> Any:
        accepted(history)
        return next(self.turns, Final("It is red."))


class SentBack(Layer):
    """Sends answers back with an odd reason, as long as the loop lets it."""

    def __init__(self, reasons: list[str]) -> None:
        self.reasons = reasons

    async def finish(self, run: Run, final: Final, next: Finish) -> Any:
        return Feedback(self.reasons[run.rejections % len(self.reasons)])


class Forgetful(Layer):
    """Shows the model only the last part of the history that begins with the user."""

    async def decide(self, run: Run, view: View, next: Decide) -> Proposal:
        users = [n for n, entry in enumerate(view.messages) if entry["role"] == "user"]
        return await next(run, View(view.messages[users[-1] :], view.tools))


@settings(max_examples=300)
@given(
    goal=ODD_TEXTS,
    turns=st.lists(TURNS, max_size=6),
    outputs=st.lists(st.tuples(ODD_TEXTS, st.booleans()), min_size=1, max_size=3),
    reasons=st.lists(ODD_TEXTS, min_size=1, max_size=2),
    layers=st.sampled_from([[], [Forgetful()]]),
)
def test_every_history_that_the_harness_writes_keeps_the_rules_of_the_wire(
    goal: str,
    turns: list[Any],
    outputs: list[tuple[str, bool]],
    reasons: list[str],
    layers: list[Layer],
) -> None:
    """Rows 2, 4, 28 and 30, reports T08 and M01"""
    results = cycle(outputs)

    def echo() -> ToolResult:
        return ToolResult(*next(results))

    tools = [Tool("echo", "Say what the test says.", echo)]
    layers = [SentBack(reasons), *layers]
    run = asyncio.run(Harness(Checked(turns), tools, layers=layers).run(goal))
    assert run.stop is not None
    assert run.stop["reason"] == StopReason.REJECTED, run.stop
    accepted(run.history.messages)
