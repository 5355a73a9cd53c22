"""Many at once on one audit log: nothing is lost, doubled or out of order."""

import asyncio
import fcntl
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mini_harness.audit import AuditLog
from mini_harness.audit_file import AuditIsBusy
from mini_harness.audit_sink import Audit
from mini_harness.tools.builds import TOOLS
from tests.audits import EACH, filled, independent, write
from tests.conftest import ROOT
from tests.loops import DONE, call, harness

THREADS = 32
PROCESSES, THREADS_OF_ONE = 4, 8

WRITER = """
import sys
from tests.audits import write
write(sys.argv[1], sys.argv[2], threads=8)
"""


def whole(log: AuditLog, writers: int) -> None:
    """One chain, in which the entries of each writer stand in their order, once each."""
    assert log.verify()
    found = independent(log)
    assert len(found) == writers * EACH
    assert len({entry["prev_hash"] for entry in found}) == len(found), "the chain has no fork"
    said = [(entry["data"]["who"], entry["data"]["count"]) for entry in found]
    assert set(Counter(who for who, _ in said).values()) == {EACH}
    for name in {who for who, _ in said}:
        assert [count for who, count in said if who == name] == list(range(EACH))


def test_32_threads_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    """C46, report D08"""
    log = AuditLog(tmp_path / "audit.jsonl")
    write(str(log.path), "a", threads=THREADS)
    whole(log, THREADS)


def test_4_processes_with_8_threads_each_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    """C46, report D08: all of them begin with no log there"""
    log = AuditLog(tmp_path / "audit.jsonl")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(log.path), f"p{number}"],
            cwd=ROOT,
            stderr=subprocess.PIPE,
        )
        for number in range(PROCESSES)
    ]
    for each in writers:
        _, said = each.communicate(timeout=120)
        assert each.returncode == 0, said.decode()
    whole(log, PROCESSES * THREADS_OF_ONE)


def test_two_who_make_a_log_at_the_same_moment_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C46: one looks and finds none, and before it looks again the other has appended"""
    log, real, others = AuditLog(tmp_path / "audit.jsonl"), os.open, [1]

    def slow(path: Path, *options: int) -> int:
        try:
            return real(path, *options)
        except FileNotFoundError:
            if others and path == log.path:
                others.clear()
                AuditLog(log.path).append("x", {"who": "other"})
            raise

    monkeypatch.setattr(os, "open", slow)
    assert log.append("x", {"who": "one"}).index == 2
    assert not others
    assert log.verify()


def test_many_runs_share_a_log_and_each_is_there_in_its_order(tmp_path: Path) -> None:
    """C43, C46: one sink for all, and one for each"""
    log = AuditLog(tmp_path / "audit.jsonl")
    shared = Audit(log, session_id="shared")

    def tour(number: int) -> None:
        sink = shared if number % 2 else Audit(AuditLog(log.path), session_id=f"s{number}")
        player, _ = harness(
            [call("read_build", build_id="build-101"), DONE], TOOLS.values(), sinks=[sink]
        )
        asyncio.run(player.run("go"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(tour, range(16)))
    assert log.verify()
    entries = list(log.entries())
    assert len(entries) == 16 * 4
    for number in range(0, 16, 2):
        own = [each.action for each in entries if each.data["sessionId"] == f"s{number}"]
        assert own == ["user_prompt", "tool_call", "tool_result", "assistant_message"]


def test_to_check_while_others_append_finds_nothing_wrong(tmp_path: Path) -> None:
    """A check never sees an entry that the head doesn't count yet"""
    log = filled(tmp_path, 1)
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(write, str(log.path), "a", threads=2)
        checks = []
        while not writing.done():
            checks.append(AuditLog(log.path).check())
        writing.result()
    assert all(check.ok for check in checks)
    assert [check.entries for check in checks] == sorted(check.entries for check in checks)


def test_nobody_waits_for_ever_for_somebody_who_holds_the_lock(tmp_path: Path) -> None:
    """DESIGN, rule 5"""
    log = filled(tmp_path, 1)
    impatient = AuditLog(log.path, patience=0.05)
    descriptor = os.open(log.path, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        for attempt in (impatient.start, impatient.check, lambda: impatient.append("x", {})):
            with pytest.raises(AuditIsBusy, match=r"held audit.jsonl for 0.05 seconds"):
                attempt()
    finally:
        os.close(descriptor)
    assert impatient.append("x", {}).index == 2
