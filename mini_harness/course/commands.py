"""The learner's commands, as the terminal calls them. Exit codes: 0 done, 1 found something."""

import argparse
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from mini_harness.course.borrow import written
from mini_harness.course.exercises import (
    Exercise,
    UnknownExercise,
    UnknownHint,
    exercise,
    exercises,
)
from mini_harness.course.files import plain, write_whole
from mini_harness.course.grade import Report, grade
from mini_harness.course.learn import LearnError, learn
from mini_harness.course.state import load, store
from mini_harness.course.update import TITLES, Change, update
from mini_harness.course.workspace import (
    WorkspaceError,
    default_workspace,
    existing,
    keep,
    located,
    module_path,
)
from mini_harness.steps import COURSE


class WrongRequest(ValueError):
    """What was asked for isn't there; the text says what is."""


def run(options: argparse.Namespace) -> int:
    """Run the command that the options name. Exit code 2: it can't be done, and why is said."""
    try:
        return COMMANDS[options.command](options)
    except BrokenPipeError:
        raise
    except (WorkspaceError, UnknownExercise, UnknownHint, WrongRequest, LearnError) as error:
        reason = str(error)
    except OSError as error:
        reason = f"{error.filename or 'a file'}: {plain(error)}"
    print(f"mini-harness {options.command}: {reason}", file=sys.stderr)
    return 2


def _learn(options: argparse.Namespace) -> int:
    return learn(
        options.step,
        workspace=options.workspace,
        port=options.port,
        browser=not options.no_browser,
    )


def asked_for(what: str | None) -> list[Exercise]:
    """All exercises, those of a step, or the one of an id. Raises WrongRequest."""
    steps = {each.step for each in exercises()}
    if what is None or what in steps:
        return exercises(what)
    try:
        return [exercise(what)]
    except UnknownExercise as error:
        more = "" if what.partition("-")[0] in steps else f" The steps are: {_in(steps)}."
        raise WrongRequest(f"{error}{more}") from None


def _in(steps: Collection[str]) -> str:
    return ", ".join(step for step in COURSE if step in steps) or "none yet"


def _check(options: argparse.Namespace) -> int:
    chosen, folder = asked_for(options.what), existing(options.workspace)
    passed = 0
    for each in chosen:
        report = grade(each.id, folder)
        passed += report.status == "passed"
        print(f"{report}\n", flush=True)
    print(_of(passed, chosen))
    return 0 if passed == len(chosen) else 1


def _of(passed: int, chosen: list[Exercise]) -> str:
    things = "exercise" if len(chosen) == 1 else "exercises"
    return f"{passed} of {len(chosen)} {things} passed."


def _watch(options: argparse.Namespace) -> int:
    from mini_harness.course.watch import watch

    return watch(asked_for(options.what), existing(options.workspace))


def _progress(options: argparse.Namespace) -> int:
    chosen, folder = asked_for(None), existing(options.workspace)
    reports = {each.id: grade(each.id, folder) for each in chosen}
    width = max((len(each.id) for each in chosen), default=0)
    for step in dict.fromkeys(each.step for each in chosen):
        print(f"{step}  {COURSE.get(step, '')}".rstrip())
        for each in (e for e in chosen if e.step == step):
            status = reports[each.id].status
            print(f"  {each.id:<{width}}  {status:<9}  {each.level:<7}  {each.title}")
    print(f"\n{_of(sum(r.status == 'passed' for r in reports.values()), chosen)}")
    return 0


def _hint(options: argparse.Namespace) -> int:
    wanted, folder = exercise(options.id), existing(options.workspace)
    state, last = load(folder), len(wanted.hints)
    seen = max(0, state.hints.get(wanted.id, 0))
    level = min(seen + 1, last) if options.level is None else options.level
    print(f"Hint {level} of {last} for {wanted.id}:\n\n{wanted.hint(level)}\n")
    print(_after_hint(wanted, level, last))
    if level > seen:
        state.hints[wanted.id] = level
        store(folder, state)
    return 0


def _after_hint(wanted: Exercise, level: int, last: int) -> str:
    if level < last:
        return f"More: mini-harness hint {wanted.id} {level + 1}"
    return f"That was the last. A solution: mini-harness solution {wanted.id} --give-up"


def _solution(options: argparse.Namespace) -> int:
    wanted, folder = exercise(options.id), existing(options.workspace)
    report = grade(wanted.id, folder)
    if report.status != "passed" and not options.give_up:
        print(_not_yet(wanted, report))
        return 1
    target = module_path(folder, f"{wanted.module}_solution")
    content = wanted.solution.encode("utf-8")
    if target.is_symlink():
        target.unlink()
    if target.exists() and target.read_bytes() != content:
        print(f"What {target} held before is kept in {keep(folder, target)}.")
    write_whole(target, content)
    print(f"A solution of {wanted.id} is in {target}. Your own file is as it was.")
    return 0


def _not_yet(wanted: Exercise, report: Report) -> str:
    state = "isn't done yet" if report.status == "untouched" else "doesn't pass yet"
    return (
        f"{wanted.id} {state}, so its solution stays closed.\n"
        f"What is wrong:  mini-harness check {wanted.id}\n"
        f"A hint:         mini-harness hint {wanted.id}\n"
        f"I give up:      mini-harness solution {wanted.id} --give-up"
    )


def _reset(options: argparse.Namespace) -> int:
    wanted, folder = exercise(options.id), existing(options.workspace)
    path = module_path(folder, wanted.module)
    if written(path):
        print(f"What you wrote is kept in {keep(folder, path)}.")
    write_whole(path, wanted.stub.encode("utf-8"))
    anew = " and ".join(each.id for each in exercises() if each.module == wanted.module)
    print(
        f"{path} holds the stub again. To be done once more: {anew}.\n"
        "The cell in the notebook still holds your old code, and running it writes that again.\n"
        f"To start anew there too, put this into the cell:\n\n"
        f"%%save {wanted.file}\n{wanted.stub}",
        end="",
    )
    return 0


def _update(options: argparse.Namespace) -> int:
    folder = existing(options.workspace)
    changes: list[Change] = []
    try:
        for change in update(folder):
            changes.append(change)
    finally:
        for fate, title in TITLES.items():
            group = [each for each in changes if each.fate == fate]
            if group:
                print(title, *(f"  {_changed(each, folder)}" for each in group), sep="\n")
    if any(each.fate == "replaced" for each in changes):
        print("A notebook that is open in JupyterLab: close its tab without saving, open it again.")
    return 0


def _changed(change: Change, folder: Path) -> str:
    if change.other is None:
        return change.name
    other = change.other.relative_to(folder).as_posix()
    what = "new version" if change.fate == "beside" else "the earlier one, with its outputs"
    return f"{change.name}  ({what}: {other})"


def _doctor(options: argparse.Namespace) -> int:
    from mini_harness.course.doctor import doctor

    return doctor(located(options.workspace or default_workspace()))


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "learn": _learn,
    "check": _check,
    "watch": _watch,
    "progress": _progress,
    "hint": _hint,
    "solution": _solution,
    "reset": _reset,
    "update": _update,
    "doctor": _doctor,
}
