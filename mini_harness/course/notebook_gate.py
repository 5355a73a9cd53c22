"""What must hold of a stored notebook so that comparing it means something.

nbval compares nothing in a cell without an execution count, and nothing in a cell that is tagged
so: a notebook could be green and untested. `faults` counts what would really be compared, and
looks for what must not be in a file that everybody reads.
"""

import getpass
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

COMPARED_AT_LEAST = 0.9
WIDGET_MIMES = "application/vnd.jupyter.widget-"
PUBLIC_PATHS = ("/dev/", "/etc/", "/v1/")
"""The same on every machine (or the path of a web address), so they tell nothing of this one."""

UUID = r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
MEMORY_ADDRESS = r"(?i)\b0x[0-9a-f]{6,}\b"
ABSOLUTE_PATH = (
    r"(?<![\w.:/<~*-])(?:/[\w.@+-]+){2,}"
    r"|(?<![\w/])/(?:home|root|tmp|Users)\b"
    r"|file://\S+"
    r"|\b[A-Z]:\\+\w+"
)


def faults(path: Path) -> list[str]:
    """One line a fault, none for a notebook that is fit to be compared and read."""
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [*_of_notebook(notebook), *_of_counts(cells), *_of_outputs(cells)]


def compared_share(cells: list[NotebookNode]) -> float:
    """The share of code cells whose output nbval compares, by nbval's own reading of them."""
    return sum(map(_is_compared, cells)) / len(cells) if cells else 0.0


def _is_compared(cell: NotebookNode) -> bool:
    nbval = importlib.import_module("nbval.plugin")  # loads pytest
    options = {"check": True, "skip": False}
    options.update(nbval.find_metadata_tags(cell.metadata))
    options.update(nbval.find_comment_markers(cell.source))
    return cell.execution_count is not None and options["check"] and not options["skip"]


def _of_notebook(notebook: NotebookNode) -> Iterator[str]:
    kernel = notebook.metadata.get("kernelspec", {}).get("name")
    if kernel != "python3":
        yield f"the kernel is {kernel!r}, which others don't have: it must be 'python3'"
    if "version" in notebook.metadata.get("language_info", {}):
        yield "language_info holds the Python version of one machine"
    if "widgets" in notebook.metadata:
        yield "widget state is stored: a static viewer shows an error instead of the card"


def _of_counts(cells: list[NotebookNode]) -> Iterator[str]:
    counts = [cell.execution_count for cell in cells]
    if counts != list(range(1, len(cells) + 1)):
        yield f"execution counts are {counts}, not 1 to {len(cells)}"
    share = compared_share(cells)
    if share < COMPARED_AT_LEAST:
        yield f"{share:.0%} of {len(cells)} code cells are compared, not {COMPARED_AT_LEAST:.0%}"


def _of_outputs(cells: list[NotebookNode]) -> Iterator[str]:
    for number, cell in enumerate(cells, start=1):
        for mime, text in _texts(cell):
            if mime.startswith(WIDGET_MIMES):
                yield f"code cell {number}: widget state or view is stored"
            for what, found in private_parts(text):
                yield f"code cell {number}: {what} in its output: {found!r}"


def _texts(cell: NotebookNode) -> Iterator[tuple[str, str]]:
    """All that can be read in a cell's outputs, with its kind; pixels are left out."""
    for output in cell.outputs:
        match output.output_type:
            case "stream":
                yield "text/plain", output.text
            case "error":
                yield "text/plain", "\n".join([output.evalue, *output.traceback])
            case _:
                yield from ((mime, _text(mime, data)) for mime, data in output.data.items())


def _text(mime: str, data: Any) -> str:
    if mime.startswith("image/") and mime != "image/svg+xml":
        return ""
    text = data if isinstance(data, str) else json.dumps(data)
    return re.sub(r"base64,[\w+/=]+", "base64", text)


def private_parts(text: str) -> Iterator[tuple[str, str]]:
    """What tells of one machine, one person or one run: (what it is, the text itself)."""
    for what, pattern in _private_patterns().items():
        for match in re.finditer(pattern, text):
            if not match[0].startswith(PUBLIC_PATHS):
                yield what, match[0]


def _private_patterns() -> dict[str, str]:
    patterns = {
        "a uuid": UUID,
        "a memory address": MEMORY_ADDRESS,
        "an absolute path": ABSOLUTE_PATH,
        "the home folder": re.escape(str(Path.home())) + r"\b",
    }
    user = _user()
    if user != "root":  # every machine has one, so it tells nothing
        name = re.escape(user)
        patterns["the user's name"] = rf"(?m)(?<=[=@]){name}\b|\b{name}(?=@)|^{name}$"
    return patterns


def _user() -> str:
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container may run as a number without a name
        return "root"
