"""`mini-harness doctor`: each kind of trouble is found, and said with what mends it."""

import re
from pathlib import Path

import pytest

from mini_harness.course import doctor as doctor_module
from mini_harness.course.doctor import doctor_lines
from mini_harness.course.workspace import make
from tests.course.commands import Done, run
from tests.course.disks import (
    AS_NOBODY,
    files_in,
    make_read_only,
    open_folder,
    run_python,
    small_disk,
)

pytestmark = pytest.mark.once

KEY = "sk-ant-only-a-test-7f3a"
SUBJECTS = ["Python", "packages", "JupyterLab", "widgets", "MCP", "mode", "workspace"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make(tmp_path / "w")


def verdicts(done: Done) -> dict[str, str]:
    lines = [line.split() for line in done.out.splitlines()]
    return {words[1]: words[0] for words in lines if words and words[0] in ("ok", "WRONG")}


def only_wrong(done: Done, subject: str) -> str:
    """The finding's words and its mend; the test fails unless it is the only one."""
    assert verdicts(done) == {each: "WRONG" if each == subject else "ok" for each in SUBJECTS}
    assert (done.code, done.err) == (1, "")
    assert done.out.endswith("\n1 of 7 to mend.\n")
    return done.out.partition("WRONG")[2].partition("\nok")[0]


def test_all_is_well_and_nothing_is_written(workspace: Path) -> None:
    before = files_in(workspace)
    done = run(workspace, "doctor")
    assert verdicts(done) == dict.fromkeys(SUBJECTS, "ok")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("\nAll is well.\n")
    assert re.search(r"Python +3\.1[123]\.", done.out)
    assert "API key: not set" in done.out
    assert files_in(workspace) == before


def test_a_workspace_that_is_still_to_be_made_is_no_fault(tmp_path: Path) -> None:
    done = run(tmp_path / "w", "doctor", cwd=tmp_path)
    assert done.code == 0 and "`mini-harness learn` makes it" in done.out
    assert list(tmp_path.iterdir()) == []


def test_the_key_is_said_to_be_set_and_never_shown(workspace: Path) -> None:
    (workspace / ".env").write_text(
        f"ANTHROPIC_API_KEY={KEY}\nMODEL_ID=claude-x\n", encoding="utf-8"
    )
    done = run(workspace, "doctor", cwd=workspace.parent, env={"MINI_HARNESS_MODE": "auto"})
    assert done.code == 0
    assert "real (ANTHROPIC_API_KEY and MODEL_ID (claude-x) are set; API key: set)" in done.out
    assert KEY not in done.out + done.err


def test_a_mode_that_cannot_be_had_is_found(workspace: Path) -> None:
    said = only_wrong(run(workspace, "doctor", env={"MINI_HARNESS_MODE": "reel"}), "mode")
    assert "'reel'" in said and "MINI_HARNESS_MODE=offline" in said
    said = only_wrong(run(workspace, "doctor", env={"MINI_HARNESS_MODE": "real"}), "mode")
    assert "ANTHROPIC_API_KEY and MODEL_ID are not set" in said
    (workspace / ".env").write_bytes(b"ANTHROPIC_API_KEY=\xff\xfe" + KEY.encode())
    done = run(workspace, "doctor")
    assert only_wrong(done, "mode") and KEY not in done.out


@pytest.mark.parametrize(
    ("name", "version", "subject", "mend"),
    [
        ("ipywidgets", "7.8.5", "packages", "pip install 'ipywidgets<9,>=8.1.9'"),
        ("mini_harness", None, "Python", "Install a Python <3.10,>=3.9"),
    ],
)
def test_a_version_that_does_not_fit_is_found(
    workspace: Path, tmp_path: Path, name: str, version: str | None, subject: str, mend: str
) -> None:
    """A real entry of another version stands first on the path, as from an older install."""
    info = tmp_path / "first" / f"{name}-{version or '0.1.0'}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version or '0.1.0'}"]
    lines += [] if version else ["Requires-Python: <3.10,>=3.9"]
    (info / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = run(workspace, "doctor", env={"PYTHONPATH": str(tmp_path / "first")})
    assert mend in done.out
    assert verdicts(done)[subject] == "WRONG" and done.code == 1


def test_a_disk_that_cannot_be_written_is_found() -> None:
    with small_disk("4m") as disk:
        make(disk / "w")
        make_read_only(disk)
        said = only_wrong(run(disk / "w", "doctor"), "workspace")
    assert "Read-only file system" in said and "--workspace DIR" in said


@pytest.mark.parametrize("shut", [".", "my_harness", ".mini-harness"])
def test_a_folder_that_cannot_be_written_is_found(shut: str) -> None:
    program = (
        "import sys, pathlib\nfrom mini_harness.course.doctor import _workspace\n"
        f"{AS_NOBODY}\nprint(_workspace(pathlib.Path(sys.argv[1])))"
    )
    with open_folder() as folder:
        make(folder)
        for place in (folder, folder / "my_harness", folder / ".mini-harness"):
            place.chmod(0o777)
        assert "mend=''" in run_python(program, str(folder)).stdout
        (folder / shut).chmod(0o555)
        done = run_python(program, str(folder))
    assert "There is no right to do that here (Permission denied)" in done.stdout, done


def test_a_broken_state_is_found_and_what_to_delete_is_said(workspace: Path) -> None:
    (workspace / ".mini-harness/state.json").write_text("{", encoding="utf-8")
    said = only_wrong(run(workspace, "doctor"), "workspace")
    assert f"Delete {workspace}/.mini-harness/state.json" in said


def test_a_package_without_its_first_file_is_found(workspace: Path) -> None:
    """Without it nothing is borrowed, and every check would fail for no fault of the learner's."""
    (workspace / "my_harness/__init__.py").unlink()
    said = only_wrong(run(workspace, "doctor"), "workspace")
    assert "__init__.py is missing" in said and "mini-harness update" in said
    run(workspace, "update")
    assert run(workspace, "doctor").code == 0


def test_in_a_notebook_it_says_the_same_everywhere(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    lines = doctor_lines()
    assert lines == [
        "Python: fine",
        "packages: fine",
        "JupyterLab: fine",
        "widgets: fine",
        "MCP: fine",
        "mode: offline",
        "workspace: fine",
    ]
    (tmp_path / "empty").mkdir()
    assert doctor_lines(tmp_path / "empty") == lines, "a lesson is built where no workspace is"
    monkeypatch.setenv("MINI_HARNESS_MODE", "reel")
    (wrong,) = set(doctor_lines()) - set(lines) - {doctor_lines()[6]}
    assert wrong.startswith("mode: Mode 'reel' isn't known.")
    assert doctor_lines()[6].startswith("  what to do: ")


def test_without_the_mcp_sdk_it_says_which_lesson_needs_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    here = doctor_module._version
    monkeypatch.setattr(doctor_module, "_version", lambda n: None if n == "mcp" else here(n))
    (said,) = [line for line in doctor_lines() if line.startswith("MCP")]
    assert said == ("MCP: isn't installed. Lesson v0b needs it: pip install 'mini-harness[mcp]'")
