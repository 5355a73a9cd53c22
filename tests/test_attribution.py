"""Whose exit code a line's is: held against a real bash."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mini_harness.attribution import attributable, why_not_attributable

BASH = shutil.which("bash")

NOT_ITS_OWN = [
    "pytest | tail -5",
    "pytest || true",
    "pytest; echo done",
    "pytest 2>&1 | tee log",
    "(exit 1); true",
]
"""Report V01, but for the last one there."""

HIDING = [
    *NOT_ITS_OWN,
    "pytest |& tail",
    "pytest & wait",
    "pytest &",
    "! pytest",
    "echo $(pytest)",
    'echo "$(pytest)"',
    "echo `pytest`",
    "x=$(pytest) true",
    "cat <(pytest)",
    "(pytest; true)",
    "{ pytest; true; }",
    "if pytest; then true; fi",
    "while pytest; do true; done; true",
    "for i in 1; do pytest; true; done",
    "pytest\ntrue",
    "cat << E\n$(pytest)\nE",
    "cat <<< $(pytest)",
    "bash -c 'pytest || true'",
    "timeout 9 bash -c 'pytest || true'",
    "env bash -c 'pytest; true'",
    "eval 'pytest || true'",
    "eval pytest '||' true",
    "find . -maxdepth 0 -exec pytest \\;",
    "timeout 9 find . -maxdepth 0 -exec pytest \\;",
    "trap 'exit 0' EXIT && pytest",
    "exit 0 && pytest",
    "exec true && pytest",
    "set +o pipefail; pytest | true",
    "set -o pipefail; set +o pipefail; pytest | true",
    "set -o pipefail && set +o pipefail && pytest | true",
    "set -o pipefail; pytest || true",
    "set -o pipefail; pytest | true; true",
    "set -o pipefail; pytest | true &",
    "set -e; pytest || true",
    "set -e; pytest | true",
    "set -e; pytest && true; true",
    "pytest # it\ntrue",
    "true && pytest | true",
    "function pytest { true; }; pytest",
    "pytest() { true; }; pytest",
    "shopt -s expand_aliases\nalias pytest=true\npytest",
    "hash -p /bin/true pytest && pytest",
    "coproc pytest; wait",
    "[[ $(pytest) ]]; true",
]
"""Every one of them ends with 0, and pytest failed in it, or never ran."""

SHOWING = [
    "pytest",
    "pytest -q",
    "pytest;",
    "cd . && pytest -k 'a | b'",
    'pytest -k "a; b || c"',
    "true && pytest && true",
    "pytest 2>&1",
    "pytest > log 2>&1",
    "CI=1 pytest",
    "CI=1 pytest && true",
    "timeout 9 pytest",
    "env A=1 pytest",
    "pytest \\\n  -q",
    "set -o pipefail; pytest | tail -5",
    "set -o pipefail && pytest 2>&1 | tee log",
    "set -euo pipefail\npytest | tail",
    "set -o pipefail; true | pytest | true && true",
    "set -e; pytest",
]
"""Every one of them fails when pytest does."""


def ends(line: str, folder: Path, code: int) -> int:
    """What bash ends with, where ``pytest`` is a program that ends with this code, and leaves a
    file ``ran``."""
    program = folder / "bin" / "pytest"
    program.parent.mkdir(exist_ok=True)
    script = f"#!/bin/sh\n: > '{folder / 'ran'}'\nexit {code}\n"
    program.write_text(script, encoding="utf-8")
    program.chmod(0o755)
    assert BASH is not None
    env = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    return subprocess.run(
        [BASH, "-c", line], cwd=folder, env=env, check=False, capture_output=True, timeout=60
    ).returncode


@pytest.mark.parametrize("line", HIDING)
def test_a_line_that_may_hide_a_failure_is_not_attributable(line: str, tmp_path: Path) -> None:
    """report V01: bash says 0 though pytest failed"""
    assert why_not_attributable(line)
    assert not attributable(line)
    assert ends(line, tmp_path, 1) == 0, "this line hides nothing, so it is a bad example"


@pytest.mark.parametrize("line", SHOWING)
def test_a_line_that_fails_with_its_program_is_attributable(line: str, tmp_path: Path) -> None:
    """report V01: its sixth input among them"""
    assert why_not_attributable(line) == ""
    assert ends(line, tmp_path, 1) == 1
    assert ends(line, tmp_path, 0) == 0


@pytest.mark.parametrize(
    "line",
    [
        "",
        "  ",
        "'pytest",
        "pytest &&",
        "&& pytest",
        "$A",
        "A=1",
        "pytest &> log",
        "pytest )",
        "a\0b",
    ],
)
def test_what_cannot_be_judged_is_never_attributable(line: str) -> None:
    """V01: could not judge is never yes"""
    assert not attributable(line)


WORDS = ("pytest", "true", "false", "cd", "exit", "!", "{", "}", "x=1", "'a b'", '"; true"', "2>&1")
JOINTS = (" && ", " || ", " | ", "; ", " & ", "\n", " |& ", " ", ";", " \\\n", " # ", " (", ") ")
STARTS = ("", "set -o pipefail; ", "set -e; ", "set -o pipefail && ")


@st.composite
def lines(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(JOINTS)), max_size=5))
    start, last = draw(st.sampled_from(STARTS)), draw(st.sampled_from(("pytest", "true", "false")))
    return start + "".join(word + joint for word, joint in parts) + last


@settings(max_examples=400)
@given(line=lines())
@example(line="true pytest")
def test_no_attributable_line_ends_well_with_a_failing_program_on_it(
    line: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """report V01: whatever is put together, bash is asked"""
    if attributable(line):
        folder = tmp_path_factory.mktemp("line")
        ended = ends(line, folder, 1)
        assert ended != 0 or not (folder / "ran").exists()
