"""The `mini-harness` command, run as a person runs it."""

import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from mini_harness.course.exercises import exercises
from mini_harness.course.learn import LearnError, find_lesson, free_port
from mini_harness.course.workspace import lesson_files, make, save_module
from tests.conftest import ROOT
from tests.serving import family, private_environment, served, until

COMMAND = [sys.executable, "-m", "mini_harness.cli"]


def run(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=home,
        env=private_environment(home),
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "demo"],
        cwd=tmp_path,
        env=private_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (0, b"")


# --- what was asked ---------------------------------------------------------------------------


def test_version_is_the_projects_own(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert run("--version", home=tmp_path).stdout == f"mini-harness {project['version']}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["learn", "v99"],
        ["learn", "v0", "--port", "none"],
        ["learn", "v0", "--port", "65536"],
        ["learn", "--nonsense"],
        ["build", "v99"],
        ["check", "v99"],
        ["hint"],
        ["reset", "v0-nothing"],
        ["nonsense"],
        [],
    ],
    ids=" ".join,
)
def test_a_wrong_request_exits_2_without_a_traceback(tmp_path: Path, arguments: list[str]) -> None:
    done = run(*arguments, home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr and "Traceback" not in done.stderr


def test_an_unknown_step_is_answered_with_one_line_that_lists_the_steps(tmp_path: Path) -> None:
    done = run("learn", "v99", home=tmp_path)
    (line,) = done.stderr.splitlines()
    assert "'v99'" in line and "v0" in line.partition("the lessons are: ")[2].split(", ")
    assert list(tmp_path.iterdir()) == []


def test_asking_for_the_version_imports_no_subcommand() -> None:
    program = (
        "import sys, mini_harness.cli as cli\n"
        "try: cli.main(['--version'])\n"
        "except SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith(('mini_harness.course.', 'jupyter'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, encoding="utf-8"
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_command_says_what_it_does_and_asks_for_nothing_more(tmp_path: Path) -> None:
    said = run("--help", home=tmp_path).stdout
    names = re.findall(r"^    (\w+) +\S", said, re.MULTILINE)
    assert {"learn", "check", "watch", "hint", "solution", "reset", "update"} <= set(names)
    for name in names:
        done = run(name, "--help", home=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"usage: mini-harness {name} ")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_a_command_without_a_traceback(tmp_path: Path) -> None:
    """Stopped in the middle of a check, as by a learner who has lost patience."""
    workspace = make(tmp_path / "mini-harness")
    started = workspace / "started"
    endless = f"open({str(started)!r}, 'w').close()\nwhile True: pass\n"
    save_module(workspace, exercises("v0")[0].module, endless)
    with subprocess.Popen(
        [*COMMAND, "check"],
        cwd=tmp_path,
        env=private_environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        until(lambda: started.exists() or None, 60, lambda: "the check didn't start")
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, b"")


def test_a_step_or_the_whole_name_finds_a_lesson() -> None:
    lessons = [Path("v0_loop_and_tool.ipynb"), Path("v0b_tool_system.ipynb")]
    assert find_lesson("v0", lessons) == lessons[0]
    assert find_lesson("v0b", lessons) == find_lesson("v0b_tool_system", lessons) == lessons[1]
    with pytest.raises(LearnError, match=r"the lessons are: v0, v0b$"):
        find_lesson("v", lessons)


# --- the server -------------------------------------------------------------------------------


def test_the_next_free_port_is_taken_when_one_is_in_use() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port < free_port(port) <= port + 49


def test_learn_serves_its_own_kernel_with_a_token_and_asks_nothing(tmp_path: Path) -> None:
    """N11: a learner's own `python3` kernel, made for another interpreter, is not taken."""
    foreign = tmp_path / "data" / "kernels" / "python3"
    foreign.mkdir(parents=True)
    spec = {"argv": ["/nowhere/python"], "display_name": "foreign", "language": "python"}
    (foreign / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    env = private_environment(tmp_path) | {
        "JUPYTER_DATA_DIR": str(tmp_path / "data"),
        "JUPYTER_PREFER_ENV_PATH": "0",
    }
    log = tmp_path / "log"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [*COMMAND, "learn", "--no-browser", "--port", port]
        with served(command, cwd=tmp_path, env=env, log=log) as address:
            specs = get(address, "/api/kernelspecs")["kernelspecs"]
            settings = get(address, "/lab/api/settings/@jupyterlab/apputils-extension:notification")
            with pytest.raises(urllib.error.HTTPError, match="403"):
                get(address.partition("?")[0] + "?token=wrong", "/api/contents")

    said = log.read_text(encoding="utf-8")
    assert f"Port {port} is in use; taking {urlsplit(address).port}." in said
    assert urlsplit(address).path == f"/lab/tree/{find_lesson('v0', lesson_files()).name}"
    assert {name: spec["spec"]["argv"][0] for name, spec in specs.items()} == {
        "python3": sys.executable
    }
    defaults = settings["schema"]["properties"]
    assert (defaults["fetchNews"]["default"], defaults["checkForUpdates"]["default"]) == (
        "false",
        False,
    )
    assert (tmp_path / "mini-harness" / lesson_files()[0].name).exists()


def test_a_terminal_in_jupyterlab_has_the_command_and_the_workspace(tmp_path: Path) -> None:
    """Though nobody has activated the environment, and another workspace is the usual one."""
    workspace = make(tmp_path / "other")
    module = exercises("v0")[0]
    save_module(workspace, module.module, module.solution)
    env = private_environment(tmp_path) | {"PATH": os.defpath}
    command = [*COMMAND, "learn", "--no-browser", "--port", "0", "--workspace", str(workspace)]
    with served(command, cwd=tmp_path, env=env, log=tmp_path / "log") as address:
        post(address, "/api/kernels", {"name": "python3"})
        (kernel,) = [p for p in family(os.getpid()) if "ipykernel_launcher" in p.cmdline()]
        inherited = kernel.environ()
    found = shutil.which("mini-harness", path=inherited["PATH"])
    assert found is not None
    done = subprocess.run(
        [found, "check", module.id],
        cwd=tmp_path,
        env=inherited,
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_ctrl_c_ends_the_server_and_its_kernels(tmp_path: Path) -> None:
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "learn", "--no-browser", "--port", "0"],
        cwd=tmp_path,
        env=private_environment(tmp_path),
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    try:
        address = printed_address(terminal)
        post(address, "/api/kernels", {"name": "python3"})
        members = family(process.pid)
        assert any("ipykernel_launcher" in member.cmdline() for member in members)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(30) == 0
        _, alive = psutil.wait_procs(members, timeout=10)
        assert alive == []
    finally:
        for member in family(process.pid):
            member.kill()
        process.wait(10)
        os.close(terminal)


def printed_address(terminal: int) -> str:
    said = ""
    while not (found := re.search(r"http://\S+\?token=\w+(?=\s)", said)):
        said += os.read(terminal, 4096).decode()
    return until(lambda: answered(found.group()), 30, lambda: said)


def answered(address: str) -> str | None:
    try:
        get(address, "/api/status")
    except OSError:
        return None
    return address


def get(address: str, path: str) -> dict[str, Any]:
    return ask(address, path, None)


def post(address: str, path: str, content: dict[str, str]) -> None:
    ask(address, path, json.dumps(content).encode())


def ask(address: str, path: str, content: bytes | None) -> dict[str, Any]:
    where = urlsplit(address)
    request = urllib.request.Request(
        f"http://{where.netloc}{path}",
        data=content,
        headers={"Authorization": f"token {where.query.removeprefix('token=')}"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        answer: dict[str, Any] = json.load(response)
    return answer
