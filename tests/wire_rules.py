"""The rules of the Messages API for a request, as far as a harness can break them.

`check_rules` says which rule a request body breaks, in the words that the API uses for it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

NEEDED = ("model", "max_tokens", "messages")
OPTIONAL = ("system", "tools", "tool_choice", "stop_sequences", "metadata", "thinking")
RARE = ("output_config", "cache_control", "service_tier", "stream")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
TOOL_USE_ID = re.compile(r"[a-zA-Z0-9_-]+")


def check_rules(body: Json) -> str | None:
    """The first rule that this request breaks, or None."""
    return next(_broken(body), None)


def _broken(body: Json) -> Iterator[str]:
    # Sampling parameters are among the unknown: the API has dropped them.
    for name in body.keys() - {*NEEDED, *OPTIONAL, *RARE}:
        yield f"{name}: Extra inputs are not permitted"
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens: Input should be a positive integer"
    if not body.get("model"):
        yield "model: Field required"
    yield from _tools(body.get("tools", []))
    messages = body.get("messages") or []
    if not messages:
        yield "messages: at least one message is required"
        return
    for place, message in enumerate(messages):
        yield from (f"messages.{place}{fault}" for fault in _message(message))
    yield from _order(messages)


def _tools(tools: list[Json]) -> Iterator[str]:
    names = [tool["name"] for tool in tools]
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    for place, tool in enumerate(tools):
        if not TOOL_NAME.fullmatch(tool["name"]):
            yield f"tools.{place}.custom.name: String should match pattern '{TOOL_NAME.pattern}'"
        if tool.get("input_schema", {}).get("type") != "object":
            yield f"tools.{place}.custom.input_schema.type: Field required"


def _message(message: Json) -> Iterator[str]:
    if message["role"] not in ("user", "assistant"):
        yield ".role: Input should be 'user' or 'assistant'"
    if not _blocks(message):
        yield ": all messages must have non-empty content"
    other_seen = False
    for place, block in enumerate(_blocks(message)):
        yield from (f".content.{place}{fault}" for fault in _block(message["role"], block))
        if block["type"] == "tool_result" and other_seen:
            yield ": `tool_result` blocks must come first in the content"
        other_seen = other_seen or block["type"] != "tool_result"


def _block(role: str, block: Json) -> Iterator[str]:
    match block["type"]:
        case "text" if not block["text"].strip():
            yield ": text content blocks must contain non-whitespace text"
        case "tool_use":
            yield from _tool_use(role, block)
        case "tool_result" if role != "user":
            yield ": `tool_result` blocks can only be in `user` messages"
        case "tool_result":
            content = block.get("content", [])
            if block.get("is_error") and not content:
                yield ".tool_result: content cannot be empty if `is_error` is true"
            for part in content if isinstance(content, list) else []:
                yield from (f".tool_result{fault}" for fault in _block(role, part))


def _tool_use(role: str, block: Json) -> Iterator[str]:
    if role != "assistant":
        yield ": `tool_use` blocks can only be in `assistant` messages"
    if not TOOL_USE_ID.fullmatch(block["id"]):
        yield ".tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    if not 1 <= len(block["name"]) <= 200:
        yield ".tool_use.name: String should have at least 1 and at most 200 characters"
    if not isinstance(block["input"], Mapping):
        yield ".tool_use.input: Input should be a valid dictionary"


def _order(messages: list[Json]) -> Iterator[str]:
    if messages[0]["role"] != "user":
        yield 'messages: first message must use the "user" role'
    used: set[str] = set()
    waiting: list[str] = []
    for place, message in enumerate(messages):
        results = _ids(message, "tool_result", "tool_use_id")
        yield from (f"messages.{place}: {fault}" for fault in _pairing(waiting, results))
        waiting = _ids(message, "tool_use", "id")
        if len(set(waiting)) < len(waiting) or used.intersection(waiting):
            yield f"messages.{place}: `tool_use` ids must be unique"
        used.update(waiting)
    yield from (f"messages: {fault}" for fault in _pairing(waiting, []))
    # The API goes on from its own paused turn only; no other last word may be the model's.
    paused = any(block["type"] == "server_tool_use" for block in _blocks(messages[-1]))
    if messages[-1]["role"] == "assistant" and not paused:
        yield (
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )


def _pairing(waiting: list[str], results: list[str]) -> Iterator[str]:
    missing = [call_id for call_id in waiting if call_id not in results]
    if missing:
        yield (
            f"`tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}."
        )
    unexpected = [call_id for call_id in results if call_id not in waiting]
    if unexpected:
        yield f"unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(unexpected)}"
    if len(set(results)) < len(results):
        yield "each tool_use must have a single result. Found multiple `tool_result` blocks"


def _ids(message: Json, kind: str, field: str) -> list[str]:
    return [block[field] for block in _blocks(message) if block["type"] == kind]


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
