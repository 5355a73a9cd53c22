"""What a learner reads about what they wrote, whatever it is that they wrote."""

import os
import py_compile
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from mini_harness.course import grade as grading
from mini_harness.course.exercises import UnknownExercise, exercise
from mini_harness.course.grade import grade
from mini_harness.course.prove import graded
from mini_harness.course.workspace import save_module

HEAD = "from my_harness import act\n\n\ndef pursue(model, tools, goal):\n"


def test_an_untouched_stub_is_not_done_yet(tmp_path: Path) -> None:
    nothing = grade("v0-act", tmp_path)
    save_module(tmp_path, "calls", exercise("v0-act").stub)
    stub = grade("v0-act", tmp_path)
    assert (nothing.status, stub.status) == ("untouched", "untouched")
    assert str(nothing).startswith("v0-act: not done yet. There is no my_harness/calls.py yet.")
    assert str(stub).startswith("v0-act: not done yet. my_harness/calls.py still holds the stub.")


def test_a_package_that_lost_its_init_says_so(tmp_path: Path) -> None:
    save_module(tmp_path, "calls", exercise("v0-act").solution)
    (tmp_path / "my_harness" / "__init__.py").unlink()
    assert "`mini-harness update` puts it back" in str(grade("v0-act", tmp_path))


def test_an_init_that_is_not_the_courses_says_so(tmp_path: Path) -> None:
    save_module(tmp_path, "calls", exercise("v0-act").solution)
    (tmp_path / "my_harness" / "__init__.py").write_text("", encoding="utf-8")
    assert "Rename it if it is there" in str(grade("v0-act", tmp_path))


def test_a_right_answer_passes_with_a_mark_of_its_encoding_and_a_thread_left_running(
    tmp_path: Path,
) -> None:
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=[1000]).start()\n"
    save_module(tmp_path, "calls", exercise("v0-act").solution)
    file = tmp_path / "my_harness" / "calls.py"
    file.write_text("\ufeff" + exercise("v0-act").solution + thread, encoding="utf-8")
    assert grade("v0-act", tmp_path).status == "passed"


def test_no_module_that_was_compiled_earlier_is_graded(tmp_path: Path) -> None:
    """Python takes it for the new one if both have one length and one time."""
    save_module(tmp_path, "calls", exercise("v0-act").solution)
    file = tmp_path / "my_harness" / "calls.py"
    py_compile.compile(str(file))
    before = file.stat()
    file.write_text(exercise("v0-act").solution.replace("str(", "int("), encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert grade("v0-act", tmp_path).status == "failed"


def test_the_package_of_this_workspace_is_graded_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("right", exercise("v0-act").solution), ("wrong", "def act():\n    pass\n")):
        save_module(tmp_path / name, "calls", text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "right"))
    assert grade("v0-act", tmp_path / "wrong").status == "failed"
    package = tmp_path / "wrong" / "my_harness" / "calls"
    package.mkdir()
    (package / "__init__.py").write_text(exercise("v0-act").solution, encoding="utf-8")
    assert "Rename it." in str(grade("v0-act", tmp_path / "wrong"))


@pytest.mark.skipif(sys.platform != "linux", reason="no limit on files there")
def test_an_endless_stderr_fills_no_disk() -> None:
    body = "    import os\n    while True:\n        os.write(2, b'x' * 10**6)\n"
    assert "File too large" in str(graded(exercise("v0-loop"), HEAD + body))


def test_an_unknown_exercise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownExercise):
        grade("v0-atc", tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def pursue(model, tools, goal:\n    pass\n", "stops in my_harness/loop.py, line 1."),
        (
            "def purse(model, tools, goal):\n    pass\n",
            "loop.py defines no 'pursue': write it",
        ),
        ("import nowhere\n", "loop.py, line 1.\n    import nowhere\nModuleNotFoundError"),
        ("raise SystemExit\n", "loop.py, line 1.\n    raise SystemExit\nSystemExit"),
        ("import os\nos._exit(3)\n", "Python ended (exit code 3)"),
        ("def pursue():\n    pass\n", "Does `pursue` take (model, tools, goal)"),
        (HEAD + "    raise NotImplementedError\n", "`raise NotImplementedError` is still there"),
        (HEAD + "    raise SystemExit(4)\n", "SystemExit(4)"),
        (HEAD + "    model.decied([], [])\n", "loop.py, line 5: model.decied([], [])"),
        (HEAD + "    return unknown\n", "That file doesn't know `unknown`."),
        ("from my_harness import pursue\n", "cannot import name 'pursue'"),
        ("\0", "Python stops in my_harness/loop.py."),
    ],
)
def test_whatever_is_wrong_is_told(text: str, told: str) -> None:
    report = graded(exercise("v0-loop"), text)
    assert report.status == "failed"
    assert told in str(report)


def test_a_fault_in_another_file_is_told_of_that_file(tmp_path: Path) -> None:
    save_module(tmp_path, "loop", exercise("v0-loop").solution)
    save_module(tmp_path, "calls", "def act(tools, decision)\n    pass\n")
    assert "Python stops in my_harness/calls.py, line 1." in str(grade("v0-loop", tmp_path))
    save_module(tmp_path, "calls", exercise("v0-act").stub + "# begun\n")
    told = str(grade("v0-loop", tmp_path))
    assert "was raised in my_harness/calls.py, line" in told
    assert "`raise NotImplementedError` is still there" in told


def test_a_failure_says_that_the_saved_file_is_meant() -> None:
    told = str(graded(exercise("v0-loop"), HEAD + "    return None\n"))
    assert told.endswith(
        "This is about my_harness/loop.py as it was saved. "
        "If you changed its cell since, run the cell first."
    )


def test_printing_without_end_fills_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the memory of the one who asks nor a folder."""
    monkeypatch.setattr(grading, "SECONDS", 3)
    body = "    while True:\n        print('x' * 10**6)\n"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "stopped after 3 seconds" in str(graded(exercise("v0-loop"), HEAD + body))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 50_000, "kilobytes"


@pytest.mark.skipif(sys.platform != "linux", reason="no limit on memory there")
def test_a_limit_that_is_there_already_stays(tmp_path: Path) -> None:
    save_module(tmp_path, "calls", exercise("v0-act").solution)
    code = (
        "import resource, sys\nfrom pathlib import Path\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1500 << 20, 1500 << 20))\n"
        "from mini_harness.course.grade import grade\n"
        "print(grade('v0-act', Path(sys.argv[1])).status)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.check_output(command, text=True, encoding="utf-8") == "passed\n"


def test_a_loop_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "SECONDS", 3)
    report = graded(exercise("v0-loop"), HEAD + "    while True:\n        pass\n")
    assert report.status == "failed"
    assert "stopped after 3 seconds" in str(report)
    assert "never ends" in str(report)


def test_a_loop_that_asks_for_ever_is_told_so_at_once() -> None:
    body = "    while True:\n        model.decide([], [])\n"
    assert "the model was asked again after its last turn" in str(
        graded(exercise("v0-loop"), HEAD + body)
    )


@pytest.mark.skipif(sys.platform != "linux", reason="no limit on memory there")
def test_code_that_fills_the_memory_takes_nothing_with_it() -> None:
    body = "    return bytes(3 << 30)\n"
    report = graded(exercise("v0-loop"), HEAD + body)
    assert report.status == "failed"
    assert "MemoryError() was raised" in str(report)


def test_a_file_in_the_workspace_can_not_take_the_place_of_the_library(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise RuntimeError\n", encoding="utf-8")
    save_module(tmp_path, "calls", exercise("v0-act").solution)
    assert grade("v0-act", tmp_path).status == "passed"


def test_the_loop_is_graded_with_the_learners_own_act(tmp_path: Path) -> None:
    """What is written counts; what isn't is borrowed."""
    save_module(tmp_path, "loop", exercise("v0-loop").solution)
    assert grade("v0-loop", tmp_path).status == "passed"
    save_module(tmp_path, "calls", "def act(tools, decision):\n    return 'nothing'\n")
    assert grade("v0-loop", tmp_path).status == "failed"
