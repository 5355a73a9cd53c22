"""The reading of a command line against bash itself: what runs was seen, or wasn't allowed."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_harness.command_line import CommandLine, CommandPattern
from mini_harness.shell_words import Unreadable

pytestmark = pytest.mark.once

PROBE, CANARY = CommandPattern("probe *"), CommandPattern("canary *")

_PIECES = (
    "probe", "canary", " ", " ", ";", "&&", "||", "|", "&", "\n", "$(", ")", "(", "`", "'", '"',
    "\\", "#", "<<E\n", "\nE\n", "E", ">f", "2>&1", ">/dev/null", "{ ", "; }", "x=", "$x", "${x:-",
    "}", "<(", "$((", "))", "((", "$'", "\\n", "!", "eval ", "bash -c ", "env ", "if ", "then ",
    "fi", "case x in x) ", ";;", "esac", "\r", "\u00a0", "a", "1", "=", "<<'E'\n", "\t", "[[ ",
)  # fmt: skip
_AROUND = (
    "{}", "probe {}", "eval {}", "env {}", "! {}", "x=1 {}", "$x {}", "2>&1 {}", "{} >f", "{} # a",
    "$({})", 'probe "$({})"', "`{}`", "({})", "{{ {}; }}", "bash -c '{}'", 'bash -c "{}"', "'{}'",
    '"{}"', "probe ${{x:-$({})}}", "probe <({})", "x=({})", "if {}; then probe; fi", "({}", "{})",
    "case a in a) {};; esac", "for x in {}; do $x; done", "[[ a == {} ]]", "probe $(( {} + 1 ))",
    "probe <<E\n{}\nE", "probe <<'E'\n{}\nE\n", "bash <<'E'\n{}\nE\n", "{}\\\n", "\\{}", "''{}",
)  # fmt: skip
_BETWEEN = (
    "{}; {}",
    "{} && {}",
    "{} | {}",
    "{}\n{}",
    "{} & {}",
    "{} {}",
    "{}{}",
    "{} ' {}",
    '{} " {}',
)
_JUMBLED = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=12).map("".join)
_NESTED = st.recursive(
    st.sampled_from(("probe", "canary", "ca''nary", "$'\\x63anary'", "probe 'canary'", "a")),
    lambda inner: st.one_of(
        st.builds(str.format, st.sampled_from(_AROUND), inner),
        st.builds(str.format, st.sampled_from(_BETWEEN), inner, inner),
    ),
    max_leaves=6,
)
# A function that calls itself, in the background at worst, is nothing to try out.
_LINES = (_JUMBLED | _NESTED).filter(
    lambda line: not re.search(r"\(\)|function", re.sub(r"[\s\\'\"]", "", line))
)


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    """A folder with all the programs there are: probe does nothing, canary leaves a file."""
    bash, env = shutil.which("bash"), shutil.which("env")
    assert bash is not None
    assert env is not None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bash").symlink_to(bash)
        (folder / "env").symlink_to(env)
        for program, script in (("probe", "exit 0"), ("canary", ": >>sung")):
            (folder / program).write_text(f"#!{bash}\n{script}\n", encoding="utf-8")
            (folder / program).chmod(0o755)
        yield folder


def left_behind(line: str, programs: Path) -> set[str]:
    """The files that a line makes in an empty folder, with nothing but the programs at hand."""
    with tempfile.TemporaryDirectory() as cwd:
        subprocess.run(
            [programs / "bash", "-c", "--", f"{line}\nwait"],
            cwd=cwd,
            env={"PATH": str(programs)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=60,
        )
        return {path.name for path in Path(cwd).iterdir()}


def readable(line: str) -> CommandLine | None:
    """The line taken apart. Whatever else than Unreadable is raised fails the test."""
    try:
        return CommandLine.read(line)
    except Unreadable:
        return None


# The same lines each time: what a variable hides by chance is known not to be recognised.
@given(line=_LINES)
@settings(max_examples=250, derandomize=True)
def test_what_bash_runs_was_seen_or_the_line_could_not_be_read(line: str, programs: Path) -> None:
    """P01, P02, C22"""
    found = readable(line)
    if found is None or found.touched(CANARY) or "anary" not in line:
        return
    assert "sung" not in left_behind(line, programs)


_ALLOWABLE = st.lists(
    st.sampled_from(
        ("probe", "probe ", " a", "'canary'", "';canary'", '"a b"', "\\;", "; probe", " && probe",
         "\nprobe", " | probe", " # canary", "\n", " 2>&1", " >/dev/null", "\\", "'", '"', "$", "=",
         "canary", ";", ">", "f", "#", "-x", "&", "1", "`", "(", ")")
    ), min_size=1, max_size=9,
).map(lambda pieces: "probe " + "".join(pieces))  # fmt: skip


@given(line=_ALLOWABLE)
@settings(max_examples=250)
def test_a_line_that_is_allowed_runs_nothing_but_what_the_rule_names(
    line: str, programs: Path
) -> None:
    """P01, P02"""
    found = readable(line)
    if found is None or found.uncovered(PROBE):
        return
    assert left_behind(line, programs) == set()


@given(line=st.text(max_size=40) | _LINES)
@settings(max_examples=500)
def test_reading_a_line_raises_unreadable_and_nothing_else(line: str) -> None:
    """P04"""
    found = readable(line)
    assert found is None or all(isinstance(word, str) for each in found.commands for word in each)
