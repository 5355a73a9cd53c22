"""The trace: what it keeps, and the table that shows it."""

import html
import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider

from mini_harness.clock import VirtualClock
from mini_harness.events import Event, EventType, Sink
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.policy import Policy, Rule, Verdict
from mini_harness.run import Run
from mini_harness.spans import Ending, Kind, tell
from mini_harness.sync import run_sync
from mini_harness.table import REASONED, WIDTH
from mini_harness.tools.function import tool
from mini_harness.trace import BY_HAND, Trace
from mini_harness.views.explorer import TraceExplorer
from tests.traces import Written, guarded, happy, long

NASTY = "\x1b[2K\rALL PASSED\u202e <b>"


def test_a_happy_run_leaves_exactly_these_events() -> None:
    """A10, A11"""
    kept = happy().to_dicts()
    turn, tool = ["model_decision", "final"], ["tool_start", "tool_result"]
    assert [each["type"] for each in kept] == ["message", turn[0], *tool, *turn]
    assert [each["step"] for each in kept] == [0, 1, 1, 1, 2, 2]
    assert kept[2]["arguments"] == {"build_id": "build-102"}
    assert kept[-1]["output"] == "The build status is: failed"


def test_a_loop_written_by_hand_records_what_it_says() -> None:
    """A09, A10"""
    trace = Trace(clock=VirtualClock())
    trace.record("model_decision", step=1, decision={"type": "tool", "name": "t", "arguments": {}})
    trace.record("tool_start", step=1, tool="t", arguments={})
    trace.record("tool_error", tool="t", error=repr(KeyError("x")))
    assert trace.to_dicts()[1:] == [
        {"type": "tool_start", "step": 1, "tool": "t", "arguments": {}},
        {"type": "tool_error", "step": 1, "tool": "t", "error": "KeyError('x')"},
    ]
    assert [event.event_id for event in trace.events] == [f"{BY_HAND}:{n}" for n in (1, 2, 3)]
    assert "t -> KeyError('x')" in str(trace.table())


def test_what_is_recorded_after_reading_back_goes_on_from_the_last_event(tmp_path: Path) -> None:
    """A09: time never runs backwards"""
    trace, clock = Trace(clock=VirtualClock()), VirtualClock()
    trace.record("message", content="a")
    run_sync(trace.clock.sleep(50.0))
    trace.record("message", content="b")
    trace.save(tmp_path / "t")
    for again in (Trace.load(tmp_path / "t"), trace.of(BY_HAND)):
        again.clock = clock
        again.record("message", content="c")
        run_sync(clock.sleep(2.0))
        again.record("message", content="d")
        assert [event.offset for event in again.events] == [0.0, 50.0, 50.0, 52.0]
        assert [event.sequence for event in again.events] == [1, 2, 3, 4]


def test_an_unknown_type_is_refused_with_the_list_of_types() -> None:
    """A09"""
    trace = Trace()
    with pytest.raises(ValueError, match=r"no event type 'error'.*tool_error"):
        trace.record("error", step=1)
    assert trace.events == []


def test_data_that_changes_afterwards_changes_nothing() -> None:
    """A09, report P05: by hand, and by a tool that mutates its own arguments"""
    trace, mine = Trace(), {"names": ["a"]}
    trace.record("tool_start", tool="t", arguments=mine)
    mine["names"].append("b")
    assert trace.to_dicts()[0]["arguments"] == {"names": ["a"]}

    @tool
    def spoil(names: list[str]) -> str:
        """Change what was given."""
        names.append("b")
        return "done"

    call = {"type": "tool", "name": "spoil", "arguments": {"names": ["a"]}}
    model = ScriptedModel([call, {"type": "final", "output": ""}])
    seen = Trace()
    Harness(model, [spoil], sinks=[seen], clock=VirtualClock()).run_sync("go")
    assert seen.to_dicts()[2]["arguments"] == {"names": ["a"]}


def test_runs_in_one_trace_never_mix() -> None:
    """A11: two runs, each told for itself"""
    trace, clock = Trace(), VirtualClock()
    for _ in range(2):
        happy(trace=trace, clock=clock)
    first, second = trace.runs
    assert [event.sequence for event in trace.of(second).events] == [1, 2, 3, 4, 5, 6]
    assert trace.last().runs == (second,)
    assert repr(trace) == "<Trace: 12 events of 2 runs>"
    rows = str(trace.table()).splitlines()
    assert rows[0] == "2 runs: 12 events"
    assert [row.split()[0] for row in rows[2:]] == [first] * 6 + [second] * 6
    assert second in repr(trace.timeline())
    assert first in repr(trace.timeline(first))
    with pytest.raises(ValueError, match=f"no run 'x'. Its runs: {first}, {second}"):
        trace.of("x")


def test_a_second_run_of_one_name_is_refused_before_it_does_anything() -> None:
    """Each virtual clock counts its names from one. What can't be told apart isn't mixed."""
    asked, trace = Asked("first"), Trace()
    asked.begin(trace, VirtualClock())
    other = Asked("second")
    with pytest.raises(ValueError, match=r"has a run called run-1 already\. Harnesses that share"):
        other.begin(trace, VirtualClock())
    assert other.own == []
    asked.answer(yes=True)
    assert trace.runs == ("run-1",)
    assert Run.fold(trace.events).output == "first"


def test_two_beginnings_of_one_name_are_refused_however_they_come(tmp_path: Path) -> None:
    """Given, read from a file, or after the end of a run whose beginning is elsewhere"""
    events = happy().events
    with pytest.raises(ValueError, match="has a run called run-1 already"):
        Trace([*events, *events])
    (tmp_path / "two").write_text(happy().to_jsonl() * 2, encoding="utf-8")
    with pytest.raises(ValueError, match="has a run called run-1 already"):
        Trace.load(tmp_path / "two")
    with pytest.raises(ValueError, match="has a run called run-1 already"):
        happy(trace=Trace(events[3:]))
    assert Trace(events[3:]).runs == ("run-1",)


def test_runs_that_pause_and_go_on_in_turns_are_told_apart() -> None:
    """A08: one is asked about, then the other; one is refused, then the other is allowed"""
    trace, clock, one, two = Trace(), VirtualClock(), Asked("one"), Asked("two")
    for each in (one, two):
        each.begin(trace, clock)
    two.answer(yes=False)
    one.answer(yes=True)
    turns = [name for name, _ in groupby(event.run_id for event in trace.events)]
    assert turns == ["run-1", "run-2", "run-1"]
    for each in (one, two):
        part = trace.of(each.run)
        assert part.events == each.own
        assert Run.fold(part.events).output == each.name
        assert str(trace.table(each.run)) == str(Trace(each.own).table())
    assert "A person approved act" in str(trace.table("run-1", type="approval"))
    assert "A person denied act" in str(trace.table("run-2", type="approval"))
    assert "act -> one" in str(trace.table("run-1"))
    assert "act -> two" not in str(trace.table())
    assert Kind.DENIED in {moment.kind for moment in tell(trace.of("run-2").events).moments}


def test_runs_whose_events_alternate_are_told_apart_too() -> None:
    """Also across a pause: at each event it is the other one's turn."""
    one, two = Written("run-1"), Written("run-2")
    for run in (one, two):
        run.goal()
        run.turn("same-id", "t", 1.0)
        run.add("pause", call_id="same-id", tool="t", digest="d")
        run.add("resume", wall=2.0 if run is one else 5.0)
        run.approval("same-id", "t", approved=run is one)
        run.start("same-id", "t")
        run.end("same-id", "t", later=1.0)
    woven = [
        event for pair in zip(one.trace.events, two.trace.events, strict=True) for event in pair
    ]
    trace = Trace(woven)
    for run in (one, two):
        assert str(trace.table(run.run_id)) == str(run.trace.table())
    assert str(trace.table()).count("1.00 s  tool_result") == 2


def test_the_table_says_what_took_time_and_who_decided() -> None:
    """A10, C37: on the virtual clock it is the same, letter by letter, every time"""
    told = {(number, took): what for number, _, _, took, _, what in guarded().table().rows}
    assert told["4", "0.30 s"] == "read_build -> status: failed (+1 line)"
    assert told["7", "2.10 s"] == "bash [error] -> 1 failed"
    assert told["9", ""] == "deny deploy_prod by rule no-deploy: Nobody may."
    assert told["13", ""] == "waits for approval of edit_file by rule default: It writes."
    assert told["15", "4.00 s"] == "A person approved edit_file"


def test_the_table_is_the_same_letter_by_letter_on_the_virtual_clock() -> None:
    """A11"""
    assert str(happy(0.5).table()).splitlines()[:5] == [
        "run-1: 6 events",
        "#  step      at    took  type            what",
        "1     0  0.00 s          message         What is its status?",
        '2     1  0.50 s  0.50 s  model_decision  read_build {"build_id":"build-102"}',
        '3     1  0.50 s          tool_start      read_build {"build_id":"build-102"}',
    ]
    assert str(happy(0.5).table()) == str(happy(0.5).table())


def test_the_table_can_show_one_step_or_one_type() -> None:
    table = str(guarded().table(step=3, type="verdict"))
    assert table.splitlines()[0] == "run-1: 1 event of step 3 of type verdict"
    assert "no-deploy" in table
    with pytest.raises(ValueError, match="nonsense"):
        guarded().table(type="nonsense")
    assert str(Trace().table()).splitlines()[0] == "no run: 0 events"


def test_the_table_has_room_for_why_somebody_decided() -> None:
    """SEEDS A07: what was judged stands at the end of the reason, so the end is always there"""
    about = "It may change something, and no rule allows it: "
    run = Written()
    asked: dict[str, Any] = {"call_id": "a", "tool": "bash", "rule": "default"}
    for command in ("git push origin main", f"git push {'x' * 80} main"):
        why: dict[str, Any] = {"reason": f"{about}{command}"}
        run.add("verdict", verdict="require_approval", **asked, **why)
        run.add("pause", digest="d", **asked, **why)
        run.add("approval", approved=False, by="A person", **asked, **why)
    run.end("a", "bash", "x" * 200)
    *decided, seen = [what for *_, what in run.trace.table().rows]
    assert f"{about}git push origin main" in decided[0]
    assert all(line.endswith(" main") for line in decided)
    assert [len(line) for line in decided[3:]] == [REASONED] * 3
    assert " … xxx" in decided[5]
    assert len(seen) == WIDTH


def test_nothing_in_the_table_steers_a_screen_or_becomes_markup() -> None:
    """report P07"""
    run = Written(f"run-{NASTY}")
    run.goal(NASTY)
    run.turn("c", NASTY, command=NASTY)
    run.verdict("c", NASTY, "deny")
    run.end("c", NASTY, NASTY, outcome="error")
    run.approval("c", NASTY)
    run.final(NASTY)
    table = run.trace.table()
    assert all(char.isprintable() or char == "\n" for char in f"{table}{table._repr_html_()}")
    assert "<b>" not in table._repr_html_()
    assert "&lt;b&gt;" in table._repr_html_()
    assert "\\x1b[2K" in str(table)


def test_the_html_table_has_a_caption_and_heads_and_the_same_facts() -> None:
    table = guarded().table()
    shown = table._repr_html_()
    assert ">run-1: 19 events</caption>" in shown
    assert shown.count('<th scope="col"') == 6
    assert all(html.escape(cell) in shown for row in table.rows for cell in row)


def test_a_long_table_says_how_much_it_leaves_out() -> None:
    trace = long(1000)
    table = trace.table()
    missing = len(trace.events) - 200
    for text in (str(table), table._repr_html_()):
        assert f"... {missing} events not shown ..." in text
        assert len(text.splitlines()) <= 210
    lines = str(table).splitlines()
    assert lines[-1].split()[0] == str(len(trace.events))
    assert lines[121].split()[0] == "120"


class Asked:
    """A real run of one call that waits for a person; its answer is its name."""

    def __init__(self, name: str) -> None:
        self.name, self.own = name, list[Event]()
        call = {"type": "tool", "name": "act", "arguments": {"what": name}}
        self.turns = ScriptedModel([call, {"type": "final", "output": name}])

    def begin(self, trace: Trace, clock: VirtualClock) -> None:
        sinks: list[Sink] = [trace, self.own.append]
        self.harness = Harness(self.turns, [tool(act)], layers=[Policy()], sinks=sinks, clock=clock)
        self.run = self.harness.run_sync("Act.")

    def answer(self, *, yes: bool) -> None:
        if yes:
            self.run.approve()
        else:
            self.run.deny("Not now.")
        run_sync(self.harness.resume(self.run))


def act(what: str) -> str:
    """Do it."""
    return what


class Repair:
    """A real run with the real policy: one call is denied, one waits for a person."""

    def __init__(self) -> None:
        self.trace, clock = Trace(), VirtualClock()
        names = ["read_build", "deploy_prod", "mend", "mend"]
        calls = [
            {"type": "tool", "name": name, "arguments": {"build_id": f"build-{n}"}}
            for n, name in enumerate(names)
        ]
        turns = [*calls, {"type": "final", "output": "Done."}]
        rule = Rule("no-deploy", Verdict.DENY, "deploy_prod", reason="Nobody may deploy.")
        self.harness = Harness(
            ScriptedModel(turns, clock=clock, latency=0.5),
            [tool(read_only=True)(read_build), tool(deploy_prod), tool(mend)],
            layers=[Policy(rules=[rule])],
            sinks=[self.trace],
            clock=clock,
        )
        self.run = self.harness.run_sync("Mend build-0.")
        self.run.approve()
        run_sync(self.harness.resume(self.run))
        self.run.approve({"build_id": "build-9"})
        run_sync(self.harness.resume(self.run))


def read_build(build_id: str) -> str:
    """Read a build."""
    return "failed"


def deploy_prod(build_id: str) -> str:
    """Deploy a build."""
    return "deployed"


def mend(build_id: str) -> str:
    """Mend a build."""
    if build_id == "build-9":
        raise ValueError(build_id)
    return "mended"


def test_a_real_run_tells_who_decided_what() -> None:
    """A07, A08, A10: the events that policy, approval and loop really write"""
    done = Repair()
    told = [what for *_, what in done.trace.table().rows]
    for line in (
        'read_build by rule read-only: {"build_id":"build-0"}',
        "deny deploy_prod by rule no-deploy: Nobody may deploy.",
        "deploy_prod [denied] -> Tool not allowed: deploy_prod. Nobody may depl …",
        "A person approved mend",
        'mend by rule approved:default: {"build_id":"build-2"}',
        'A person approved mend with {"build_id":"build-9"}',
    ):
        assert line in told
    found = tell(done.trace.events)
    lanes = [(span.kind, span.name, span.ending) for span in found.spans]
    assert lanes.count((Kind.WAITING, "", Ending.OK)) == 2
    tools = [lane for lane in lanes if lane[0] is Kind.TOOL]
    assert [lane[1:] for lane in tools] == [
        ("read_build", Ending.OK),
        ("mend", Ending.OK),
        ("mend", Ending.FAILED),
    ]
    marks = [(m.kind, m.subject) for m in found.moments]
    assert marks == [(Kind.MESSAGE, "message"), (Kind.DENIED, "deploy_prod"), (Kind.END, "final")]
    assert "deploy_prod" not in {span.name for span in found.spans}


def test_what_is_recorded_by_hand_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """report P08"""
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-0123456789abcdef")
    trace = Trace(clock=VirtualClock())
    trace.record("tool_result", tool="env", result="KEY is tvly-0123456789abcdef")
    assert "tvly-0123456789abcdef" not in f"{trace.to_jsonl()}{trace.table()}{trace.to_perfetto()}"


NAMES = ["calls", "call_id", "tool", "arguments", "verdict", "rule", "reason", "approved", "by"]
NAMES += ["outcome", "tool_result", "result", "error", "content", "because", "final", "output"]
NAMES += ["decision", "unknown", "usage", "attempt", "remember", "digest", "name", "role"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just(NASTY),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=4,
)


@settings(max_examples=150)
@example([(EventType.MODEL_DECISION, {"calls": [None, {}]}), (EventType.MESSAGE, {"calls": 5})])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(EventType), st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6)
        ),
        min_size=1,
        max_size=6,
    )
)
def test_whatever_was_recorded_can_be_shown(said: list[tuple[EventType, dict[str, Any]]]) -> None:
    """A09: by hand anything may be recorded, and no view of it fails or hides anything"""
    trace = Trace(clock=VirtualClock())
    for kind, data in said:
        trace.record(kind, **data)
    provider = TracerProvider()
    for content in (True, False):
        trace.to_otel(provider, content=content)
    explorer = TraceExplorer(trace)
    pages = [explorer.page(number + 1) for number in range(len(said))]
    texts = [str(trace.table()), trace.table()._repr_html_(), repr(trace.timeline()), *pages]
    assert json.loads(trace.to_perfetto())
    assert all(char.isprintable() or char == "\n" for char in "".join(texts))


def test_every_type_of_event_has_its_line() -> None:
    run = Written()
    for each in EventType:
        run.add(each)
    assert len(run.trace.table().rows) == len(EventType)
    assert len(tell(run.trace.events).times) == len(EventType)
