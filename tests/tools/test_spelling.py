"""What a policy judges and a person is shown is what a file tool opens, whatever it is called."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from mini_harness import Bash, Harness, Policy, Rule, ScriptedModel, Verdict
from mini_harness.tools.base import BaseTool, ToolExecutionContext
from mini_harness.tools.edit import EditFile
from mini_harness.tools.files import ReadFile
from mini_harness.tools.grep import Grep
from mini_harness.tools.listing import Glob, ListFiles
from mini_harness.tools.shell import BashInput
from mini_harness.tools.write import WriteFile
from tests.loops import DONE, call, turn
from tests.tools.workshop import TOOLS, go_on, only, play, preview, told, use

SECRET = Rule(id="secret", verdict=Verdict.DENY, path="secret/**", reason="Keep out.")
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "{}/f"}),
    ("write_file", {"path": "{}/new", "content": "x"}),
    ("edit_file", {"path": "{}/f", "old": "text", "new": "x"}),
    ("list_files", {"path": "{}"}),
    ("glob", {"path": "{}", "pattern": "*"}),
    ("grep", {"path": "{}", "pattern": "text"}),
    ("bash", {"cwd": "{}", "command": "echo text"}),
]


def ways(spelling: str) -> list[Any]:
    """Each tool called with a folder of this spelling."""
    turns = []
    for name, arguments in CALLS:
        given = {key: value.format(spelling) for key, value in arguments.items()}
        turns.append(turn(call(name, **given)))
    return turns


def judged(cwd: Path, spelling: str, *rules: Rule) -> list[str]:
    policy = Policy(mode="full_auto", rules=rules)
    player = Harness(
        ScriptedModel([*ways(spelling), DONE]), [*TOOLS, Bash()], cwd=cwd, layers=[policy]
    )
    return told(asyncio.run(player.run("go")))


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/f").write_bytes(b"text\n")
    (tmp_path / "~").mkdir()
    (tmp_path / "~/f").write_bytes(b"text\n")
    return tmp_path


@pytest.mark.parametrize(
    "spelling", ["secret", "./secret", "~/../secret", "./~/../secret", "~/../~/../secret"]
)
def test_no_spelling_gets_past_a_deny_rule(spelling: str, room: Path) -> None:
    """B22, report B10: to the tools "~" is the name of a folder, and to the policy, too"""
    seen = judged(room, spelling, SECRET)
    assert [text for text in seen if not text.startswith("!Tool not allowed: ")] == []
    assert (room / "secret/f").read_bytes() == b"text\n"
    only(room / "secret", "f")


def test_no_spelling_gets_at_credentials(room: Path) -> None:
    """B20: the home folder isn't meant, so the link beside it is"""
    (room / ".ssh").mkdir()
    (room / ".ssh/f").write_bytes(b"text\n")
    (room / "notes").symlink_to(".ssh")
    seen = judged(room, "~/../notes")
    assert all(text.startswith("!Tool not allowed: ") for text in seen), seen


def test_a_folder_whose_name_is_a_tilde_is_a_folder_like_any(room: Path) -> None:
    """B22"""
    seen = judged(room, "~", Rule(id="here", verdict=Verdict.DENY, path="secret/**", reason="No."))
    assert [text for text in seen if text.startswith("!")] == []
    assert (room / "~/f").read_bytes() == b"x\n"


# --- what is shown is what happens


CHANGES = [
    (WriteFile(), {"content": "x"}),
    (EditFile(), {"old": "text", "new": "x"}),
]


@pytest.mark.parametrize(("tool", "given"), CHANGES, ids=["write_file", "edit_file"])
@pytest.mark.parametrize(
    "path",
    [
        "nodir/../f",
        "secret/f/../f",
        "secret/nodir/../f",
        f"{'b' * 200}/" * 21 + "f",
        "new/" + "x" * 256,
        "new/.",
        "secret/f/",
        "secret/f/.",
        "secret/f/x",
        ".",
        "",
    ],
    ids=lambda path: path[:20] or "empty",
)
def test_a_preview_that_says_nothing_is_followed_by_nothing(
    tool: BaseTool, given: dict[str, str], path: str, room: Path
) -> None:
    """report O04"""
    (room / "f").write_bytes(b"text\n")
    run = play(room, ("read_file", {"path": "f"}), ("read_file", {"path": "secret/f"}))
    text = preview(tool, room, run, path=path, **given)
    assert text.startswith("Nothing: the call would be refused. ")
    seen = told(go_on(run, room, (tool.name, {"path": path, **given})))[-1]
    assert seen == "!" + text.removeprefix("Nothing: the call would be refused. ")
    only(room, "f", "secret", "~")
    assert (room / "f").read_bytes() == (room / "secret/f").read_bytes() == b"text\n"


@pytest.mark.parametrize("path", ["nodir/../f", "secret/f/../f"])
def test_what_is_no_folder_leads_nowhere_in_any_tool(path: str, room: Path) -> None:
    """C24"""
    (room / "f").write_bytes(b"text\n")
    folder = os.path.dirname(path)  # noqa: PTH120 - "..", kept
    assert use(ReadFile(), room, path=path).is_error
    assert use(Grep(), room, path=path, pattern="text").is_error
    assert use(ListFiles(), room, path=folder).is_error
    assert use(Glob(), room, path=folder, pattern="*").is_error
    started = asyncio.run(
        Bash().execute(
            BashInput(command="ls", cwd=folder, timeout_seconds=5), ToolExecutionContext(cwd=room)
        )
    )
    assert started.output.startswith("The command was not run. ")
