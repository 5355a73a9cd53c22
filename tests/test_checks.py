"""A check passes only if the program says so by its exit code, and its report by its tests."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from mini_harness.checks import Check, CheckResult, CheckVerdict, Counts, ExitCheck

PASSED, FAILED, NO_EVIDENCE = CheckVerdict
ONE = "<testsuites><testsuite><testcase/></testsuite></testsuites>"


def done(cwd: Path, argv: list[str], kind: type[Check] = Check, **how: Any) -> CheckResult:
    return asyncio.run(kind("tests", argv, **how).run(cwd))


def python(source: str, *more: str) -> list[str]:
    return ["python", "-c", source, *more]


def writes(report: str, code: int = 0, says: str = "") -> list[str]:
    """A program that prints something, writes this report and ends."""
    source = "import sys; open(sys.argv[1], 'w').write(sys.argv[2]); print(sys.argv[3])"
    return python(f"{source}; sys.exit({code})", "{junit}", report, says)


def suite(cwd: Path, **tests: str) -> list[str]:
    """A pytest with these tests, each of one line."""
    lines = [f"def test_{name}():\n    {body}\n" for name, body in tests.items()]
    (cwd / "test_it.py").write_text("import os\n" + "\n".join(lines), encoding="utf-8")
    return ["pytest", "-q", "-s", "-p", "no:cacheprovider", "--disable-plugin-autoload"]


def test_a_suite_passes_if_all_of_it_passes(tmp_path: Path) -> None:
    """report V02: exit 0, the count as expected and above 0, setup ok"""
    argv = suite(tmp_path, one="pass", two="pass")
    found = done(tmp_path, argv, expected=2, setup=[python("pass")])
    assert (found.verdict, found.passed, found.returncode) == (PASSED, 2, 0)
    assert found.reason == "2 tests passed."
    assert done(tmp_path, [sys.executable, "-m", *argv]).verdict is PASSED


def test_what_the_subject_prints_raises_no_count(tmp_path: Path) -> None:
    """report V02: "5 passed" printed by the code under test"""
    forged = "print('5 passed in 0.1s <testcase/><testcase/>', flush=True)"
    argv = suite(tmp_path, one=forged, two="pass")
    found = done(tmp_path, argv, expected=5)
    assert (found.verdict, found.passed) == (FAILED, 2)
    assert found.reason == "2 tests passed, and 5 must."
    assert "5 passed" in found.tail
    assert done(tmp_path, argv).passed == 2


@pytest.mark.parametrize(
    ("says", "code", "expected", "verdict"),
    [
        ("1 passed, 0 failed", 1, None, FAILED),
        ("0 passed", 0, None, NO_EVIDENCE),
        ("4 passed", 0, 4, NO_EVIDENCE),
        ("4 passed", 0, None, NO_EVIDENCE),
    ],
)
def test_printed_text_alone_is_no_evidence(
    says: str, code: int, expected: int | None, verdict: CheckVerdict, tmp_path: Path
) -> None:
    """report V02"""
    program = python(f"import sys; print('{says}'); sys.exit({code})")
    assert done(tmp_path, program, expected=expected).verdict is verdict


@pytest.mark.parametrize(
    ("setup", "reason"),
    [
        (["sh", "-c", "exit 127"], "ended with exit code 127"),
        (["no-such-program"], "didn't start"),
    ],
)
def test_without_its_setup_a_check_is_no_evidence(
    setup: list[str], reason: str, tmp_path: Path
) -> None:
    """report V02: setup exit 127, then test exit 0"""
    mark = tmp_path / "ran"
    argv = python(f"open({str(mark)!r}, 'w')")
    found = done(tmp_path, argv, setup=[setup])
    assert found.verdict is NO_EVIDENCE
    assert reason in found.reason
    assert not mark.exists()


def test_a_suite_without_a_test_is_no_evidence(tmp_path: Path) -> None:
    """report V02: pytest exit 5"""
    found = done(tmp_path, suite(tmp_path))
    assert (found.verdict, found.returncode) == (NO_EVIDENCE, 5)
    skipped = done(tmp_path, suite(tmp_path, one="import pytest; pytest.skip()"))
    assert (skipped.verdict, skipped.passed) == (NO_EVIDENCE, 0)


def test_a_suite_that_fails_or_dies_has_not_passed(tmp_path: Path) -> None:
    """report V02: one that died after its first check"""
    found = done(tmp_path, suite(tmp_path, one="pass", two="assert False"))
    assert (found.verdict, found.passed, found.returncode) == (FAILED, 1, 1)
    died = suite(tmp_path, one="print('1 passed, 0 failed', flush=True)", two="os._exit(0)")
    found = done(tmp_path, died)
    assert (found.verdict, found.passed, found.returncode) == (NO_EVIDENCE, None, 0)


@pytest.mark.parametrize(
    ("report", "code", "verdict"),
    [
        (ONE, 0, PASSED),
        (ONE, 1, FAILED),
        (ONE, 5, FAILED),
        (ONE.replace("<testcase/>", "<testcase/><testcase><failure/></testcase>"), 0, FAILED),
        (ONE.replace("<testcase/>", "<testcase/><testcase><error/></testcase>"), 0, FAILED),
        (ONE.replace("<testcase/>", "<testcase><skipped/></testcase>"), 0, NO_EVIDENCE),
        (ONE.replace("<testcase/>", ""), 0, NO_EVIDENCE),
        ('<testsuite tests="9" failures="0"/>', 0, NO_EVIDENCE),
        ("<testsuite><testcase/>", 0, NO_EVIDENCE),
        ("<html><testcase/></html>", 0, NO_EVIDENCE),
        (f"<!DOCTYPE x [<!ENTITY a 'b'>]>{ONE}", 0, NO_EVIDENCE),
        ("", 0, NO_EVIDENCE),
    ],
)
def test_exit_code_and_report_must_say_the_same(
    report: str, code: int, verdict: CheckVerdict, tmp_path: Path
) -> None:
    """report V02: a green report doesn't beat the exit code, nor the other way round"""
    assert done(tmp_path, writes(report, code, "9 passed")).verdict is verdict


def test_the_report_is_new_each_time_and_lies_outside_of_the_folder(tmp_path: Path) -> None:
    """report V02: a report that was there before is nobody's evidence"""
    (tmp_path / "junit.xml").write_text(ONE, encoding="utf-8")
    assert done(tmp_path, python("pass", "{junit}")).verdict is NO_EVIDENCE
    assert done(tmp_path, writes(ONE)).verdict is PASSED
    assert [path.name for path in tmp_path.iterdir()] == ["junit.xml"]
    assert Counts.read(tmp_path / "none.xml") is None


def test_a_check_has_an_end(tmp_path: Path) -> None:
    """Rule 5: nothing waits for ever, and what did not end has shown nothing."""
    found = done(tmp_path, python("import time; time.sleep(60)"), seconds=0.3)
    assert (found.verdict, found.returncode) == (NO_EVIDENCE, None)
    assert "took longer than 0.3 seconds" in found.reason


def test_no_shell_comes_between(tmp_path: Path) -> None:
    """report V01: by its words, so `||` is a word like any"""
    argv = python("import sys; sys.exit(len(sys.argv) - 1)", "||", "true", "| tail")
    assert done(tmp_path, argv, ExitCheck).returncode == 3


def test_a_program_that_counts_nothing_passes_by_its_exit_code_if_that_was_asked_for(
    tmp_path: Path,
) -> None:
    assert done(tmp_path, python("pass"), ExitCheck).verdict is PASSED
    assert done(tmp_path, python("raise SystemExit(2)"), ExitCheck).verdict is FAILED
    assert done(tmp_path, ["no-such-program"], ExitCheck).verdict is NO_EVIDENCE
    with pytest.raises(ValueError, match="use Check"):
        ExitCheck("lint", ["true"], expected=1)


def test_secrets_and_the_options_of_an_outer_pytest_stay_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2hunter2")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    assert done(tmp_path, python("import os; print(dict(os.environ))")).tail.count("hunter2") == 0
    assert done(tmp_path, suite(tmp_path, one="pass")).verdict is PASSED


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"argv": "pytest -q"}, TypeError),
        ({"argv": []}, ValueError),
        ({"argv": [""]}, ValueError),
        ({"argv": ["a\0"]}, ValueError),
        ({"setup": ["pip install"]}, TypeError),
        ({"expected": 0}, ValueError),
        ({"expected": True}, TypeError),
        ({"expected": "4"}, TypeError),
        ({"seconds": 0}, ValueError),
        ({"seconds": float("nan")}, ValueError),
    ],
)
def test_a_check_that_could_never_pass_is_refused(
    wrong: dict[str, Any], error: type[Exception]
) -> None:
    """report V02: expected 0 would be satisfied by not running"""
    with pytest.raises(error):
        Check(**{"name": "tests", "argv": ["pytest"], **wrong})
