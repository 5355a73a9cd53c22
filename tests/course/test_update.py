"""`mini-harness update`, by simulation: a learner's edits against a changed release."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_harness.course.update import Change, newer, update
from mini_harness.course.workspace import WorkspaceError, make, release
from tests.conftest import ROOT
from tests.course.disks import crash_at, files_in, make_read_only, small_disk
from tests.serving import private_environment

pytestmark = pytest.mark.once

NAME = "v0_x.ipynb"
NEW, NEW_2 = "v0_x.new.ipynb", "v0_x.new-2.ipynb"


def notebook(*sources: str, output: str = "", **cell: Any) -> bytes:
    cells = [
        {"cell_type": "code", "source": source, "outputs": [output], "metadata": {}} | cell
        for source in sources
    ]
    return json.dumps({"cells": cells, "nbformat": 4}).encode()


def given_out(version: int) -> dict[str, bytes]:
    """The release of that number: one lesson that changes, one that doesn't."""
    return {NAME: notebook("a = 1", f"v = {version}"), "v1_x.ipynb": notebook("b = 1")}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make(tmp_path / "w", given_out(1))


def fates(changes: list[Change]) -> dict[str, str]:
    return {change.name: change.fate for change in changes}


def bring(folder: Path, version: int) -> dict[str, str]:
    return fates(list(update(folder, given_out(version))))


# --- one file ---------------------------------------------------------------------------------


def test_an_untouched_lesson_is_replaced_and_the_same_one_left_alone(workspace: Path) -> None:
    assert bring(workspace, 1) == {NAME: "current", "v1_x.ipynb": "current"}
    assert bring(workspace, 2) == {NAME: "replaced", "v1_x.ipynb": "current"}
    assert files_in(workspace)[NAME] == given_out(2)[NAME]
    assert bring(workspace, 3)[NAME] == "replaced"
    assert not (workspace / ".mini-harness/backups").exists(), "it held nothing of the learner's"


def test_outputs_alone_are_no_edit_but_they_are_kept(workspace: Path) -> None:
    ran = notebook("a = 1", "v = 1", output="my output", metadata={"mine": True})
    (workspace / NAME).write_bytes(ran)
    (change, _) = update(workspace, given_out(2))
    assert (change.fate, files_in(workspace)[NAME]) == ("replaced", given_out(2)[NAME])
    assert change.other is not None
    assert change.other.read_bytes() == ran


@pytest.mark.parametrize(
    "edited",
    [
        notebook("a = 1", "v = 1  # mine"),
        notebook("a = 1"),
        notebook("a = 1", "v = 1", "more"),
        notebook("a = 1", "v = 1", cell_type="markdown"),
        notebook("a = 1", "v = 1", attachments={"x.png": {"image/png": "AA=="}}),
        b"no notebook at all",
        b'{"cells": 3}',
        b"",
    ],
)
def test_an_edited_lesson_stays_and_the_new_one_lies_beside_it(
    workspace: Path, edited: bytes
) -> None:
    (workspace / NAME).write_bytes(edited)
    assert bring(workspace, 2) == {NAME: "beside", "v1_x.ipynb": "current"}
    found = files_in(workspace)
    assert (found[NAME], found[NEW]) == (edited, given_out(2)[NAME])


def test_what_was_once_laid_beside_is_not_laid_there_again(workspace: Path) -> None:
    (workspace / NAME).write_bytes(notebook("mine"))
    bring(workspace, 2)
    (workspace / NEW).unlink()
    assert bring(workspace, 2) == {NAME: "yours", "v1_x.ipynb": "current"}
    assert not (workspace / NEW).exists()
    assert bring(workspace, 3)[NAME] == "beside"


def test_an_edited_lesson_for_which_nothing_is_new_stays_alone(workspace: Path) -> None:
    (workspace / NAME).write_bytes(notebook("mine"))
    assert bring(workspace, 1)[NAME] == "yours"
    assert not (workspace / NEW).exists()


def test_who_goes_on_in_the_new_file_keeps_it_at_its_place(workspace: Path) -> None:
    (workspace / NAME).write_bytes(notebook("mine"))
    bring(workspace, 2)
    bring(workspace, 3)
    assert files_in(workspace)[NEW] == given_out(3)[NAME], "an untouched one is brought up to date"
    (workspace / NEW).write_bytes(notebook("mine too"))
    bring(workspace, 4)
    found = files_in(workspace)
    assert (found[NEW], found[NEW_2]) == (notebook("mine too"), given_out(4)[NAME])


def test_outputs_in_the_new_file_are_kept_too(workspace: Path) -> None:
    (workspace / NAME).write_bytes(notebook("mine"))
    bring(workspace, 2)
    ran = notebook("a = 1", "v = 2", output="my output")
    (workspace / NEW).write_bytes(ran)
    bring(workspace, 3)
    found = files_in(workspace)
    assert found[NEW] == given_out(3)[NAME]
    assert found[".mini-harness/backups/v0_x.new-1.ipynb"] == ran


def test_who_takes_the_new_file_is_up_to_date(workspace: Path) -> None:
    (workspace / NAME).write_bytes(notebook("mine"))
    bring(workspace, 2)
    (workspace / NEW).replace(workspace / NAME)
    assert bring(workspace, 2)[NAME] == "current"
    assert bring(workspace, 3)[NAME] == "replaced"


def test_a_missing_lesson_is_added(workspace: Path) -> None:
    (workspace / NAME).unlink()
    (workspace / ".mini-harness/state.json").unlink()
    assert bring(workspace, 1)[NAME] == "added"
    assert bring(workspace, 2)[NAME] == "replaced"


@pytest.mark.parametrize("how", ["link that leads nowhere", "folder"])
def test_what_is_no_file_stays(workspace: Path, how: str) -> None:
    (workspace / NAME).unlink()
    if how == "folder":
        (workspace / NAME).mkdir()
    else:
        (workspace / NAME).symlink_to(workspace / "gone")
    assert bring(workspace, 2)[NAME] == "beside"
    assert (workspace / NAME).is_dir() or (workspace / NAME).is_symlink()
    assert files_in(workspace)[NEW] == given_out(2)[NAME]


def test_without_the_state_a_lesson_counts_as_edited(workspace: Path) -> None:
    (workspace / ".mini-harness/state.json").unlink()
    assert bring(workspace, 2) == {NAME: "beside", "v1_x.ipynb": "current"}
    assert files_in(workspace)[NAME] == given_out(1)[NAME]


def test_a_workspace_made_before_there_was_a_state_is_known_after_its_next_opening(
    workspace: Path,
) -> None:
    (workspace / ".mini-harness/state.json").unlink()
    make(workspace, given_out(1))
    assert bring(workspace, 2)[NAME] == "replaced"


def test_newer_names_what_an_update_would_bring(workspace: Path) -> None:
    assert newer(workspace, given_out(1)) == []
    assert newer(workspace, given_out(2)) == [NAME]
    (workspace / NAME).write_bytes(notebook("mine"))
    assert newer(workspace, given_out(1)) == []
    assert newer(workspace, given_out(2)) == [NAME]
    bring(workspace, 2)
    assert newer(workspace, given_out(2)) == []


# --- nothing is ever lost ---------------------------------------------------------------------

EDITS = st.tuples(st.sampled_from([NAME, NEW, NEW_2]), st.integers(0, 3), st.text("xy", max_size=1))
ACTIONS = st.one_of(
    st.tuples(st.just("edit"), EDITS),
    st.tuples(st.just("remove"), st.sampled_from([NAME, NEW, ".mini-harness/state.json"])),
    st.tuples(st.just("take"), st.just("")),
    st.tuples(st.just("update"), st.integers(1, 4)),
)


@settings(max_examples=150)
@given(st.lists(ACTIONS, max_size=12))
def test_whatever_a_learner_does_an_update_loses_nothing(actions: list[tuple[str, Any]]) -> None:
    """What a file held before is afterwards in that file, or in a backup, unless it shipped so."""
    shipped = {given_out(version)[NAME] for version in range(5)}
    with TemporaryDirectory() as name:
        folder = make(Path(name), given_out(1))
        for action in [*actions, ("update", 4)]:
            before = set(files_of_learner(folder))
            act(folder, *action)
            if action[0] == "update":
                assert before - shipped <= set(files_of_learner(folder))
        assert bring(folder, 4)[NAME] in ("current", "yours")


def act(folder: Path, kind: str, what: Any) -> None:
    match kind:
        case "edit":
            file, version, output = what
            (folder / file).write_bytes(notebook("a = 1", f"v = {version}", output=output))
        case "remove":
            (folder / what).unlink(missing_ok=True)
        case "take" if (folder / NEW).exists():
            (folder / NEW).replace(folder / NAME)
        case "update":
            bring(folder, what)


def files_of_learner(folder: Path) -> list[bytes]:
    return [text for name, text in files_in(folder).items() if not name.endswith("state.json")]


CHANGED = notebook("a = 1", "v = 1", output="mine")
EDITED = notebook("mine")
PROGRAM = f"""
from mini_harness.course.update import update
files = {{"v0_x.ipynb": {given_out(2)[NAME]!r}, "v2_x.ipynb": {given_out(2)[NAME]!r}}}
files |= {{"v3_x.ipynb": b"added"}}
armed()
list(update(folder, files))
"""


def test_an_update_that_dies_at_any_moment_loses_nothing_and_is_finished_by_the_next(
    tmp_path: Path,
) -> None:
    for step in range(60):
        files = {NAME: given_out(1)[NAME], "v2_x.ipynb": given_out(1)[NAME]}
        folder = make(tmp_path / str(step), files)
        (folder / NAME).write_bytes(CHANGED)
        (folder / "v2_x.ipynb").write_bytes(EDITED)
        died = crash_at(step, PROGRAM, folder)
        found = files_in(folder)
        assert found["v2_x.ipynb"] == EDITED
        assert found[NAME] in (CHANGED, given_out(2)[NAME])
        assert CHANGED in found.values()
        again = {NAME: given_out(2)[NAME], "v2_x.ipynb": given_out(2)[NAME], "v3_x.ipynb": b"added"}
        list(update(folder, again))
        last = files_in(folder)
        for name, text in {**again, "v2_x.ipynb": EDITED, "v2_x.new.ipynb": again[NAME]}.items():
            assert last[name] == text
        if not died:
            break
    assert 10 < step < 59, "it died at every write, and then not at all"


def test_an_update_that_finds_no_room_says_where_it_stopped_and_loses_nothing(
    workspace: Path,
) -> None:
    (workspace / NAME).write_bytes(CHANGED)
    before = files_in(workspace)
    large = notebook("a" * 9000)
    program = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from mini_harness.course.update import update\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
        "try: list(update(Path(sys.argv[1]), {'v0_x.ipynb': sys.stdin.buffer.read()}))\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(workspace)],
        input=large,
        check=True,
        capture_output=True,
        timeout=60,
    )
    assert done.stdout.decode().startswith(f"WorkspaceError stopped at {NAME}. There is no room")
    after = files_in(workspace)
    assert {name: after[name] for name in before} == before


def test_an_update_on_a_read_only_disk_says_so() -> None:
    with small_disk("256k") as disk:
        make(disk / "w", given_out(1))
        make_read_only(disk)
        with pytest.raises(WorkspaceError, match=rf"stopped at {NAME}\. .*Read-only file system"):
            list(update(disk / "w", given_out(2)))


# --- the command, with a changed release of the real package ----------------------------------


def test_the_command_lists_its_groups_and_keeps_what_was_edited(tmp_path: Path) -> None:
    """Two releases, installed one after the other, and a learner who worked in between."""
    old, new = package(tmp_path / "old"), package(tmp_path / "new")
    lesson = next(name for name in release() if name.startswith("v0_"))
    copy = (old / "notebooks" / lesson).read_bytes()
    for name in ("a_ran.ipynb", "b_edited.ipynb", "c_same.ipynb"):
        (old / "notebooks" / name).write_bytes(copy)
        (new / "notebooks" / name).write_bytes(with_cell(copy, "new = 1"))
    (new / "notebooks/c_same.ipynb").write_bytes(copy)
    (new / "notebooks/d_added.ipynb").write_bytes(copy)
    folder = tmp_path / "w"
    code = "from mini_harness.course.workspace import make; from pathlib import Path; make(Path())"
    folder.mkdir()
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=private_environment(tmp_path) | {"PYTHONPATH": str(old)},
        check=True,
        timeout=60,
    )
    (folder / "a_ran.ipynb").write_bytes(copy.replace(b'"execution_count": 1,', b'"x": 1,'))
    mine = with_cell(copy, "mine = 1")
    (folder / "b_edited.ipynb").write_bytes(mine)

    said = updated(folder, new)
    assert "Added:\n  d_added.ipynb\n" in said
    assert "\n  a_ran.ipynb  (the earlier one, with its outputs: .mini-harness/backups/" in said
    assert "\n  b_edited.ipynb  (new version: b_edited.new.ipynb)\n" in said
    assert "  c_same.ipynb\n" in said.partition("Up to date:\n")[2]
    found = files_in(folder)
    changed = (new / "notebooks/a_ran.ipynb").read_bytes()
    assert (found["a_ran.ipynb"], found["b_edited.ipynb"]) == (changed, mine)
    assert found["b_edited.new.ipynb"] == changed
    again = updated(folder, new)
    assert "Added" not in again and "Replaced" not in again and "b_edited.new" not in again
    assert files_in(folder).keys() == found.keys()


def package(folder: Path) -> Path:
    for name in ("mini_harness", "notebooks", "lessons"):
        ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    return folder


def with_cell(content: bytes, source: str) -> bytes:
    changed = json.loads(content)
    cell = {"cell_type": "code", "id": "extra", "source": [source], "metadata": {}}
    changed["cells"].append(cell | {"outputs": [], "execution_count": None})
    return json.dumps(changed).encode()


def updated(folder: Path, installed: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mini_harness.cli", "update", "--workspace", str(folder)],
        cwd=folder,
        env=private_environment(folder.parent) | {"PYTHONPATH": str(installed)},
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
