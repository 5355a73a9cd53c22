"""`mini-harness learn`: a workspace with the lessons in it, and JupyterLab open on one of them."""

import os
import socket
from pathlib import Path
from sysconfig import get_path
from urllib.parse import quote

from mini_harness.course.update import newer
from mini_harness.course.workspace import default_workspace, lesson_files, make

HERE = Path(__file__).parent
DEFAULT_STEP = "v0"
DEFAULT_PORT = 8888
HOST = "127.0.0.1"
PORTS_TRIED = 50


class LearnError(Exception):
    """What a person asked for can't be done; the text says what to do instead."""


def learn(step: str | None, *, workspace: Path | None, port: int | None, browser: bool) -> int:
    """Serve the lesson of `step` until Ctrl-C or SIGTERM; the exit code.

    `step` is a step ("v0") or a lesson's whole name. `port` 0 means any free one.
    Raises LearnError for an unknown step or no free port, WorkspaceError.
    """
    lesson = find_lesson(step or DEFAULT_STEP, lesson_files())
    folder = make(workspace or default_workspace())
    wanted = DEFAULT_PORT if port is None else port
    chosen = free_port(wanted)
    if wanted and chosen != wanted:
        print(f"Port {wanted} is in use; taking {chosen}.", flush=True)
    if newer(folder):
        print("Some files have newer versions: `mini-harness update` gets them.", flush=True)
    print(f"The lessons are in {folder}. Ctrl-C ends JupyterLab and its kernels.", flush=True)
    serve(folder, lesson.name, chosen, browser)
    return 0


def find_lesson(step: str, lessons: list[Path]) -> Path:
    """The lesson of that step, or of that whole name; LearnError names those that exist."""
    for lesson in lessons:
        if step in (lesson.stem, step_of(lesson)):
            return lesson
    steps = ", ".join(step_of(lesson) for lesson in lessons) or "none"
    raise LearnError(f"there is no lesson {step!r}; the lessons are: {steps}")


def step_of(lesson: Path) -> str:
    return lesson.stem.partition("_")[0]


def free_port(wanted: int) -> int:
    """`wanted`, or the next free port after it; any free one for 0."""
    for port in range(wanted, min(wanted + PORTS_TRIED, 65536)):
        with socket.socket() as probe:
            if os.name == "posix":  # elsewhere the option would let two servers share a port
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise LearnError(f"no free port from {wanted} on; name another with --port")


def serve(folder: Path, notebook: str, port: int, browser: bool) -> None:
    """Run JupyterLab in this process, so that Ctrl-C and SIGTERM go straight to it.

    Its token stays on. The kernels it offers are this interpreter's (course/jupyter/ says so),
    and what a person has set in their own Jupyter stays in force. In a terminal or a cell there,
    `mini-harness check` finds this installation and this workspace.
    """
    os.environ["MINI_HARNESS_HOME"] = str(folder)
    os.environ["PATH"] = os.pathsep.join([get_path("scripts"), os.environ.get("PATH", os.defpath)])
    paths = [str(HERE / "jupyter"), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, paths))
    arguments = [
        f"--ServerApp.ip={HOST}",
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={folder}",
        f"--ServerApp.open_browser={browser}",
        f"--LabApp.default_url=/lab/tree/{quote(notebook)}",
        "--Application.log_level=WARN",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--allow-root")  # containers; Jupyter refuses otherwise

    from jupyterlab.labapp import LabApp

    LabApp.launch_instance(arguments)
