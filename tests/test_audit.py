"""The audit chain: what an entry is, what goes in, and in which order it gets to the disk."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.audit import AuditLog
from mini_harness.audit_entry import Tip, forged, read_entry, speakable
from mini_harness.audit_sink import Audit
from mini_harness.events import Event, EventType
from mini_harness.frozen import NotJson, freeze
from mini_harness.policy import Policy
from mini_harness.redact import MASK, hide
from mini_harness.retry import Retry
from mini_harness.rules import Rule, Verdict
from mini_harness.tools.base import ToolResult, TransientError
from mini_harness.tools.builds import TOOLS
from mini_harness.tools.function import function_tool
from tests.audits import GENESIS, digest_of, filled, independent
from tests.loops import DONE, call, harness, turn

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = {
    "user_prompt": {"sessionId", "text"},
    "tool_call": {"sessionId", "tool", "argument"},
    "tool_result": {"sessionId", "tool", "externalized", "exit_code"},
    "tool_error": {"sessionId", "tool", "error"},
    "assistant_message": {"sessionId", "content"},
}
Told = list[tuple[str, dict[str, Any]]]


def audited(folder: Path, turns: list[Any], tools: Any = TOOLS, **parts: Any) -> Told:
    """What a run leaves in a log, checked by the package and without it."""
    log = AuditLog(folder / "audit.jsonl")
    player, _ = harness(turns, tools, sinks=[Audit(log, session_id="s1")], **parts)
    asyncio.run(player.run("Why?"))
    entries = list(log.entries())
    assert log.verify()
    assert [each["data"] for each in independent(log)] == [each.data for each in entries]
    for entry in entries:
        assert entry.data.keys() == KEYS[entry.action]
        assert entry.data["sessionId"] == "s1"
    return [(entry.action, entry.data) for entry in entries]


def actions(told: Told) -> list[str]:
    return [action for action, _ in told]


# --- an entry -----------------------------------------------------------------------------------


def test_an_entry_has_exactly_these_fields_and_this_hash(tmp_path: Path) -> None:
    """C40, C41, report D08: a known vector, computed by hand with sha256sum"""
    log = AuditLog(tmp_path / "audit.jsonl")
    data = {"b": 1, "a": "é😀", "f": 1e-7, "g": 1.0}
    entry = log.append("user_prompt", data, timestamp=1700000000000)
    body = (
        '{"action":"user_prompt","data":{"a":"é😀","b":1,"f":1e-07,"g":1.0},"index":1,'
        f'"prev_hash":"{GENESIS}","timestamp":1700000000000}}'
    )
    known = "b5bcb07f357971d57f8f227804cbe78e7540dff805dbe5656b17ff6f2dcc8450"
    assert entry.hash == known
    whole = body.replace('"index"', f'"hash":"{known}","index"')
    assert log.path.read_text(encoding="utf-8") == f"{whole}\n"
    head = (tmp_path / "audit.head").read_text(encoding="utf-8")
    assert json.loads(head) == {"count": 1, "head": known}


@given(data=st.dictionaries(st.text(), JSON, max_size=4), action=st.text())
def test_whatever_is_appended_reads_back_and_has_the_hash_that_others_compute(
    data: dict[str, Any], action: str
) -> None:
    """C41, report D08: any text, any number, also halves of pairs"""
    said = speakable(data)
    entry, line = forged(Tip(), 5, speakable(action), said)
    assert line.count(b"\n") == 1
    assert read_entry(line, Tip()) == entry
    assert digest_of(json.loads(line)) == entry.hash


@pytest.mark.parametrize("text", ["a\u2028b\u0085c\x0bd\r\n", "\ud83d", "\\ud83d", "😀", "\x00"])
def test_any_text_is_one_line_and_verifies(tmp_path: Path, text: str) -> None:
    log = AuditLog(tmp_path / "audit.jsonl")
    log.append(text, {text: text})
    log.append("after", {})
    assert log.verify()
    assert len(independent(log)) == 2


def test_an_entry_may_be_longer_than_what_is_read_at_a_time(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", erasable=["long"])
    for size in (1, 300_000, 1):
        log.append("x", {"long": ["yyyy"] * size, "plain": ["zzzz"] * size})
    assert AuditLog(log.path).append("x", {}).index == 4
    assert log.check().entries == 4
    assert log.verify()


def test_where_the_system_takes_less_at_a_time_all_of_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """report S07: as when a disk is almost full"""
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
    assert len(independent(filled(tmp_path, 2))) == 2


def test_time_is_in_milliseconds_and_now_unless_said(tmp_path: Path) -> None:
    """C40"""
    log = AuditLog(tmp_path / "audit.jsonl")
    before = int(tmp_path.stat().st_mtime * 1000) - 60_000
    assert before < log.append("x", {}).timestamp < before + 3_600_000
    assert log.append("x", {}, timestamp=7).timestamp == 7


@pytest.mark.parametrize(
    ("data", "timestamp", "error"),
    [
        ({"x": float("nan")}, 1, NotJson),
        ({"x": object()}, 1, NotJson),
        ([1], 1, TypeError),
        ({}, 1.5, TypeError),
        ({}, True, TypeError),
        ({"sealed": {}}, 1, ValueError),
    ],
)
def test_what_could_not_be_read_back_is_refused_and_nothing_is_written(
    tmp_path: Path, data: Any, timestamp: Any, error: type[Exception]
) -> None:
    log = filled(tmp_path, 1)
    before = log.path.read_bytes()
    with pytest.raises(error):
        log.append("x", data, timestamp=timestamp)
    assert log.path.read_bytes() == before
    assert log.verify()


def test_a_new_log_begins_with_a_head_that_counts_nothing(tmp_path: Path) -> None:
    """C42, C44: else the first append that is interrupted would leave a log without a head"""
    log = AuditLog(tmp_path / "deep" / "audit.jsonl").start()
    assert json.loads((tmp_path / "deep/audit.head").read_text(encoding="utf-8")) == {
        "count": 0,
        "head": GENESIS,
    }
    assert log.verify()


# --- what goes in -------------------------------------------------------------------------------


def test_one_tool_prompt_is_these_four_entries_in_this_order(tmp_path: Path) -> None:
    """C43"""
    told = audited(tmp_path, [call("read_build", build_id="build-102"), DONE])
    assert told == [
        ("user_prompt", {"sessionId": "s1", "text": "Why?"}),
        (
            "tool_call",
            {"sessionId": "s1", "tool": "read_build", "argument": {"build_id": "build-102"}},
        ),
        (
            "tool_result",
            {"sessionId": "s1", "tool": "read_build", "externalized": None, "exit_code": None},
        ),
        ("assistant_message", {"sessionId": "s1", "content": "done"}),
    ]


def test_a_result_says_its_exit_code_and_where_the_whole_output_lies(tmp_path: Path) -> None:
    """C43"""

    def build() -> ToolResult:
        """Build."""
        return ToolResult("ok", metadata={"returncode": 0, "externalized_path": "out/1.txt"})

    told = audited(tmp_path, [call("build"), DONE], [function_tool(build)])
    assert told[2][1]["exit_code"] == 0
    assert told[2][1]["externalized"] == "out/1.txt"


def test_a_call_that_never_ran_is_there_with_its_arguments_and_its_error(tmp_path: Path) -> None:
    """C43, C32: denied, unknown, and invalid"""
    deny = Policy(rules=[Rule("no", Verdict.DENY, tool="read_build", reason="not today")])
    turns = [
        call("read_build", build_id="build-102"),
        call("no_such_tool", x=1),
        call("read_build", wrong=2),
        DONE,
    ]
    told = audited(tmp_path, turns, layers=[deny])
    assert actions(told) == [
        "user_prompt", *["tool_call", "tool_error"] * 3, "assistant_message"
    ]  # fmt: skip
    assert [data["argument"] for action, data in told if action == "tool_call"] == [
        {"build_id": "build-102"},
        {"x": 1},
        {"wrong": 2},
    ]
    assert "not today" in told[2][1]["error"]


def test_each_attempt_is_a_call_with_an_end(tmp_path: Path) -> None:
    """C43: a retry has its effect once more, or not; an auditor sees that it was tried"""
    failures = [TransientError("the line is busy")]

    def order() -> str:
        """Order."""
        if failures:
            raise failures.pop()
        return "ordered"

    tool = function_tool(order, idempotent=True)
    told = audited(tmp_path, [call("order"), DONE], [tool], layers=[Retry()])
    assert actions(told)[1:-1] == ["tool_call", "tool_error", "tool_call", "tool_result"]
    assert "the line is busy" in told[2][1]["error"]


def test_what_the_harness_says_in_the_users_place_is_no_prompt(tmp_path: Path) -> None:
    """C43"""
    told = audited(tmp_path, [{"type": "what"}, DONE])
    assert actions(told) == ["user_prompt", "assistant_message"]


def test_an_answer_stays_what_it_is(tmp_path: Path) -> None:
    """C43: 0, "" and false are answers too"""
    for number, output in enumerate([0, "", False, {"a": [1]}]):
        told = audited(tmp_path / str(number), [{"type": "final", "output": output}])
        assert told[-1][1]["content"] == output
        assert type(told[-1][1]["content"]) is type(output)


def test_several_calls_of_a_turn_each_have_their_end(tmp_path: Path) -> None:
    """C43"""
    calls = [call("read_build", build_id=name) for name in ("build-101", "build-102")]
    told = audited(tmp_path, [turn(*calls), DONE])
    assert actions(told)[1:-1] == ["tool_call", "tool_result"] * 2


def test_without_a_session_the_run_is_the_session_and_the_clock_is_the_runs(tmp_path: Path) -> None:
    """C43; and two lessons print the same hashes"""
    tips = []
    for name in ("a", "b"):
        log = AuditLog(tmp_path / name / "audit.jsonl")
        player, _ = harness([DONE], sinks=[Audit(log)])
        asyncio.run(player.run("go"))
        assert [entry.data["sessionId"] for entry in log.entries()] == ["run-1", "run-1"]
        tips.append(log.tip())
    assert tips[0] == tips[1]


def test_a_log_that_fails_stops_the_run_and_no_tool_runs(tmp_path: Path) -> None:
    """C33, C34: recording that fails isn't a tool that failed"""
    log = AuditLog(tmp_path / "audit.jsonl")
    ran = []

    def act() -> str:
        """Act."""
        ran.append(1)
        return "done"

    player, _ = harness([call("act"), DONE], [function_tool(act)], sinks=[Audit(log)])
    log.path.unlink()
    log.path.mkdir()
    with pytest.raises(OSError, match="audit log couldn't be opened"):
        asyncio.run(player.run("go"))
    assert not ran


def test_secrets_are_masked_before_anything_is_hashed(tmp_path: Path) -> None:
    """DESIGN, rule 7: also where somebody appends by hand"""
    hide("lonely-otter-42")
    log = AuditLog(tmp_path / "audit.jsonl", erasable=["text"])
    entry = log.append("user_prompt", {"text": "it is lonely-otter-42", "password": "hunter2-hu"})
    log.append("note", {"n": "DB_PASSWORD=hunter2-hu", "lonely-otter-42": 1})
    for path in tmp_path.iterdir():
        assert b"otter" not in path.read_bytes()
        assert b"hunter2" not in path.read_bytes()
    assert log.told(entry)["text"] == f"it is {MASK}"
    assert log.verify()


def test_a_late_result_is_there_and_a_changed_observation_is_not(tmp_path: Path) -> None:
    """C43: what happened, and not what the model was told about it afterwards"""
    log = AuditLog(tmp_path / "audit.jsonl")
    sink = Audit(log)
    end = {"role": "tool", "tool": "slow", "call_id": "c1", "is_error": True}
    told = [
        (EventType.TOOL_ERROR, {**end, "tool_result": "timed out"}),
        (EventType.LATE_RESULT, {**end, "tool_result": "came late", "is_error": False}),
        (EventType.TOOL_ERROR, {**end, "tool_result": "go on without", "replaces": True}),
        (EventType.LATE_RESULT, {**end, "tool_result": "broke late"}),
    ]
    for number, (kind, data) in enumerate(told, 1):
        sink(Event("run-1", number, 1, kind, 0.0, 1.5, freeze(data)))
    entries = list(log.entries())
    assert [each.action for each in entries] == ["tool_error", "tool_result", "tool_error"]
    assert [each.data.get("error") for each in entries] == ["timed out", None, "broke late"]
    assert {each.timestamp for each in entries} == {1500}


# --- how it gets to the disk --------------------------------------------------------------------


def test_entry_and_head_get_to_the_disk_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C45: lock, append and sync, replace the head and sync the folder, unlock"""
    import fcntl

    log = filled(tmp_path, 1)
    seen: list[str] = []
    names: dict[int, str] = {}

    def watch(module: Any, name: str, told: Callable[..., str]) -> None:
        real = getattr(module, name)

        def watched(*args: Any, **options: Any) -> Any:
            result = real(*args, **options)
            seen.append(told(result, *args))
            return result

        monkeypatch.setattr(module, name, watched)

    def opened(result: int, path: Any, *_: Any) -> str:
        names[result] = Path(path).name
        return ""

    watch(os, "open", opened)
    watch(fcntl, "flock", lambda _, fd, how: f"lock {names[fd]}")
    watch(os, "write", lambda _, fd, data: f"write {names[fd]}")
    watch(os, "fsync", lambda _, fd: f"sync {names[fd]}")
    watch(os, "replace", lambda _, one, other: f"replace {Path(other).name}")
    watch(os, "close", lambda _, fd: f"close {names[fd]}" if names[fd] == "audit.jsonl" else "")
    log.append("x", {})
    assert [each for each in seen if each] == [
        "lock audit.jsonl",
        "write audit.jsonl",
        "sync audit.jsonl",
        "write .audit.head.new",
        "sync .audit.head.new",
        "replace audit.head",
        f"sync {tmp_path.name}",
        "close audit.jsonl",
    ]
