"""What a tool is: a name, a description, an input model, and something to execute.

A tool also *declares* its effect: whether a call only reads, whether it may be repeated, and
with ``TransientError`` whether trying again can help. Approval, retry and resume follow from
these declarations. Nothing is guessed from names.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from pydantic import BaseModel

from mini_harness.clock import Clock, RealClock

if TYPE_CHECKING:
    from mini_harness.loop import Harness
    from mini_harness.run import Run
    from mini_harness.tools.call import Call


class TransientError(Exception):
    """Raised by a tool whose failure may pass: trying again can help.

    ``retry_after`` is the wait in seconds that somebody asked for, or None.
    """

    def __init__(self, *args: object, retry_after: float | None = None) -> None:
        """Raises ValueError for a wait that is no number of seconds."""
        super().__init__(*args)
        self.retry_after = retry_after
        if retry_after is not None and wait_asked_by(self) is None:
            raise ValueError(f"retry_after must be seconds, but it is {retry_after!r}.")


def wait_asked_by(error: BaseException) -> float | None:
    """The wait in seconds that an error asks for before anybody tries again, if it is one."""
    wait = getattr(error, "retry_after", None)
    if isinstance(wait, bool) or not isinstance(wait, int | float):
        return None
    return float(wait) if 0 <= wait < math.inf else None


class ToolSchema(TypedDict):
    """What the model sees of a tool (SEEDS B05)."""

    name: str
    description: str
    input_schema: dict[str, Any]


@dataclass(slots=True)
class ToolResult:
    """What a tool gives back (SEEDS B02). ``output`` is what the model reads."""

    output: str
    is_error: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ToolExecutionContext:
    """Where and for whom a tool runs (SEEDS B03).

    ``metadata["tool_registry"]`` is the registry. ``idempotency_key`` is the same for every
    attempt at one call: a tool that passes it on has its effect once. A tool that runs a
    harness of its own takes clock, sinks and layers from ``harness``, never from model text.
    """

    cwd: Path = field(default_factory=Path.cwd)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=RealClock)
    call_id: str = ""
    attempt: int = 1
    run: Run | None = None
    harness: Harness | None = None

    @classmethod
    def of(cls, harness: Harness, run: Run, call: Call) -> ToolExecutionContext:
        """The context of one call in a run."""
        metadata = {"tool_registry": harness.tools}
        call_id = call.call_id
        attempt = run.attempts[call_id]
        return cls(harness.cwd, metadata, harness.clock, call_id, attempt, run, harness)

    @property
    def idempotency_key(self) -> str:
        """The name of this call among all calls of all runs."""
        return f"{self.run.id if self.run else ''}:{self.call_id}"


class BaseTool(ABC):
    """A tool (SEEDS B01). Subclasses set the class variables and write ``execute``.

    Arguments are validated strictly against ``input_model``: no type is converted, and unknown
    keys are refused at every level, whatever the model's own configuration says.
    """

    name: str
    description: str
    input_model: type[BaseModel]
    idempotent: bool = False
    """Whether running the same call again under the same idempotency key is harmless."""

    @abstractmethod
    async def execute(self, arguments: Any, context: ToolExecutionContext) -> ToolResult:
        """Carry out one call. ``arguments`` is a fresh instance of ``input_model``."""

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    def is_read_only(self, arguments: Any) -> bool:
        """Whether this very call changes nothing (SEEDS B04). A hint for the policy."""
        return False

    def paths(self, arguments: Any) -> Sequence[str] | None:
        """The files and folders that this call touches, as its arguments name them.

        None means that the tool doesn't say. A policy then takes every text in the arguments for
        a path, so that none gets by under another name.
        """
        return None

    def command(self, arguments: Any) -> str | None:
        """The shell line that this call runs, or None if it runs none."""
        return None

    def preview(self, arguments: Any, context: ToolExecutionContext) -> str:
        """What this call would change, for the person who is asked: for a file, the diff.

        If that has changed by the time the call is to run, the person is asked again.
        """
        return ""

    def to_api_schema(self) -> ToolSchema:
        """The contract shown to the model, generated from ``input_model`` (SEEDS B05)."""
        schema = json.loads(_schema_of(self.input_model))
        return {"name": self.name, "description": self.description, "input_schema": schema}


@lru_cache(maxsize=1024)
def _schema_of(model: type[BaseModel]) -> str:
    """As text, since whoever gets a schema may change it. To make one takes half a millisecond."""
    return json.dumps(_closed(model.model_json_schema()))


_VALUES = ("default", "const", "enum", "examples")
_BY_NAME = ("properties", "$defs", "patternProperties")


def _closed(schema: Any) -> Any:
    """Forbid unknown keys at every level of a JSON schema, as the validation does."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed: dict[str, Any] = {}
    for key, item in schema.items():
        if key in _BY_NAME:
            closed[key] = {name: _closed(each) for name, each in item.items()}
        else:
            closed[key] = item if key in _VALUES else _closed(item)
    if closed.get("type") == "object":
        if "properties" in closed or "additionalProperties" not in closed:
            closed["additionalProperties"] = False
        closed.setdefault("properties", {})
    return closed


@dataclass
class Tool:
    """The simplest tool there is: a name, a description and a typed function (SEEDS A01)."""

    name: str
    description: str
    handler: Callable[..., Any]
