"""Large output goes to a file, and what stays has a bound in bytes."""

import asyncio
import json
import os
import stat
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness import (
    Bash,
    FailFast,
    Harness,
    LargeOutput,
    Outcome,
    Policy,
    ReadFile,
    Run,
    ScriptedModel,
    Trace,
    VirtualClock,
    hide,
    tool,
)
from mini_harness.frozen import canonical
from mini_harness.layer import Layer
from mini_harness.outputs import ERROR_PREVIEW, LIMIT, PREVIEW, LongError, in_pieces, preview
from mini_harness.protocol import Final, ToolCall
from mini_harness.redact import MASK, Redactor
from mini_harness.tools.base import BaseTool, ToolResult, TransientError
from tests.loops import DONE, play, tool_messages, turn

SCRIPTS = {"ascii": "a", "two bytes": "é", "cjk": "漢", "emoji": "😀", "surrogate": "\udc80"}


def run_once(
    folder: Path,
    tool: BaseTool,
    *,
    more: Sequence[Layer] = (),
    more_inside: Sequence[Layer] = (),
    beside: Path | None = None,
    **arguments: Any,
) -> tuple[Run, Trace]:
    trace = Trace()
    script = [{"type": "tool", "name": tool.name, "arguments": arguments}]
    model = ScriptedModel([*script, {"type": "final", "output": "done"}])
    layers = [*more, LargeOutput(beside=beside), *more_inside]
    harness = Harness(model, [tool], layers=layers, sinks=[trace], cwd=folder, clock=VirtualClock())
    return asyncio.run(harness.run("go")), trace


def last_seen(run: Run) -> dict[str, Any]:
    """What the model was told of its call."""
    (seen,) = [m for m in run.history.messages if m["role"] == "tool"]
    return dict(seen)


def kept(folder: Path, seen: dict[str, Any]) -> str:
    place: str = seen["metadata"]["externalized_path"]
    return (folder / place).read_bytes().decode()


def says(text: str) -> BaseTool:
    @tool(paths=())
    def say() -> str:
        """Say it."""
        return text

    return say


@pytest.mark.parametrize("letter", SCRIPTS.values(), ids=SCRIPTS)
def test_a_large_output_is_whole_in_a_file_and_its_preview_is_bounded_in_bytes(
    tmp_path: Path, letter: str
) -> None:
    """C25, B28"""
    text = "begin" + letter * LIMIT + "end"
    run, _ = run_once(tmp_path, says(text))
    seen = last_seen(run)
    assert kept(tmp_path, seen).encode() == text.encode(errors="backslashreplace")
    assert len(seen["tool_result"].encode()) <= PREVIEW
    assert seen["tool_result"].startswith("begin")
    assert "end\n[Full output written to: .mini_harness/tool-results/say-" in seen["tool_result"]
    assert "bytes left out here" in seen["tool_result"]


def test_a_copy_beside_the_session_outlives_what_the_agent_does_to_the_first(
    tmp_path: Path,
) -> None:
    """C25: beside the transcript"""
    workspace, session = tmp_path / "workspace", tmp_path / "home" / "s1"
    workspace.mkdir()
    text = "begin" + "x" * LIMIT
    run, _ = run_once(workspace, says(text), beside=session)
    place = workspace / last_seen(run)["metadata"]["externalized_path"]
    copy = session / "tool-results" / place.name
    place.unlink()
    assert copy.read_text(encoding="utf-8") == text
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_where_no_copy_can_be_kept_the_call_is_done_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    run, _ = run_once(tmp_path, says("x" * (LIMIT + 1)), beside=tmp_path / "file")
    assert "It couldn't be written to" in last_seen(run)["tool_result"]
    assert not last_seen(run)["is_error"]


@pytest.mark.parametrize("letter", ["a", "é", "漢", "😀"])
def test_exactly_the_limit_stays_and_one_byte_more_goes(tmp_path: Path, letter: str) -> None:
    """C25: more than 50 KiB, counted in UTF-8"""
    size = len(letter.encode())
    fits = letter * (LIMIT // size) + "x" * (LIMIT % size)
    run, _ = run_once(tmp_path, says(fits))
    assert last_seen(run)["tool_result"] == fits
    assert not (tmp_path / ".mini_harness").exists()
    run, _ = run_once(tmp_path, says(fits + "x"))
    assert kept(tmp_path, last_seen(run)) == fits + "x"


@given(st.text(min_size=1), st.integers(1_000, 4_000), st.integers(0, 200))
def test_a_preview_never_exceeds_its_limit_nor_breaks_a_character(
    piece: str, limit: int, times: int
) -> None:
    """B28"""
    data = (piece * times).encode(errors="backslashreplace") + b"." * limit
    shown = preview(data, limit, "Full output written to: x.txt.")
    assert len(shown.encode()) <= limit
    head, _, rest = shown.partition("\n[... ")
    tail = rest.partition(" left out here ...]\n")[2].rpartition("\n[")[0]
    missing = int(rest.partition(" bytes")[0].replace(",", ""))
    assert data.startswith(head.encode())
    assert data.endswith(tail.encode())
    assert missing == len(data) - len(head.encode()) - len(tail.encode())


def test_no_event_holds_more_than_the_preview(tmp_path: Path) -> None:
    """C25: the record carries the preview too, since the file has the rest"""
    _, trace = run_once(tmp_path, says("x" * 10**6))
    assert max(len(event.to_json()) for event in trace.events) < PREVIEW + 1_000


def test_the_rest_can_be_read_with_read_file(tmp_path: Path) -> None:
    text = "\n".join(f"line {n}" for n in range(20_000))
    run, _ = run_once(tmp_path, says(text))
    place = last_seen(run)["metadata"]["externalized_path"]
    run, _ = run_once(tmp_path, ReadFile(), path=place, offset=10_000, limit=1)
    assert last_seen(run)["tool_result"].startswith(" 10001\tline 10000")


def test_bash_keeps_all_of_a_long_output(tmp_path: Path) -> None:
    """C25, B13: what bash alone would cut goes to the file whole"""
    run, _ = run_once(tmp_path, Bash(), command="seq 1 50000")
    seen = last_seen(run)
    assert kept(tmp_path, seen) == "\n".join(map(str, range(1, 50_001)))
    assert seen["metadata"]["returncode"] == 0
    short, _ = run_once(tmp_path, Bash(), command="seq 1 8000")
    assert len(last_seen(short)["tool_result"]) == len("\n".join(map(str, range(1, 8_001))))


def test_a_failure_stays_a_failure(tmp_path: Path) -> None:
    @tool(paths=())
    def fail() -> ToolResult:
        """Fail at length."""
        return ToolResult("x" * 10**5, is_error=True, metadata={"returncode": 3})

    run, _ = run_once(tmp_path, fail)
    seen = last_seen(run)
    assert seen["is_error"] and seen["metadata"]["returncode"] == 3
    assert kept(tmp_path, seen) == "x" * 10**5


def test_what_a_tool_raises_at_length_is_bounded_too(tmp_path: Path) -> None:
    @tool(paths=())
    def fail() -> str:
        """Fail at length."""
        raise ValueError("x" * 10**5)

    run, trace = run_once(tmp_path, fail)
    seen = last_seen(run)
    assert seen["is_error"] and seen["outcome"] == "error"
    (file,) = tmp_path.rglob("*.txt")
    assert f"Full output written to: {file.relative_to(tmp_path)}" in seen["tool_result"]
    assert file.read_text(encoding="utf-8") == "ValueError: " + "x" * 10**5
    assert max(len(event.to_json()) for event in trace.events) < 3 * ERROR_PREVIEW


def test_an_error_of_which_trying_again_can_help_stays_one(tmp_path: Path) -> None:
    """Its length must not decide whether the call is tried again"""

    class Fails(BaseTool):
        name, description = "fails", "Fail at length."
        input_model, idempotent = ReadFile.input_model, True

        async def execute(self, arguments: Any, context: Any) -> Any:
            raise TransientError("x" * 10**5, retry_after=7)

    _, trace = run_once(tmp_path, Fails(), path="x")
    (end,) = [e for e in trace.events if e.type == "tool_error" and "transient" in e.data]
    assert (end.data["retry_after"], len(end.to_json()) < 3 * ERROR_PREVIEW) == (7, True)
    with pytest.raises(LongError) as raised:
        run_once(tmp_path, raises(ValueError("y" * 10**5)), more=[FailFast()])[0].unwrap()
    assert isinstance(raised.value.__cause__, ValueError)
    with pytest.raises(ValueError, match=r"^short$"):
        run_once(tmp_path, raises(ValueError("short")), more=[FailFast()])[0].unwrap()


def raises(error: Exception) -> BaseTool:
    @tool(paths=())
    def fail() -> str:
        """Fail."""
        raise error

    return fail


def test_what_a_model_makes_up_at_length_is_bounded_in_what_it_is_told(tmp_path: Path) -> None:
    """Nothing prepared such a call, so no layer has seen it"""
    many = {f"{'k' * 1_000}{n}": n for n in range(200)}
    calls = ToolCall("read_file", many, "a"), ToolCall("n" * 10**5, {}, "b")
    run, events = play([turn(*calls), DONE], [ReadFile()], layers=[LargeOutput()], cwd=tmp_path)
    first, second = (message["tool_result"] for message in tool_messages(run))
    assert "- and 181 more\nKnown arguments: path" in first and len(first) < 20_000
    assert second.endswith("The tools here are: read_file.") and len(second) < 1_000
    assert len(json.dumps(tool_messages(run)[0])) < 50_000
    errors = [len(e.data["error"]) for e in events if e.type == "tool_error"]
    assert max(errors) < 25_000


def test_what_a_tool_had_to_cut_itself_is_said_to_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B14: the note must not promise all of it"""
    monkeypatch.setattr("mini_harness.outputs.ROOM", 300_000)
    run, _ = run_once(tmp_path, Bash(), command="yes | head -c 1300000")
    seen = last_seen(run)
    whole, lost = kept(tmp_path, seen), seen["metadata"]["lost_bytes"]
    assert f"{lost:,} bytes left out here" in whole and lost > 1_000_000
    assert f"It isn't all: {lost:,} bytes of its middle" in seen["tool_result"]
    assert "Full output" not in seen["tool_result"]
    short, _ = run_once(tmp_path, Bash(), command="seq 1 50000")
    assert "lost_bytes" not in last_seen(short)["metadata"]


class Watched(Redactor):
    """Keeps how long the longest text was that it was given in each thread."""

    def __init__(self) -> None:
        super().__init__()
        self.longest: dict[bool, int] = {True: 0, False: 0}

    def hidden(self, value: Any) -> Any:
        main = threading.current_thread() is threading.main_thread()
        size = len(value) if isinstance(value, str) else len(canonical(value))
        self.longest[main] = max(self.longest[main], size)
        return super().hidden(value)


def test_to_look_for_secrets_in_a_large_output_keeps_nobody_waiting(tmp_path: Path) -> None:
    """One expression on one text holds the interpreter, so a thread alone isn't enough"""
    model = ScriptedModel([{"type": "tool", "name": "say", "arguments": {}}, Final("done")])
    harness = Harness(model, [says("a b\n" * 10**5)], layers=[LargeOutput()], cwd=tmp_path)
    harness.record.redactor = watched = Watched()
    asyncio.run(harness.run("go"))
    assert 0 < watched.longest[True] <= LIMIT and 0 < watched.longest[False] <= LIMIT


SECRET = "zebra-77-" + "quagga-" * 100 + "end"
MARKS = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
KEY = "\n".join([MARKS[0], *["MIIEvQIBADANBg/+"] * 190, MARKS[1]])


@pytest.mark.parametrize("secret", [SECRET, SECRET[:300] + "\n  " + SECRET[300:], KEY])
@pytest.mark.parametrize("place", [28_000, 30_000, 32_000, 32_500, 32_768, 33_000, 36_000])
def test_a_secret_isnt_cut_in_two_by_the_pieces(secret: str, place: int) -> None:
    """DESIGN, rule 7"""
    hide(SECRET[:500])
    hidden = Redactor().hidden
    text = ("." * 79 + "\n") * 1_000
    text = f"{text[:place]}\n{secret}\n{text[place:]}"
    assert in_pieces(hidden, text) == hidden(text)


def test_an_output_that_is_full_of_secrets_comes_to_an_end() -> None:
    hide("zebra-77-quagga")
    text = "the key is zebra-77-quagga\n" * 10_000
    hidden = Redactor().hidden
    assert in_pieces(hidden, text) == text.replace("zebra-77-quagga", MASK)


def test_a_secret_is_in_no_file(tmp_path: Path) -> None:
    """DESIGN, rule 7"""
    hide("zebra-77-quagga")
    run, _ = run_once(tmp_path, says("the key is zebra-77-quagga\n" * 5_000))
    text = kept(tmp_path, last_seen(run))
    assert "zebra-77-quagga" not in text and text.count("the key is") == 5_000


def test_an_output_that_cannot_be_written_is_said_to_be_lost(tmp_path: Path) -> None:
    (tmp_path / ".mini_harness").write_text("in the way", encoding="utf-8")
    run, _ = run_once(tmp_path, says("x" * 10**5))
    seen = last_seen(run)
    assert not seen["is_error"]
    assert "couldn't be written to .mini_harness/tool-results/say-" in seen["tool_result"]
    assert "externalized_path" not in seen.get("metadata", {})


def test_the_folder_cannot_be_a_way_out_of_the_workspace(tmp_path: Path) -> None:
    """C24"""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / ".mini_harness").symlink_to(outside)
    run, _ = run_once(inside, says("x" * 10**5))
    assert "couldn't be written" in last_seen(run)["tool_result"]
    assert not list(outside.rglob("*"))


def test_an_id_from_the_model_names_no_file(tmp_path: Path) -> None:
    """C21: ids that a model gives are kept, so they are no file names"""
    call = {"type": "tool", "name": "say", "arguments": {}, "call_id": "../../../evil"}
    model = ScriptedModel([call, {"type": "final", "output": "done"}])
    harness = Harness(model, [says("x" * 10**5)], layers=[LargeOutput()], cwd=tmp_path)
    run = asyncio.run(harness.run("go"))
    (file,) = tmp_path.rglob("*.txt")
    assert file.parent == tmp_path / ".mini_harness" / "tool-results"
    assert kept(tmp_path, last_seen(run)) == "x" * 10**5


def test_no_run_writes_over_what_another_has_kept(tmp_path: Path) -> None:
    """Both have the same ids on a virtual clock; the file is named by what is in it"""
    first, second = (run_once(tmp_path, says(letter * 10**5))[0] for letter in "xy")
    assert first.id == second.id
    assert kept(tmp_path, last_seen(first)) == "x" * 10**5
    assert kept(tmp_path, last_seen(second)) == "y" * 10**5


def test_only_its_owner_may_read_a_file(tmp_path: Path) -> None:
    """What a command printed may be nobody else's business"""
    for _ in range(2):
        run, _ = run_once(tmp_path, says("x" * 10**5))
        place = tmp_path / last_seen(run)["metadata"]["externalized_path"]
        assert stat.S_IMODE(place.stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_cancelled_it_writes_nothing_after_the_cancellation_went_up(tmp_path: Path) -> None:
    """Rule 4: when the run has ended, so has everything that it does"""
    import fcntl

    folder = tmp_path / ".mini_harness" / "tool-results"
    folder.mkdir(parents=True)

    async def main() -> None:
        model = ScriptedModel([{"type": "tool", "name": "say", "arguments": {}}])
        harness = Harness(model, [says("x" * 60_000)], layers=[LargeOutput()], cwd=tmp_path)
        task = asyncio.create_task(harness.run("go"))
        while not _writes():  # noqa: ASYNC110 - a thread can't set an event of this loop
            await asyncio.sleep(0.01)
        task.cancel()
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert not task.done()
        fcntl.flock(held, fcntl.LOCK_UN)
        with pytest.raises(asyncio.CancelledError):
            await task

    def _writes() -> bool:
        return any(thread.name.startswith("asyncio_") for thread in threading.enumerate())

    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        asyncio.run(main())
    finally:
        os.close(held)


@pytest.mark.parametrize("folder", ["", "../x", "a/../../x", "/tmp", 7, "a\0b", ".env", ".ssh"])
def test_a_folder_that_lies_elsewhere_is_refused(folder: Any) -> None:
    """C24"""
    with pytest.raises((TypeError, ValueError), match="folder"):
        LargeOutput(folder=folder)


def test_policy_and_record_see_the_tool_itself(tmp_path: Path) -> None:
    trace = Trace()
    call = {"type": "tool", "name": "look", "arguments": {}}

    @tool(read_only=True, paths=())
    def look() -> str:
        """Look."""
        return "x" * 10**5

    model = ScriptedModel([call, {"type": "final", "output": "done"}])
    layers = [Policy(), LargeOutput()]
    harness = Harness(model, [look], layers=layers, sinks=[trace], cwd=tmp_path)
    run = asyncio.run(harness.run("go"))
    assert run.output == "done"
    assert [e.data["rule"] for e in trace.events if e.type == "tool_start"] == ["read-only"]


def test_a_wrong_result_is_still_the_tools_failure(tmp_path: Path) -> None:
    class Wrong(BaseTool):
        name, description = "wrong", "Return no result."
        input_model = ReadFile.input_model

        async def execute(self, arguments: Any, context: Any) -> Any:
            return 7

    run, _ = run_once(tmp_path, Wrong(), path="x")
    assert "returned 7, not a ToolResult" in last_seen(run)["tool_result"]
    assert run.observed == {} or all(o.outcome is Outcome.ERROR for o in run.observed.values())


@pytest.mark.parametrize(("limit", "size"), [(999, 999), (2_000, 3_000), (0, 0), (5_000, -1)])
def test_bounds_that_make_no_sense_are_refused(limit: int, size: int) -> None:
    with pytest.raises(ValueError, match="must hold"):
        LargeOutput(limit, preview=size)
