"""From what the Messages API answered to a turn, as pure functions on JSON (SEEDS A18).

The plain JSON is read, not the SDK's objects: those take a web page for an answer, and a block of
an unknown type for a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mini_harness.frozen import NotJson, parse_object
from mini_harness.models.errors import (
    ContextWindowExceeded,
    Evidence,
    ModelRefused,
    ModelReplyUnusable,
    ModelUnavailable,
    ServiceError,
)
from mini_harness.protocol import Final, ToolCall, Turn, Usage

Block = Mapping[str, Any]
"""One content block of the API: JSON with a ``type``."""

Hide = Callable[[str], str]
"""Takes the key out of a text that others wrote."""


def is_well_formed(block: Any) -> bool:
    """Unknown types pass: they are kept and never run."""
    match block:
        case {"type": "text", "text": str()} | {"type": "tool_use", "name": str()}:
            return True
        case {"type": str(kind)}:
            return kind not in ("text", "tool_use")
    return False


def text_of(blocks: Sequence[Block]) -> str:
    return "".join(block["text"] for block in blocks if block["type"] == "text")


Tokens = Annotated[int, Field(ge=0), BeforeValidator(lambda count: 0 if count is None else count)]
"""A number of tokens. The API may say null, which means none."""


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class _Counts(_Strict):
    input_tokens: Tokens
    output_tokens: Tokens
    cache_creation_input_tokens: Tokens = 0
    cache_read_input_tokens: Tokens = 0


class _StopDetails(_Strict):
    category: str | None = None
    explanation: str | None = None


class _Message(_Strict):
    content: list[dict[str, Any]]
    stop_reason: str
    stop_details: _StopDetails | None = None
    usage: _Counts


@dataclass(frozen=True)
class Reply:
    """What the API answered, checked for the parts that a turn is made of."""

    content: list[dict[str, Any]]
    stop_reason: str
    usage: Usage
    request_id: str | None
    category: str | None
    explanation: str | None

    @property
    def uses(self) -> list[dict[str, Any]]:
        return [block for block in self.content if block["type"] == "tool_use"]

    @property
    def is_paused(self) -> bool:
        """Whether the API waits for its own words, to go on from there."""
        return self.stop_reason == "pause_turn" and not self.uses

    def after(self, paused: Reply) -> Reply:
        """This reply as the continuation of one that paused: one turn, one bill."""
        content, usage = paused.content + self.content, paused.usage + self.usage
        return replace(self, content=content, usage=usage)


def read_reply(text: str, request_id: str | None, hide: Hide) -> Reply:
    """Read the body of a response with status 200.

    Raises ModelUnavailable where it isn't a message of this API: then something between here
    and the service has answered, or has cut the answer short.
    """
    try:
        message = _Message.model_validate(parse_object(text))
        fault = None if all(map(is_well_formed, message.content)) else "content: a malformed block"
    except (NotJson, ValidationError) as error:
        fault = _fault(error)
    if fault:
        raise ModelUnavailable(
            f"What came back isn't a message of the Messages API ({hide(fault)}). It begins with "
            f"{hide(text)[:80]!r}. Try again; if it stays so, look at base_url and at proxies.",
            status=200,
            request_id=request_id,
        )
    return Reply(
        message.content,
        message.stop_reason,
        _usage(message.usage),
        request_id,
        message.stop_details.category if message.stop_details else None,
        message.stop_details.explanation if message.stop_details else None,
    )


def _usage(counts: _Counts) -> Usage:
    written, read = counts.cache_creation_input_tokens, counts.cache_read_input_tokens
    return Usage(
        input_tokens=counts.input_tokens + written + read,
        output_tokens=counts.output_tokens,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def _fault(error: NotJson | ValidationError) -> str:
    if isinstance(error, NotJson):
        return str(error)
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def to_turn(reply: Reply, max_tokens: int) -> Turn | Final:
    """The turn that a reply stands for. ``max_tokens`` is the output limit that was asked for.

    Raises ModelRefused, ContextWindowExceeded, and ModelReplyUnusable for a reason to stop that
    isn't known here: nothing is guessed.
    """
    match reply.stop_reason:
        case "end_turn" | "stop_sequence":
            return _turn(reply) if reply.uses else _final(reply)
        case "tool_use" | "pause_turn" if reply.uses:
            return _turn(reply)
        case "max_tokens" if reply.uses:
            return _turn(reply, _cut_off_call(max_tokens))
        case "max_tokens":
            return _final(reply, f"cut off by the output limit (max_tokens={max_tokens})")
        case _:
            raise _no_turn(reply)


def _turn(reply: Reply, defect: str | None = None) -> Turn:
    calls = tuple(
        ToolCall(
            name=use["name"],
            arguments=use.get("input"),
            call_id=use["id"] if isinstance(use.get("id"), str) else "",
            defect=defect,
        )
        for use in reply.uses
    )
    text = text_of(reply.content)
    thought = text if text.strip() else None
    return Turn(calls=calls, thought=thought, usage=reply.usage, raw=reply.content)


def _final(reply: Reply, note: str | None = None) -> Final:
    text = text_of(reply.content)
    if not text.strip():
        note = f"{note}, before any text" if note else "the model ended its turn without any text"
    return Final(output=text, usage=reply.usage, note=note, raw=reply.content)


def _cut_off_call(max_tokens: int) -> str:
    """Report T10: a call that was cut off can look complete, so none of that turn runs."""
    return (
        f"The output limit of {max_tokens} tokens cut the reply off, so the arguments may be "
        "incomplete. Make the call again with less text in it."
    )


def _no_turn(reply: Reply) -> ServiceError:
    evidence: Evidence = {
        "status": 200,
        "request_id": reply.request_id,
        "api_message": reply.explanation,
        "usage": reply.usage,
    }
    match reply.stop_reason:
        case "refusal":
            return ModelRefused(
                f"The model declined to answer: {reply.explanation or 'it gives no reason'} "
                f"(category: {reply.category or 'none'}). "
                "The same request will be refused again: change it.",
                category=reply.category,
                **evidence,
            )
        case "model_context_window_exceeded":
            return ContextWindowExceeded(
                "The conversation and its answer don't fit into the model's context window. "
                "Shorten the conversation, or use a model with a larger window.",
                **evidence,
            )
        case "pause_turn":
            text = "The model paused its turn again and again without coming to an end."
        case "tool_use":
            text = "The reply says that it calls a tool, and there is no call in it."
        case reason:
            text = f"The reply ended for a reason that isn't known here: {reason!r}."
    return ModelReplyUnusable(f"{text} It wasn't acted on.", **evidence)
