"""Run a notebook's cells in a fresh kernel: offline, in an empty folder, nothing on stderr."""

import os
import re
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from traitlets import default

from mini_harness.course.kernel import OwnKernel
from mini_harness.course.offline import CELL_SECONDS, sandbox


class CellFailed(Exception):
    """A cell raised, wrote to stderr, or ran too long; `index` is its place in the notebook."""

    def __init__(self, index: int, what: str) -> None:
        super().__init__(what)
        self.index = index


class QuietKernel(AsyncKernelManager):
    """This interpreter's python3, whose start says nothing: unencrypted, it warns on stderr."""

    @default("transport_encryption")
    def _encrypted(self) -> str:
        return "auto"

    @default("kernel_spec_manager")
    def _own(self) -> KernelSpecManager:
        return OwnKernel()


def execute(notebook: NotebookNode) -> None:
    """Fill in outputs and execution counts, 1..n. Raises CellFailed."""
    running = 0

    def note(cell: NotebookNode, cell_index: int) -> None:
        nonlocal running
        running = cell_index

    with sandbox() as box:
        client = NotebookClient(
            notebook,
            kernel_name="python3",
            kernel_manager_class=QuietKernel,
            timeout=CELL_SECONDS,
            record_timing=False,
            store_widget_state=False,
            coalesce_streams=True,
            on_notebook_start=lambda **_: box.require_entered(),
            on_cell_start=note,
        )
        try:
            client.execute(env=box.environment(os.environ), cwd=str(box.folder))
        except CellExecutionError as error:
            colour = r"\x1b\[[\d;]*m"
            trace = re.sub(colour, "", "\n".join(notebook.cells[running].outputs[-1].traceback))
            raise CellFailed(running, f"raised {error.ename}: {error.evalue}\n{trace}") from None
        except CellTimeoutError:
            raise CellFailed(running, f"ran longer than {CELL_SECONDS} s") from None
        except DeadKernelError:
            raise CellFailed(running, "ended its kernel") from None
    _check(notebook)


def _check(notebook: NotebookNode) -> None:
    count = 0
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        count += 1
        if cell.execution_count != count:
            raise CellFailed(index, f"has execution count {cell.execution_count}, not {count}")
        for output in cell.outputs:
            _check_output(index, output)


def _check_output(index: int, output: Any) -> None:
    if output.output_type == "stream" and output.name == "stderr":
        raise CellFailed(index, f"wrote to stderr:\n{output.text}")
    if "data" in output and "text/plain" not in output.data:
        raise CellFailed(index, "displayed something without a text/plain form")
