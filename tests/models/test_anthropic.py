"""AnthropicModel, with the real SDK over loopback: what comes back, and the turn it becomes."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mini_harness.models.anthropic import MAX_PAUSES, AnthropicModel
from mini_harness.models.errors import (
    ContextWindowExceeded,
    ModelMisconfigured,
    ModelRefused,
    ModelReplyUnusable,
    ModelUnavailable,
    ServiceError,
)
from mini_harness.protocol import Final, Turn, Usage
from mini_harness.tools.base import ToolSchema
from tests.standin import KEY, Answer, Fault, StandIn, reply, text, tool_use

GOAL = [{"role": "user", "content": "Why is build-102 red?"}]
ADD: ToolSchema = {
    "name": "add",
    "description": "Add two integers.",
    "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}


def ask(
    api: StandIn,
    history: Sequence[Mapping[str, Any]] = GOAL,
    tools: Sequence[ToolSchema] = (ADD,),
    **settings: Any,
) -> Turn | Final:
    return asyncio.run(model_at(api, **settings).decide(history, tools))


def model_at(api: StandIn, **settings: Any) -> AnthropicModel:
    return AnthropicModel("claude-haiku-5-5", api_key=api.key, base_url=api.url, **settings)


def turn_for(answer: Answer, **settings: Any) -> Turn:
    with StandIn([answer]) as api:
        turn = ask(api, **settings)
    assert isinstance(turn, Turn)
    return turn


def final_for(answer: Answer, **settings: Any) -> Final:
    with StandIn([answer]) as api:
        final = ask(api, **settings)
    assert isinstance(final, Final)
    return final


def error_for(*answers: Answer) -> ServiceError:
    """What is raised for these answers, each of which is asked for."""
    with StandIn(answers) as api, pytest.raises(ServiceError) as caught:
        ask(api)
    assert len(api.seen) == len(answers)
    return caught.value


class TestReply:
    def test_a_tool_use_becomes_a_call_with_its_id(self) -> None:
        """A18, A04, row 1"""
        turn = turn_for(reply(tool_use("add", {"a": 1}, "toolu_7")))
        assert [(c.name, c.arguments, c.call_id, c.defect) for c in turn.calls] == [
            ("add", {"a": 1}, "toolu_7", None)
        ]

    def test_several_tool_uses_become_the_calls_of_one_turn(self) -> None:
        """A18, row 2"""
        turn = turn_for(reply(tool_use("add", {"a": 1}, "t1"), tool_use("add", {"a": 2}, "t2")))
        assert [(call.call_id, call.arguments) for call in turn.calls] == [
            ("t1", {"a": 1}),
            ("t2", {"a": 2}),
        ]

    def test_text_beside_a_call_is_the_thought_and_not_the_answer(self) -> None:
        """Row 3"""
        assert turn_for(reply(text("I'll add."), tool_use("add", {}))).thought == "I'll add."

    def test_blank_text_beside_a_call_is_no_thought(self) -> None:
        """Report M01"""
        assert turn_for(reply(text(" \n"), tool_use("add", {}))).thought is None

    @pytest.mark.parametrize("stop", ["end_turn", "stop_sequence"])
    def test_text_alone_is_the_answer(self, stop: str) -> None:
        """Row 5"""
        final = final_for(reply(text("It is "), text("red. "), stop=stop))
        assert (final.output, final.note) == ("It is red. ", None)

    def test_a_call_counts_also_where_the_reason_to_stop_does_not_name_it(self) -> None:
        turn = turn_for(reply(tool_use("add", {}), stop="end_turn"))
        assert turn.calls[0].defect is None

    @pytest.mark.parametrize("content", [[], [text("")], [text(" \n")]])
    def test_a_reply_without_text_is_an_empty_answer_that_says_so(self, content: Any) -> None:
        """Row 6, report M01"""
        final = final_for(reply(content=content))
        assert final.output.strip() == ""
        assert final.note == "the model ended its turn without any text"

    def test_the_output_limit_makes_every_call_of_the_turn_defective(self) -> None:
        """Row 7, report T10"""
        answer = reply(
            tool_use("add", {"a": 1}, "t1"), tool_use("add", {}, "t2"), stop="max_tokens"
        )
        turn = turn_for(answer, max_tokens=77)
        assert all(call.defect and "limit of 77 tokens" in call.defect for call in turn.calls)
        assert turn.usage == Usage(input_tokens=10, output_tokens=5)

    def test_the_output_limit_marks_an_answer_as_cut_off(self) -> None:
        """Row 8"""
        final = final_for(reply(text("It is"), stop="max_tokens"), max_tokens=77)
        assert (final.output, final.note) == (
            "It is",
            "cut off by the output limit (max_tokens=77)",
        )

    def test_an_answer_cut_off_before_any_text_says_so(self) -> None:
        """Row 8"""
        thinking = {"type": "thinking", "thinking": "hm", "signature": "sig"}
        final = final_for(reply(thinking, stop="max_tokens"), max_tokens=7)
        assert final.note == "cut off by the output limit (max_tokens=7), before any text"

    def test_unknown_blocks_are_kept_and_never_run(self) -> None:
        """Row 12, report M02"""
        blocks = [{"type": "hologram", "light": [1, None]}, SEARCH, tool_use("add", {}, "t1")]
        turn = turn_for(reply(content=blocks, stop="tool_use"))
        assert [call.call_id for call in turn.calls] == ["t1"]
        assert turn.raw == blocks

    @pytest.mark.parametrize("given", ["", None, 7])
    def test_a_call_without_an_id_is_given_on_without_one(self, given: Any) -> None:
        """Row 28, report T08"""
        assert turn_for(reply({**tool_use("add", {}), "id": given})).calls[0].call_id == ""

    def test_a_call_without_input_is_left_for_the_harness_to_refuse(self) -> None:
        """Row 28"""
        assert (
            turn_for(reply({"type": "tool_use", "id": "t1", "name": "add"})).calls[0].arguments
            is None
        )

    def test_usage_counts_cached_input_and_takes_null_as_none(self) -> None:
        counts = {"input_tokens": 3, "output_tokens": 9, "cache_read_input_tokens": 100}
        final = final_for(reply(text("x"), usage={**counts, "cache_creation_input_tokens": None}))
        assert final.usage == Usage(103, 9, cache_read_tokens=100, cache_write_tokens=0)


class TestStops:
    def test_a_refusal_is_an_error_of_its_own(self) -> None:
        """Row 9"""
        details = {"type": "refusal", "category": "cyber", "explanation": "No malware."}
        error = error_for(reply(stop="refusal", stop_details=details))
        assert isinstance(error, ModelRefused)
        assert "No malware." in str(error)
        assert (error.category, error.api_message) == ("cyber", "No malware.")
        assert (error.transient, error.status, error.request_id) == (False, 200, "req_standin")
        assert error.usage == Usage(input_tokens=10, output_tokens=5)

    def test_a_refusal_needs_no_details(self) -> None:
        """Row 9"""
        error = error_for(reply(text("I ca"), stop="refusal", stop_details=None))
        assert isinstance(error, ModelRefused)
        assert (error.category, error.api_message) == (None, None)

    def test_a_paused_turn_goes_back_as_it_is_and_is_one_turn(self) -> None:
        """Row 10"""
        paused = [text("Let me search. "), SEARCH]
        with StandIn([reply(*paused, stop="pause_turn"), reply(text("Red."))]) as api:
            final = ask(api)
        assert isinstance(final, Final)
        assert api.bodies[1]["messages"][1:] == [{"role": "assistant", "content": paused}]
        assert final.output == "Let me search. Red."
        assert final.raw == [*paused, text("Red.")]
        assert final.usage == Usage(input_tokens=20, output_tokens=10)

    def test_a_turn_that_pauses_for_ever_is_ended(self) -> None:
        """Row 10"""
        error = error_for(*[reply(SEARCH, stop="pause_turn")] * (MAX_PAUSES + 1))
        assert isinstance(error, ModelReplyUnusable)
        assert "again and again" in str(error)
        assert error.usage.output_tokens == 5 * (MAX_PAUSES + 1)

    def test_a_pause_without_content_sends_no_empty_message(self) -> None:
        """Row 10, report M01"""
        with StandIn([reply(text(" "), stop="pause_turn"), reply(text("Red."))]) as api:
            ask(api)
        assert api.bodies[1] == api.bodies[0]

    def test_a_paused_turn_with_a_call_in_it_is_acted_on_first(self) -> None:
        """Row 10: sent back at once, the call would be one without a result."""
        turn = turn_for(reply(SEARCH, tool_use("add", {}, "t1"), stop="pause_turn"))
        assert [(call.call_id, call.defect) for call in turn.calls] == [("t1", None)]

    def test_a_full_context_window_is_an_error_of_its_own(self) -> None:
        """Row 11"""
        error = error_for(reply(text("It"), stop="model_context_window_exceeded"))
        assert isinstance(error, ContextWindowExceeded)

    @pytest.mark.parametrize("stop", ["compaction", "tool_use"])
    def test_a_reason_to_stop_that_makes_no_sense_is_never_guessed_at(self, stop: str) -> None:
        """Row 12"""
        error = error_for(reply(text("It is red."), stop=stop))
        assert isinstance(error, ModelReplyUnusable)
        assert not error.transient


WRONG_SHAPES = {
    "a web page": Answer(b"<html>Log in</html>", headers={"content-type": "text/html"}),
    "a web page said to be JSON": Answer(b"<html>Log in</html>"),
    "nothing": Answer(b""),
    "bytes that are no text": Answer(b"\xff\xfe\x00"),
    "another object": Answer({"choices": []}),
    "a list": Answer(b"[]"),
    "no content": reply(content=None),
    "content that is text": reply(content="It is red."),
    "no reason to stop": reply(text("x"), stop_reason=None),
    "no usage": reply(text("x"), usage=None),
    "negative usage": reply(text("x"), usage={"input_tokens": -1, "output_tokens": 1}),
    "a text block without text": reply({"type": "text"}),
    "a tool_use without a name": reply({"type": "tool_use", "id": "t1", "input": {}}),
    "a block without a type": reply(text("x"), content=[{"text": "x"}]),
    "nesting that exhausts the stack": Answer(b"[" * 100_000),
    "an integer that Python won't read": Answer(b'{"content": ' + b"9" * 5000 + b"}"),
}


class TestWrongShapes:
    @pytest.mark.parametrize("answer", WRONG_SHAPES.values(), ids=WRONG_SHAPES)
    def test_whatever_is_no_message_is_a_transient_error(self, answer: Answer) -> None:
        """Rows 21 to 23, report T13"""
        error = error_for(answer)
        assert isinstance(error, ModelUnavailable)
        assert "isn't a message" in str(error)
        assert (error.transient, error.request_id) == (True, "req_standin")

    def test_the_key_is_not_in_the_text_where_a_proxy_echoes_it(self) -> None:
        error = error_for(Answer(f"<p>{KEY}</p>".encode()))
        assert KEY not in str(error)
        assert "[key]" in str(error)


class TestRequest:
    def test_a_request_says_what_it_has_to_and_no_more(self) -> None:
        """A18, B05"""
        with StandIn([reply(text("x"))]) as api:
            ask(api, max_tokens=99)
        assert api.bodies == [
            {
                "model": "claude-haiku-5-5",
                "max_tokens": 99,
                "messages": [{"role": "user", "content": [text("Why is build-102 red?")]}],
                "tools": [ADD],
            }
        ]

    def test_a_system_prompt_is_sent_and_a_blank_one_is_not(self) -> None:
        with StandIn([reply(text("x")), reply(text("x"))]) as api:
            ask(api, system="Be brief.")
            ask(api, system=" ", tools=())
        assert api.bodies[0]["system"] == "Be brief."
        assert "system" not in api.bodies[1]
        assert "tools" not in api.bodies[1]

    def test_the_key_that_was_given_is_used_and_no_other(self, monkeypatch: Any) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "another-key")
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another-token")
        with StandIn([reply(text("x"))]) as api:
            ask(api)
        assert [request.key for request in api.seen] == [api.key]

    def test_lone_surrogates_can_be_sent_wherever_they_come_from(self) -> None:
        goal = [{"role": "user", "content": "a file named \udcff"}]
        tool: ToolSchema = {**ADD, "description": "\udcff"}
        paused = reply(text("\udcff"), SEARCH, stop="pause_turn")
        with StandIn([paused, reply(text("x"))]) as api:
            ask(api, goal, [tool])
        asked, answered = api.bodies[1]["messages"]
        assert asked["content"] == [text("a file named ?")]
        assert answered["content"] == [text("?"), SEARCH]
        assert api.bodies[0]["tools"][0]["description"] == "?"


class TestLife:
    def test_one_model_serves_any_event_loop(self) -> None:
        with StandIn([reply(text("1")), reply(text("2"))]) as api:
            model = model_at(api)
            turns = [asyncio.run(model.decide(GOAL, ())) for _ in range(2)]
        assert [turn.raw for turn in turns] == [[text("1")], [text("2")]]

    def test_a_cancelled_turn_ends_at_once(self) -> None:
        asked = threading.Event()

        def be_silent(body: Mapping[str, Any]) -> Fault:
            asked.set()
            return Fault.SILENCE

        async def cancel_when_asked() -> None:
            turn = asyncio.create_task(model_at(api).decide(GOAL, ()))
            await asyncio.to_thread(asked.wait, 30)
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(turn, 10)

        with StandIn([be_silent]) as api:
            asyncio.run(cancel_when_asked())

    def test_importing_the_adapter_does_not_import_the_sdk(self) -> None:
        code = (
            "import sys, mini_harness.models.anthropic\n"
            "assert not {'anthropic', 'httpx2'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", code], check=True)

    @pytest.mark.parametrize(
        ("settings", "blamed"),
        [
            ({"api_key": ""}, "ANTHROPIC_API_KEY"),
            ({"api_key": " \n"}, "ANTHROPIC_API_KEY"),
            ({"api_key": None}, "ANTHROPIC_API_KEY"),
            ({"api_key": "sk-mÿ-key"}, "copy it again"),
            ({"model_id": " "}, "MODEL_ID"),
            ({"max_tokens": 0}, "max_tokens"),
            ({"timeout": 0}, "timeout"),
            ({"base_url": "localhost:8000"}, "localhost:8000"),
        ],
    )
    def test_a_setting_that_cannot_work_is_refused_at_once(
        self, settings: dict[str, Any], blamed: str
    ) -> None:
        """Row 29"""
        model_id = settings.pop("model_id", "claude-haiku-5-5")
        with pytest.raises(ModelMisconfigured, match=blamed) as caught:
            AnthropicModel(model_id, **({"api_key": "sk-my-key"} | settings))
        assert "sk-m" not in str(caught.value)

    def test_blanks_around_key_and_model_id_do_not_count(self) -> None:
        """Row 29"""
        with StandIn([reply(text("x"))]) as api:
            model = AnthropicModel(" claude-x\n", api_key=f" {api.key}\n", base_url=api.url)
            asyncio.run(model.decide(GOAL, ()))
        assert (api.bodies[0]["model"], api.seen[0].key) == ("claude-x", api.key)

    def test_the_key_shows_in_no_picture_of_the_model(self) -> None:
        model = AnthropicModel("claude-haiku-5-5", api_key="sk-my-key")
        assert repr(model) == "AnthropicModel('claude-haiku-5-5')"
        assert "sk-my-key" not in f"{model} {model!r} {vars(model)}"
