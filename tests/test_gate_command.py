"""`mini-harness gate`, run as a CI job runs it: what counts is the exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mini_harness.gate_file import load_report
from mini_harness.results import FailureKind, Report
from tests.gates import of, one, report

COMMAND = [sys.executable, "-m", "mini_harness.cli", "gate"]
RULES = "[pass_rate]\nat_least = 0.9\n"


def gate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


def prepared(folder: Path, found: Report, rules: str = RULES) -> Path:
    (folder / "gate.toml").write_text(rules, encoding="utf-8")
    (folder / "results.json").write_text(found.to_json(), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("cases", "code", "word"),
    [
        ("PPPPPPPPPF", 0, "PASS"),
        ("PPPPPPPPFF", 1, "FAIL"),
        ("PEEEEEEEEE", 2, "INCONCLUSIVE"),
        ("PPPPPPPPPS", 2, "INCONCLUSIVE"),
        ("", 2, "INCONCLUSIVE"),
    ],
)
def test_the_exit_code_is_the_verdict(tmp_path: Path, cases: str, code: int, word: str) -> None:
    """report G05, G01"""
    done = gate(prepared(tmp_path, report(*cases)), "--results", "results.json")
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.splitlines()[-1].startswith(f"Gate {word}: ")


def test_no_cases_pass_only_when_that_is_asked_for(tmp_path: Path) -> None:
    """report G01"""
    prepared(tmp_path, report(source="casez/ with tag 'slwo'"))
    done = gate(tmp_path, "--results", "results.json")
    assert done.returncode == 2
    assert "casez/ with tag 'slwo'" in done.stdout
    assert gate(tmp_path, "--results", "results.json", "--allow-empty").returncode == 0


def test_all_forms_are_written_and_say_the_same(tmp_path: Path) -> None:
    prepared(tmp_path, report(*"PPF"))
    files = ["--report", "gate.md", "--junit", "gate.xml", "--json", "gate.out.json"]
    done = gate(tmp_path, "--results", "results.json", *files)
    assert done.returncode == 1
    assert "❌ fail" in (tmp_path / "gate.md").read_text(encoding="utf-8")
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("failures") == "2"
    found = json.loads((tmp_path / "gate.out.json").read_text(encoding="utf-8"))
    assert found["exit_code"] == 1
    assert not list(tmp_path.glob("*.new"))


@pytest.mark.parametrize(("cases", "code"), [("P", 2), ("F", 1)])
@pytest.mark.parametrize("option", ["--report", "--junit", "--json"])
def test_a_report_that_cannot_be_written_is_no_pass(
    tmp_path: Path, option: str, cases: str, code: int
) -> None:
    """report G05"""
    prepared(tmp_path, report(*cases))
    done = gate(tmp_path, "--results", "results.json", option, "none/report")
    assert done.returncode == code
    assert "none/report could not be written: No such file" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    prepared(tmp_path, report(*"P"))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Open for both, so that neither side waits for the other.
    end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        assert gate(tmp_path, "--results", "results.json", "--report", "pipe").returncode == 0
        assert "✅ pass".encode() in os.read(end, 65_536)
    finally:
        os.close(end)
    assert pipe.is_fifo()
    (tmp_path / "link.md").symlink_to("target.md")
    gate(tmp_path, "--results", "results.json", "--report", "link.md")
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "target.md").is_file()


@pytest.mark.parametrize("raised", ["RuntimeError('no')", "SystemExit(0)", "RecursionError()"])
def test_a_gate_that_breaks_is_no_pass(tmp_path: Path, raised: str) -> None:
    """report G05: also when the code of a case asks to exit with 0"""
    program = (
        "import sys, mini_harness.cli as cli, mini_harness.gate_command as command\n"
        f"def breaks(*_): raise {raised}\n"
        "command.load_report = breaks\n"
        "sys.exit(cli.main(['gate', '--results', 'results.json']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, check=False, capture_output=True
    )
    assert done.returncode == 2
    assert b"Traceback" in done.stderr


@pytest.mark.parametrize(("cases", "code"), [("P", 0), ("F", 1), ("E", 2)])
def test_a_reader_that_goes_away_does_not_change_the_verdict(
    tmp_path: Path, cases: str, code: int
) -> None:
    """report G05: `mini-harness gate | true` in a shell with pipefail"""
    prepared(tmp_path, report(*cases))
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(
            [*COMMAND, "--results", "results.json"],
            cwd=tmp_path,
            check=False,
            stdout=closed,
            stderr=subprocess.PIPE,
        )
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device that is always full")
@pytest.mark.parametrize(("cases", "code"), [("P", 2), ("F", 1)])
def test_a_full_disk_behind_the_output_is_no_pass(tmp_path: Path, cases: str, code: int) -> None:
    """report G05"""
    prepared(tmp_path, report(*cases))
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [*COMMAND, "--results", "results.json"], cwd=tmp_path, check=False, stdout=full
        )
    assert done.returncode == code


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--results", "none.json"], "none.json: No such file"),
        (["--results", "gate.toml"], "This is no report"),
        (["--results", "results.json", "--rules", "none.toml"], "none.toml: No such file"),
        (["--results", "results.json", "--kind", "timeout"], "is no kind: there are none, "),
        (["--results", "results.json", "--repeats", "2"], "--results runs nothing"),
        (["cases", "--results", "results.json"], "--results runs nothing"),
        (["--results", "results.json", "--update-baseline"], "needs --baseline"),
        (["--repeats", "0"], "is no number from 1"),
        (["--processes", "-1"], "is no number from 1"),
        (["--rule", "gate.toml"], "unrecognized arguments"),
        (["--nonsense"], "unrecognized arguments"),
    ],
    ids=" ".join,
)
def test_what_was_wrongly_asked_exits_2_and_says_why(
    tmp_path: Path, arguments: list[str], says: str
) -> None:
    done = gate(prepared(tmp_path, report("P")), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_baseline_is_compared_with_and_a_missing_one_is_no_pass(tmp_path: Path) -> None:
    prepared(tmp_path, report(*"P" * 9, "F"))
    same = ["--results", "results.json", "--baseline"]
    assert gate(tmp_path, *same, "results.json").returncode == 0
    (tmp_path / "before.json").write_text(report(*"P" * 10).to_json(), encoding="utf-8")
    done = gate(tmp_path, *same, "before.json")
    assert done.returncode == 1
    assert "case-9: it passed 1 of 1 then, and 0 of 1 now" in done.stdout
    done = gate(tmp_path, *same, "missing.json")
    assert done.returncode == 2
    assert "missing.json: No such file" in done.stdout


def test_only_results_that_pass_become_the_baseline(tmp_path: Path) -> None:
    good = report(*"P" * 9, "F")
    prepared(tmp_path, good)
    keep = ["--results", "results.json", "--baseline", "b.json", "--update-baseline"]
    assert gate(tmp_path, *keep).returncode == 0
    assert load_report(tmp_path / "b.json") == good
    for cases, code in (("PF", 1), ("PE", 2), ("", 2)):
        (tmp_path / "results.json").write_text(report(*cases).to_json(), encoding="utf-8")
        done = gate(tmp_path, *keep, "--allow-empty")
        assert (done.returncode, load_report(tmp_path / "b.json")) == (code, good)
        assert "b.json stays as it was" in done.stderr
    # A case that is gone is a regression, until somebody accepts it.
    (tmp_path / "results.json").write_text(report(*"P" * 9).to_json(), encoding="utf-8")
    assert gate(tmp_path, *keep[:-1]).returncode == 1
    assert gate(tmp_path, *keep).returncode == 0
    assert gate(tmp_path, *keep[:-1]).returncode == 0


def test_of_a_kind_only_its_cases_are_judged_here_and_in_the_baseline(tmp_path: Path) -> None:
    late, wrong = FailureKind.TIME_OUT, FailureKind.WRONG_ANSWER
    both = of(one("P", "a", kind=late), one("F", "b", kind=wrong))
    prepared(tmp_path, both)
    of_kind = ["--results", "results.json", "--baseline", "results.json", "--kind"]
    assert gate(tmp_path, *of_kind, "time_out").returncode == 0
    assert gate(tmp_path, *of_kind, "wrong_answer").returncode == 1
    none = gate(tmp_path, *of_kind, "endless")
    assert none.returncode == 2
    assert "only endless" in none.stdout
    assert gate(tmp_path, *of_kind, "time_out", "--kind", "wrong_answer").returncode == 1


def test_a_corpus_that_is_not_there_is_named_and_no_pass(tmp_path: Path) -> None:
    """report G01"""
    prepared(tmp_path, report())
    done = gate(tmp_path, "casez")
    assert (done.returncode, done.stderr) == (2, "")
    assert "casez" in done.stdout


def test_a_journal_is_gone_when_all_is_done(tmp_path: Path) -> None:
    done = gate(tmp_path, "--journal", "journal")
    assert done.returncode == 0
    assert not (tmp_path / "journal").exists()


def test_the_shipped_corpus_passes_in_one_process_and_over_two(tmp_path: Path) -> None:
    done = gate(tmp_path)
    assert "no_regression" in done.stdout
    assert done.returncode == 0, done.stdout
    assert gate(tmp_path, "--processes", "2").stdout == done.stdout
