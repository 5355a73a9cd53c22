"""`check`, `progress`, `hint`, `solution` and `reset`, run as a learner runs them."""

from pathlib import Path

import pytest

from mini_harness.course.exercises import exercise, exercises
from mini_harness.course.workspace import make
from tests.conftest import ROOT
from tests.course.commands import module_of, run, solve
from tests.course.disks import AS_NOBODY, files_in, open_folder, run_python

pytestmark = pytest.mark.once

V0 = [each.id for each in exercises("v0")]
FIRST, *_, LAST = V0


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make(tmp_path / "w")


# --- README.md --------------------------------------------------------------------------------


def commands_of_the_readme() -> list[str]:
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## A harness of your own")[1]
    block = section.split("```sh\n")[1].split("```")[0]
    return [line.partition("#")[0].strip() for line in block.splitlines()]


def test_every_command_that_the_readme_shows_does_what_it_can(workspace: Path) -> None:
    """`watch` would go on for ever, so only its help is asked for here."""
    shown = commands_of_the_readme()
    assert len(shown) == 8
    for command in shown:
        name, *arguments = command.removeprefix("mini-harness ").split()
        more = ["--help"] if name == "watch" else []
        done = run(workspace, name, *arguments, *more)
        assert done.code == (1 if name == "check" else 0), f"{command}: {done}"


# --- check and progress -----------------------------------------------------------------------


def test_check_goes_from_not_done_to_wrong_to_passed(workspace: Path) -> None:
    done = run(workspace, "check", FIRST)
    assert (done.code, done.out.partition(".")[0]) == (1, f"{FIRST}: not done yet")
    wrong = exercise(FIRST).solution.replace("except Exception", "except ZeroDivisionError")
    module_of(workspace, FIRST).write_text(wrong, encoding="utf-8")
    done = run(workspace, "check", FIRST)
    assert done.code == 1
    for part in ("called", "got", "expected", "likely"):
        assert f"\n  {part} " in done.out
    solve(workspace, FIRST)
    done = run(workspace, "check", FIRST)
    assert (done.code, done.out.splitlines()[-1]) == (0, "1 of 1 exercise passed.")


@pytest.mark.parametrize("asked", [[], ["v0"]])
def test_check_takes_all_exercises_of_a_step_or_of_all(workspace: Path, asked: list[str]) -> None:
    chosen = [each.id for each in exercises(*asked)]
    for each in chosen:
        solve(workspace, each)
    done = run(workspace, "check", *asked)
    assert (done.code, done.err) == (0, "")
    passed = [line.partition(":")[0] for line in done.out.splitlines() if ": passed. " in line]
    assert passed == chosen
    assert done.out.endswith(f"\n{len(chosen)} of {len(chosen)} exercises passed.\n")


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (["check", "v0-akt"], f"The exercises of v0 are: {', '.join(V0)}.\n"),
        (["check", "v99"], "The steps are: v0, v0b, v1"),
        (["watch", "v99"], f"The exercises are: {FIRST}"),
        (["hint", "v99"], f"The exercises are: {FIRST}"),
        (["hint", "v1"], "The exercises of v1 are: v1-judge, v1-guard, v1-trace.\n"),
        (["hint", FIRST, "4"], f"{FIRST} has 3 hints: ask for 1 to 3"),
        (["hint", FIRST, "0"], f"{FIRST} has 3 hints"),
        (["hint", FIRST, "one"], "argument LEVEL"),
        (["hint"], "required: ID"),
        (["solution", "v99"], f"The exercises are: {FIRST}"),
        (["reset", "v99"], f"The exercises are: {FIRST}"),
        (["reset", FIRST, "v99"], "reset doesn't know v99"),
        (["progress", "--nonsense"], "progress doesn't know --nonsense"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_request_is_answered_with_what_there_is(
    workspace: Path, asked: list[str], answer: str
) -> None:
    before = files_in(workspace)
    done = run(workspace, *asked)
    assert (done.code, done.out) == (2, "")
    assert answer in done.err
    assert files_in(workspace) == before


@pytest.mark.parametrize(
    "command", ["check", "watch", "progress", "update", f"hint {FIRST}", f"reset {FIRST}"]
)
def test_without_a_workspace_it_is_said_how_to_make_one(tmp_path: Path, command: str) -> None:
    done = run(tmp_path, *command.split())
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert f"no workspace in {tmp_path}. `mini-harness learn` makes one" in done.err
    assert list(tmp_path.iterdir()) == []


def test_the_folder_one_stands_in_is_taken_if_it_is_a_workspace(
    workspace: Path, tmp_path: Path
) -> None:
    solve(workspace, FIRST)
    home = {"HOME": str(tmp_path), "MINI_HARNESS_HOME": ""}
    assert run(workspace, "check", FIRST, env=home).code == 0
    assert run(workspace, "check", FIRST, cwd=tmp_path, env=home).code == 2
    named = ("--workspace", str(workspace))
    assert run(workspace, "check", FIRST, *named, cwd=tmp_path, env=home).code == 0
    assert run(workspace, "check", *named, FIRST, cwd=tmp_path, env=home).code == 0


def test_progress_shows_what_the_files_say_now(workspace: Path) -> None:
    solve(workspace, FIRST)
    done = run(workspace, "progress")
    assert (done.code, done.err) == (0, "")
    words = [line.split() for line in done.out.splitlines()]
    lines = {each[0]: each[1] for each in words if each and "-" in each[0]}
    assert lines == {each: "passed" if each == FIRST else "untouched" for each in lines}
    assert [*lines][: len(V0)] == V0
    assert "v0  Loop and tool\n" in done.out
    module_of(workspace, FIRST).write_text("def", encoding="utf-8")
    width = max(len(each.id) for each in exercises())
    assert f"{FIRST:<{width}}  failed " in run(workspace, "progress").out


# --- hints ------------------------------------------------------------------------------------


def test_hints_come_one_after_the_other_and_say_how_many_there_are(workspace: Path) -> None:
    hints = exercise(FIRST).hints
    for number in (1, 2, 3, 3):
        done = run(workspace, "hint", FIRST)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"Hint {number} of 3 for {FIRST}:\n\n{hints[number - 1]}")
    assert f"mini-harness solution {FIRST} --give-up" in done.out
    assert run(workspace, "hint", LAST).out.startswith(f"Hint 1 of 3 for {LAST}")


def test_an_earlier_hint_can_be_read_again_without_losing_the_place(workspace: Path) -> None:
    assert run(workspace, "hint", FIRST, "2").out.startswith("Hint 2 of 3")
    assert run(workspace, "hint", FIRST, "1").out.startswith("Hint 1 of 3")
    assert run(workspace, "hint", FIRST).out.startswith("Hint 3 of 3")


# --- the solution -----------------------------------------------------------------------------


def test_the_solution_stays_closed_until_the_exercise_passes(workspace: Path) -> None:
    done = run(workspace, "solution", FIRST)
    assert (done.code, done.err) == (1, "")
    assert f"mini-harness hint {FIRST}" in done.out and "--give-up" in done.out
    assert exercise(FIRST).solution.splitlines()[-1] not in done.out
    assert not list((workspace / "my_harness").glob("*_solution.py"))
    mine = solve(workspace, FIRST)
    mine.write_text("# my own\n" + mine.read_text(encoding="utf-8"), encoding="utf-8")
    before = files_in(workspace)
    beside = mine.with_name(f"{mine.stem}_solution.py")
    done = run(workspace, "solution", FIRST)
    assert done.code == 0 and str(beside) in done.out
    assert beside.read_text(encoding="utf-8") == exercise(FIRST).solution
    after = files_in(workspace)
    assert {name: after[name] for name in before} == before


def test_the_solution_is_given_to_who_gives_up_and_takes_nothings_place(workspace: Path) -> None:
    mine = module_of(workspace, LAST)
    beside = mine.with_name(f"{mine.stem}_solution.py")
    beside.write_text("# notes\n", encoding="utf-8")
    done = run(workspace, "solution", LAST, "--give-up")
    kept = workspace / f".mini-harness/backups/my_harness/{beside.stem}-1.py"
    assert done.code == 0 and f"kept in {kept}" in done.out
    assert kept.read_text(encoding="utf-8") == "# notes\n"
    assert beside.read_text(encoding="utf-8") == exercise(LAST).solution
    assert "kept" not in run(workspace, "solution", LAST, "--give-up").out
    assert run(workspace, "check", LAST).code == 1, "the solution beside it is not the learner's"


# --- reset ------------------------------------------------------------------------------------


def test_reset_keeps_the_work_and_says_what_to_put_into_the_cell(workspace: Path) -> None:
    mine = solve(workspace, FIRST)
    work = mine.read_bytes()
    done = run(workspace, "reset", FIRST)
    kept = workspace / f".mini-harness/backups/my_harness/{mine.stem}-1.py"
    assert done.code == 0 and f"What you wrote is kept in {kept}." in done.out
    assert kept.read_bytes() == work
    assert mine.read_text(encoding="utf-8") == exercise(FIRST).stub
    assert done.out.endswith(f"\n\n%%save my_harness/{mine.name}\n{exercise(FIRST).stub}")
    assert run(workspace, "check", FIRST).out.startswith(f"{FIRST}: not done yet")
    assert "kept" not in run(workspace, "reset", FIRST).out, "a stub is nobody's work"


def test_a_reset_that_cannot_keep_the_work_resets_nothing() -> None:
    program = (
        "import argparse, sys\nfrom pathlib import Path\n"
        "from mini_harness.course.commands import run\n"
        f"{AS_NOBODY}\noptions = argparse.Namespace(command='reset', id={FIRST!r})\n"
        "options.workspace = Path(sys.argv[1])\nsys.exit(run(options))"
    )
    with open_folder() as folder:
        make(folder)
        solve(folder, FIRST).chmod(0o666)
        (folder / "my_harness").chmod(0o777)
        (folder / ".mini-harness").chmod(0o555)
        before = files_in(folder)
        done = run_python(program, str(folder))
        assert (done.returncode, files_in(folder)) == (2, before)
    assert done.stderr.startswith("mini-harness reset: ")
    assert "There is no right to do that here (Permission denied)." in done.stderr
    assert "Traceback" not in done.stderr
