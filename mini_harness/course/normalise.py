"""Take out of an executed notebook all that differs from run to run or from machine to machine."""

import nbformat
from nbformat import NotebookNode

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
KERNELSPEC = {"name": "python3", "display_name": "Python 3", "language": "python"}
LANGUAGE = {
    "name": "python",
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "pygments_lexer": "ipython3",
}


def normalise(notebook: NotebookNode) -> str:
    """The notebook's text as it is committed: LF, sorted keys, indent 1, a newline at the end.

    Widget models are random and die with the kernel: neither view nor state is kept, the text/html
    and text/plain beside them are. Streams are one per name already (execute sees to it).
    """
    notebook.metadata = NotebookNode(
        title=notebook.metadata.title, kernelspec=KERNELSPEC, language_info=LANGUAGE
    )
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)
    nbformat.validate(notebook)
    text: str = nbformat.writes(notebook)
    return text.rstrip("\n") + "\n"
