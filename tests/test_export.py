"""A trace as a file, for Perfetto, and for OpenTelemetry."""

import itertools
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.trace import SpanKind, StatusCode

from mini_harness.events import Event, EventType
from mini_harness.export import DamagedTrace
from mini_harness.frozen import FrozenDict, freeze
from mini_harness.spans import tell
from mini_harness.trace import Trace
from tests.traces import Written, guarded, happy, long

SECRET = "the-words-of-a-person"
NASTY = "a\nb\u2028c\ud800 \x1b[2K <b> \U0001f600"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=40)
@given(
    data=st.dictionaries(st.text(), JSON), offset=st.floats(0, 1e9), kind=st.sampled_from(EventType)
)
def test_a_saved_trace_is_read_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any], offset: float, kind: EventType
) -> None:
    """A09: whatever the data"""
    kept: FrozenDict = freeze(data)
    trace = Trace([Event("run-0", 1, 0, kind, offset, 1.5, kept), *guarded().events])
    path = tmp_path_factory.mktemp("saved") / "trace.jsonl"
    trace.save(path)
    read = Trace.load(path)
    assert read.events == trace.events
    assert path.read_text(encoding="utf-8") == trace.to_jsonl() == read.to_jsonl()


def test_what_was_read_back_can_not_be_changed_either(tmp_path: Path) -> None:
    happy().save(tmp_path / "t")
    event = Trace.load(tmp_path / "t").events[2]
    with pytest.raises(TypeError, match="part of the record"):
        event.data["arguments"]["build_id"] = "x"


@pytest.mark.parametrize(
    "damage",
    [
        b"not json",
        b"",
        b"[1]",
        b"{}",
        b'{"data": 3}',
        b"\xff\xfe",
        b"[" * 100_000,
        lambda line: line[:-3],
        lambda line: line.replace(b'"step":1', b'"step":"1"'),
        lambda line: line.replace(b'"step":1', b'"step":1,"more":2'),
        lambda line: line.replace(b"model_decision", b"model_derision"),
        lambda line: line.replace(b'"run-1:2"', b'"run-1:7"'),
        lambda line: line + b"\r",
    ],
)
def test_a_damaged_line_is_refused_with_its_number(tmp_path: Path, damage: Any) -> None:
    path = tmp_path / "trace.jsonl"
    guarded().save(path)
    lines = path.read_bytes().split(b"\n")
    lines[1] = damage(lines[1]) if callable(damage) else damage
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(DamagedTrace, match=r"^Line 2 of trace\.jsonl isn't an event") as caught:
        Trace.load(path)
    assert caught.value.line == 2


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    guarded().save(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedTrace, match=r"Line 19 .*something is missing"):
        Trace.load(path)


def test_a_save_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    happy().save(path)
    before = path.read_bytes()
    bad: FrozenDict = FrozenDict(x=float("nan"))
    events = [*long(2_000).events, Event("r", 1, 0, EventType.HOOK, 0.0, 0.0, bad)]
    with pytest.raises(ValueError, match="not JSON compliant"):
        Trace(events).save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["trace.jsonl"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
@pytest.mark.parametrize("mode", [0o644, 0o600, 0o640, 0o664])
def test_whoever_could_read_the_old_file_can_read_the_new_one(tmp_path: Path, mode: int) -> None:
    """report P08: nobody more, and nobody less; a new file is as the umask says"""
    new = tmp_path / "new.jsonl"
    before = os.umask(0o027)
    try:
        happy().save(new)
        assert stat.S_IMODE(new.stat().st_mode) == 0o640
        new.chmod(mode)
        guarded().save(new)
    finally:
        os.umask(before)
    assert stat.S_IMODE(new.stat().st_mode) == mode
    assert Trace.load(new).events == guarded().events


@pytest.mark.skipif(os.name == "nt", reason="Windows lets few people make links")
def test_a_link_still_leads_to_the_file_that_was_written(tmp_path: Path) -> None:
    far, link = tmp_path / "far", tmp_path / "link.jsonl"
    far.mkdir()
    link.symlink_to(Path("far") / "kept.jsonl")
    for trace in (happy(), guarded()):
        trace.save(link)
        assert link.is_symlink()
        assert Trace.load(far / "kept.jsonl").events == trace.events
    assert [each.name for each in far.iterdir()] == ["kept.jsonl"]


def chrome(trace: Trace) -> list[dict[str, Any]]:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    read = json.loads(trace.to_perfetto(), parse_constant=refuse)
    assert set(read) == {"displayTimeUnit", "traceEvents"}
    events: list[dict[str, Any]] = read["traceEvents"]
    return events


def test_perfetto_gets_a_slice_for_all_that_took_time_in_microseconds() -> None:
    slices = [each for each in chrome(guarded()) if each["ph"] == "X"]
    assert [(each["name"], each["ts"], each["dur"]) for each in slices[:4]] == [
        ("model", 0, 1_200_000),
        ("read_build", 1_200_000, 300_000),
        ("model", 1_500_000, 1_500_000),
        ("bash", 3_000_000, 2_100_000),
    ]
    assert slices[3]["args"]["ending"] == "failed"
    assert slices[3]["args"]["call_id"] == "c2"


def test_perfetto_gets_a_moment_for_each_verdict_and_approval() -> None:
    instants = [each for each in chrome(guarded()) if each["ph"] == "i"]
    judged = [each for each in instants if each["name"] in ("verdict", "approval")]
    assert [each["name"] for each in judged] == ["verdict", "verdict", "approval"]
    assert {each["s"] for each in instants} == {"t"}
    assert judged[0]["args"]["what"].startswith("deny deploy_prod")


def test_what_perfetto_gets_is_of_the_form_it_asks_for() -> None:
    """Whole numbers, a name for each process and thread, and no slice across another."""
    side = Written("run-2")
    side.goal(NASTY)
    side.turn("a", "model", 0.1)
    for call_id in ("a", "b"):
        side.start(call_id, "model")
    side.end("a", "model", NASTY, later=1.0)
    side.end("b", "model", later=0.3333333)
    events = chrome(Trace([*guarded().events, *side.trace.events]))
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {e["pid"] for e in events if e["name"] == "process_name"} == {1, 2}
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for each in events:
        assert {"ph", "name", "pid", "tid"} <= set(each)
        assert each["ph"] in "XiM"
        if each["ph"] != "M":
            place = each["pid"], each["tid"]
            assert place in named
            assert type(each["ts"]) is int
            lanes.setdefault(place, []).append((each["ts"], each["ts"] + each.get("dur", 0)))
    for slices in lanes.values():
        ordered = sorted(slices)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(ordered))
    assert "\\u001b" not in Trace(side.trace.events).to_perfetto()


def test_no_tool_passes_for_another_lane_in_perfetto() -> None:
    run = Written()
    run.turn("a", "model")
    run.start("a", "model")
    run.end("a", "model")
    run.verdict("b", "verdicts", "require_approval")
    run.start("b", "verdicts")
    events = chrome(run.trace)
    named = [each["args"]["name"] for each in events if each["name"] == "thread_name"]
    assert sorted(named) == ["approval", "model", "model (tool)", "verdicts", "verdicts (tool)"]


def spans(trace: Trace, **options: Any) -> list[ReadableSpan]:
    provider, kept = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.to_otel(provider, **options)
    return list(kept.get_finished_spans())


def times(span: ReadableSpan) -> tuple[int, int]:
    """When it began and ended, in nanoseconds."""
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time, span.end_time


def of_name(found: list[ReadableSpan], name: str) -> ReadableSpan:
    return next(span for span in found if span.name == name)


def test_a_run_is_an_agent_span_with_chats_and_tools_below_it() -> None:
    *children, root = spans(guarded())
    assert root.name == "invoke_agent mini_harness"
    assert root.parent is None
    assert times(root) == (0, 12_450_000_000)
    names = ["chat"] * 5 + ["execute_tool bash", "execute_tool edit_file"]
    names += ["execute_tool read_build", "wait for approval"]
    assert sorted(span.name for span in children) == names
    assert root.context is not None
    start, end = times(root)
    for span in children:
        assert span.parent is not None
        assert span.parent.span_id == root.context.span_id
        assert start <= times(span)[0] <= times(span)[1] <= end
    bash = of_name(children, "execute_tool bash")
    assert times(bash) == (3_000_000_000, 5_100_000_000)


def test_attributes_have_the_names_of_the_conventions() -> None:
    run = Written()
    run.goal()
    usage = {"input_tokens": 7, "output_tokens": 3, "cache_read_tokens": 2, "cache_write_tokens": 0}
    run.add("model_decision", role="assistant", content="x", final=True, usage=usage)
    chat, root = spans(run.trace, model={gen_ai.GEN_AI_REQUEST_MODEL: "m"})
    assert chat.attributes == {
        gen_ai.GEN_AI_OPERATION_NAME: gen_ai.GenAiOperationNameValues.CHAT.value,
        gen_ai.GEN_AI_PROVIDER_NAME: "_OTHER",
        gen_ai.GEN_AI_REQUEST_MODEL: "m",
        gen_ai.GEN_AI_RESPONSE_FINISH_REASONS: ("stop",),
        gen_ai.GEN_AI_USAGE_INPUT_TOKENS: 7,
        gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: 3,
        gen_ai.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 2,
        gen_ai.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS: 0,
    }
    assert (chat.name, chat.kind) == ("chat m", SpanKind.CLIENT)
    assert root.attributes == {
        gen_ai.GEN_AI_OPERATION_NAME: gen_ai.GenAiOperationNameValues.INVOKE_AGENT.value,
        gen_ai.GEN_AI_AGENT_NAME: "mini_harness",
        gen_ai.GEN_AI_CONVERSATION_ID: "run-1",
    }
    assert of_name(spans(guarded()), "execute_tool read_build").attributes == {
        gen_ai.GEN_AI_OPERATION_NAME: gen_ai.GenAiOperationNameValues.EXECUTE_TOOL.value,
        gen_ai.GEN_AI_TOOL_NAME: "read_build",
        gen_ai.GEN_AI_TOOL_CALL_ID: "c1",
        gen_ai.GEN_AI_TOOL_TYPE: "function",
    }


def test_a_failure_is_an_error_with_its_type() -> None:
    bash = of_name(spans(guarded()), "execute_tool bash")
    assert bash.status.status_code is StatusCode.ERROR
    assert dict(bash.attributes or {})["error.type"] == "ValueError"
    run = Written()
    run.goal()
    run.add("stop", reason="max_steps", limit=8)
    (stopped,) = spans(run.trace)
    assert stopped.status.status_code is StatusCode.ERROR
    assert dict(stopped.attributes or {})["error.type"] == "max_steps"
    run.add("resume")
    run.final()
    assert spans(run.trace)[-1].status.status_code is StatusCode.UNSET


def test_a_wait_says_what_for_and_a_persons_no_is_an_error() -> None:
    """A08"""
    run = Written()
    run.goal()
    run.add("pause", why="lunch")
    run.add("resume", wall=3.0)
    for call_id, yes in (("a", True), ("b", False)):
        run.verdict(call_id, "t", "require_approval")
        run.approval(call_id, "t", approved=yes, later=1.0)
    paused, agreed, refused, root = spans(run.trace)
    assert (paused.name, paused.attributes) == ("paused", {})
    assert agreed.name == refused.name == "wait for approval"
    assert agreed.status.status_code is paused.status.status_code is StatusCode.UNSET
    assert refused.status.status_code is StatusCode.ERROR
    assert dict(refused.attributes or {}) == {"gen_ai.tool.call.id": "b", "error.type": "denied"}
    assert root.status.status_code is StatusCode.UNSET


def test_opentelemetry_and_the_table_tell_the_same_times() -> None:
    """Whatever the wall clock does while the run is driven; the wait after a stop counts."""
    run = Written()
    run.time = 1_700_000_000.0
    run.goal()
    run.turn("a", "t", 1.0)
    run.start("a", "t")
    run.end("a", "t", later=1.0)
    run.add("stop", reason="max_steps")
    run.add("resume", wall=3600.0)
    run.offset += 1.0
    run.time -= 500.0
    run.final(later=1.0)
    told, began = tell(run.trace.events), 1_700_000_000 * 10**9
    *children, root = spans(run.trace)
    assert times(root) == (began, began + 3604 * 10**9)
    assert [times(child) for child in children] == [
        (began + round(span.start * 1e9), began + round(span.end * 1e9)) for span in told.spans
    ]


def test_what_was_said_goes_out_only_if_asked_for() -> None:
    """report P08: content may be private"""
    run = Written()
    run.goal(SECRET)
    run.turn("a", "t", words=SECRET)
    run.add("verdict", call_id="a", tool="t", verdict="require_approval", rule="r", reason=SECRET)
    run.add("approval", call_id="a", tool="t", approved=True, reason=SECRET, by=SECRET)
    run.start("a", "t", words=SECRET)
    run.end("a", "t", SECRET, outcome="error")
    run.final(SECRET)
    quiet = "".join(span.to_json() for span in spans(run.trace))
    assert SECRET not in quiet
    told = "".join(span.to_json() for span in spans(run.trace, content=True))
    for name in ("input.messages", "output.messages", "tool.call.arguments", "tool.call.result"):
        assert f"gen_ai.{name}" in told
    assert told.count(SECRET) >= 6


def test_each_run_is_a_trace_of_its_own() -> None:
    both = Trace([*Written("other").trace.events, *guarded().events])
    side = Written("run-2")
    side.goal()
    for event in side.trace.events:
        both(event)
    roots = [span for span in spans(both) if span.parent is None]
    assert len({span.context.trace_id for span in roots if span.context}) == 2
    named = [dict(span.attributes or {})[gen_ai.GEN_AI_CONVERSATION_ID] for span in roots]
    assert named == ["run-1", "run-2"]


def test_without_opentelemetry_the_error_says_how_to_install_it() -> None:
    script = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from mini_harness.trace import Trace\n"
        "try: Trace().to_otel(None)\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        encoding="utf-8",
        env=dict(os.environ),
    )
    assert done.stdout.strip() == (
        "OpenTelemetry isn't installed. Install it with: pip install 'mini-harness[otel]'"
    )
