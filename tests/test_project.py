"""Rules that the whole project keeps: what is in it, how large it is, what an import costs."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT
from tests.serving import private_environment

TOP_LEVEL = {
    ".ci",
    ".env.example",
    ".gitignore",
    "LICENSE",
    "README.md",
    "lessons",
    "mini_harness",
    "notebooks",
    "pyproject.toml",
    "tests",
}
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|farm)/|/tmp/\w")
REGISTRY = re.compile(r"python[h]osted|p[y]pi\.org|registry\.[n]pmjs|deb\.[d]ebian")
BRANCHING = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
HEAVY = ("jupyter", "IPython", "ipykernel", "ipywidgets", "matplotlib", "numpy", "nbformat")
VENDORS = ("anthropic", "openai", "mcp", "xllamacpp", "starlette", "opentelemetry", "distributed")


# --- the files --------------------------------------------------------------------------------


def test_the_top_level_holds_nothing_unexpected(project_files: list[Path]) -> None:
    assert {path.parts[0] for path in project_files} <= TOP_LEVEL


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY], ids=["machine path", "registry"])
def test_no_file_names_this_machine_or_a_registry(
    project_files: list[Path], pattern: re.Pattern[str]
) -> None:
    found = [
        f"{path}:{number}: {line.strip()[:100]}"
        for path in project_files
        for number, line in enumerate(text_of(path).split("\n"), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_the_patterns_find_what_they_look_for() -> None:
    assert MACHINE_PATH.search("open('" + "/root" + "/x')")
    assert MACHINE_PATH.search("cd " + "/tmp" + "/x")
    assert not MACHINE_PATH.search("lessons/work/x and ./tmp/ alone")
    assert REGISTRY.search("https://files." + "python" + "hosted.org/packages")


def test_no_file_is_larger_than_a_mebibyte(project_files: list[Path]) -> None:
    assert [path for path in project_files if (ROOT / path).stat().st_size > 1024 * 1024] == []


def text_of(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


# --- sizes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("folder", "most"), [("mini_harness", 350), ("tests", 500)])
def test_no_file_is_too_long(project_files: list[Path], folder: str, most: int) -> None:
    lengths = {path: len(text_of(path).splitlines()) for path in python_in(project_files, folder)}
    assert {path: length for path, length in lengths.items() if length > most} == {}


def test_the_loop_fits_on_two_screens() -> None:
    assert len(text_of(Path("mini_harness/loop.py")).splitlines()) <= 120


def test_no_function_is_longer_than_50_lines_or_nests_deeper_than_3(
    project_files: list[Path],
) -> None:
    measured = {
        f"{path}:{function.lineno} {function.name}": (length(function), nesting(function.body))
        for path in python_in(project_files, "mini_harness")
        for function in functions(text_of(path))
    }
    assert {at: size for at, size in measured.items() if size[0] > 50 or size[1] > 3} == {}


def test_the_measures_count_as_a_reader_does() -> None:
    (function,) = functions(
        "def f(x):\n"
        "    if x: pass\n"
        "    elif x is None: pass\n"
        "    else:\n"
        "        for y in x:\n"
        "            try: pass\n"
        "            except OSError: pass\n"
    )
    assert (length(function), nesting(function.body)) == (7, 3)


def python_in(files: list[Path], folder: str) -> list[Path]:
    return [path for path in files if path.parts[0] == folder and path.suffix == ".py"]


def functions(source: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, FUNCTIONS)]


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def nesting(body: list[ast.stmt]) -> int:
    """How deep the branches go. An `elif` is as deep as its `if`; an inner function starts anew."""
    return max(
        (1 + nesting_inside(node) for node in body if isinstance(node, BRANCHING)), default=0
    )


def nesting_inside(node: ast.stmt) -> int:
    return max((nesting(block) - is_elif(node, block) for block in blocks(node)), default=0)


def is_elif(node: ast.stmt, block: list[ast.stmt]) -> bool:
    """The tree has no `elif`: it is an `else` that holds one `if` in the `if`'s own column."""
    inner = block[0]
    return (
        isinstance(node, ast.If)
        and block is node.orelse
        and isinstance(inner, ast.If)
        and inner.col_offset == node.col_offset
    )


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The bodies that belong to a statement: of its else, its handlers and its cases too."""
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(node, name, None):
            yield block
    for name in ("handlers", "cases"):
        for part in getattr(node, name, []):
            yield part.body


# --- imports and encodings --------------------------------------------------------------------


def test_importing_the_package_loads_no_jupyter_no_plots_and_no_vendor() -> None:
    program = "import mini_harness, sys; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, encoding="utf-8"
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "mini_harness" in loaded
    assert [name for name in loaded if name.startswith(HEAVY + VENDORS)] == []


STRICT_ENCODING = ["-X", "warn_default_encoding", "-W", "error::EncodingWarning"]
C_LOCALE = {"PYTHONUTF8": "0", "LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0"}


def test_every_text_file_is_opened_as_utf8_in_the_c_locale_too(tmp_path: Path) -> None:
    """N10: the flags turn a fault that only Windows shows into an error here."""
    assert python(*STRICT_ENCODING, "-c", "import mini_harness", cwd=tmp_path, env=C_LOCALE) == ""
    demo = ("-m", "mini_harness.cli", "demo")
    strict = python(*STRICT_ENCODING, *demo, cwd=tmp_path, env=C_LOCALE)
    assert strict and strict == python(*demo, cwd=tmp_path, env={"LC_ALL": "C.UTF-8"})


def python(*arguments: str, cwd: Path, env: dict[str, str]) -> str:
    inherited = private_environment(cwd)
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=inherited | env,
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


# --- settings and pins ------------------------------------------------------------------------


def test_each_setting_in_the_example_has_its_line_of_explanation() -> None:
    lines = text_of(Path(".env.example")).splitlines()
    settings = [number for number, line in enumerate(lines) if re.match(r"[A-Z_]+=", line)]
    assert [lines[number] for number in settings] == [
        "ANTHROPIC_API_KEY=",
        "MODEL_ID=claude-haiku-5-5",
        "MINI_HARNESS_MODE=auto",
    ]
    assert all(lines[number - 1].startswith("# ") for number in settings)


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads(text_of(Path("pyproject.toml")))


@pytest.fixture(scope="module")
def pins(pyproject: dict[str, Any]) -> dict[str, list[Requirement]]:
    by_name: dict[str, list[Requirement]] = {}
    for line in pyproject["tool"]["uv"]["constraint-dependencies"]:
        pin = Requirement(line)
        by_name.setdefault(canonicalize_name(pin.name), []).append(pin)
    return by_name


def test_the_pinned_versions_and_the_hashed_versions_are_the_same(
    pins: dict[str, list[Requirement]],
) -> None:
    text = text_of(Path(".ci/requirements.txt"))
    hashed = re.findall(
        r"^([\w.-]+==[^\s;]+)[^\\\n]*\\\n    --hash=sha256:[0-9a-f]{64}", text, re.M
    )
    assert sorted(hashed) == sorted(
        f"{pin.name}{pin.specifier}" for several in pins.values() for pin in several
    )
    assert len(hashed) == len(re.findall(r"^\S", text, re.M)), "a line has no hash, or is no pin"


def test_everything_the_project_asks_for_is_pinned_within_its_range(
    pyproject: dict[str, Any], pins: dict[str, list[Requirement]]
) -> None:
    asked = [
        *pyproject["build-system"]["requires"],
        *pyproject["project"]["dependencies"],
        *(
            line
            for lines in pyproject["project"]["optional-dependencies"].values()
            for line in lines
        ),
        *(line for lines in pyproject["dependency-groups"].values() for line in lines),
    ]
    for requirement in map(Requirement, asked):
        for pin in pins[canonicalize_name(requirement.name)]:
            (version,) = (specifier.version for specifier in pin.specifier)
            assert requirement.specifier.contains(version), f"{requirement}, but {pin}"


def test_what_builds_the_wheel_is_pinned_too(pyproject: dict[str, Any]) -> None:
    assert pyproject["build-system"]["requires"] == pyproject["dependency-groups"]["build"]
    build = pyproject["tool"]["uv"]["build-constraint-dependencies"]
    assert build and set(build) <= set(pyproject["tool"]["uv"]["constraint-dependencies"])


def test_no_lock_file_is_kept(project_files: list[Path]) -> None:
    assert [path for path in project_files if path.suffix == ".lock"] == []
