"""What every test stands on: no keys, offline, and the project's own files."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent
KEYS = ("ANTHROPIC_API_KEY", "MODEL_ID", "OPENAI_API_KEY")
PLACES = ("MINI_HARNESS_HOME", "MINI_HARNESS_SESSIONS")

# A shared machine may pause for longer than hypothesis' 200 ms.
# In CI one commit has one verdict; to look for new examples is for people at work.
settings.register_profile("shared-machine", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("shared-machine")


@pytest.fixture(scope="session", autouse=True)
def _offline_and_without_keys() -> None:
    """A developer's key must change no result, nor be spent; and how this suite is run is nothing
    to those that the tests start."""
    for name in (*KEYS, *PLACES, "PYTEST_ADDOPTS"):
        os.environ.pop(name, None)
    os.environ["MINI_HARNESS_MODE"] = "offline"


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_works() -> None:
    """A shell that starts the suite in the background has it ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def project_files() -> list[Path]:
    """Every file that is tracked, or would be with the next `git add`, relative to the root."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode:
        pytest.skip("this is no git clone, so there is no list of its files")
    return [Path(name) for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture
def fresh_copy(project_files: list[Path], tmp_path: Path) -> Path:
    """The project as a clone in an empty folder would have it."""
    for name in project_files:
        target = tmp_path / "clone" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    return tmp_path / "clone"
