"""`mini-harness doctor`: what can keep the lessons from running here, each with what mends it."""

import platform
import tempfile
from collections.abc import Iterator
from contextlib import chdir, nullcontext
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from mini_harness.course.exercises import PACKAGE
from mini_harness.course.files import plain
from mini_harness.course.state import HIDDEN, read, state_file
from mini_harness.models.mode import choose_mode

DISTRIBUTION = "mini-harness"
SHOWN = ("jupyterlab", "ipywidgets", "ipykernel", "pydantic")


class Finding(NamedTuple):
    """``says`` may name versions and paths; ``steady`` is the same on every machine.

    ``mend`` is empty when all is well.
    """

    subject: str
    says: str
    mend: str = ""
    steady: str = "fine"


def findings(folder: Path) -> Iterator[Finding]:
    """All that is looked at; ``folder`` is the workspace, which may not be there yet."""
    yield _python()
    yield _packages()
    yield _in_jupyter("JupyterLab", "lab/static/index.html", "jupyterlab")
    yield _in_jupyter(
        "widgets", "labextensions/@jupyter-widgets/jupyterlab-manager", "jupyterlab_widgets"
    )
    yield _mcp()
    yield _mode(folder)
    yield _workspace(folder)


def doctor_lines(folder: Path | None = None) -> list[str]:
    """For a notebook: one line a subject, the same on every machine as long as all is well."""
    lines = []
    for each in findings(folder or Path.cwd()):
        lines.append(f"{each.subject}: {each.says if each.mend else each.steady}")
        if each.mend:
            lines.append(f"  what to do: {each.mend}")
    return lines


def doctor(folder: Path) -> int:
    """Print all findings; 1 if something is wrong."""
    found = list(findings(folder))
    for each in found:
        print(f"{'WRONG' if each.mend else 'ok':<6}{each.subject:<11} {each.says}")
        if each.mend:
            print(f"{'':<6}what to do: {each.mend}")
    wrong = sum(bool(each.mend) for each in found)
    print(f"\n{f'{wrong} of {len(found)} to mend.' if wrong else 'All is well.'}")
    return 1 if wrong else 0


def _python() -> Finding:
    here, wanted = platform.python_version(), metadata(DISTRIBUTION)["Requires-Python"]
    if SpecifierSet(wanted).contains(here, prereleases=True):
        return Finding("Python", here)
    mend = f"Install a Python {wanted}, and mini_harness with it."
    return Finding("Python", f"{here}, but mini_harness needs {wanted}", mend)


def _packages() -> Finding:
    wanted = [Requirement(line) for line in requires(DISTRIBUTION) or ()]
    needed = [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    here = {each.name: _version(each.name) for each in needed}
    unfit = [
        each
        for each in needed
        if not (found := here[each.name]) or not each.specifier.contains(found, prereleases=True)
    ]
    if not unfit:
        told = [f"mini_harness {version(DISTRIBUTION)}", *(f"{n} {_version(n)}" for n in SHOWN)]
        return Finding("packages", ", ".join(told))
    says = "; ".join(
        f"{each.name}{each.specifier} is needed, and {here[each.name] or 'none'} is here"
        for each in unfit
    )
    quoted = " ".join(f"'{each.name}{each.specifier}'" for each in unfit)
    return Finding("packages", says, f"pip install {quoted}")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _in_jupyter(subject: str, file: str, package: str) -> Finding:
    """Whether one of the folders in which Jupyter looks holds a file of that package."""
    try:
        from jupyter_core.paths import jupyter_path
    except ImportError:
        return Finding(subject, "Jupyter isn't installed", "pip install jupyterlab")
    if any((Path(folder) / file).exists() for folder in jupyter_path()):
        return Finding(subject, f"{_version(package)} is installed")
    mend = f"pip install --force-reinstall {package}"
    return Finding(subject, f"Jupyter finds no {file}", mend)


def _mcp() -> Finding:
    """The one extra that a lesson needs. Without it there is nothing wrong with the others."""
    found = _version("mcp")
    if found:
        return Finding("MCP", f"mcp {found}")
    says = "isn't installed. Lesson v0b needs it: pip install 'mini-harness[mcp]'"
    return Finding("MCP", says, steady=says)


def _mode(folder: Path) -> Finding:
    """As a notebook in the workspace would find it: the `.env` file there counts."""
    try:
        with chdir(folder) if folder.is_dir() else nullcontext():
            mode = choose_mode()
    except (ValueError, OSError) as error:
        mend = "Mend what it names in .env or in the environment, or set MINI_HARNESS_MODE=offline."
        return Finding("mode", str(error), mend)
    return Finding("mode", str(mode), steady=mode.name)


def _workspace(folder: Path) -> Finding:
    if not folder.exists():
        return Finding("workspace", f"{folder} isn't there yet; `mini-harness learn` makes it")
    try:
        for place in (folder, folder / PACKAGE, folder / HIDDEN):
            if place.exists():
                _try_to_write(place)
        read(folder)
    except OSError as error:
        return Finding("workspace", f"{folder}: {error.strerror}", plain(error))
    except ValueError as error:
        mend = f"Delete {state_file(folder)}: it holds no work of yours, only what was seen."
        return Finding("workspace", f"{state_file(folder)} can't be read: {error}", mend)
    init = folder / PACKAGE / "__init__.py"
    if init.parent.is_dir() and not init.is_file():
        return Finding("workspace", f"{init} is missing", "mini-harness update")
    return Finding("workspace", f"{folder} can be written")


def _try_to_write(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(4096))
        file.flush()
