"""Makes `pytest --nbval` work bare here: from the root, from inside this folder, or on one file.

Each notebook gets a fresh sandbox, the builder's own: offline, no keys, the network refused, an
empty working folder (so a cell's files never land beside the notebooks). Outputs are compared as
they are: no sanitising pattern is in use. Beside nbval's cells there is one more test for each
notebook, which counts what nbval really compares.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from nbval.plugin import IPyNbFile

from mini_harness.course.notebook_gate import faults
from mini_harness.course.offline import CELL_SECONDS, Sandbox

NBVAL_SECONDS = 2000
"""nbval's default for one cell, which nobody asks for on purpose."""

SANDBOXES = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Choose this interpreter's kernel and a short time-out, unless the command line does."""
    config.option.nbval_current_env = not config.option.nbval_kernel_name
    if config.option.nbval_cell_timeout == NBVAL_SECONDS:
        config.option.nbval_cell_timeout = CELL_SECONDS
    folder = tempfile.TemporaryDirectory(prefix="mini-harness-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    config.stash[SANDBOXES] = Path(folder.name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Before a notebook's first cell nbval starts its kernel, which inherits the environment."""
    notebook = item.parent
    if not isinstance(notebook, IPyNbFile) or notebook.kernel is not None:
        return (yield)
    folder = tempfile.mkdtemp(dir=item.config.stash[SANDBOXES])
    sandbox = Sandbox(Path(folder))
    with patch.dict(os.environ, sandbox.environment(os.environ), clear=True):
        outcome = yield
    sandbox.require_entered()
    return outcome


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix != ".ipynb":
        return None
    return GateFile.from_parent(parent, path=file_path)


class GateFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        yield GateItem.from_parent(self, name="fit to be compared")


class GateItem(pytest.Item):
    """Counts 1 to n, nine cells in ten compared, nothing of this machine in the outputs."""

    def runtest(self) -> None:
        found = faults(self.path)
        if found:
            pytest.fail("\n".join([f"{self.path.name}:", *found]), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name}: {self.name}"
