"""What a learner's cells do, in real kernels: save, use, check, and lose nothing."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mini_harness.course.exercises import exercise, exercises
from mini_harness.course.notebook import WrongVersion, begin
from mini_harness.course.workspace import make
from tests.course.disks import make_read_only, small_disk
from tests.kernels import Kernel, kernel

ACT = exercises("v0")[0]
SAVE_ACT = f"%%save my_harness/{ACT.module}.py\n"
BEGIN = 'from mini_harness.course.notebook import begin, check\nbegin("v0_small", expects="0.1")'
DISK = "4m"
GRADED = ", ".join(sorted({f"my_harness/{each.module}.py" for each in exercises()}))
ASIDE = f"No exercise looks at this file. They look at {GRADED}.\n"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("notebook") / "workspace")


@pytest.fixture(scope="module")
def shell(workspace: Path) -> Iterator[Kernel]:
    """One kernel for all that leaves nothing behind but its own module.

    Its compiled modules are kept, as they usually are: a machine may be set not to.
    """
    with kernel(workspace, PYTHONDONTWRITEBYTECODE="") as running:
        yield running


def save(module: str, source: str) -> str:
    return f"%%save my_harness/{module}.py\n{source}"


def test_what_an_editor_changed_is_what_the_next_cell_uses(workspace: Path) -> None:
    with kernel(workspace) as running:
        running.run(BEGIN)
        running.run(save("edited", "def where():\n    return 'cell'\n"))
        running.run("from my_harness.edited import where as again")
        file = workspace / "my_harness" / "edited.py"
        file.write_text("def where():\n    return 'the editor'\n", encoding="utf-8")
        (shown,) = running.run("where()")
        (imported,) = running.run("from my_harness.edited import where as again\nagain()")
    assert shown.data["text/plain"] == imported.data["text/plain"] == "'the editor'"


def test_what_is_borrowed_uses_what_was_written_since(workspace: Path) -> None:
    """The usual way: Run All on the unsolved notebook, then the first exercise."""
    use = "from my_harness import pursue\npursue(DemoModel(), TOOLS, 'go')"
    with kernel(workspace) as running:
        running.run(f"{BEGIN}\nfrom mini_harness import DemoModel\n")
        running.run("from mini_harness.tools.builds import TOOLS")
        running.run(save(ACT.module, ACT.stub))
        (borrowed,) = running.run(use)
        running.run(save(ACT.module, "def act(tools, decision):\n    return 'MINE'\n"))
        (mine,) = running.run(use)
    assert borrowed.data["text/plain"] == "'The build status is: failed'"
    assert mine.data["text/plain"] == "'The build status is: MINE'"


def test_another_working_folder_does_not_move_the_workspace(workspace: Path) -> None:
    with kernel(workspace) as running:
        running.run(BEGIN)
        running.run("import os\nos.mkdir('elsewhere')\nos.chdir('elsewhere')")
        running.run(save("moved", "def here():\n    return 1\n"))
        (output,) = running.run("here()")
    assert output.data["text/plain"] == "1"
    assert (workspace / "my_harness" / "moved.py").is_file()


# --- begin ------------------------------------------------------------------------------------


def test_the_first_cell_says_which_version_is_here_each_time_it_runs(shell: Kernel) -> None:
    """report N08"""
    for _ in range(2):
        (output,) = shell.run(BEGIN)
        assert output.data["text/plain"] == "'mini_harness 0.1: ready.'"


def test_a_lesson_of_another_version_says_so_and_how_to_get_it(shell: Kernel) -> None:
    said = "This lesson was written for mini_harness 9.9, and here is 0.1"
    with pytest.raises(WrongVersion, match=said):
        begin("v0_small", expects="9.9")
    told = shell.told(BEGIN.replace('"0.1"', '"9.9"'))
    assert told.startswith(said)
    assert told.endswith("\nInstall the other one: pip install 'mini-harness==9.9.*'")


def test_outside_a_notebook_only_the_version_is_checked() -> None:
    assert begin("v0_small", expects="0.1") == "mini_harness 0.1: ready."


# --- a save cell ------------------------------------------------------------------------------


def test_a_save_cell_writes_its_file_and_hands_the_notebook_the_names_it_defines(
    shell: Kernel, workspace: Path
) -> None:
    source = (
        "import json\nfrom textwrap import fill\n\nLIMIT, _hidden = 3, 4\n\n\n"
        "class Loop:\n    pass\n\n\n"
        "async def ask():\n    return [each for each in json.loads('[1]')]\n"
    )
    assert shell.printed(save("named", source)) == f"Saved as my_harness/named.py.\n{ASIDE}"
    assert (workspace / "my_harness" / "named.py").read_text(encoding="utf-8") == source
    assert shell.printed("print(LIMIT, Loop.__name__, await ask())") == "3 Loop [1]\n"
    absent = "print([n for n in ('json', 'fill', '_hidden', 'each') if n in globals()])"
    assert shell.printed(absent) == "[]\n"


def test_running_a_save_cell_again_says_the_same_and_changes_nothing(shell: Kernel) -> None:
    """report N08"""
    cell = save("again", "print('loads')\ndef f():\n    return 1\n")
    first = shell.run(cell)
    assert first == shell.run(cell)
    assert first[0].text == f"Saved as my_harness/again.py.\n{ASIDE}loads\n"


def test_what_was_just_saved_is_what_runs_even_within_one_second(shell: Kernel) -> None:
    """The versions have one length, so Python alone would go on with the compiled old one."""
    for number in range(10):
        shell.printed(save("quick", f"def version():\n    return {number}\n"))
        assert shell.printed("print(version())") == f"{number}\n"


def test_another_module_that_uses_the_new_function_gets_it_too(shell: Kernel) -> None:
    shell.printed(save("lower", "def step():\n    return 'old'\n"))
    shell.printed(
        save("upper", "from my_harness.lower import step\n\n\ndef walk():\n    return step()\n")
    )
    assert shell.printed("print(walk())") == "old\n"
    shell.printed(save("lower", "def step():\n    return 'new'\n"))
    assert shell.printed("print(walk())") == "new\n"
    said = shell.printed(save("lower", "def stride():\n    return 'renamed'\n"))
    assert said == (
        f"Saved as my_harness/lower.py.\n{ASIDE}"
        "ImportError: cannot import name 'step' from 'my_harness.lower'\n"
        "So this doesn't load any more: my_harness/upper.py.\n"
    )


def test_the_file_that_lacks_a_name_is_named_once_and_before_those_that_ask_for_it(
    workspace: Path,
) -> None:
    with kernel(workspace) as running:
        running.run(BEGIN)
        for name in ("v1-judge", "v1-guard", "v1-trace"):
            running.run(save(exercise(name).module, exercise(name).solution))
        slip = exercise("v1-judge").solution.replace("def judge", "def jugde")
        assert running.printed(save("policy", slip)) == (
            "Saved as my_harness/policy.py.\n"
            "my_harness/policy.py defines no 'judge'.\n"
            "So this doesn't load any more: my_harness/guard.py, my_harness/trace.py.\n"
        )
        told = running.printed("check('v1-trace')")
    assert told.startswith("v1-trace: my_harness/policy.py defines no 'judge'.\nPython stops in")


def test_a_name_that_the_learner_took_for_something_else_stays_theirs(shell: Kernel) -> None:
    shell.printed(save("first", "def mine():\n    return 1\n"))
    shell.printed("mine = 'my own'")
    shell.printed(save("second", "def other():\n    return 2\n"))
    assert shell.printed("print(mine)") == "my own\n"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            "x = 1\ndef act(tools)\n    pass\n",
            "Python stops in my_harness/bad.py, line 2.\n"
            "    def act(tools)\n"
            "                  ^\n"
            "SyntaxError: expected ':'",
        ),
        (
            "\nx = int('three')\n",
            "Python stops in my_harness/bad.py, line 2.\n"
            "    x = int('three')\n"
            "ValueError: invalid literal for int() with base 10: 'three'",
        ),
        (
            "import my_harness.worse\n",
            "Python stops in my_harness/worse.py, line 1.\n"
            "    1 / 0\n"
            "ZeroDivisionError: division by zero",
        ),
        (
            "raise ExceptionGroup('two', [KeyError(1), KeyError(2)])\n",
            "Python stops in my_harness/bad.py, line 1.\n"
            "    raise ExceptionGroup('two', [KeyError(1), KeyError(2)])\n"
            "ExceptionGroup: two (2 sub-exceptions)",
        ),
        (
            "raise SystemExit(3)\n",
            "Python stops in my_harness/bad.py, line 1.\n    raise SystemExit(3)\nSystemExit: 3",
        ),
    ],
)
def test_code_that_python_stops_at_is_saved_and_told_in_few_lines(
    source: str, told: str, shell: Kernel, workspace: Path
) -> None:
    (workspace / "my_harness" / "worse.py").write_text("1 / 0\n", encoding="utf-8")
    printed, error = shell.run(save("bad", source))
    assert printed.text == f"Saved as my_harness/bad.py.\n{ASIDE}"
    assert "\n".join(error.traceback) == told
    saved = (workspace / "my_harness" / "bad.py").read_text(encoding="utf-8")
    assert saved.rstrip() == source.rstrip()


@pytest.mark.parametrize(
    "line", ["loop", "my_harness/../x.py", "other/act.py", "my_harness/__init__.py", "/x/act.py"]
)
def test_a_first_line_that_names_no_module_of_the_learner_is_told_in_one_line(
    line: str, shell: Kernel, workspace: Path
) -> None:
    before = sorted(workspace.rglob("*.py"))
    told = shell.told(f"%%save {line}\nx = 1\n")
    assert told == (
        f"Nothing is saved: `%%save {line}` names no module of your harness. "
        "Write %%save my_harness/NAME.py"
    )
    assert sorted(workspace.rglob("*.py")) == before


def test_an_empty_save_cell_leaves_the_file_as_it_is(shell: Kernel, workspace: Path) -> None:
    shell.printed(save("kept", "x = 1\n"))
    assert shell.told(save("kept", "\n  \n")).startswith("This cell holds no code.")
    assert (workspace / "my_harness" / "kept.py").read_text(encoding="utf-8") == "x = 1\n"


# --- check ------------------------------------------------------------------------------------


def test_an_exercise_goes_from_not_done_to_red_to_green(tmp_path: Path) -> None:
    """The stub that is run again afterwards takes nothing away."""
    with kernel(make(tmp_path / "workspace")) as shell:
        shell.run(BEGIN)
        cell = f"check({ACT.id!r})"
        shell.printed(SAVE_ACT + ACT.stub)
        assert shell.printed(cell).startswith(f"{ACT.id}: not done yet.")
        shell.printed(SAVE_ACT + "def act(tools, decision):\n    return 'done'\n")
        assert "checks hold. The first that doesn't:" in shell.printed(cell)
        shell.printed(SAVE_ACT + ACT.solution)
        assert shell.printed(cell).startswith(f"{ACT.id}: passed.")
        assert "keeps your work" in shell.printed(SAVE_ACT + ACT.stub)
        assert shell.printed(cell).startswith(f"{ACT.id}: passed.")
        call = 'print(act({}, {"name": "x", "arguments": {}}))'
        assert shell.printed(call).startswith("Unknown tool"), "the notebook has the work too"


def test_an_exercise_that_there_isnt_is_told_in_one_line(shell: Kernel) -> None:
    shell.run(BEGIN)
    told = shell.told('check("v0-atc")')
    assert told.startswith("There is no exercise 'v0-atc'. The exercises of v0 are: v0-")
    assert "\n" not in told


# --- help -------------------------------------------------------------------------------------


def test_a_hint_is_shown_as_text_and_as_markdown(shell: Kernel) -> None:
    (output,) = shell.run(f"from mini_harness.course.notebook import hint\nhint({ACT.id!r}, 3)")
    wanted = ACT.hints[2].strip()
    assert output.data == {"text/markdown": wanted, "text/plain": wanted}


@pytest.mark.parametrize(
    ("asked", "told"),
    [(f"{ACT.id!r}, 4", f"{ACT.id} has 3 hints: ask for 1 to 3."), ("'x'", "There is no exercise")],
)
def test_a_hint_that_there_isnt_is_told_in_one_line(asked: str, told: str, shell: Kernel) -> None:
    said = shell.told(f"from mini_harness.course.notebook import hint\nhint({asked})")
    assert said.startswith(told)
    assert "\n" not in said


def test_the_doctor_can_be_asked_from_a_cell(shell: Kernel) -> None:
    said = shell.printed("from mini_harness.course.notebook import doctor\ndoctor()")
    assert "\nwidgets: fine\n" in said


# --- what goes wrong outside ------------------------------------------------------------------


def test_a_kernel_killed_in_the_middle_of_an_exercise_loses_nothing(tmp_path: Path) -> None:
    """The save cell itself kills it: the file is written, and the cell doesn't come to its end."""
    folder = make(tmp_path / "workspace")
    mine = "# an idea of my own\n" + ACT.solution
    with kernel(folder) as shell:
        shell.send(SAVE_ACT + mine + "\nimport os\nos.kill(os.getpid(), 9)\n")
        shell.wait_for_death()
    file = folder / "my_harness" / f"{ACT.module}.py"
    assert file.read_text(encoding="utf-8").startswith(mine)
    with kernel(folder) as shell:
        shell.run(BEGIN)
        assert "keeps your work" not in shell.printed(SAVE_ACT + mine)
        assert shell.printed(f"check({ACT.id!r})").startswith(f"{ACT.id}: passed.")
    assert file.read_text(encoding="utf-8") == mine


def old_and_new(shell: Kernel, breaks: Callable[[], None]) -> str:
    """What a save cell prints after `breaks()`; its code has run, and the old file is whole."""
    shell.printed(save("loop", "def version():\n    return 'old'\n"))
    breaks()
    said = shell.printed(save("loop", "def version():\n    return 'new'\n"))
    assert shell.printed("print(version())") == "new\n"
    assert shell.printed("from my_harness.loop import version\nprint(version())") == "new\n"
    told = shell.told(save("loop", "def version():\n    return 1 / 0\n\n\nversion()\n"))
    assert told.startswith("Python stops in my_harness/loop.py, line 2.\n    return 1 / 0\n")
    assert shell.printed("print(open('my_harness/loop.py').read())").endswith("'old'\n\n")
    return said


def test_in_a_read_only_workspace_the_code_runs_and_the_old_file_is_whole(tmp_path: Path) -> None:
    with small_disk(DISK) as disk, kernel(make(disk), tmp_path) as shell:
        said = old_and_new(shell, lambda: make_read_only(disk))
    assert said.startswith("my_harness/loop.py is not saved.")
    assert "Read-only file system" in said


def test_on_a_full_disk_the_code_runs_and_the_old_file_is_whole(tmp_path: Path) -> None:
    """And with room again, the same cell is saved."""
    with small_disk(DISK) as disk, kernel(make(disk), tmp_path) as shell:
        said = old_and_new(shell, lambda: fill(disk / "film.mp4"))
        (disk / "film.mp4").unlink()
        now = shell.printed(save("loop", "def version():\n    return 'newest'\n"))
    assert said.startswith("my_harness/loop.py is not saved. There is no room left")
    assert now == "Saved as my_harness/loop.py.\n"


def fill(film: Path) -> None:
    with film.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
