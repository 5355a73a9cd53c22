"""However a command ends, nothing that it started lives on, and nobody waits for long."""

import asyncio
import contextlib
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from mini_harness.sync import run_sync
from mini_harness.tools import process
from mini_harness.tools.base import ToolExecutionContext, ToolResult
from mini_harness.tools.process import run_process
from mini_harness.tools.shell import Bash, BashInput

SOON = 15.0
"""Seconds: a bound for what takes about one on a machine that isn't overloaded."""


async def execute(command: str, folder: Path, **arguments: Any) -> ToolResult:
    wanted = BashInput(command=command, **arguments)
    return await Bash().execute(wanted, ToolExecutionContext(cwd=folder))


def bash(command: str, folder: Path = Path("/"), **arguments: Any) -> ToolResult:
    return asyncio.run(execute(command, folder, **arguments))


def bash_all(commands: Iterable[str], folder: Path, **arguments: Any) -> list[ToolResult]:
    """Run commands side by side."""

    async def all_at_once() -> list[ToolResult]:
        return await asyncio.gather(*(execute(each, folder, **arguments) for each in commands))

    return asyncio.run(all_at_once())


@pytest.fixture
def tag() -> Iterator[str]:
    """A number of seconds to sleep that no other process on this machine sleeps."""
    number = f"86399.{secrets.randbelow(10**12):012}"
    yield number
    for survivor in alive(number):
        survivor.kill()


def alive(tag: str) -> list[psutil.Process]:
    """All running processes that have the tag in their command line."""
    found = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess):
            if tag in " ".join(one.cmdline()) and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
    return found


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
    "own group, no environment": "set -m; env -i sleep {tag} >/dev/null 2>&1 & echo hi",
    "own session": "setsid sleep {tag} & echo hi",
    "orphan in its own session": "setsid -f sleep {tag} >/dev/null 2>&1; echo hi",
    "daemon": "python daemon.py {tag}; echo hi",
    "ignores TERM": "(trap '' TERM; setsid -f sleep {tag}); echo hi",
    "no environment": "env -i sleep {tag} >/dev/null 2>&1 & echo hi",
    "no environment, own session": "env -i setsid -f sleep {tag}; echo hi",
    "started while being looked for": (
        "(setsid sh -c 'sleep {tag} & exec true' >/dev/null 2>&1 &); echo hi"
    ),
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


def test_whoever_is_started_while_being_looked_for_is_found(tag: str) -> None:
    """Report B02: half of these got away from a search that looked once"""
    for _ in range(10):
        bash(STARTS["started while being looked for"].format(tag=tag))
        assert not alive(tag)


def test_at_a_time_out_everything_ends(tag: str, tmp_path: Path) -> None:
    """Reports B01 and B02, rule 5: once the answer is there, no effect can come any more"""
    (tmp_path / "daemon.py").write_text(DAEMON, encoding="utf-8")
    commands = [f"{start}; sleep {tag}; touch landed" for start in STARTS.values()]
    began = time.monotonic()
    results = bash_all(
        [each.replace("{tag}", tag) for each in commands], tmp_path, timeout_seconds=2
    )
    assert not alive(tag)
    assert {result.output for result in results} == {"Command timed out after 2 seconds.\nhi"}
    assert time.monotonic() - began < SOON
    assert not (tmp_path / "landed").exists()


TRICKS = [
    "echo part; trap '' TERM; sleep {tag}; sleep {tag}",
    "echo part; trap 'sleep {tag}' TERM; sleep {tag}",
    "echo part; python3 -c 'import time; time.sleep({tag})'; true",
    "echo part; while true; do sleep {tag} & sleep 0.01; done",
    "echo part; exec >&- 2>&-; sleep {tag}",
    "echo part; kill -STOP $$; sleep {tag}",
    "echo part; env -i setsid --wait sleep {tag} >/dev/null 2>&1",
]


def test_neither_ignored_signals_nor_tricks_delay_a_time_out(tag: str, tmp_path: Path) -> None:
    """Reports B01 and B02"""
    began = time.monotonic()
    commands = [trick.format(tag=tag) for trick in TRICKS]
    results = bash_all(commands, tmp_path, timeout_seconds=1)
    assert not alive(tag)
    assert {result.output.splitlines()[1] for result in results} == {"part"}
    assert all(result.metadata["timed_out"] for result in results)
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
    assert result.output == f"{pid}\n[even KILL did not end these processes: {pid}]"


def test_where_no_exit_code_can_be_learnt_no_command_is_run(tmp_path: Path) -> None:
    """Rule 1: Python takes an exit code that it can't get for 0"""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        result = bash("touch landed", tmp_path)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert result.is_error
    assert "SIGCHLD" in result.output
    assert not (tmp_path / "landed").exists()


def test_the_last_words_of_a_helper_are_heard() -> None:
    """B13: `tee` may end a moment after its shell"""
    assert bash("echo hi > >(sleep 0.05; cat)").output == "hi"


def test_one_command_ends_without_touching_the_others(tmp_path: Path) -> None:
    """Rule 5"""
    results = bash_all([f"sleep 0.{number}; echo {number}" for number in range(8)], tmp_path)
    assert [result.output for result in results] == list("01234567")


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


async def cancelled_when(ready: Callable[[], bool], command: str, folder: Path) -> None:
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
            assert bytes(got) == (b"" if number % 2 else b"hi\n")

    here = psutil.Process()
    children = set(here.children())
    asyncio.run(repeat(2))
    before = here.num_fds()
    asyncio.run(repeat(200))
    assert here.num_fds() == before
    for thread in threading.enumerate():
        if thread.name.startswith("MINI_HARNESS_JOB"):
            thread.join(SOON)
            assert not thread.is_alive()
    assert set(here.children()) == children
