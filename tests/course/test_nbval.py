"""`pytest --nbval notebooks/` without further options, run for real; and what turns it red."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

from mini_harness.course.notebook_gate import faults, private_parts
from tests.conftest import ROOT

SHOWS_OPTIONS = """\
def pytest_sessionfinish(session):
    option = session.config.option
    print("\\noptions:", option.nbval_cell_timeout, option.nbval_current_env,
          option.nbval_sanitize_with)
"""
REFUSED = "NetworkRefused: no network here: something tried to reach '255.255.255.255'"

GOOD = [
    (
        "import os, sys, time\n"
        "print(os.environ['MINI_HARNESS_MODE'], time.tzname, hash('a') == hash('a'))\n"
        "print([name for name in os.environ if 'KEY' in name or 'PYTEST' in name])",
        "offline ('UTC', 'UTC') True\n[]\n",
    ),
    ("print(hash('a'))", "4644417185603328019\n"),
    ("open('left_behind.txt', 'w').close()\nprint(os.listdir('.'))", "['left_behind.txt']\n"),
    ("None", ""),
]
# What each cell prints, and what is stored as if it had: not one character may differ.
BAD = [
    ("print('took 2 s')", "took 3 s\n"),
    ("print('2026-11-30T10:00:00Z')", "2026-12-01T10:00:00Z\n"),
    ("print('run-1a2b')", "run-1a2c\n"),
    ("print('0x7f3a')", "0x7f3b\n"),
    ("print('a  b')", "a b\n"),
    ("print('more')", ""),
    # No packet can leave by this address, guard or no guard.
    ("import socket\nsocket.socket().connect(('255.255.255.255', 9))", ""),
]


def notebook(cells: list[tuple[str, str]]) -> NotebookNode:
    """A notebook as the builder stores it, with the given outputs."""
    made: NotebookNode = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    )
    for number, (source, text) in enumerate(cells, start=1):
        outputs = [nbformat.v4.new_output("stream", text=text)] if text else []
        cell = nbformat.v4.new_code_cell(source, execution_count=number, outputs=outputs)
        cell["id"] = f"cell-{number}"
        made.cells.append(cell)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of its own, without settings: notebooks/ with our conftest and a good notebook."""
    (tmp_path / "conftest.py").write_text(SHOWS_OPTIONS, encoding="utf-8")
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    shutil.copy2(ROOT / "notebooks" / "conftest.py", notebooks)
    nbformat.write(notebook(GOOD), notebooks / "good.ipynb")
    return notebooks


def run_pytest(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Pytest as a person would run it, whose own environment is full of what must not count."""
    outer = {
        "ANTHROPIC_API_KEY": "sk-1",
        "MINI_HARNESS_MODE": "real",
        "TZ": "Asia/Tokyo",
        "PYTHONHASHSEED": "7",
        "COLUMNS": "160",
    }
    kept = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--color=no", "-p", "no:cacheprovider", *arguments],
        cwd=cwd,
        env=kept | outer,
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


def test_bare_from_inside_the_folder_it_is_green_and_leaves_nothing_behind(folder: Path) -> None:
    before = sorted(folder.iterdir())
    done = run_pytest("--nbval", "-q", "-s", "-W", "error", cwd=folder)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout, "four cells, and the count of what is compared"
    assert sorted(folder.iterdir()) == before


def test_bare_from_the_root_each_stored_character_and_each_cell_counts(
    folder: Path,
) -> None:
    """report N05: no sanitising pattern is in use, so a number, a date, an id, a space count.

    nbval itself lets the last cell pass, since it has no execution count; the gate doesn't.
    """
    made = notebook([*BAD, ("print('never compared')", "")])
    made.cells[-1].execution_count = None
    nbformat.write(made, folder / "bad.ipynb")
    done = run_pytest("--nbval", "notebooks/", "-rA", "-W", "error", cwd=folder.parent)
    failed = re.findall(r"^FAILED (.+?) - ", done.stdout, re.MULTILINE)
    bad = ["fit to be compared", *[f"Cell {number}" for number in range(len(BAD))]]
    assert failed == [f"notebooks/bad.ipynb::{name}" for name in bad], done.stdout
    assert REFUSED in re.sub(r"\x1b\[[\d;]*m", "", done.stdout)
    assert f"{len(bad)} failed, {len(GOOD) + 2} passed" in done.stdout
    assert "options: 60 True None" in done.stdout, "time-out, own interpreter, sanitising file"


def test_the_projects_own_notebooks_are_collected_from_inside_their_folder_too() -> None:
    """From the root they are part of this very run."""
    done = run_pytest("--nbval", "--collect-only", "-q", cwd=ROOT / "notebooks")
    assert done.returncode == 0, done.stdout + done.stderr
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"{path.name}::fit to be compared" in done.stdout
        assert f"{path.name}::Cell 0" in done.stdout


def no_count(made: NotebookNode) -> None:
    made.cells[1].execution_count = None


def swapped_counts(made: NotebookNode) -> None:
    made.cells[0].execution_count, made.cells[1].execution_count = 2, 1


def ignored_by_tag(made: NotebookNode) -> None:
    made.cells[0].metadata["tags"] = ["nbval-ignore-output"]


def ignored_by_comment(made: NotebookNode) -> None:
    made.cells[0].source = "# NBVAL_IGNORE_OUTPUT\n" + made.cells[0].source


def skipped(made: NotebookNode) -> None:
    made.cells[0].metadata["tags"] = ["nbval-skip"]


def own_kernel(made: NotebookNode) -> None:
    made.metadata.kernelspec.name = "my-venv"


def kernel_version(made: NotebookNode) -> None:
    made.metadata["language_info"] = {"name": "python", "version": "3.11.7"}


def widget_state(made: NotebookNode) -> None:
    made.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {}}


def widget_view(made: NotebookNode) -> None:
    shown(made, {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}})


def path_in_html(made: NotebookNode) -> None:
    shown(made, {"text/html": "<td>/home/ann/x.py</td>", "text/plain": "x"})


def shown(made: NotebookNode, data: dict[str, Any]) -> None:
    made.cells[0].outputs = [nbformat.v4.new_output("display_data", data=data)]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (no_count, "execution counts are [1, None, 3, 4], not 1 to 4"),
        (no_count, "75% of 4 code cells are compared, not 90%"),
        (swapped_counts, "execution counts are [2, 1, 3, 4], not 1 to 4"),
        (ignored_by_tag, "75% of 4 code cells are compared, not 90%"),
        (ignored_by_comment, "75% of 4 code cells are compared, not 90%"),
        (skipped, "75% of 4 code cells are compared, not 90%"),
        (own_kernel, "the kernel is 'my-venv', which others don't have: it must be 'python3'"),
        (kernel_version, "language_info holds the Python version of one machine"),
        (widget_state, "widget state is stored: a static viewer shows an error instead"),
        (widget_view, "code cell 1: widget state or view is stored"),
        (path_in_html, "code cell 1: an absolute path in its output: '/home/ann/x.py'"),
    ],
)
def test_the_counting_gate_is_red_for_a_notebook_that_would_be_green_untested(
    spoil: Callable[[NotebookNode], None], said: str, tmp_path: Path
) -> None:
    """reports N05, N07, N11"""
    path = tmp_path / "a.ipynb"
    made = notebook(GOOD)
    nbformat.write(made, path)
    assert faults(path) == []
    spoil(made)
    path.write_text(json.dumps(made), encoding="utf-8")
    assert [fault for fault in faults(path) if fault.startswith(said)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("id 123e4567-e89b-12d3-a456-426614174000", "a uuid"),
        ("<Thing at 0x7F3a5c001234>", "a memory address"),
        ("open('/srv/mill/x.log')", "an absolute path"),
        ("cd /root", "an absolute path"),
        ("C:\\Users\\ann", "an absolute path"),
        ("file:///x", "an absolute path"),
        (f"in {Path.home()}", "the home folder"),
    ],
)
def test_what_tells_of_one_machine_or_one_run_is_found(text: str, what: str) -> None:
    """report N05"""
    assert what in dict(private_parts(text))


@pytest.mark.parametrize("text", ["user=ann3", "ann3@farm", "so:\nann3\n"])
def test_the_users_name_is_found_where_it_stands_as_a_name(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """report N05"""
    monkeypatch.setenv("LOGNAME", "ann3")
    assert dict(private_parts(text)) == {"the user's name": "ann3"}


@pytest.mark.parametrize(
    "text",
    [
        "640x480 pixels, 0x1f600, 3/4, and/or, src/mill/x.py, ./a/b, ~/a/b",
        "POST https://example.org/v1/messages, or /v1/messages",
        "denied: /etc/passwd, /dev/null",
        "<b>bold</b><br/>",
        "the root of it: {'root': 1}",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ],
)
def test_ordinary_text_is_not_taken_for_private(text: str) -> None:
    assert list(private_parts(text)) == []
