"""Which kind of model a person wants: the written-down one, or a real one.

``MINI_HARNESS_MODE`` is ``offline``, ``real`` or ``auto`` (the default). Auto means real when
ANTHROPIC_API_KEY and MODEL_ID are both there and not blank, in the environment or in a ``.env``
file; the environment wins. Under pytest it is always offline.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

NAMES = ("auto", "offline", "real")


class ModeError(ValueError):
    """The mode that was asked for can't be had. The text says what to do."""


@dataclass(frozen=True)
class Mode:
    """The mode in force, and why. The key itself is never shown."""

    name: Literal["offline", "real"]
    why: str
    model_id: str = ""
    api_key: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.name} ({self.why}; API key: {'set' if self.api_key else 'not set'})"


def choose_mode(asked: str | None = None, environment: Mapping[str, str] | None = None) -> Mode:
    """Decide on the mode: ``asked``, else MINI_HARNESS_MODE, else auto.

    ``environment`` stands for the process's own and the nearest ``.env`` file. Raises ModeError.
    """
    known = settings() if environment is None else environment
    name = (asked or known.get("MINI_HARNESS_MODE", "")).strip().lower() or "auto"
    if name not in NAMES:
        raise ModeError(f"Mode {name!r} isn't known. Choose one of {', '.join(NAMES)}.")
    if name == "offline":
        return Mode("offline", "the offline mode is set")
    if "PYTEST_VERSION" in known:
        return Mode("offline", "this runs under pytest")
    key, model_id = (known.get(k, "").strip() for k in ("ANTHROPIC_API_KEY", "MODEL_ID"))
    missing = [k for k, value in (("ANTHROPIC_API_KEY", key), ("MODEL_ID", model_id)) if not value]
    if not missing:
        return Mode("real", f"ANTHROPIC_API_KEY and MODEL_ID ({model_id}) are set", model_id, key)
    lack = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set"
    if name == "real":
        where = Path.cwd() / ".env"
        raise ModeError(f"There is no real model: {lack}. Write to {where}, then try again.")
    return Mode("offline", lack, model_id, key)


def settings() -> dict[str, str]:
    """The nearest ``.env`` at or above the working folder; the environment overrules it."""
    from dotenv import dotenv_values, find_dotenv

    written = dotenv_values(find_dotenv(usecwd=True), encoding="utf-8")
    found = {name: value for name, value in written.items() if value}
    return found | {name: value for name, value in os.environ.items() if value.strip()}
