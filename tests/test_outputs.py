"""Large output goes to a file, and what stays has a bound in bytes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness import (
    Bash,
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
from mini_harness.outputs import LIMIT, PREVIEW, preview
from mini_harness.tools.base import BaseTool, ToolResult

SCRIPTS = {"ascii": "a", "two bytes": "é", "cjk": "漢", "emoji": "😀", "surrogate": "\udc80"}


def run_once(
    folder: Path, tool: BaseTool, *, layer: LargeOutput | None = None, **arguments: Any
) -> tuple[Run, Trace]:
    trace = Trace()
    script = [{"type": "tool", "name": tool.name, "arguments": arguments}]
    model = ScriptedModel([*script, {"type": "final", "output": "done"}])
    layers = [layer or LargeOutput()]
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

    run, _ = run_once(tmp_path, fail)
    seen = last_seen(run)
    assert seen["is_error"] and len(seen["tool_result"].encode()) <= PREVIEW
    assert kept(tmp_path, seen) == "Tool fail failed: ValueError: " + "x" * 10**5


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


def test_two_calls_have_two_files(tmp_path: Path) -> None:
    call = {"type": "tool", "name": "say", "arguments": {}}
    model = ScriptedModel([call, call, {"type": "final", "output": "done"}])
    harness = Harness(model, [says("x" * 10**5)], layers=[LargeOutput()], cwd=tmp_path)
    asyncio.run(harness.run("go"))
    assert len(list(tmp_path.rglob("*.txt"))) == 2


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
