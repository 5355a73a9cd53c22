"""bash answers with what a command said, in bounded size."""

import asyncio
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.clock import VirtualClock
from mini_harness.protocol import Observation, ToolCall
from mini_harness.tools.base import ToolExecutionContext, ToolResult
from mini_harness.tools.call import Call, prepare
from mini_harness.tools.registry import ToolRegistry
from mini_harness.tools.shell import OUTPUT_LIMIT, Bash, BashInput, HeadTail, child_environment

SOON = 10.0
"""Seconds: a bound for what takes well below one on a machine that isn't overloaded."""


def bash(command: str, folder: Path = Path("/"), **arguments: Any) -> ToolResult:
    wanted = BashInput(command=command, **arguments)
    return asyncio.run(Bash().execute(wanted, ToolExecutionContext(cwd=folder)))


# --- the result


def test_output_and_errors_are_one_text_in_order(tmp_path: Path) -> None:
    """B13, B14"""
    result = bash("echo one; echo two >&2; echo three", tmp_path)
    assert result == ToolResult("one\ntwo\nthree", False, {"returncode": 0, "timed_out": False})


def test_another_exit_code_than_zero_is_a_visible_error(tmp_path: Path) -> None:
    """B13, B14"""
    result = bash("echo no; exit 3", tmp_path)
    assert result.output == "no\n[exit code 3]"
    assert result.is_error
    assert result.metadata == {"returncode": 3, "timed_out": False}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, 40])
def test_an_end_by_a_signal_is_said(number: int) -> None:
    """B13"""
    result = bash(f"kill -{number} $$")
    assert result.output.startswith(f"(no output)\n[ended by signal {number}: ")
    assert result.is_error
    assert result.metadata["returncode"] == -number


@pytest.mark.parametrize("command", ["true", "", "# nothing", "echo; echo"])
def test_nothing_is_said_as_no_output(command: str) -> None:
    """B14"""
    assert bash(command) == ToolResult("(no output)", False, {"returncode": 0, "timed_out": False})


def test_a_time_out_keeps_what_came_until_then() -> None:
    """B13, B14"""
    result = bash("echo part; sleep 60", timeout_seconds=1)
    assert result.output == "Command timed out after 1 seconds.\npart"
    assert result.is_error
    assert result.metadata == {"returncode": None, "timed_out": True}


def test_thirty_seconds_are_the_default_and_one_to_six_hundred_the_bounds() -> None:
    """B14 and the decided conflict on the bash time-out"""
    registry = ToolRegistry([Bash()])
    assert BashInput(command="true").timeout_seconds == 30
    for seconds, fits in ((0, False), (1, True), (600, True), (601, False)):
        arguments = {"command": "true", "timeout_seconds": seconds}
        ready = prepare(registry, ToolCall(name="bash", call_id="c", arguments=arguments))
        assert isinstance(ready, Call if fits else Observation)


def test_a_command_never_counts_as_read_only_or_repeatable() -> None:
    """B13 and the decided conflict on bash and read-only"""
    assert not Bash().is_read_only(BashInput(command="ls"))
    assert not Bash().idempotent


def test_a_command_that_begins_with_a_dash_is_no_option() -> None:
    """B14"""
    assert bash("--version 2>/dev/null").metadata["returncode"] == 127


def test_time_is_real_on_the_virtual_clock_too() -> None:
    """B14, A21"""
    clock = VirtualClock()
    context = ToolExecutionContext(cwd=Path("/"), clock=clock)
    began = time.monotonic()
    wanted = BashInput(command="sleep 60", timeout_seconds=1)
    assert asyncio.run(Bash().execute(wanted, context)).metadata["timed_out"]
    assert 1.0 <= time.monotonic() - began < SOON
    assert clock.now == 0.0


# --- where and with what it runs


def test_the_folder_must_be_inside_the_workspace(tmp_path: Path) -> None:
    """B14, C24"""
    room = tmp_path / "room"
    (room / "sub").mkdir(parents=True)
    (room / "out").symlink_to(tmp_path)
    assert bash("pwd", room).output == str(room)
    assert bash("pwd", room, cwd="sub").output == str(room / "sub")
    for cwd in ("..", "out", str(tmp_path)):
        refused = bash("pwd", room, cwd=cwd)
        assert refused.is_error
        assert repr(cwd) in refused.output
        assert "outside the workspace folder" in refused.output
    assert bash("pwd", room, cwd="no").output.endswith("There is no such folder: 'no'.")


@pytest.mark.parametrize("bad", ["echo a\0b", "echo \ud800"])
def test_a_text_that_no_shell_takes_gets_a_readable_error(bad: str, tmp_path: Path) -> None:
    """Report B07"""
    for result in (bash(bad, tmp_path), bash("true", tmp_path, cwd=bad)):
        assert result.is_error
        assert result.output.startswith("The command was not run. It holds ")
        assert result.output.isprintable()
    assert bash("echo next", tmp_path).output == "next"


def test_a_command_that_cannot_be_started_is_a_readable_error(tmp_path: Path) -> None:
    """Report B07"""
    assert "The command was not run. Argument list too long" in bash("x" * 3_000_000).output
    assert "The command was not run. No such file" in bash("true", tmp_path / "no").output


def test_without_bash_it_is_sh_and_without_both_a_readable_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B14"""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bash("true").output == (
        "The command was not run. There is neither bash nor sh on the PATH."
    )
    (tmp_path / "sh").symlink_to("/bin/sh")
    assert bash("echo $0").output == str(tmp_path / "sh")


def test_there_is_no_input_and_no_terminal() -> None:
    """B14"""
    kept = os.dup(0)
    ours, theirs = os.pipe()
    os.dup2(ours, 0)  # An input that never ends, if a command could read it.
    try:
        result = bash("cat; read line; echo $?; read line </dev/tty; echo $?", timeout_seconds=5)
    finally:
        os.dup2(kept, 0)
        for descriptor in (kept, ours, theirs):
            os.close(descriptor)
    assert result.output.startswith("1\n")
    assert result.output.endswith("\n1")
    assert "/dev/tty" in result.output
    assert not result.is_error


def test_python_is_the_python_that_the_harness_runs_on() -> None:
    """B14"""
    result = bash("python -c 'import sys; print(sys.executable)'")
    assert Path(result.output).samefile(sys.executable)
    assert Path(result.output).parent == Path(sys.executable).parent


def test_secrets_and_surroundings_stay_out_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rule 7, report P08"""
    hidden = ["ANTHROPIC_API_KEY", "TAVILY_API_KEY", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "TOKEN"]
    hidden += [
        "app_secret",
        "PGPASSWORD",
        "DB_PASSWORD",
        "PYTEST_ADDOPTS",
        "FORCE_COLOR",
        "COLUMNS",
    ]
    kept = ["MAX_TOKENS", "KEYBOARD", "LC_ALL", "MINI_HARNESS_MODE", "MONKEY"]
    for name in hidden + kept:
        monkeypatch.setenv(name, "C")
    assert child_environment().keys().isdisjoint(hidden)
    assert child_environment().keys() >= set(kept)
    names = re.findall(r"^(\w+)=", bash("env").output, re.MULTILINE)
    assert set(names).isdisjoint(hidden)
    assert set(names) >= set(kept)


def test_a_pytest_inside_is_a_clean_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 7"""
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    monkeypatch.setenv("FORCE_COLOR", "1")
    (tmp_path / "test_a.py").write_text("def test_a():\n    assert 1 == 2\n", encoding="utf-8")
    result = bash("PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest -q test_a.py", tmp_path)
    assert "E       assert 1 == 2" in result.output
    assert result.output.endswith("\n[exit code 1]")
    assert "\x1b" not in result.output


# --- its text


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    """Report B04"""
    assert bash("printf 'a\\360b'").output == "a\ufffdb"
    random = bash("head -c 64 /dev/urandom; exit 4")
    assert random.metadata["returncode"] == 4
    assert len(random.output) > 10


def test_characters_survive_a_locale_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report B04"""
    monkeypatch.setenv("LC_ALL", "C")
    assert bash("echo \U0001f600").output == "\U0001f600"


def test_a_character_that_comes_in_pieces_stays_whole() -> None:
    """Report B05"""
    pieces = r"printf '\342'; sleep 0.1; printf '\211'; sleep 0.1; printf '\244\n'"
    assert bash(pieces).output == "\u2264"
    assert bash(r"printf 'end\342\211'").output == "end\ufffd"
    many = bash("printf x; for i in $(seq 70000); do printf '\u00e9'; done")
    assert "\ufffd" not in many.output


@given(st.text(max_size=60), st.lists(st.integers(0, 200)))
def test_a_text_is_the_same_however_it_is_cut_into_pieces(text: str, cuts: list[int]) -> None:
    """Report B05"""
    data = text.encode(errors="surrogatepass")
    borders = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    kept = HeadTail(1_000)
    for start, end in itertools.pairwise(borders):
        kept.feed(data[start:end])
    kept.finish()
    assert kept.text(1_000) == data.decode(errors="replace").rstrip("\n")


@given(st.text(st.characters(codec="utf-8")), st.integers(1, 300), st.integers(0, 200))
def test_a_long_text_keeps_its_head_and_tail_and_says_what_is_missing(
    text: str, times: int, notes: int
) -> None:
    """B14, report B05, and the decided conflict on large output"""
    room = 1_000 - notes
    data = (text * times + ".").encode()
    kept = HeadTail(1_000)
    kept.feed(data)
    kept.finish()
    seen = kept.text(room)
    if len(data) <= room:
        assert seen == data.decode()
        return
    assert room - 140 < len(seen.encode()) <= room
    marker = re.search(r"\n\[\.\.\. ([\d,]+) bytes left out here \.\.\.\]\n", seen)
    assert marker
    head, tail = seen[: marker.start()].encode(), seen[marker.end() :].encode()
    assert data.startswith(head)
    assert data.endswith(tail)
    assert len(head) + int(marker[1].replace(",", "")) + len(tail) == len(data)


@pytest.mark.parametrize("letter", ["x", "\u5b57", "\U0001f600"])
def test_an_answer_is_never_longer_than_its_limit(letter: str) -> None:
    """B14 and the decided conflict on large output: in bytes, whatever the script"""
    result = bash(f"yes {letter} | head -c 90001; exit 7")
    assert OUTPUT_LIMIT - 200 < len(result.output.encode()) <= OUTPUT_LIMIT
    assert result.output.endswith("\n[exit code 7]")
    assert re.search(r"\[\.\.\. [56]\d,\d{3} bytes left out here \.\.\.\]", result.output)


def test_the_limit_can_be_raised_for_a_layer_that_stores_large_output() -> None:
    """C25"""
    wanted = BashInput(command="yes | head -c 70000")
    result = asyncio.run(Bash(output_limit=100_000).execute(wanted, ToolExecutionContext()))
    assert result.output == ("y\n" * 35_000).rstrip("\n")
    with pytest.raises(ValueError, match="at least 1,000 bytes"):
        Bash(output_limit=999)


def test_three_hundred_megabytes_of_output_take_little_memory() -> None:
    """B14, rule 5"""
    program = """
import asyncio
from pathlib import Path
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.shell import Bash, BashInput

def peak():
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0])

def bash(command):
    return asyncio.run(Bash().execute(BashInput(command=command), ToolExecutionContext()))

bash("true")
before = peak()
result = bash("head -c 300000000 /dev/zero | tr '\\\\0' a; echo; echo the end")
print(result.output[-7:].replace(" ", "-"), len(result.output), peak() - before)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    end, size, grown = done.stdout.split()
    assert end == "the-end"
    assert int(size) <= OUTPUT_LIMIT
    assert int(grown) < 20_000, f"{grown} KiB more than before"
