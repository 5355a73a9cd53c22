"""Files are replaced whole, one at a time, and never outside the folder that was checked."""

import asyncio
import errno
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from mini_harness.tools import places
from mini_harness.tools.edit import EditFile
from mini_harness.tools.places import HeldFile, hold_file, make_folder, whole, write_inside
from mini_harness.tools.write import WriteFile
from tests.tools.workshop import folder, only, use

OLD, NEW = b"old\n" * 1000, b"new content\n" * 2000
STEPS = ("open", "stat", "fchmod", "fsync", "replace", "unlink", "mkdir")
"""What the system is asked for while a file is replaced."""


def replace(root: Path, data: bytes = NEW) -> None:
    with hold_file(root, "f") as held:
        held.replace(held.read(), data)


# --- a crash


KILLED = """
import os, signal, sys
from pathlib import Path
from mini_harness.tools.places import hold_file

number = int(sys.argv[1])

def counted(really):
    def call(*given, **named):
        global number
        number -= 1
        if number == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return really(*given, **named)
    return call

with hold_file(Path("."), "f") as held:
    before = held.read()
    for name in {steps}:
        setattr(os, name, counted(getattr(os, name)))
    held.replace(before, b"new content\\n" * 2000)
print(number)
"""


@pytest.mark.once
def test_a_process_killed_at_any_step_leaves_the_old_or_the_new_content(tmp_path: Path) -> None:
    """report O04"""
    seen: set[bytes] = set()
    for number in range(1, 40):
        (tmp_path / "f").write_bytes(OLD)
        program = [sys.executable, "-c", KILLED.format(steps=STEPS), str(number)]
        done = subprocess.run(program, cwd=tmp_path, check=False, capture_output=True)
        seen.add(content := (tmp_path / "f").read_bytes())
        assert content in (OLD, NEW)
        replace(tmp_path, b"next")
        only(tmp_path, "f")
        if done.returncode == 0:
            break
    assert done.returncode == 0, "the last step was never reached"
    assert number > 8
    assert seen == {OLD, NEW}


def _failing(
    monkeypatch: pytest.MonkeyPatch, name: str, number: int, fault: BaseException
) -> list[int]:
    """The call number ``number`` of this function of ``os`` fails. Returns the list of calls."""
    really, calls = getattr(os, name), []

    def call(*given: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == number:
            raise fault
        return really(*given, **named)

    monkeypatch.setattr(os, name, call)
    return calls


@pytest.mark.parametrize("fault", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
@pytest.mark.parametrize("name", ["open", "stat", "fchmod", "fsync", "replace"])
def test_a_fault_at_any_step_leaves_the_old_or_the_new_content_and_nothing_else(
    name: str, fault: BaseException, tmp_path: Path
) -> None:
    """report O04"""
    for number in range(1, 20):
        (tmp_path / "f").write_bytes(OLD)
        with pytest.MonkeyPatch.context() as patch:
            calls = _failing(patch, name, number, fault)
            with suppress(OSError, KeyboardInterrupt):
                replace(tmp_path)
        assert (tmp_path / "f").read_bytes() in (OLD, NEW)
        only(tmp_path, "f")
        if len(calls) < number:
            break
    assert 1 < number < 20


def test_what_a_crash_left_behind_is_cleared_away_by_the_next_change(tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(OLD)
    with hold_file(tmp_path, "f") as held:
        left = held._temporary()
    (tmp_path / left).write_bytes(b"half")
    replace(tmp_path)
    assert (tmp_path / "f").read_bytes() == NEW
    only(tmp_path, "f")


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
def test_a_disk_that_takes_nothing_gives_a_clear_error(
    error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(OLD)
    _failing(monkeypatch, "fsync", 1, OSError(error, os.strerror(error)))
    result = use(EditFile(), tmp_path, path="f", old="old\n", new="new\n", replace_all=True)
    assert result.is_error
    assert result.output.startswith(f"Cannot change file: f. {os.strerror(error)}. ")
    assert len(result.output) > len("Cannot change file: f. .") + len(os.strerror(error)) + 20
    assert (tmp_path / "f").read_bytes() == OLD
    only(tmp_path, "f")


FULL = """
import resource, signal, sys
from pathlib import Path
from mini_harness.tools.write import WriteFile
from tests.tools.workshop import use

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
print(use(WriteFile(), Path(sys.argv[1]), path="f", content="x" * 5000).output)
"""


def test_a_write_that_the_system_really_refuses_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.stdout.startswith("Cannot change file: f. File too large.")
    only(tmp_path)


AS_NOBODY = """
import asyncio, os, sys
from pathlib import Path
from mini_harness.tools.write import WriteFile
from mini_harness.tools.edit import EditFile
from tests.tools.workshop import use

use(WriteFile(), Path(sys.argv[1]), path="first", content="loads whatever is loaded later")
os.setegid(65534), os.seteuid(65534)
print(use(WriteFile(), Path(sys.argv[1]), path="closed/new", content="x").output)
print(use(EditFile(), Path(sys.argv[1]), path="closed/f", old="a", new="b").output)
print(use(EditFile(), Path(sys.argv[1]), path="open/f", old="a", new="b").output)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_read_only_folder_and_a_read_only_file_give_a_clear_error() -> None:
    with folder() as cwd:
        cwd.chmod(0o755)
        for name, mode in (("closed", 0o755), ("open", 0o777)):
            (cwd / name).mkdir()
            (cwd / name).chmod(mode)
            (cwd / name / "f").write_bytes(b"a")
            (cwd / name / "f").chmod(0o644)
        program = [sys.executable, "-c", AS_NOBODY, str(cwd)]
        done = subprocess.run(program, check=True, capture_output=True, encoding="utf-8")
        only(cwd / "closed", "f")
        only(cwd / "open", "f")
    why = "Permission denied. Choose another place inside the workspace folder, or ask the user."
    wanted = [f"Cannot change file: {path}. {why}" for path in ("closed/new", "closed/f", "open/f")]
    assert done.stdout.splitlines() == wanted


# --- others at the same place


EDITS = """
import sys
from pathlib import Path
from mini_harness.tools.edit import EditFile
from tests.tools.workshop import use

for number in range(50):
    line = f"{sys.argv[1]} {number}\\n"
    result = use(EditFile(), Path("."), path=sys.argv[2], old="end\\n", new=f"{line}end\\n")
    assert not result.is_error, result.output
"""


@pytest.mark.once
def test_two_processes_that_edit_one_file_lose_nothing(tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_text("end\n", encoding="utf-8")
    (tmp_path / "link").symlink_to("f")
    root = Path(__file__).parents[2]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", EDITS, who, path],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(root)},
        )
        for who, path in (("a", "f"), ("b", "link"))
    ]
    assert [process.wait(120) for process in started] == [0, 0]
    lines = (tmp_path / "f").read_text(encoding="utf-8").splitlines()
    assert sorted(lines) == [*sorted(f"{who} {n}" for who in "ab" for n in range(50)), "end"]
    only(tmp_path, "f", "link")


def test_twenty_edits_side_by_side_lose_nothing(tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_text("end\n", encoding="utf-8")

    async def all_at_once() -> None:
        from mini_harness.tools.base import ToolExecutionContext

        tool, context = EditFile(), ToolExecutionContext(cwd=tmp_path)
        wanted = [tool.input_model(path="f", old="end", new=f"{n}\nend") for n in range(20)]
        results = await asyncio.gather(*(tool.execute(each, context) for each in wanted))
        assert not any(result.is_error for result in results)

    asyncio.run(all_at_once())
    lines = (tmp_path / "f").read_text(encoding="utf-8").splitlines()
    assert sorted(lines[:-1], key=int) == [str(n) for n in range(20)]


def test_whoever_waits_too_long_for_another_gets_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """report O04"""
    monkeypatch.setattr(places, "WAIT", 0.05)
    busy = "somebody else has been changing files in its folder. Try again later."
    holder = "import fcntl, os, sys; fcntl.flock(os.open('.', 0), fcntl.LOCK_EX); print(); input()"
    other = subprocess.Popen(
        [sys.executable, "-uc", holder], cwd=tmp_path, stdin=-1, stdout=-1, encoding="utf-8"
    )
    assert other.stdout is not None
    other.stdout.readline()
    assert busy in use(WriteFile(), tmp_path, path="f", content="x").output
    other.communicate("\n")
    with hold_file(tmp_path, "g"):
        assert busy in use(WriteFile(), tmp_path, path="f", content="x").output
    assert not use(WriteFile(), tmp_path, path="f", content="x").is_error


def test_two_folders_never_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """report O04"""
    monkeypatch.setattr(places, "WAIT", 0.05)
    names = [f"{number}/f" for number in range(80)]
    with ExitStack() as held:
        for name in names:
            held.enter_context(hold_file(tmp_path, name, make_folder))
        assert len(places._GUARDS) == len(names)
    assert not places._GUARDS


def test_where_folders_have_no_locks_the_process_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """report O04"""
    fcntl = pytest.importorskip("fcntl")

    def none(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "Not supported")

    monkeypatch.setattr(fcntl, "flock", none)
    test_twenty_edits_side_by_side_lose_nothing(tmp_path)
    only(tmp_path, "f")


# --- a swapped folder


def test_a_folder_swapped_for_a_link_after_the_check_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C24, report B10"""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "room/sub").mkdir(parents=True)
    really_open = os.open

    def swap_then_open(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if path == "sub" and not (tmp_path / "room/sub").is_symlink():
            (tmp_path / "room/sub").rename(tmp_path / "room/moved")
            (tmp_path / "room/sub").symlink_to("../elsewhere")
        return really_open(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", swap_then_open)
    result = use(WriteFile(), tmp_path / "room", path="sub/f", content="x")
    assert result.is_error
    assert "link that somebody has just put there" in result.output
    only(tmp_path / "elsewhere")


def test_a_folder_swapped_while_it_is_held_changes_nothing_outside(tmp_path: Path) -> None:
    """C24, report B10"""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/f").write_bytes(b"theirs")
    (tmp_path / "room/sub").mkdir(parents=True)
    with hold_file(tmp_path / "room", "sub/f", make_folder) as held:
        (tmp_path / "room/sub").rename(tmp_path / "room/moved")
        (tmp_path / "room/sub").symlink_to("../elsewhere")
        held.replace(None, b"mine")
    assert (tmp_path / "elsewhere/f").read_bytes() == b"theirs"
    assert (tmp_path / "room/moved/f").read_bytes() == b"mine"


SWAP = """
from pathlib import Path
while True:
    Path("sub").rename("real")
    Path("sub").symlink_to("../elsewhere")
    Path("sub").unlink()
    Path("real").rename("sub")
"""


@pytest.mark.once
def test_a_folder_swapped_all_the_time_never_leads_outside(tmp_path: Path) -> None:
    """C24, report B10"""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "room/sub").mkdir(parents=True)
    swapper = subprocess.Popen([sys.executable, "-c", SWAP], cwd=tmp_path / "room")
    failed = done = 0
    try:
        until = time.monotonic() + 60
        while min(failed, done) < 100 and time.monotonic() < until:
            try:
                # Not with make_folder: it would stand in the swapper's way.
                with hold_file(tmp_path / "room", "sub/f") as held:
                    held.overwrite(str(done).encode())
                done += 1
            except OSError:
                failed += 1
    finally:
        swapper.kill()
        swapper.wait()
    assert min(failed, done) >= 100, "the race was never run"
    only(tmp_path / "elsewhere")


def test_a_file_swapped_for_a_link_is_refused(tmp_path: Path) -> None:
    """C24, report B10"""
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "room").mkdir()
    with hold_file(tmp_path / "room", "f") as held:
        (tmp_path / "room/f").symlink_to("../secret")
        for act in (held.read, lambda: held.overwrite(b"x"), lambda: held.replace(None, b"x")):
            with pytest.raises(PermissionError, match="link, not a regular file"):
                act()
    assert (tmp_path / "secret").read_bytes() == b"secret"


# --- and the rest


def test_a_cancelled_change_is_over_when_the_cancellation_arrives(tmp_path: Path) -> None:
    """report O04"""
    (tmp_path / "f").write_bytes(OLD)
    begun, go_on = threading.Event(), threading.Event()

    def change() -> None:
        with hold_file(tmp_path, "f") as held, held._beside(NEW) as temporary:
            begun.set()
            assert go_on.wait(30)
            held._move(temporary)

    async def cancel() -> None:
        task = asyncio.create_task(whole(change))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        asyncio.get_running_loop().call_later(0.05, go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert (tmp_path / "f").read_bytes() == NEW
    only(tmp_path, "f")


def test_write_inside_replaces_whatever_was_there_and_makes_folders(tmp_path: Path) -> None:
    """C25"""
    for data in (b"a", b"\0" * 20_000_000, b"b"):
        write_inside(tmp_path, "x/y/f", data)
        assert (tmp_path / "x/y/f").read_bytes() == data
    only(tmp_path / "x/y", "f")
    with pytest.raises(PermissionError):
        write_inside(tmp_path, "../f", b"a")


@pytest.mark.parametrize("act", [HeldFile.read, lambda held: held.overwrite(b"new")])
def test_no_descriptor_is_left_open(act: Callable[[HeldFile], Any], tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a")
    (tmp_path / "d").mkdir()
    before = psutil.Process().num_fds()
    for path in ("f", "d", "new/f", "f/f", "../x"):
        with suppress(OSError), hold_file(tmp_path, path) as held:
            act(held)
    assert psutil.Process().num_fds() == before


def test_a_temporary_file_is_nobody_elses_to_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(OLD)
    (tmp_path / "f").chmod(0o600)
    with hold_file(tmp_path, "f") as held, held._beside(NEW) as temporary:
        assert stat.S_IMODE((tmp_path / temporary).stat().st_mode) == 0o600
        held._move(temporary)
