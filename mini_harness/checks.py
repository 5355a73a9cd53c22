"""A second look that nobody can talk into a pass (report V02).

The harness runs the check itself, by its words and without a shell, so no pipe and no ``|| true``
stands between the program and its exit code. How many tests passed is read from a JUnit file whose
place the harness chooses. What the tests print counts for nothing, neither for nor against.

It is no sandbox. A test that looks for that file and ends the process by force could write a
report of its own.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

from mini_harness.redact import is_secret_variable
from mini_harness.tools.process import NotStarted, run_process
from mini_harness.visible import counted, visible

REPORT = "{junit}"
"""Stands in a check's words for the file into which the program is to write its JUnit report."""

_LARGEST = 50 * 1024 * 1024
_TAIL = 2_000
_NO_TESTS = 5
"""With this code pytest says that it has found no test."""


class CheckVerdict(StrEnum):
    """Only PASSED is a pass. NO_EVIDENCE says that nothing was tested, or that nobody can tell."""

    PASSED = "passed"
    FAILED = "failed"
    NO_EVIDENCE = "no_evidence"


@dataclass(frozen=True)
class CheckResult:
    """What came of a check. ``passed`` counts tests, and is None if no report was written."""

    name: str
    verdict: CheckVerdict
    reason: str
    passed: int | None = None
    returncode: int | None = None
    tail: str = ""
    """The end of what it printed, for people."""


@dataclass(frozen=True)
class Check:
    """A test program that the harness runs by itself.

    ``argv`` are its words. Where ``{junit}`` stands in them, the program is told where to write its
    report; pytest is told so anyway. ``expected`` is how many tests must pass, no fewer and no
    more; without it at least one must. ``setup`` are programs that must end with 0 before it. Each
    of them has ``seconds``.

    Raises ValueError for what could never pass, and TypeError for a line in the place of words.
    """

    name: str
    argv: Sequence[str]
    expected: int | None = None
    setup: Sequence[Sequence[str]] = ()
    seconds: float = 300.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "argv", _words(self.argv))
        object.__setattr__(self, "setup", tuple(map(_words, self.setup)))
        if self.expected is not None:
            if not isinstance(self.expected, int) or isinstance(self.expected, bool):
                raise TypeError(f"expected must be an integer, but it is {self.expected!r}.")
            if self.expected < 1:
                raise ValueError(
                    f"expected is {self.expected}: a check without a test proves nothing."
                )
        if not 0 < self.seconds < math.inf:
            raise ValueError(f"seconds is {self.seconds}, but must be more than 0, and finite.")

    async def run(self, cwd: Path) -> CheckResult:
        """Run it in this folder. Cancelling ends the programs, and all that they started."""
        with tempfile.TemporaryDirectory(prefix="mini-harness-check-") as folder:
            report = Path(folder) / "junit.xml"
            for words in self.setup:
                done = await _run(words, cwd, self.seconds)
                if done.returncode != 0:
                    reason = f"Its setup `{visible(' '.join(words))}` {done.how}."
                    return self._result(CheckVerdict.NO_EVIDENCE, reason, done)
            done = await _run(_with_report(self.argv, report), cwd, self.seconds)
            if done.returncode is None:
                return self._result(CheckVerdict.NO_EVIDENCE, f"It {done.how}.", done)
            return self._judged(done, Counts.read(report))

    def _judged(self, done: _Done, counts: Counts | None) -> CheckResult:
        """The exit code and the report must say the same."""
        verdict, passed = CheckVerdict.FAILED, None if counts is None else counts.passed
        if done.returncode == _NO_TESTS and not passed:
            verdict, reason = CheckVerdict.NO_EVIDENCE, "It found no test"
        elif done.returncode != 0:
            reason = f"It {done.how}"
        elif counts is None:
            verdict, reason = CheckVerdict.NO_EVIDENCE, "It wrote no report that can be read"
        elif counts.failed:
            reason = f"In its report, {counted(counts.failed, 'test')} did not pass"
        elif not counts.passed:
            verdict, reason = CheckVerdict.NO_EVIDENCE, "In its report, no test passed"
        elif self.expected not in (None, counts.passed):
            reason = f"{counted(counts.passed, 'test')} passed, and {self.expected} must"
        else:
            verdict, reason = CheckVerdict.PASSED, f"{counted(counts.passed, 'test')} passed"
        return self._result(verdict, f"{reason}.", done, passed)

    def _result(
        self, verdict: CheckVerdict, reason: str, done: _Done, passed: int | None = None
    ) -> CheckResult:
        return CheckResult(self.name, verdict, reason, passed, done.returncode, done.tail)


@dataclass(frozen=True)
class ExitCheck(Check):
    """A program that is no test suite, such as a linter: it passes if it ends with 0.

    Nobody counts anything, so use it only for programs that fail when they find nothing to do.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.expected is not None:
            raise ValueError("Nothing is counted here. For a number of tests, use Check.")

    def _judged(self, done: _Done, counts: Counts | None) -> CheckResult:
        good = done.returncode == 0
        return self._result(
            CheckVerdict.PASSED if good else CheckVerdict.FAILED, f"It {done.how}.", done
        )


@dataclass(frozen=True)
class Counts:
    """How many tests of a JUnit report passed, and how many failed or broke."""

    passed: int
    failed: int

    @classmethod
    def read(cls, path: Path) -> Counts | None:
        """None if there is no report, or it isn't one. The cases are counted, not its own sums."""
        try:
            data = path.read_bytes() if path.stat().st_size <= _LARGEST else b""
            # No report has one, and with one a few lines can fill the memory.
            root = ElementTree.fromstring(b"" if b"<!DOCTYPE" in data else data)
        except (OSError, ElementTree.ParseError):
            return None
        if root.tag not in ("testsuites", "testsuite"):
            return None
        ends = [{part.tag for part in case} for case in root.iter("testcase")]
        failed = sum(bool(parts & {"failure", "error"}) for parts in ends)
        return cls(sum(not parts & {"failure", "error", "skipped"} for parts in ends), failed)


@dataclass(frozen=True)
class _Done:
    returncode: int | None
    how: str
    tail: str


async def _run(words: Sequence[str], cwd: Path, seconds: float) -> _Done:
    tail = bytearray()

    def receive(piece: bytes) -> None:
        tail.extend(piece)
        del tail[:-_TAIL]

    try:
        ended = await run_process(
            words, cwd=cwd, env=_environment(os.environ), seconds=seconds, receive=receive
        )
    except NotStarted as error:
        return _Done(None, f"didn't start: {error}", "")
    text = tail.decode(errors="replace").strip()
    if ended.timed_out:
        return _Done(None, f"took longer than {seconds:g} seconds and was ended", text)
    return _Done(ended.returncode, f"ended with exit code {ended.returncode}", text)


def _environment(outer: Mapping[str, str]) -> dict[str, str]:
    """Without secrets, and without what would change how a pytest inside works. ``python`` is the
    one that the harness runs on."""
    env = {
        name: value
        for name, value in outer.items()
        if not (is_secret_variable(name) or name.startswith("PYTEST_"))
    }
    here = [str(Path(sys.executable).parent)] if sys.executable else []
    return {**env, "PATH": os.pathsep.join([*here, env.get("PATH", os.defpath)])}


def _with_report(argv: Sequence[str], report: Path) -> list[str]:
    words = [word.replace(REPORT, str(report)) for word in argv]
    if words == list(argv) and _is_pytest(argv):
        words.append(f"--junitxml={report}")
    return words


def _is_pytest(argv: Sequence[str]) -> bool:
    names = {Path(argv[0]).name, *(name for mark, name in pairwise(argv) if mark == "-m")}
    return not names.isdisjoint(("pytest", "py.test"))


def _words(argv: Sequence[str]) -> tuple[str, ...]:
    if isinstance(argv, str) or not all(isinstance(word, str) for word in argv):
        raise TypeError(f"Give a program as a list of words, not {argv!r:.100}.")
    if not argv or not argv[0] or any("\0" in word for word in argv):
        raise ValueError(f"{list(argv)!r:.100} names no program.")
    return tuple(argv)
