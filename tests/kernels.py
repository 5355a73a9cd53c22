"""A real kernel, as `mini-harness learn` starts one, that a test talks to as JupyterLab does."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from nbconvert import HTMLExporter
from nbformat import NotebookNode

from mini_harness.course.kernel import OwnKernel
from mini_harness.course.workspace import lesson_files
from tests.serving import private_environment, until

SECONDS = 60.0


class Kernel:
    """Cells go in, outputs as a notebook stores them come out."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self._manager = manager
        self._client = client

    def run(self, source: str, cell_id: str | None = None) -> list[NotebookNode]:
        """Run a cell; with the id that a front end tells of it, if any."""
        message = self.send(source, cell_id)
        outputs: list[NotebookNode] = []
        while (reply := self._next(message)) is not None:
            if reply["msg_type"] not in ("stream", "error", "display_data", "execute_result"):
                continue
            output = nbformat.v4.output_from_msg(reply)
            # A busy kernel may send what one cell printed in several pieces.
            if outputs and output.get("name") and output.name == outputs[-1].get("name"):
                outputs[-1].text += output.text
            else:
                outputs.append(output)
        return outputs

    def send(self, source: str, cell_id: str | None = None) -> dict[str, Any]:
        """Have a cell run, and don't wait for it; the request."""
        content = {
            "code": source,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        metadata = {"cellId": cell_id} if cell_id else {}
        message: dict[str, Any] = self._client.session.msg(
            "execute_request", content, metadata=metadata
        )
        self._client.shell_channel.send(message)
        return message

    def _next(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The next message about this request; None when the kernel is done with it."""
        while True:
            message: dict[str, Any] = self._client.get_iopub_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") != request["header"]["msg_id"]:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return None
            return message

    def wait_for_death(self) -> None:
        until(lambda: None if self._manager.is_alive() else True, SECONDS, lambda: "it lives")

    def printed(self, source: str, cell_id: str | None = None) -> str:
        """What a cell prints; AssertionError if it does anything else."""
        outputs = self.run(source, cell_id)
        assert all(output.output_type == "stream" for output in outputs), outputs
        return "".join(output.text for output in outputs)

    def told(self, source: str, cell_id: str | None = None) -> str:
        """The error that a cell ends in, as its reader sees it; AssertionError if there is none."""
        *_, last = self.run(source, cell_id)
        assert last.output_type == "error", last
        return "\n".join(last.traceback)


@contextmanager
def kernel(workspace: Path, home: Path | None = None, **environment: str) -> Iterator[Kernel]:
    """A kernel whose working folder is `workspace`; its settings lie in `home`, or beside it."""
    home = home or workspace.parent / "kernel"
    (home / "jupyter").mkdir(parents=True, exist_ok=True)
    own = private_environment(home) | {"MINI_HARNESS_MODE": "offline"} | environment
    manager = KernelManager(
        kernel_name="python3", kernel_spec_manager=OwnKernel(), transport_encryption="auto"
    )
    manager.start_kernel(cwd=str(workspace), env=own)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=SECONDS)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


def lesson(name: str) -> NotebookNode:
    """A built lesson as it ships."""
    (path,) = [path for path in lesson_files() if path.stem == name]
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def static_page(notebook: NotebookNode) -> str:
    """What a viewer shows that runs nothing."""
    page: str
    page, _ = HTMLExporter().from_notebook_node(notebook)  # type: ignore[no-untyped-call]
    return page
