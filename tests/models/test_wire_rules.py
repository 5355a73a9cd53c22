"""The stand-in is only worth something if it refuses what the API refuses."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.standin import StandIn, reply, text, tool_use
from tests.wire_rules import check_rules

Json = dict[str, Any]

GOAL: Json = {"role": "user", "content": "go"}
TOOL: Json = {"name": "add", "input_schema": {"type": "object"}}


def body(*messages: Json, **fields: Any) -> Json:
    return {"model": "m", "max_tokens": 1, "messages": list(messages)} | fields


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def result(call_id: str = "toolu_1", **fields: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id} | fields


USE = assistant(tool_use("add", {}))

KEPT = {
    "a goal": body(GOAL),
    "a tool": body(GOAL, tools=[TOOL]),
    "a pair": body(GOAL, USE, user(result())),
    "a pair and a text": body(GOAL, USE, user(result(content="5"), text("and?"))),
    "an error": body(GOAL, USE, user(result(content="no", is_error=True))),
    "a paused turn": body(GOAL, assistant({"type": "server_tool_use"})),
}

BROKEN = {
    "max_tokens": body(GOAL, max_tokens=0),
    "model": body(GOAL, model=""),
    "temperature: Extra": body(GOAL, temperature=0),
    "at least one message": body(),
    "Tool names must be unique": body(GOAL, tools=[TOOL, TOOL]),
    "custom.name": body(GOAL, tools=[TOOL | {"name": "é"}]),
    "input_schema.type": body(GOAL, tools=[TOOL | {"input_schema": {}}]),
    "role: Input": body(GOAL, {"role": "tool", "content": "5"}),
    "first message": body(assistant(text("x")), GOAL),
    "non-empty content": body(user()),
    "non-whitespace": body(user(text(" \n"))),
    "prefill": body(GOAL, assistant(text("It is"))),
    "without `tool_result` blocks": body(GOAL, USE, GOAL),
    "`tool_result` blocks immediately after": body(GOAL, USE),
    "unexpected `tool_use_id`": body(GOAL, USE, user(result(), result("other"))),
    "single result": body(GOAL, USE, user(result(), result())),
    "must come first": body(GOAL, USE, user(text("first"), result())),
    "ids must be unique": body(GOAL, USE, user(result()), USE, user(result())),
    "only be in `user`": body(GOAL, assistant(result())),
    "only be in `assistant`": body(user(tool_use("add", {})), user(result())),
    "tool_use.id": body(GOAL, assistant(tool_use("add", {}, "a b")), user(result("a b"))),
    "tool_use.name": body(GOAL, assistant(tool_use("", {})), user(result())),
    "tool_use.input": body(GOAL, assistant(tool_use("add", "x")), user(result())),
    "if `is_error`": body(GOAL, USE, user(result(is_error=True, content=""))),
    "tool_result: text": body(GOAL, USE, user(result(content=[text("")]))),
}


@pytest.mark.parametrize("request_body", KEPT.values(), ids=KEPT)
def test_a_request_that_keeps_the_rules_is_taken(request_body: Json) -> None:
    assert check_rules(request_body) is None


@pytest.mark.parametrize(("rule", "request_body"), BROKEN.items(), ids=BROKEN)
def test_a_request_that_breaks_a_rule_is_refused_by_its_name(rule: str, request_body: Json) -> None:
    assert rule in (check_rules(request_body) or "it was taken")


def test_the_stand_in_answers_a_broken_rule_with_400() -> None:
    with StandIn([reply(text("x"))]) as api:
        request = urllib.request.Request(
            f"{api.url}/v1/messages",
            json.dumps(body()).encode(),
            {"authorization": f"Bearer {api.key}", "anthropic-version": "2026-10-21"},
        )
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=30)
        with caught.value as refusal:
            assert refusal.code == 400
            assert "at least one message" in json.load(refusal)["error"]["message"]
    assert len(api.script) == 1
