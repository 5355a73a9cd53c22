"""From an empty folder: plain pip, the wheel, and the commands that README.md shows."""

import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import ROOT
from tests.serving import private_environment, served

pytestmark = pytest.mark.slow
LEARN = ("learn", "--no-browser", "--port", "0")


def run(*command: str | Path, cwd: Path) -> str:
    """What the command printed; the test fails with all of its words if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=private_environment(cwd) | {"PIP_NO_COMPILE": "1"},  # saves pip 15 s
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def uv() -> str:
    found = shutil.which("uv")
    if not found:
        pytest.skip("uv is not installed here: pip install uv")
    return found


def test_plain_pip_installs_a_clone_and_the_command_runs(fresh_copy: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "-e", fresh_copy, cwd=tmp_path)

    where = run(python, "-c", "import mini_harness; print(mini_harness.__file__)", cwd=tmp_path)
    assert where.strip() == str(fresh_copy / "mini_harness" / "__init__.py")
    command = python.with_name("mini-harness")
    assert run(command, "--version", cwd=tmp_path).startswith("mini-harness ")
    assert run(command, "demo", cwd=tmp_path) == demo_in_readme()


def test_the_wheel_holds_package_and_lessons_and_serves_them_from_an_empty_folder(
    uv: str, fresh_copy: Path, project_files: list[Path], tmp_path: Path
) -> None:
    run(uv, "build", "--quiet", "--wheel", "--out-dir", tmp_path / "dist", cwd=fresh_copy)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    lessons = {path.name for path in (fresh_copy / "notebooks").glob("*.ipynb")}
    package = {path.as_posix() for path in project_files if path.parts[0] == "mini_harness"}
    sources = {path.as_posix() for path in project_files if path.parts[0] == "lessons"}
    assert {f"lessons/{name[:-6]}/lesson.md" for name in lessons} <= sources
    built = {f"notebooks/{name}" for name in lessons}
    assert names == package | {f"mini_harness/course/{name}" for name in built | sources}

    python = tmp_path / "venv" / "bin" / "python"
    run(uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv", cwd=fresh_copy)
    run(uv, "pip", "install", "--quiet", "--python", python, wheel, cwd=fresh_copy)
    assert run(python.with_name("mini-harness"), "demo", cwd=tmp_path) == demo_in_readme()
    empty = tmp_path / "empty"
    empty.mkdir()
    with served(
        [str(python.with_name("mini-harness")), *LEARN],
        cwd=empty,
        env=private_environment(tmp_path),
        log=tmp_path / "log",
    ):
        assert {path.name for path in (tmp_path / "mini-harness").glob("*.ipynb")} == lessons
    assert list(empty.iterdir()) == []
    command = python.with_name("mini-harness")
    assert "All is well." in run(command, "doctor", cwd=tmp_path)
    exercises = re.findall(r"^  (v0-\w+)", run(command, "progress", cwd=tmp_path), re.MULTILINE)
    assert exercises, "the exercises come from the lessons in the wheel"
    for exercise in exercises:
        do_it(command, exercise, tmp_path)
    assert f"{len(exercises)} of {len(exercises)} " in run(command, "check", "v0", cwd=tmp_path)


def do_it(command: Path, exercise: str, folder: Path) -> None:
    """As a learner does who gives up: the solution becomes their own file."""
    said = run(command, "solution", exercise, "--give-up", cwd=folder)
    (solution,) = re.findall(r"is in (\S+_solution\.py)\.", said)
    shutil.copy(solution, solution.replace("_solution", ""))


# --- README.md --------------------------------------------------------------------------------


class Shown(NamedTuple):
    """A command of the README, and the output it shows below it (empty if none)."""

    command: str
    output: str


def shown(readme: str) -> Iterator[Shown]:
    """The commands in the fenced blocks of the first section, in order, split at `&&`."""
    first = re.split(r"^## ", readme, maxsplit=1, flags=re.MULTILINE)[0]
    for kind, block in re.findall(r"^```(sh|console)\n(.*?)^```", first, re.MULTILINE | re.DOTALL):
        if kind == "console":
            entries = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
        else:
            entries = [(line, "") for line in block.splitlines()]
        for line, output in entries:
            commands = [part.strip() for part in line.partition(" #")[0].split("&&")]
            yield from (Shown(command, "") for command in commands[:-1])
            yield Shown(commands[-1], output)


def demo_in_readme() -> str:
    """What the README says that the demo prints: there is one such place."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (output,) = (
        entry.output for entry in shown(readme) if entry.command.endswith("mini-harness demo")
    )
    return output


def test_the_readme_is_read_as_a_person_reads_it() -> None:
    readme = (
        "# x\n```sh\na && b  # why\n```\n```console\n$ c\none\n\ntwo\n$ d\n```\n"
        "```python\ne\n```\n## More\n```sh\nf\n```\n"
    )
    assert list(shown(readme)) == [("a", ""), ("b", ""), ("c", "one\n\ntwo\n"), ("d", "")]


def test_the_commands_of_the_readme_do_everything_from_a_fresh_clone(
    uv: str, fresh_copy: Path, tmp_path: Path
) -> None:
    entries = list(shown((ROOT / "README.md").read_text(encoding="utf-8")))
    words = [entry.command for entry in entries]
    assert {"pip install uv", "uv run mini-harness learn", "uv run pytest"} <= set(words)
    for entry in entries:
        if entry.command not in ("pip install uv", "uv run pytest"):
            try_out(entry, uv, fresh_copy, tmp_path)


def try_out(entry: Shown, uv: str, clone: Path, folder: Path) -> None:
    command = shlex.split(entry.command)
    if command[0] == "mini-harness":
        command = ["uv", "run", *command]
    command[0] = uv if command[0] == "uv" else command[0]
    if "learn" in command:
        more = LEARN[1:]
        env = private_environment(folder)
        with served([*command, *more], cwd=clone, env=env, log=folder / "log"):
            assert list((folder / "mini-harness").glob("v0_*.ipynb"))
        return
    printed = run(*command, cwd=clone)
    assert printed.strip() == entry.output.strip() or not entry.output
