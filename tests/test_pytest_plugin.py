"""pytest and a corpus: real runs of pytest in a folder with case files."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from mini_harness.expectation import Expectation
from tests.cases import case
from tests.conftest import ROOT


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    # The other plugins take seconds to load.
    fewer = ["-p", "no:cacheprovider", "-p", "no:nbval", "-p", "no:hypothesispytest"]
    command = [sys.executable, "-m", "pytest", *fewer, "--rootdir", str(folder)]
    return subprocess.run(
        [*command, *options, str(folder)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_each_case_file_is_a_test_with_a_reason_and_no_traceback(tmp_path: Path) -> None:
    """A27"""
    case("passes").save(tmp_path)
    wrong = Expectation(output="other", never=("read_build",))
    case("fails", title="It must not look.", expect=wrong).save(tmp_path)
    case("breaks", harness="tests.cases:broken").save(tmp_path)
    done = run_pytest(tmp_path, "--junitxml", str(tmp_path / "found.xml"))
    assert done.returncode == 1
    assert "2 failed, 1 passed" in done.stdout
    assert "It must not look.\nCase fails failed:\noutput: it is" in done.stdout
    assert "never: read_build began 1 times." in done.stdout
    assert "Case breaks could not be judged:" in done.stdout
    assert "Traceback" not in done.stdout
    tests = ElementTree.parse(tmp_path / "found.xml").iter("testcase")
    assert {(each.get("name"), len(each.findall("failure"))) for each in tests} == {
        ("passes", 0),
        ("fails", 1),
        ("breaks", 1),
    }


def test_a_file_that_is_no_case_is_an_error_and_never_left_out(tmp_path: Path) -> None:
    (tmp_path / "torn.case.json").write_text("{", encoding="utf-8")
    done = run_pytest(tmp_path)
    assert done.returncode not in (0, 5)
    assert "torn.case.json" in done.stdout
    assert "1 error" in done.stdout


def test_cases_are_chosen_by_kind_and_tag_and_run_with_another_harness(tmp_path: Path) -> None:
    case("one", kind="endless", tags=("v1",)).save(tmp_path)
    case("two", tags=("v2",)).save(tmp_path)
    for word in ("endless", "v1"):
        assert "1 passed, 1 deselected" in run_pytest(tmp_path, "-k", word).stdout
    other = run_pytest(tmp_path, "--case-harness", "tests.cases:broken")
    assert "2 failed" in other.stdout
    assert "ValueError: no such layer" in other.stdout


def test_where_there_are_no_cases_nothing_of_the_package_is_loaded(tmp_path: Path) -> None:
    """It is a plugin of every pytest on the machine."""
    test = (
        "import sys\n\ndef test_it():\n"
        "    assert [m for m in sys.modules if m.startswith('mini_harness.')] == "
        "['mini_harness.steps', 'mini_harness.pytest_plugin']\n"
    )
    (tmp_path / "test_it.py").write_text(test, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    done = run_pytest(tmp_path, "-c", str(tmp_path / "pytest.ini"))
    assert "1 passed" in done.stdout, done.stdout
