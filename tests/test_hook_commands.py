"""A hook that is a command: what it learns, how it answers, and that nothing of it stays."""

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_harness.frozen import freeze
from mini_harness.hook import HookInput, HookResult, ask
from mini_harness.hook_commands import LONGEST_REASON, LONGEST_VARIABLE
from mini_harness.hooks import Hook, HookEvent
from tests.tools.test_process import alive

SOON = 15.0
PASSED, BLOCKED, FAILED = HookResult.PASSED, HookResult.BLOCKED, HookResult.FAILED


def about(cwd: Path, **arguments: Any) -> HookInput:
    event, frozen = HookEvent.PRE_TOOL_USE, freeze(arguments)
    return HookInput(event, "run-1", cwd, call_id="c1", tool="deploy", arguments=frozen)


def judge(
    line: str, cwd: Path, seconds: float = 30, *, stdin_only: bool = False, **arguments: Any
) -> tuple[HookResult, str]:
    hook = Hook("pre_tool_use", line, seconds=seconds, stdin_only=stdin_only)
    return asyncio.run(ask(hook, about(cwd, **arguments)))


def test_exit_code_0_lets_go_on_2_blocks_with_what_it_wrote_to_standard_error(
    tmp_path: Path,
) -> None:
    """B29, B30"""
    assert judge("true", tmp_path) == (PASSED, "")
    assert judge("echo fine; echo loud >&2; exit 0", tmp_path) == (PASSED, "")
    line = "echo beside the point; echo 'not on\nFridays' >&2; exit 2"
    assert judge(line, tmp_path) == (BLOCKED, "not on\nFridays")
    assert judge("echo silent; exit 2", tmp_path) == (BLOCKED, "It gave no reason.")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("exit 1", "exit code 1."),
        ("echo oh >&2; exit 3", "exit code 3: oh"),
        ("nosuchprogram", "exit code 127: "),
        ("kill -KILL $$", "ended by signal 9."),
        ("echo too >&2; kill -TERM $$", "ended by signal 15: too"),
    ],
)
def test_every_other_end_is_a_failure(line: str, reason: str, tmp_path: Path) -> None:
    result, said = judge(line, tmp_path)
    assert result is FAILED
    assert said.startswith(reason)


def test_the_reason_has_a_bound_in_bytes(tmp_path: Path) -> None:
    """Rule 5: whatever it writes is taken, and only so much is kept"""
    line = "python -c \"import sys; sys.stderr.write('é' * 3_000_000); sys.exit(2)\""
    result, said = judge(line, tmp_path)
    assert result is BLOCKED
    assert len(said.encode()) <= LONGEST_REASON
    assert "left out here" in said


def test_it_starts_in_the_workspace_without_our_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "s3cr3t-of-the-shop")
    monkeypatch.setenv("SHOP_NAME", "corner")
    line = 'echo "$PWD $SHOP_NAME [$SHOP_API_KEY] $MINI_HARNESS_HOOK_EVENT" >&2; exit 2'
    assert judge(line, tmp_path) == (BLOCKED, f"{tmp_path} corner [] pre_tool_use")


READ = {
    "standard input": "cat >&2; exit 2",
    "the environment": 'printf %s "$MINI_HARNESS_HOOK_PAYLOAD" >&2; exit 2',
    "the line": 'printf %s "$ARGUMENTS" >&2; exit 2',
    "a program's word": "python -c 'import sys; sys.exit(sys.argv[1])' \"$ARGUMENTS\" || exit 2",
}


@pytest.mark.parametrize("line", READ.values(), ids=READ)
def test_the_payload_is_the_same_json_wherever_it_is_read(line: str, tmp_path: Path) -> None:
    """B30"""
    given = about(tmp_path, day="friday é\u2028\U0001f600", half="\ud800", nul="\0", n=[1, None])
    hook = Hook("pre_tool_use", line)
    result, said = asyncio.run(ask(hook, given))
    assert (result, said) == (BLOCKED, given.to_json())
    where = {"event": "pre_tool_use", "run_id": "run-1", "cwd": str(tmp_path)}
    call = {"call_id": "c1", "tool": "deploy", "arguments": dict(given.arguments)}
    assert json.loads(said) == {**where, **call}


OTHER_ENCODING = """
import asyncio, sys
from pathlib import Path
from mini_harness.hook import Hook, HookEvent, HookInput, ask
assert sys.getfilesystemencoding() != "utf-8"
given = HookInput(HookEvent.USER_PROMPT_SUBMIT, "run-1", Path("/"), prompt="\\u00e9")
line = 'printf %s "$ARGUMENTS" >&2; exit 2'
print(asyncio.run(ask(Hook("user_prompt_submit", line), given))[1] == given.to_json())
"""


def test_the_payload_is_utf_8_whatever_encoding_the_system_has() -> None:
    """Rule 6"""
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", OTHER_ENCODING],
        env={**os.environ, **locale},
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


QUOTES = ['"$ARGUMENTS"', "$ARGUMENTS", "'$ARGUMENTS'", "\"'$ARGUMENTS'\"", '"${ARGUMENTS}"']
HOSTILE = [
    "$(touch landed)",
    "`touch landed`",
    "'; touch landed; '",
    '"; touch landed; "',
    "\n touch landed\n",
    "'\"'\"'; touch landed #",
    "$ARGUMENTS",
    "${x:-$(touch landed)}",
    "| touch landed",
    "\\'; touch landed; \\'",
]


@pytest.mark.parametrize("quoted", QUOTES)
def test_no_argument_is_ever_code_whatever_quotes_stand_around(quoted: str, tmp_path: Path) -> None:
    """B30, rule 8: the line is what its author wrote"""
    result, _ = judge(f"printf '%s' {quoted} > /dev/null", tmp_path, hostile=HOSTILE)
    assert result is PASSED
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=25)
@given(st.text(alphabet="'\"`$(){};&|<>\\\n ax*?~!#é\u2028\ud800\0", max_size=30))
def test_in_double_quotes_the_payload_is_one_word(text: str) -> None:
    """B30"""
    line = 'set -- "$ARGUMENTS"; echo "$#" >&2; printf %s "$1" >&2; exit 2'
    given = about(Path("/"), text=text)
    _, said = asyncio.run(ask(Hook("pre_tool_use", line), given))
    assert said == f"1\n{given.to_json()}"


def test_whoever_reads_standard_input_only_gets_all_of_a_payload_and_never_a_variable(
    tmp_path: Path,
) -> None:
    """What it finds doesn't depend on the length: a guard that reads the variable never passes"""
    text = "é" * LONGEST_VARIABLE
    names = "MINI_HARNESS_HOOK_PAYLOAD", "ARGUMENTS"
    script = f"import os, sys; print(len(sys.stdin.buffer.read()), *({names!r}[i] in os.environ "
    script += "for i in (0, 1)), file=sys.stderr); sys.exit(2)"
    (tmp_path / "look.py").write_text(script, encoding="utf-8")
    for letters, stdin_only in ((text, True), ("short", True), ("short", False)):
        known = "False False" if stdin_only else "True True"
        given = about(tmp_path, text=letters)
        hook = Hook("pre_tool_use", "python look.py", stdin_only=stdin_only)
        assert asyncio.run(ask(hook, given))[1] == f"{len(given.to_json().encode())} {known}"


@pytest.mark.parametrize("name", ["$ARGUMENTS", "$MINI_HARNESS_HOOK_PAYLOAD"])
@pytest.mark.parametrize("where", ["line", "script"])
def test_a_guard_that_reads_a_payload_which_isnt_there_doesnt_pass_by_finding_nothing(
    where: str, name: str, tmp_path: Path
) -> None:
    """Rule 1: or a model would get by with long arguments"""
    line = f'case "{name}" in *"rm -rf"*) exit 2;; esac'
    if where == "script":
        (tmp_path / "guard.sh").write_text(line, encoding="utf-8")
        line = "bash guard.sh"
    assert judge(line, tmp_path, command="rm -rf /")[0] is BLOCKED
    result, said = judge(line, tmp_path, command="rm -rf /" + " " * LONGEST_VARIABLE)
    assert result is FAILED
    assert "stdin_only=True" in said


def test_standard_input_only_is_refused_where_it_cant_be_meant() -> None:
    with pytest.raises(ValueError, match="there is no ARGUMENTS"):
        Hook("stop", 'echo "$ARGUMENTS"', stdin_only=True)
    with pytest.raises(ValueError, match="a function has no standard input"):
        Hook("stop", print, stdin_only=True)


def test_a_variable_of_ours_that_was_there_before_is_not_taken_for_the_payload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a harness that a hook started"""
    monkeypatch.setenv("ARGUMENTS", "old")
    monkeypatch.setenv("MINI_HARNESS_HOOK_PAYLOAD", "old")
    long = "x" * LONGEST_VARIABLE
    assert judge("env | grep old >&2 && exit 2; exit 0", tmp_path, stdin_only=True, text=long) == (
        *(PASSED, ""),
    )


def test_a_command_that_reads_nothing_waits_for_nobody(tmp_path: Path) -> None:
    """Rule 5: a payload larger than a pipe's buffer"""
    assert judge("exit 0", tmp_path, stdin_only=True, text="x" * 2_000_000) == (PASSED, "")


@pytest.fixture
def tag() -> str:
    """A number of seconds to sleep that no other process on this machine sleeps."""
    return f"86398.{secrets.randbelow(10**12):012}"


def test_at_the_time_out_all_that_it_started_ends(tag: str, tmp_path: Path) -> None:
    """B29, rule 5"""
    began = time.monotonic()
    line = f"trap '' TERM; setsid sleep {tag} & echo late >&2; sleep {tag}; touch landed"
    result, said = judge(line, tmp_path, seconds=1)
    assert (result, said) == (FAILED, "it didn't end within 1 seconds: late")
    assert alive(tag) == []
    assert not (tmp_path / "landed").exists()
    assert time.monotonic() - began < SOON


def test_what_it_leaves_running_ends_with_it(tag: str, tmp_path: Path) -> None:
    assert judge(f"sleep {tag} & exit 0", tmp_path) == (PASSED, "")
    assert alive(tag) == []


def test_cancelled_it_ends_whole_before_the_cancellation_goes_up(tag: str, tmp_path: Path) -> None:
    async def main() -> list[psutil.Process]:
        line = f"touch begun; sleep {tag}"
        task = asyncio.create_task(ask(Hook("pre_tool_use", line), about(tmp_path)))
        deadline = time.monotonic() + SOON
        while not (tmp_path / "begun").exists() and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return alive(tag)

    assert asyncio.run(main()) == []
    assert (tmp_path / "begun").exists()


def test_the_file_of_the_payload_is_gone_and_its_descriptor_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = psutil.Process().num_fds()
    assert judge("ls -A >&2; exit 2", tmp_path) == (BLOCKED, "It gave no reason.")
    assert list(tmp_path.iterdir()) == []
    assert psutil.Process().num_fds() == before


def test_where_it_cant_run_it_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, said = judge("true", tmp_path / "nowhere")
    assert (result, said.startswith("It was not run. No such file")) == (FAILED, True)
    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
        result, said = judge("true", tmp_path)
        assert (result, said.startswith("FileNotFoundError")) == (FAILED, True)
    monkeypatch.setenv("PATH", str(tmp_path))
    result, said = judge("true", tmp_path)
    assert (result, "needs bash or sh" in said) == (FAILED, True)


def test_sh_does_where_there_is_no_bash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sh", "cat"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert judge('printf %s "$ARGUMENTS" | cat >&2; exit 2', tmp_path)[1].startswith("{")


def test_what_a_command_says_it_is_called_is_the_beginning_of_its_line() -> None:
    assert Hook("stop", "  ./check.sh\n --all ").name == "./check.sh --all"
    assert Hook("stop", "x" * 200).name == "x" * 58 + " …"


@pytest.mark.parametrize("line", ["", "  \n", "a\0b", "a\ud800"])
def test_a_line_that_no_shell_takes_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="command"):
        Hook("stop", line)
