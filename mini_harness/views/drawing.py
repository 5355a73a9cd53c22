"""What every drawing of a notebook has: its forms, and the words beside it."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from base64 import b64encode
from functools import cached_property
from io import BytesIO, StringIO
from pathlib import Path
from typing import ClassVar

import matplotlib as mpl
from matplotlib.figure import Figure


class Drawing(ABC):
    """A figure with a summary that says the same in one line. ``salt`` makes its SVG its own."""

    salt: ClassVar[str]

    @property
    @abstractmethod
    def figure(self) -> Figure:
        """Drawn by matplotlib."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The same in words."""

    def __repr__(self) -> str:
        return self.summary

    @cached_property
    def svg(self) -> str:
        """The drawing as text: the same facts give the same text, on any machine."""
        held = StringIO()
        said = {"Description": self.summary, "Date": None, "Creator": None}
        with mpl.rc_context({"svg.hashsalt": self.salt}):
            self.figure.savefig(held, format="svg", metadata=said)
        return held.getvalue()

    @cached_property
    def png(self) -> bytes:
        held = BytesIO()
        self.figure.savefig(held, format="png", metadata={"Description": self.summary})
        return held.getvalue()

    def save(self, path: Path | str) -> None:
        """Write it as PNG or SVG, with the summary as its description. Raises ValueError else."""
        match Path(path).suffix.lower():
            case ".png":
                Path(path).write_bytes(self.png)
            case ".svg":
                Path(path).write_text(self.svg, encoding="utf-8", newline="\n")
            case _:
                raise ValueError(f"Give a name that ends in .png or .svg, not {Path(path).name!r}.")

    def in_html(self, alternative: str) -> str:
        """The drawing with its summary below. Only HTML can give a picture its alternative text:
        JupyterLab shows a PNG without any."""
        source = b64encode(self.svg.encode()).decode()
        picture = f'<img alt="{html.escape(alternative, quote=True)}"'
        picture += f' src="data:image/svg+xml;base64,{source}">'
        words = f"<figcaption>{html.escape(self.summary)}</figcaption>"
        return f'<figure style="margin: 0">{picture}{words}</figure>'
