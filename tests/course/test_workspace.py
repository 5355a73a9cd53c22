"""The workspace: made without touching anything, and saved into without losing anything."""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from mini_harness.course.exercises import exercise
from mini_harness.course.workspace import (
    INIT,
    WorkspaceError,
    default_workspace,
    existing,
    keep,
    located,
    make,
    release,
    save_module,
)
from tests.course.disks import (
    AS_NOBODY,
    crash_at,
    files_in,
    make_read_only,
    open_folder,
    run_python,
    small_disk,
)

RELEASE = {"v0_x.ipynb": b"lesson 0", "v1_x.ipynb": b"lesson 1"}
STUB, SOLUTION = exercise("v0-act").stub, exercise("v0-act").solution
MODULE = exercise("v0-act").module
FILE = f"my_harness/{MODULE}.py"
BACKUPS = f".mini-harness/backups/my_harness/{MODULE}-"


# --- making it --------------------------------------------------------------------------------


def test_a_learners_file_is_never_overwritten_and_a_missing_one_is_added(tmp_path: Path) -> None:
    workspace = tmp_path / "deep" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "v0_x.ipynb").write_text("my own work", encoding="utf-8")
    make(workspace, RELEASE)
    found = files_in(workspace)
    assert found.pop(".mini-harness/state.json")
    assert found == {"v0_x.ipynb": b"my own work", "v1_x.ipynb": b"lesson 1"}


def test_a_learners_link_is_kept_even_when_it_leads_nowhere(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "v0_x.ipynb").symlink_to(tmp_path / "not mounted" / "v0_x.ipynb")
    make(workspace, RELEASE)
    assert (workspace / "v0_x.ipynb").is_symlink()
    assert not (tmp_path / "not mounted").exists()


def test_making_it_again_writes_nothing(tmp_path: Path) -> None:
    """So a workspace on a read-only disk can still be opened."""
    with small_disk("4m") as disk:
        make(disk / "w")
        before = files_in(disk)
        make_read_only(disk)
        assert make(disk / "w") == disk / "w"
        assert files_in(disk) == before


def test_every_lesson_of_the_package_is_in_a_new_workspace(tmp_path: Path) -> None:
    found = files_in(make(tmp_path / "w"))
    assert {name: found[name] for name in release()} == release()
    assert any(name.startswith("v0_") for name in found)
    assert not any(name.endswith(".part") for name in found)


def test_a_workspace_that_cannot_be_made_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(WorkspaceError, match=r"can't make .*file\. Something stands where"):
        make(tmp_path / "file", RELEASE)


def test_the_workspace_is_named_or_here_or_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MINI_HARNESS_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert located(default_workspace()) == tmp_path / "mini-harness"
    here = make(tmp_path / "here", {})
    monkeypatch.chdir(here)
    assert located(default_workspace()) == here
    monkeypatch.setenv("MINI_HARNESS_HOME", "~/elsewhere")
    assert located(default_workspace()) == tmp_path / "elsewhere"


def test_a_folder_that_is_no_workspace_is_not_taken_for_one(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match=r"no workspace in .*`mini-harness learn` makes one"):
        existing(tmp_path)
    assert existing(make(tmp_path, {})) == tmp_path


def test_a_new_package_borrows_all_of_it(tmp_path: Path) -> None:
    """Nothing is written yet, and `my_harness` works as a whole."""
    workspace = make(tmp_path / "w")
    program = "import my_harness; print(my_harness.act({}, {'name': 'x', 'arguments': {}}))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=workspace,
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    assert "x" in done.stdout
    assert len(INIT.splitlines()) <= 6, "a learner reads it"


# --- saving -----------------------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make(tmp_path / "w", {})


def test_a_cell_is_saved_and_says_the_same_each_time(workspace: Path) -> None:
    notes = {save_module(workspace, MODULE, "x = 'ä'").note for _ in range(2)}
    notes.add(save_module(workspace, MODULE, "x = 'ö'\n\n").note)
    assert notes == {f"Saved as {FILE}."}
    assert (workspace / FILE).read_bytes() == "x = 'ö'\n".encode()
    assert not list((workspace / ".mini-harness").glob("backups")), "a cell's own text is no loss"


def test_saving_makes_a_package_where_there_is_no_workspace(tmp_path: Path) -> None:
    save_module(tmp_path, MODULE, "x = 1")
    assert (tmp_path / "my_harness/__init__.py").read_text(encoding="utf-8") == INIT


def test_an_untouched_stub_never_replaces_work(workspace: Path) -> None:
    """N08: Run All in a fresh copy of the notebook, after the exercise was done."""
    assert save_module(workspace, MODULE, STUB).note == f"Saved as {FILE}."
    save_module(workspace, MODULE, SOLUTION)
    saved = save_module(workspace, MODULE, STUB.replace("\n", "  \n") + "\n\n")
    assert saved.note == (
        f"{FILE} keeps your work: this cell holds only the stub. "
        "To start again: mini-harness reset v0-act"
    )
    assert (workspace / FILE).read_text(encoding="utf-8") == SOLUTION


def test_the_stub_of_another_release_replaces_work_only_after_a_backup(workspace: Path) -> None:
    """Run All in an older copy of the notebook, whose stub isn't known any more."""
    save_module(workspace, MODULE, SOLUTION)
    saved = save_module(workspace, MODULE, STUB.replace('"""', '"""Once: ', 1))
    assert saved.kept is not None
    assert saved.kept.read_text(encoding="utf-8") == SOLUTION


def test_a_file_where_the_backups_belong_is_told_and_nothing_hangs(workspace: Path) -> None:
    save_module(workspace, MODULE, "x = 1")
    (workspace / ".mini-harness" / "backups").write_text("", encoding="utf-8")
    (workspace / FILE).write_text("x = 2\n", encoding="utf-8")
    with pytest.raises(WorkspaceError, match="Something stands where a file or a folder"):
        save_module(workspace, MODULE, "x = 3")
    assert (workspace / FILE).read_text(encoding="utf-8") == "x = 2\n"


def test_a_folder_in_the_place_of_a_module_is_told(workspace: Path) -> None:
    (workspace / FILE).mkdir(parents=True)
    with pytest.raises(WorkspaceError, match="Something stands where a file or a folder"):
        save_module(workspace, MODULE, "x = 3")


def test_a_folder_that_can_not_be_found_is_told(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(WorkspaceError, match="--workspace DIR"):
        make(Path("~nobody-of-this-name"))
    # Python 3.13 takes a circle of links for a path, and making the folder fails.
    with pytest.raises(WorkspaceError, match=r"/loop"):
        make(loop)


@pytest.mark.parametrize("foreign", [b"x = 2\n", b"\xff\xfe no text \x00"])
def test_what_was_changed_elsewhere_is_kept_first(workspace: Path, foreign: bytes) -> None:
    save_module(workspace, MODULE, "x = 1")
    for number in (1, 2):
        (workspace / FILE).write_bytes(foreign)
        saved = save_module(workspace, MODULE, "x = 3")
        assert saved.kept == workspace / f"{BACKUPS}{number}.py"
        assert saved.kept.read_bytes() == foreign
        assert saved.note == (
            f"Saved as {FILE}. What was there before is kept: {BACKUPS}{number}.py."
        )
    assert (workspace / FILE).read_text(encoding="utf-8") == "x = 3\n"


def test_the_same_text_from_elsewhere_is_no_change(workspace: Path) -> None:
    (workspace / FILE).parent.mkdir()
    (workspace / FILE).write_text("x = 1\n", encoding="utf-8")
    assert save_module(workspace, MODULE, "x = 1").kept is None
    assert save_module(workspace, MODULE, "x = 2").kept is None


@pytest.mark.parametrize("state", ["", "{", "[]", '{"saved": [1]}', '{"saved": {"calls": 1}}'])
def test_a_lost_state_costs_a_backup_and_nothing_else(workspace: Path, state: str) -> None:
    save_module(workspace, MODULE, "x = 1")
    (workspace / ".mini-harness/state.json").write_text(state, encoding="utf-8")
    saved = save_module(workspace, MODULE, "x = 2")
    assert saved.kept is not None
    assert saved.kept.read_bytes() == b"x = 1\n"
    assert json.loads((workspace / ".mini-harness/state.json").read_bytes())["saved"]


@pytest.mark.parametrize("module", ["", "../x", "a/b", "a b", "__init__", "x.py", "1"])
def test_only_a_module_of_the_package_is_written(workspace: Path, module: str) -> None:
    before = files_in(workspace.parent)
    with pytest.raises(WorkspaceError, match=r"isn't a module of yours"):
        save_module(workspace, module, "x = 1")
    assert files_in(workspace.parent) == before


def test_a_link_stays_a_link(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text("x = 1\n", encoding="utf-8")
    (workspace / FILE).parent.mkdir()
    (workspace / FILE).symlink_to(tmp_path / "elsewhere.py")
    save_module(workspace, MODULE, "x = 2")
    assert (workspace / FILE).is_symlink()
    assert (tmp_path / "elsewhere.py").read_text(encoding="utf-8") == "x = 2\n"


def test_text_that_no_file_can_hold_is_said(workspace: Path) -> None:
    with pytest.raises(WorkspaceError, match=r"is not saved\. It can't be written down"):
        save_module(workspace, MODULE, "x = '\ud800'")


def test_a_backup_never_takes_the_place_of_another(workspace: Path) -> None:
    (workspace / "note.txt").write_bytes(b"1")
    first = keep(workspace, workspace / "note.txt")
    (workspace / "note.txt").write_bytes(b"2")
    assert keep(workspace, workspace / "note.txt") != first
    assert first.read_bytes() == b"1"


# --- when it goes wrong -----------------------------------------------------------------------

IMPORTS = "import sys\nfrom pathlib import Path\nfrom mini_harness.course.workspace import *\n"
SAVE = f"""
try:
    save_module(Path(sys.argv[1]), {MODULE!r}, 'new = 2\\n' * 1000)
except WorkspaceError as error:
    print(error)
"""
NEW = b"new = 2\n" * 1000


def test_a_save_that_dies_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """The kernel is killed in the middle of an exercise."""
    for step in range(40):
        folder = make(tmp_path / str(step), {})
        save_module(folder, MODULE, "old = 1")
        (folder / FILE).write_bytes(b"edited = 1\n")
        died = crash_at(step, IMPORTS + "armed()\n" + SAVE, folder)
        found = files_in(folder)
        assert found[FILE] in (b"edited = 1\n", NEW)
        kept = [text for name, text in found.items() if name.startswith(BACKUPS)]
        assert b"edited = 1\n" in [found[FILE], *kept]
        if not died:
            break
        save_module(folder, MODULE, NEW.decode())
        assert (folder / FILE).read_bytes() == NEW
    assert 4 < step < 39, "it died at every write, and then not at all"


LIMIT = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"


def test_a_file_that_may_not_grow_leaves_the_old_one_whole(workspace: Path) -> None:
    save_module(workspace, MODULE, "old = 1")
    before = files_in(workspace)
    done = run_python(IMPORTS + LIMIT + SAVE, str(workspace))
    assert done.stdout.startswith(f"{FILE} is not saved. There is no room left (")
    assert files_in(workspace) == before


def test_a_full_disk_leaves_the_old_file_whole_and_says_where_the_code_is() -> None:
    with small_disk("64k") as disk:
        save_module(disk, MODULE, "old = 1")
        fill_up(disk)
        before = files_in(disk)
        with pytest.raises(WorkspaceError) as caught:
            save_module(disk, MODULE, NEW.decode())
        assert files_in(disk) == before
        (disk / "filler").unlink()
        assert save_module(disk, MODULE, NEW.decode()).kept is None
    assert str(caught.value) == (
        f"{FILE} is not saved. There is no room left (No space left on device). Make some, and try "
        "again. Nothing is lost: the cell still holds your code, and the file is as it was."
    )


def fill_up(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(bytes(4096))


@pytest.mark.parametrize("shut", ["my_harness", ".", FILE])
def test_without_the_right_to_write_nothing_changes_and_the_reason_is_said(shut: str) -> None:
    """N08's workspace folder is read-only: for a person without root's rights."""
    with open_folder() as folder:
        save_module(folder, MODULE, "old = 1")
        for path in (folder, folder / "my_harness", folder / FILE):
            path.chmod(0o777)
        (folder / shut).chmod(0o555)
        (folder / "my_harness").chmod(0o555 if shut != FILE else 0o777)
        before = files_in(folder)
        done = run_python(IMPORTS + AS_NOBODY + SAVE, str(folder))
        assert files_in(folder) == before
    assert done.stdout.startswith(
        f"{FILE} is not saved. There is no right to do that here (Permission denied). "
    ), done
    assert "the cell still holds your code" in done.stdout


def test_a_state_that_cannot_be_written_does_not_say_that_the_code_is_not_saved() -> None:
    with open_folder() as folder:
        save_module(folder, MODULE, "old = 1")
        (folder / "my_harness").chmod(0o777)
        (folder / FILE).chmod(0o666)
        (folder / ".mini-harness").chmod(0o555)
        done = run_python(IMPORTS + AS_NOBODY + SAVE, str(folder))
        assert (folder / FILE).read_bytes() == NEW
    assert done.stdout.startswith(f"{FILE} is saved, but .mini-harness beside it can't be. ")


def test_a_read_only_disk_is_said_for_root_too() -> None:
    with small_disk("64k") as disk:
        save_module(disk, MODULE, "old = 1")
        make_read_only(disk)
        with pytest.raises(WorkspaceError, match=r"is not saved\. .*\(Read-only file system\)"):
            save_module(disk, MODULE, "x = 1")
        assert (disk / FILE).read_bytes() == b"old = 1\n"


def test_a_saved_file_keeps_its_mode(workspace: Path) -> None:
    save_module(workspace, MODULE, "x = 1")
    (workspace / FILE).chmod(0o640)
    save_module(workspace, MODULE, "x = 2")
    assert (workspace / FILE).stat().st_mode & 0o777 == 0o640
