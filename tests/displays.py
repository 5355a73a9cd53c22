"""What a notebook would store of something that displays itself, without a notebook."""

from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell


def displayed(widget: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Its one display: MIME type -> data."""
    publisher = CapturingDisplayPublisher()
    monkeypatch.setattr(InteractiveShell.instance(), "display_pub", publisher)
    widget._ipython_display_()
    data: dict[str, Any] = publisher.outputs[0]["data"]
    return data
