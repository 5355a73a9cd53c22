"""`mini-harness learn`: a workspace with the lessons in it, and JupyterLab open on one of them."""

import os
import socket
from pathlib import Path
from urllib.parse import quote

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
    Raises LearnError for an unknown step, a workspace that can't be written, or no free port.
    """
    lesson = find_lesson(step or DEFAULT_STEP, lesson_files())
    folder = make_workspace(workspace or default_workspace(), lesson_files())
    wanted = DEFAULT_PORT if port is None else port
    chosen = free_port(wanted)
    if wanted and chosen != wanted:
        print(f"Port {wanted} is in use; taking {chosen}.", flush=True)
    print(f"The lessons are in {folder}. Ctrl-C ends JupyterLab and its kernels.", flush=True)
    serve(folder, lesson.name, chosen, browser)
    return 0


def lesson_files() -> list[Path]:
    """The built lessons: beside this file when installed, at the root in a clone."""
    installed, clone = HERE / "notebooks", HERE.parent.parent / "notebooks"
    return sorted((installed if installed.is_dir() else clone).glob("*.ipynb"))


def find_lesson(step: str, lessons: list[Path]) -> Path:
    """The lesson of that step, or of that whole name; LearnError names those that exist."""
    for lesson in lessons:
        if step in (lesson.stem, step_of(lesson)):
            return lesson
    steps = ", ".join(step_of(lesson) for lesson in lessons) or "none"
    raise LearnError(f"there is no lesson {step!r}; the lessons are: {steps}")


def step_of(lesson: Path) -> str:
    return lesson.stem.partition("_")[0]


def default_workspace() -> Path:
    named = os.environ.get("MINI_HARNESS_HOME")
    return Path(named) if named else Path.home() / "mini-harness"


def make_workspace(folder: Path, lessons: list[Path]) -> Path:
    """Copy in the lessons that aren't there yet; a file that is there is never touched."""
    folder = folder.expanduser().resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for lesson in lessons:
            add_file(folder / lesson.name, lesson.read_bytes())
    except OSError as error:
        raise LearnError(
            f"can't write the workspace {folder}: {error.strerror}; "
            "name another folder with --workspace"
        ) from error
    return folder


def add_file(target: Path, content: bytes) -> None:
    """All of it or nothing: half a lesson would be kept for ever as the learner's own."""
    if target.exists() or target.is_symlink():
        return
    part = target.with_name(f".{target.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(target)


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
    and what a person has set in their own Jupyter stays in force.
    """
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
