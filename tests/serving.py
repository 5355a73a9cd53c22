"""A JupyterLab that `mini-harness learn` started, for the tests that need a real one."""

import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import psutil

T = TypeVar("T")
SECONDS_TO_START = 90.0
SECONDS_TO_END = 20.0
NOT_INHERITED = ("PYTEST_", "JUPYTER", "JPY_", "IPYTHON", "VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT")
JUPYTER_FOLDERS = (
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
    "JUPYTERLAB_SETTINGS_DIR",
    "JUPYTERLAB_WORKSPACES_DIR",
    "IPYTHONDIR",
)
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/lab\S*\?token=\w+")


def private_environment(folder: Path) -> dict[str, str]:
    """The environment without a trace of pytest, and with Jupyter's files in `folder`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}
    kept.pop("MINI_HARNESS_MODE", None)
    private = {name: str(folder / "jupyter" / name.lower()) for name in JUPYTER_FOLDERS}
    return kept | private | {"MINI_HARNESS_HOME": str(folder / "mini-harness")}


def until(found: Callable[[], T | None], seconds: float, what: Callable[[], str]) -> T:
    """Ask again and again until there is an answer; AssertionError with `what()` after that."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = found()
        if answer is not None:
            return answer
        time.sleep(0.05)
    raise AssertionError(what())


@contextmanager
def served(command: list[str], *, cwd: Path, env: Mapping[str, str], log: Path) -> Iterator[str]:
    """The address, token included, that the command prints, once a server answers there.

    At the end the server and its kernels are gone, whatever the test did.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield until(
            lambda: answering_address(process, log),
            SECONDS_TO_START,
            lambda: f"no server after {SECONDS_TO_START} s:\n{log.read_text(encoding='utf-8')}",
        )
    finally:
        end(process)


def answering_address(process: subprocess.Popen[bytes], log: Path) -> str | None:
    text = log.read_text(encoding="utf-8", errors="replace")
    assert process.poll() is None, f"ended with {process.returncode}:\n{text}"
    printed = ADDRESS.search(text)
    return printed.group() if printed and answers(printed.group()) else None


def answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=5).close()
    except urllib.error.HTTPError as error:
        error.close()
        return False
    except OSError:
        return False
    return True


def end(process: subprocess.Popen[bytes]) -> None:
    """TERM, so that Jupyter ends its kernels; KILL for whatever is left of the tree."""
    members = family(process.pid)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    _, left = psutil.wait_procs(members, timeout=SECONDS_TO_END)
    for member in left:
        member.kill()
    process.wait(SECONDS_TO_END)


def family(pid: int) -> list[psutil.Process]:
    """The process and all that it started, the kernels too (they have groups of their own)."""
    try:
        head = psutil.Process(pid)
        return [head, *head.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
