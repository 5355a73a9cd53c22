"""A trace for OpenTelemetry, by its semantic conventions for generative AI.

Each run becomes an ``invoke_agent`` span with ``chat`` and ``execute_tool`` spans below it. The
names are those of the conventions as of 2026, which are still in development. Needs the extra
``otel``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mini_harness.events import Event, EventType
from mini_harness.frozen import canonical
from mini_harness.spans import PAUSED, Ending, Kind, Span, by_run, calls_in, tell
from mini_harness.table import text_of

if TYPE_CHECKING:
    from opentelemetry import trace as api
    from opentelemetry.util.types import AttributeValue

AGENT = "mini_harness"
UNKNOWN = "_OTHER"
"""What the conventions call a provider, or an error, that has no name."""

_USAGE = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
}
_CLASS = re.compile(r"[A-Za-z_][\w.]*(?=\()")

Attributes = dict[str, "AttributeValue"]


def export(
    events: Iterable[Event],
    provider: api.TracerProvider,
    *,
    content: bool,
    model: Mapping[str, str],
) -> None:
    """Make the spans of all runs, with the times of their events. See ``Trace.to_otel``."""
    try:
        from opentelemetry import trace as api
    except ImportError as error:
        text = "OpenTelemetry isn't installed. Install it with: pip install 'mini-harness[otel]'"
        raise ImportError(text) from error
    tracer = provider.get_tracer(AGENT)
    for run_id, own in by_run(events).items():
        _Run(api, tracer, own, content, model).export(run_id)


class _Run:
    def __init__(
        self,
        api: Any,
        tracer: api.Tracer,
        events: Sequence[Event],
        content: bool,
        model: Mapping[str, str],
    ) -> None:
        self.api = api
        self.tracer = tracer
        self.events = events
        self.content = content
        self.model = {"gen_ai.provider.name": UNKNOWN, **model}
        self.told = tell(events)
        # Two clocks: the wall says when the run began, its own times when all else happened.
        self.began = _nano(events[0].time) - _nano(self.told.times[0])

    def export(self, run_id: str) -> None:
        times = self.told.times
        named = {"gen_ai.agent.name": AGENT, "gen_ai.conversation.id": run_id}
        root = self.tracer.start_span(
            f"invoke_agent {AGENT}",
            # A trace of its own, whatever the caller is in the middle of.
            context=self.api.set_span_in_context(self.api.INVALID_SPAN),
            kind=self.api.SpanKind.INTERNAL,
            attributes={"gen_ai.operation.name": "invoke_agent", **named, **self._said()},
            start_time=self._at(min(times)),
        )
        inside = self.api.set_span_in_context(root)
        for span in self.told.spans:
            self._child(span, inside)
        for event, at in zip(self.events, times, strict=True):
            if event.type in (EventType.VERDICT, EventType.APPROVAL):
                root.add_event(f"{AGENT}.{event.type}", self._judged(event), self._at(at))
        ends = [e for e in self.events if e.type in (EventType.FINAL, EventType.STOP)]
        if ends and ends[-1].type is EventType.STOP:
            self._fail(root, ends[-1].data, str(ends[-1].data.get("reason", UNKNOWN)))
        root.end(self._at(max(times)))

    def _at(self, seconds: float) -> int:
        """When that was, in nanoseconds since the Unix epoch."""
        return self.began + _nano(seconds)

    def _child(self, span: Span, inside: Any) -> None:
        match span.kind:
            case Kind.MODEL:
                named = self.model.get("gen_ai.request.model", "")
                name, kind = f"chat {named}".strip(), self.api.SpanKind.CLIENT
                attributes = self._chat(self.events[span.last].data)
            case Kind.TOOL:
                name, kind = f"execute_tool {span.name}", self.api.SpanKind.INTERNAL
                attributes = self._tool(span)
            case _:
                name = span.name if span.name == PAUSED else "wait for approval"
                kind = self.api.SpanKind.INTERNAL
                attributes = {"gen_ai.tool.call.id": span.call_id} if span.call_id else {}
        start = self._at(span.start)
        made = self.tracer.start_span(
            name, context=inside, kind=kind, attributes=attributes, start_time=start
        )
        if span.ending is Ending.FAILED:
            ended = self.events[span.last]
            otherwise = "denied" if ended.type is EventType.APPROVAL else UNKNOWN
            self._fail(made, ended.data, str(ended.data.get("outcome", otherwise)))
        made.end(self._at(span.end))

    def _chat(self, data: Mapping[str, Any]) -> Attributes:
        reason = "tool_call" if "calls" in data else "stop"
        found: Attributes = {"gen_ai.operation.name": "chat", **self.model}
        if "unknown" not in data:
            found["gen_ai.response.finish_reasons"] = [reason]
        if isinstance(usage := data.get("usage"), Mapping):
            found |= {
                name: usage[ours] for ours, name in _USAGE.items() if type(usage.get(ours)) is int
            }
        if self.content:
            found["gen_ai.output.messages"] = _messages("assistant", _parts(data), reason)
        return found

    def _tool(self, span: Span) -> Attributes:
        found: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": span.name,
            "gen_ai.tool.call.id": span.call_id,
            "gen_ai.tool.type": "function",
        }
        if self.content:
            asked, seen = self.events[span.first].data, self.events[span.last].data
            found["gen_ai.tool.call.arguments"] = canonical(asked.get("arguments"))
            if span.ending is not Ending.OPEN:
                found["gen_ai.tool.call.result"] = canonical(seen.get("tool_result"))
        return found

    def _judged(self, event: Event) -> Attributes:
        """A verdict or an approval; why it was given is said only with the content."""
        kept = ["tool", "call_id", "verdict", "rule", "approved", "remember"]
        kept += ["reason", "by"] if self.content else []
        given = {
            key: event.data[key] for key in kept if isinstance(event.data.get(key), str | bool)
        }
        return {f"{AGENT}.{key}": value for key, value in given.items()}

    def _said(self) -> Attributes:
        """The question and the answer of the run."""
        if not self.content:
            return {}
        asked = [_part(e.data.get("content")) for e in self.events if e.type is EventType.MESSAGE]
        final = [_part(e.data.get("output")) for e in self.events if e.type is EventType.FINAL]
        found: Attributes = {"gen_ai.input.messages": _messages("user", asked)}
        if final:
            found["gen_ai.output.messages"] = _messages("assistant", final[-1:], "stop")
        return found

    def _fail(self, made: Any, data: Mapping[str, Any], otherwise: str) -> None:
        error = _CLASS.match(str(data.get("error", "")))
        made.set_attribute("error.type", error[0] if error else otherwise)
        said = str(data.get("error", "")) if self.content else None
        made.set_status(self.api.Status(self.api.StatusCode.ERROR, said))


def _nano(seconds: float) -> int:
    return round(seconds * 1e9)


def _part(value: Any) -> dict[str, Any]:
    return {"type": "text", "content": text_of(value)}


def _parts(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    said = data.get("content", data.get("decision"))
    calls = [
        {
            "type": "tool_call",
            "id": each.get("call_id"),
            "name": each.get("name"),
            "arguments": each.get("arguments"),
        }
        for each in calls_in(data)
    ]
    return [*([_part(said)] if said is not None else []), *calls]


def _messages(role: str, parts: Sequence[dict[str, Any]], reason: str = "") -> str:
    message = {"role": role, "parts": list(parts)}
    return json.dumps([{**message, "finish_reason": reason} if reason else message])
