"""bash answers in bounded time and size, and leaves no process behind."""

import asyncio
import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.clock import VirtualClock
from mini_harness.protocol import Observation, ToolCall
from mini_harness.sync import run_sync
from mini_harness.tools import process
from mini_harness.tools.base import ToolExecutionContext, ToolResult
from mini_harness.tools.call import Call, prepare
from mini_harness.tools.process import run_process
from mini_harness.tools.registry import ToolRegistry
from mini_harness.tools.shell import OUTPUT_LIMIT, Bash, BashInput, HeadTail, child_environment

SOON = 10.0
"""Seconds: a bound for what takes well below one on a machine that isn't overloaded."""


async def execute(command: str, folder: Path, **arguments: Any) -> ToolResult:
    wanted = BashInput(command=command, **arguments)
    return await Bash().execute(wanted, ToolExecutionContext(cwd=folder))


def bash(command: str, folder: Path = Path("/"), **arguments: Any) -> ToolResult:
    return asyncio.run(execute(command, folder, **arguments))


@pytest.fixture
def tag() -> str:
    """A number of seconds to sleep that no other process on this machine sleeps."""
    return f"86399.{secrets.randbelow(10**12):012}"


def alive(tag: str) -> list[str]:
    """The command lines of all running processes that have the tag in it."""
    found = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess):
            line = " ".join(one.cmdline())
            if tag in line and one.status() != psutil.STATUS_ZOMBIE:
                found.append(line)
    return found


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


def test_a_time_out_keeps_what_came_until_then(tag: str) -> None:
    """B13, B14"""
    result = bash(f"echo part; sleep {tag}", timeout_seconds=1)
    assert result.output == "Command timed out after 1 seconds.\npart"
    assert result.is_error
    assert result.metadata == {"returncode": None, "timed_out": True}
    assert not alive(tag)


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
    result = bash("cat; read line; echo $?; read line </dev/tty; echo $?", timeout_seconds=20)
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
    result = bash("python -m pytest -q -p no:cacheprovider test_a.py", tmp_path)
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
    for start, end in zip(borders, borders[1:], strict=False):
        kept.feed(data[start:end])
    kept.finish()
    assert kept.text(1_000) == data.decode(errors="replace").rstrip("\n")


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(1, 300), st.integers(0, 200))
def test_a_long_text_keeps_its_head_and_tail_and_says_what_is_missing(
    text: str, times: int, notes: int
) -> None:
    """B14, report B05, and the decided conflict on large output"""
    data = (text * times).encode()
    kept = HeadTail(1_000)
    kept.feed(data)
    kept.finish()
    seen = kept.text(1_000 - notes)
    assert len(seen.encode()) <= 1_000 - notes
    marker = re.search(r"\n\[\.\.\. ([\d,]+) bytes left out here \.\.\.\]\n?", seen)
    if len(data) <= 1_000 - notes:
        assert seen == data.decode().rstrip("\n")
        return
    assert marker
    head, tail = seen[: marker.start()].encode(), seen[marker.end() :].encode()
    assert data.startswith(head)
    assert data.rstrip(b"\n").endswith(tail)
    left_out = int(marker[1].replace(",", ""))
    assert len(head) + left_out + len(tail) == len(data.rstrip(b"\n")) or data.endswith(b"\n")


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


# --- its end

DAEMON = (
    "import os, sys, time\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "null = os.open(os.devnull, os.O_RDWR)\n"
    "for fd in (0, 1, 2): os.dup2(null, fd)\n"
    "time.sleep(float(sys.argv[1]))\n"
)

STARTS = {
    "holds the pipe": "sleep {tag} & echo hi",
    "elsewhere": "sleep {tag} >/dev/null 2>&1 & echo hi",
    "nohup": "nohup sleep {tag} >/dev/null 2>&1 & echo hi",
    "own group": "set -m; sleep {tag} & echo hi",
    "own session": "setsid sleep {tag} & echo hi",
    "orphan in its own session": "setsid -f sleep {tag} >/dev/null 2>&1; echo hi",
    "daemon": "python daemon.py {tag}; echo hi",
    "ignores TERM": "(trap '' TERM; setsid -f sleep {tag}); echo hi",
    "no environment": "env -i sleep {tag} >/dev/null 2>&1 & echo hi",
    "no environment, own session": "env -i setsid -f sleep {tag}; echo hi",
    "grandchild of a subshell": "( ( sleep {tag} & sleep {tag} & ) ); echo hi",
}
starts = pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)


@starts
def test_what_a_command_leaves_running_ends_with_it(start: str, tag: str, tmp_path: Path) -> None:
    """Reports B01 and B02, rule 5"""
    (tmp_path / "daemon.py").write_text(DAEMON, encoding="utf-8")
    began = time.monotonic()
    result = bash(start.format(tag=tag), tmp_path, timeout_seconds=60)
    assert not alive(tag)
    assert result == ToolResult("hi", False, {"returncode": 0, "timed_out": False})
    assert time.monotonic() - began < SOON


@starts
def test_at_a_time_out_everything_ends(start: str, tag: str, tmp_path: Path) -> None:
    """Reports B01 and B02, rule 5: when the answer is there, no effect can come any more"""
    (tmp_path / "daemon.py").write_text(DAEMON, encoding="utf-8")
    command = f"{start.format(tag=tag)}; sleep {tag}; touch landed"
    began = time.monotonic()
    result = bash(command, tmp_path, timeout_seconds=1)
    assert not alive(tag)
    assert result.output == "Command timed out after 1 seconds.\nhi"
    assert time.monotonic() - began < SOON
    assert not (tmp_path / "landed").exists()


@pytest.mark.parametrize(
    "command",
    [
        "echo part; trap '' TERM; sleep {tag}; sleep {tag}",
        "echo part; trap 'sleep {tag}' TERM; sleep {tag}",
        "echo part; python3 -c 'import time; time.sleep({tag})'; true",
        "echo part; while true; do sleep {tag} & sleep 0.01; done",
        "echo part; exec >&- 2>&-; sleep {tag}",
        "echo part; kill -STOP $$ # {tag}",
        "echo part; env -i setsid --wait sleep {tag} >/dev/null 2>&1",
    ],
)
def test_neither_ignored_signals_nor_tricks_delay_a_time_out(command: str, tag: str) -> None:
    """Reports B01 and B02"""
    began = time.monotonic()
    result = bash(command.format(tag=tag), timeout_seconds=1)
    assert not alive(tag)
    assert result.output == "Command timed out after 1 seconds.\npart"
    assert time.monotonic() - began < SOON


def test_a_group_that_is_gone_already_costs_no_output(
    tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report B02"""

    def gone(group: int, number: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "killpg", gone)
    monkeypatch.setattr(os, "getpgid", lambda pid: -1)
    result = bash(f"echo part; sleep {tag}", timeout_seconds=1)
    assert result.output == "Command timed out after 1 seconds.\npart"
    assert not alive(tag)


def test_what_cannot_be_ended_is_said(tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Report B02: a process of another user refuses our signals, and here all do"""

    def refuse(*_: object) -> None:
        raise PermissionError

    def deny(*_: object) -> None:
        raise psutil.AccessDenied

    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", refuse)
        patch.setattr(os, "getpgid", lambda pid: -1)
        patch.setattr(psutil.Process, "send_signal", deny)
        patch.setattr(process, "PATIENCE", 0.2)
        result = bash(f"sleep {tag} & echo $!")
    assert result.is_error
    pid = int(result.output.splitlines()[0])
    assert result.output == f"{pid}\n\n[1 processes could not be ended, among them: {pid}]"
    os.kill(pid, signal.SIGKILL)


def test_the_last_words_of_a_helper_are_heard() -> None:
    """B13: `tee` may end a moment after its shell"""
    assert bash("echo hi > >(sleep 0.05; cat)").output == "hi"


def test_one_command_ends_without_touching_the_others(tmp_path: Path) -> None:
    """Rule 5"""

    async def all_at_once() -> list[ToolResult]:
        commands = [f"sleep 0.{number}; echo {number}" for number in range(8)]
        return await asyncio.gather(*(execute(command, tmp_path) for command in commands))

    assert [result.output for result in asyncio.run(all_at_once())] == list("01234567")


def test_the_event_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    """B14"""

    async def both() -> ToolResult:
        waiting = asyncio.create_task(
            execute("until [ -e go ]; do sleep 0.01; done; echo went", tmp_path)
        )
        await asyncio.sleep(0)
        (tmp_path / "go").touch()
        return await waiting

    assert asyncio.run(both()).output == "went"


def test_it_runs_where_an_event_loop_is_running_already(tmp_path: Path) -> None:
    """B14: as in a notebook cell"""

    async def cell() -> ToolResult:
        return run_sync(execute("echo hi", tmp_path))

    assert asyncio.run(cell()).output == "hi"


# --- cancellation


async def cancelled_when(ready: Any, command: str, folder: Path) -> None:
    task = asyncio.create_task(execute(command, folder))
    for _ in range(2_000):
        if ready():
            break
        await asyncio.sleep(0.005)
    assert not task.done()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@starts
def test_a_cancelled_command_is_ended_before_the_cancellation_goes_on(
    start: str, tag: str, tmp_path: Path
) -> None:
    """Report R08: a second cancel changes nothing"""
    (tmp_path / "daemon.py").write_text(DAEMON, encoding="utf-8")
    command = f"{start.format(tag=tag)}; touch ready; sleep {tag}"
    asyncio.run(cancelled_when((tmp_path / "ready").exists, command, tmp_path))
    assert not alive(tag)


@pytest.mark.parametrize("turns", range(6))
def test_a_command_can_be_cancelled_at_every_turn_of_the_loop(
    turns: int, tag: str, tmp_path: Path
) -> None:
    """Report R08"""

    async def cancel_early() -> None:
        task = asyncio.create_task(execute(f"sleep {tag}", tmp_path))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_early())
    assert not alive(tag)


def test_a_deadline_from_outside_ends_the_command(tag: str, tmp_path: Path) -> None:
    """A21, report R08"""

    async def limited() -> None:
        async with asyncio.timeout(0.2):
            await execute(f"sleep {tag}", tmp_path)

    with pytest.raises(TimeoutError):
        asyncio.run(limited())
    assert not alive(tag)


# --- and the rest


def test_two_hundred_commands_leave_no_descriptor_no_thread_and_no_zombie() -> None:
    """Report B02"""

    async def repeat(times: int) -> None:
        for number in range(times):
            argv = ["sh", "-c", "sleep 60" if number % 2 else "echo hi"]
            seconds = 0.005 if number % 2 else SOON
            got = bytearray()
            ended = await run_process(
                argv, cwd=Path("/"), env=dict(os.environ), seconds=seconds, receive=got.extend
            )
            assert ended.timed_out == (number % 2 == 1)
            assert got == (b"" if number % 2 else b"hi\n")

    here = psutil.Process()
    children = set(here.children())
    asyncio.run(repeat(2))
    before = here.num_fds(), here.num_threads()
    asyncio.run(repeat(200))
    assert (here.num_fds(), here.num_threads()) == before
    assert set(here.children()) == children
