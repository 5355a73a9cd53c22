"""`mini-harness build`, with real kernels: what it stores, and when it turns red."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mini_harness.course.build import build, find_lessons, main
from mini_harness.course.notebook_gate import faults
from mini_harness.course.source import LessonError
from tests.conftest import ROOT
from tests.course.lessons import FIRST_BODY_LINE, code, make_lesson

pytestmark = pytest.mark.once

INCLUDED = "def answer() -> int:\n    return 42\n"
BODY = (
    "# Small\n\n"
    + code("#: include included_by_lesson.answer\nanswer()", name="include")
    + code(
        "import getpass, os, time\n"
        "print(hash('a'), {'b', 'a'}, time.tzname, getpass.getuser(), flush=True)\n"
        "print(os.environ.get('ANTHROPIC_API_KEY'), os.environ['MINI_HARNESS_MODE'], flush=True)\n"
        "print('naïve', os.listdir('.'), os.getcwd() == os.environ['HOME'])",
        name="machine",
    )
    + code("import asyncio\nawait asyncio.sleep(0)", name="silent")
    + code(
        "import ipywidgets\n"
        "from IPython.display import HTML, display\n"
        "display(HTML('<b>card</b>'))\n"
        "ipywidgets.Button(description='x')",
        name="widget",
    )
    + code(
        "import matplotlib.pyplot as plt\nplt.figure(figsize=(1, 1))\nplt.plot([1, 2])\nplt.show()",
        name="figure",
    )
)


@dataclass(frozen=True)
class Workshop:
    """Lessons, notebooks and a package to include from, in one temporary folder."""

    root: Path

    @property
    def notebook(self) -> Path:
        return self.root / "notebooks" / "v0_small.ipynb"

    @property
    def included(self) -> Path:
        return self.root / "included_by_lesson.py"

    @property
    def folders(self) -> list[str]:
        lessons, notebooks = str(self.root / "lessons"), str(self.root / "notebooks")
        return ["--lessons", lessons, "--notebooks", notebooks]

    def run(self, *arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
        """The command itself, in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "mini_harness.cli", "build", *self.folders, *arguments],
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": f"{self.root}{os.pathsep}{ROOT}"} | env,
            check=False,
            capture_output=True,
            encoding="utf-8",
            timeout=300,
        )


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """A workshop whose only lesson is built."""
    shop = Workshop(tmp_path_factory.mktemp("workshop"))
    make_lesson(shop.root, BODY)
    (shop.root / "notebooks").mkdir()
    shop.included.write_text(INCLUDED, encoding="utf-8")
    done = shop.run("v0", cwd=shop.root, ANTHROPIC_API_KEY="sk-never", MPLBACKEND="agg")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "built notebooks/v0_small.ipynb\n"
    return shop


def outputs(shop: Workshop) -> list[list[dict[str, Any]]]:
    notebook = json.loads(shop.notebook.read_text(encoding="utf-8"))
    return [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_a_built_notebook_is_fit_to_be_compared_and_holds_nothing_of_this_machine(
    workshop: Workshop,
) -> None:
    """reports N05, N07, N11"""
    assert faults(workshop.notebook) == []
    text = workshop.notebook.read_text(encoding="utf-8")
    assert "sk-never" not in text
    assert str(workshop.root) not in text


def test_a_cell_runs_offline_without_keys_in_an_empty_folder_of_its_own(
    workshop: Workshop,
) -> None:
    """report N05"""
    (stream,) = outputs(workshop)[1]
    lines = "".join(stream["text"]).splitlines()
    assert lines[0].endswith(" {'a', 'b'} ('UTC', 'UTC') learner") or "{'b', 'a'}" in lines[0]
    assert lines[1:] == ["None offline", "naïve [] False"], "three flushes are one stream"


def test_neither_widget_view_nor_state_is_stored_but_its_card_and_text_are(
    workshop: Workshop,
) -> None:
    """report N07"""
    card, button = outputs(workshop)[3]
    assert "".join(card["data"]["text/html"]) == "<b>card</b>"
    assert list(button["data"]) == ["text/plain"]
    assert "widget" not in json.dumps(json.loads(workshop.notebook.read_text("utf-8"))["metadata"])


def test_a_figure_is_drawn_inline_whatever_backend_the_builder_was_told(
    workshop: Workshop,
) -> None:
    (figure,) = outputs(workshop)[4]
    assert set(figure["data"]) == {"image/png", "text/plain"}


def test_the_file_has_sorted_keys_indent_1_lf_and_a_final_newline(workshop: Workshop) -> None:
    text = workshop.notebook.read_bytes().decode("utf-8")
    again = json.dumps(json.loads(text), sort_keys=True, indent=1, ensure_ascii=False)
    assert text == again + "\n"
    assert "\r" not in text
    notebook = json.loads(text)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert "version" not in notebook["metadata"]["language_info"]
    assert all("execution" not in cell["metadata"] for cell in notebook["cells"])


def test_another_user_home_zone_hash_seed_and_folder_build_the_same_bytes(
    workshop: Workshop, tmp_path: Path
) -> None:
    """report N05"""
    before = workshop.notebook.read_bytes()
    home = tmp_path / "home"
    home.mkdir()
    (home / ".matplotlib").mkdir()
    (home / ".config" / "matplotlib").mkdir(parents=True)
    (home / ".config" / "matplotlib" / "matplotlibrc").write_text("lines.linewidth: 9\n", "utf-8")
    done = workshop.run(
        "--check",
        cwd=tmp_path,
        HOME=str(home),
        XDG_CACHE_HOME=os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        USER="somebody",
        LOGNAME="somebody",
        TZ="Asia/Tokyo",
        PYTHONHASHSEED="1",
        COLUMNS="40",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 notebook is as built\n", "")
    assert workshop.notebook.read_bytes() == before


def test_one_changed_character_in_an_included_symbol_turns_the_check_red(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written, and a notebook that no lesson makes is named too."""
    monkeypatch.syspath_prepend(workshop.root)
    monkeypatch.chdir(workshop.root)
    before = workshop.notebook.read_bytes()
    extra = workshop.notebook.with_name("v9_left_over.ipynb")
    extra.write_text("{}", encoding="utf-8")
    workshop.included.write_text(INCLUDED.replace("42", "43"), encoding="utf-8")
    try:
        outcome = main([*workshop.folders, "--check"])
    finally:
        workshop.included.write_text(INCLUDED, encoding="utf-8")
        extra.unlink()
    lines = before.decode("utf-8").split("\n")
    number = next(n for n, line in enumerate(lines, start=1) if line.strip() == '"42"')
    assert capsys.readouterr().out.splitlines() == [
        f"notebooks/v0_small.ipynb:{number}: a fresh build differs; run `mini-harness build`",
        "  committed: '       \"42\"'",
        "  built:     '       \"43\"'",
        "notebooks/v9_left_over.ipynb: no lesson makes this notebook",
    ]
    assert outcome == 1
    assert workshop.notebook.read_bytes() == before


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import warnings\nwarnings.warn('old')", "wrote to stderr:\n"),
        # No packet can leave by this address, guard or no guard.
        (
            "import socket\nsocket.socket().connect(('255.255.255.255', 9))",
            "raised NetworkRefused: no network here: something tried to reach '255.255.255.255'",
        ),
    ],
)
def test_stderr_an_error_and_the_network_are_build_errors_that_name_the_cell(
    source: str, what: str, tmp_path: Path
) -> None:
    lesson = make_lesson(tmp_path, code("1", name="good") + code(source, name="bad"))
    with pytest.raises(LessonError) as failed:
        build(lesson)
    line = FIRST_BODY_LINE + 9
    assert str(failed.value).startswith(f"{lesson}:{line}: cell 'bad' {what}")


def test_a_lesson_is_found_by_its_step_or_its_whole_name(tmp_path: Path) -> None:
    small, other = (make_lesson(tmp_path, "", name) for name in ("v0_small", "v0b_other"))
    lessons = tmp_path / "lessons"
    assert find_lessons(lessons, None) == [small, other]
    assert find_lessons(lessons, "v0") == find_lessons(lessons, "v0_small") == [small]
    assert find_lessons(lessons, "v0b") == [other]


def test_an_unknown_step_gets_one_line_that_lists_the_lessons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_lesson(tmp_path, "")
    assert main(["v7", "--lessons", str(tmp_path / "lessons")]) == 2
    message = capsys.readouterr().err
    assert message.startswith("mini-harness build: no lesson 'v7' in ")
    assert message.endswith("; the lessons are: v0_small\n")


def test_a_fault_in_a_lesson_gets_one_line_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lesson = make_lesson(tmp_path, "words\n\n:::\n")
    assert main(["--lessons", str(tmp_path / "lessons"), "--notebooks", str(tmp_path)]) == 1
    line = FIRST_BODY_LINE + 2
    assert capsys.readouterr().err == f"{lesson}:{line}: no directives: write plain Markdown\n"


def test_every_lesson_of_the_project_is_built_and_committed() -> None:
    """report N05"""
    assert main(["--check"]) == 0
