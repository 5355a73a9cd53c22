"""Killed before and after every write to the disk: what was said to be safe is, and nothing is
made up, doubled or torn."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mini_harness.audit import AuditLog
from mini_harness.audit_entry import AuditDamaged
from mini_harness.audit_texts import GONE
from tests.audit_crashes import LONG, opened, safe
from tests.audits import filled, independent
from tests.conftest import ROOT
from tests.crashes import KILLED, lives

WORLD = "tests.audit_crashes"
DIES_BETWEEN = """
import os, signal, sys
from mini_harness.audit import AuditLog
log = AuditLog(sys.argv[1])
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
log.append("x", {})
"""


def judge(folder: Path, safe_before: list[str], deaths: int = 1) -> None:
    """The log is whole, has what was safe, in its order, and at most one entry more a death."""
    log = opened(folder)
    assert log.verify()
    hashes = [entry["hash"] for entry in independent(log)]
    assert [each for each in hashes if each in safe_before] == safe_before
    assert len(set(hashes)) == len(hashes) <= len(safe_before) + deaths


def test_killed_at_any_moment_it_starts_again_whole_and_ends_the_same(tmp_path: Path) -> None:
    """C45, C48: 3 appends and an erasure, killed before and after each call that writes"""
    states = set()
    with lives(tmp_path, WORLD) as live:
        (tmp_path / "whole").mkdir()
        code, moments = live("whole", 0)
        assert code == 0
        judge(tmp_path / "whole", safe(tmp_path / "whole"))
        assert moments > 40
        for moment in range(1, moments + 1):
            folder = tmp_path / f"at-{moment}"
            folder.mkdir()
            assert live(folder.name, moment).code == KILLED
            was_safe, before = safe(folder), opened(folder)
            states.add(before.verify())
            before.start()
            judge(folder, was_safe)
            assert live(folder.name, 0).code == 0, f"it doesn't go on after moment {moment}"
            log = opened(folder)
            assert log.verify()
            entries = list(log.entries())
            assert [entry.index for entry in entries] == list(range(1, LONG + 2))
            texts = [log.told(entry).get("text") for entry in entries]
            assert texts == ["text 1", GONE, "text 3", None]
            assert b"text 2" not in (folder / "audit.texts").read_bytes()
    assert states == {True, False}, "some moments lie in the window"


def test_killed_again_while_it_starts_it_still_starts(tmp_path: Path) -> None:
    """C48"""
    with lives(tmp_path, WORLD) as live:
        (tmp_path / "whole").mkdir()
        moments = live("whole", 0).moments
        for moment in range(5, moments, 6):
            for second in (1, 2, 3, 5, 8):
                folder = tmp_path / f"at-{moment}-{second}"
                folder.mkdir()
                live(folder.name, moment)
                live(folder.name, second)
                was_safe = safe(folder)
                opened(folder).start()
                judge(folder, was_safe, deaths=2)


def test_where_somebody_else_was_killed_nobody_appends_until_somebody_starts(
    tmp_path: Path,
) -> None:
    """C47, C48: and the lock of the dead holds nobody up"""
    log = filled(tmp_path, 2)
    command = [sys.executable, "-c", DIES_BETWEEN, str(log.path)]
    died = subprocess.run(command, check=False, cwd=ROOT, timeout=60)
    assert died.returncode == -signal.SIGKILL
    with pytest.raises(AuditDamaged, match="interrupted"):
        log.append("x", {})
    assert AuditLog(log.path).start().repairs == ["Entry 3 is in the head now."]
    assert log.append("x", {}).index == 4
    assert log.verify()


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_interrupted_by_ctrl_c_it_leaves_nothing_or_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """An interrupt may come before or after each call; neither leaves a log that refuses"""
    log = filled(tmp_path, 2)
    for after in (False, True):
        for nth in range(4):
            with monkeypatch.context() as patch:
                patch.setattr(os, call, _interrupted(getattr(os, call), nth, after=after))
                with suppress(KeyboardInterrupt):
                    log.append("x", {})
            assert log.verify()
            log.append("y", {})
    assert len(independent(log)) == log.tip().count


def _interrupted(real: Callable[..., Any], nth: int, *, after: bool) -> Callable[..., Any]:
    """The call, interrupted the nth time."""
    left = iter(range(nth, -1, -1))

    def call(*arguments: Any) -> Any:
        now = next(left, None) == 0
        if now and not after:
            raise KeyboardInterrupt
        result = real(*arguments)
        if now:
            raise KeyboardInterrupt
        return result

    return call
