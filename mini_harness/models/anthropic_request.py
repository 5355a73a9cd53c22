"""From the history to what the Messages API takes, as a pure function on JSON (SEEDS A18).

The API refuses a conversation that breaks one of its rules, and it refuses it for ever. So every
history that the harness can write must come out of here as one that keeps them all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

from mini_harness.frozen import canonical
from mini_harness.models.anthropic_reply import Block, is_well_formed, text_of
from mini_harness.protocol import Message

SILENCE = "(The user said nothing.)"
"""Stands where the API insists on a user message and the history has none."""

FAILED_SILENTLY = "(The tool failed and said nothing.)"
"""The API takes an empty tool result, but not one that is an error."""

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def to_messages(history: Sequence[Message]) -> list[dict[str, Any]]:
    """The conversation as the API takes it.

    Roles alternate, beginning and ending with the user. All results of one turn are in the one
    message after it, first and in call order. No text block is blank (report M01).
    """
    said = [(role, blocks) for role, blocks in map(_blocks, history) if blocks]
    if not said or said[0][0] != "user":
        said.insert(0, ("user", [_text_block(SILENCE)]))
    if said[-1][0] != "user":
        said.append(("user", [_text_block(SILENCE)]))
    messages = [
        {"role": role, "content": [block for _, blocks in turns for block in blocks]}
        for role, turns in groupby(said, key=itemgetter(0))
    ]
    for before, message in pairwise(messages):
        _put_in_call_order(message["content"], before["content"])
    return [encodable(message) for message in messages]


def encodable(value: Any) -> Any:
    """A copy of a JSON value with "?" for lone surrogates, which have no bytes in UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {encodable(key): encodable(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [encodable(item) for item in value]
    return value


def sendable(blocks: Sequence[Block]) -> list[Block]:
    """The blocks without blank texts: the API sends them, and refuses to get them back."""
    return [block for block in blocks if block["type"] != "text" or block["text"].strip()]


def _blocks(entry: Message) -> tuple[str, list[Block]]:
    match entry["role"]:
        case "user":
            return "user", sendable([_text_block(entry["content"])])
        case "tool":
            return "user", [_result_block(entry)]
        case _:
            return "assistant", sendable(_assistant_blocks(entry))


def _text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def _result_block(entry: Message) -> Block:
    is_error = entry["is_error"]
    block = {"type": "tool_result", "tool_use_id": _wire_id(entry["call_id"]), "is_error": is_error}
    if entry["tool_result"].strip():
        return {**block, "content": entry["tool_result"]}
    return {**block, "content": FAILED_SILENTLY} if is_error else block


def _assistant_blocks(entry: Message) -> list[Block]:
    """What the model sent, with the call ids that the harness gave; or the same, made anew."""
    calls = entry.get("calls", ())
    blocks = _raw_blocks(entry)
    if blocks is None:
        uses: list[Block] = [{"type": "tool_use"}] * len(calls)
        blocks = [_text_block(_said(entry)), *uses]
    unused = iter(calls)
    return [
        {**block, **_use(next(unused))} if block["type"] == "tool_use" else block
        for block in blocks
    ]


def _raw_blocks(entry: Message) -> list[Block] | None:
    """The raw blocks, if they are of this API and still say what the entry says.

    They don't where another model made the turn, or where a layer shortened what is shown.
    """
    raw = entry.get("raw")
    if not isinstance(raw, list) or not all(map(is_well_formed, raw)):
        return None
    uses = [(use["name"], use.get("input")) for use in raw if use["type"] == "tool_use"]
    calls = [(call["name"], call["arguments"]) for call in entry.get("calls", ())]
    same_text = text_of(raw).strip() == _said(entry).strip()
    return raw if same_text and uses == calls else None


def _said(entry: Message) -> str:
    """The text beside calls, or an answer; one that isn't text, as its JSON."""
    content = entry["content"]
    if content is None and "calls" in entry:
        return ""
    return content if isinstance(content, str) else canonical(content)


def _use(call: Mapping[str, Any]) -> Block:
    name, arguments = call["name"], call["arguments"]
    if not _NAME.fullmatch(name):
        name = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:128] or "unnamed"
    if not isinstance(arguments, Mapping):
        arguments = {} if arguments is None else {"not_an_object": arguments}
    return {"id": _wire_id(call["call_id"]), "name": name, "input": arguments}


def _wire_id(call_id: str) -> str:
    """The id itself where the API takes it, else a digest of it: different ids stay different."""
    if _ID.fullmatch(call_id):
        return call_id
    return "call_" + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _put_in_call_order(content: list[Block], before: list[Block]) -> None:
    ids = [block["id"] for block in before if block["type"] == "tool_use"]
    place = {call_id: number for number, call_id in enumerate(ids)}
    content.sort(key=lambda block: place.get(block.get("tool_use_id"), len(place)))
