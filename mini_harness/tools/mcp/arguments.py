"""Check the arguments of a call against the schema that a server gave for them.

The rules are those of JSON Schema in the schema's own draft, and nothing is converted: what is
valid goes to the server as the model wrote it. So 1.0 is an integer where the draft says so, from
draft 6 on, and is sent as 1.0; true is no number; null is sent and not dropped.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, RootModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from mini_harness.tools.mcp.closed import closed
from mini_harness.tools.mcp.schema import Schema, is_quick, usable

if TYPE_CHECKING:
    from jsonschema import ValidationError as Fault
    from jsonschema.protocols import Validator

STEPS = 10_000
"""How many references are followed in one check. A schema can refer to itself without end."""

SECONDS = 1.0
"""How long all patterns of one check may take that aren't quick for sure."""

MOST = 20
"""How many faults are told at once."""

_QUICK_LENGTH = 10_000
_SAID = 200
_FORMS = 4
_SEARCH = "import json,re,sys; p,t = json.load(sys.stdin); sys.exit(not re.search(p, t))"
_KINDS = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}


def input_model(name: str, schema: Any) -> tuple[type[BaseModel], Schema]:
    """The model that validates a tool's arguments, and the closed schema that it stands for.

    An instance has what the model sent, unchanged, as ``root``. Raises UnusableSchema.
    """
    kind, plain = usable(schema)
    shown = closed(plain)
    # With its draft named inside, the library would go on with its own class at a reference.
    checked = {key: value for key, value in shown.items() if key != "$schema"}
    check = _checker(kind, checked)

    class Arguments(RootModel[Annotated[dict[str, Any], AfterValidator(check)]]):
        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> Schema:
            return shown

    Arguments.__name__ = Arguments.__qualname__ = name
    return Arguments, shown


class _TooMuch(Exception):
    """A check that would take too long. What couldn't be checked isn't valid."""


@dataclass
class _Budget:
    """What is left for one check."""

    steps: int = STEPS
    seconds: float = SECONDS
    searched: dict[tuple[str, str], bool] = field(default_factory=dict)

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise _TooMuch("the server's schema refers to itself too often")

    def matches(self, pattern: str, text: str) -> bool:
        if is_quick(pattern) and len(text) <= _QUICK_LENGTH:
            return re.search(pattern, text) is not None
        if (pattern, text) not in self.searched:
            self.searched[pattern, text] = self._matches_elsewhere(pattern, text)
        return self.searched[pattern, text]

    def _matches_elsewhere(self, pattern: str, text: str) -> bool:
        """In a process of its own, which can be ended."""
        began = time.monotonic()
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-W", "ignore", "-c", _SEARCH],
                input=json.dumps([pattern, text]).encode(),
                capture_output=True,
                timeout=max(0.0, self.seconds),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _TooMuch(f"the pattern {pattern!r:.100} takes too long") from None
        finally:
            self.seconds -= time.monotonic() - began
        if done.returncode not in (0, 1):
            raise _TooMuch(f"the pattern {pattern!r:.100} couldn't be tried")
        return done.returncode == 0


_budget: ContextVar[_Budget] = ContextVar("mcp_budget")


def _checker(kind: type[Validator], schema: Schema) -> Callable[[dict[str, Any]], dict[str, Any]]:
    from referencing import Registry

    nowhere: Registry[Any] = Registry()
    validator = _bounded(kind)(schema, registry=nowhere)

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        used = _budget.set(_Budget())
        try:
            faults = [
                detail
                for fault in islice(validator.iter_errors(arguments), MOST)
                for detail in _details(fault)
            ]
        except _TooMuch as error:
            faults = [_detail((), f"can't be checked: {error}")]
        except RecursionError:
            faults = [_detail((), "can't be checked: the server's schema refers to itself")]
        finally:
            _budget.reset(used)
        if faults:
            raise ValidationError.from_exception_data("arguments", faults[:MOST])
        return arguments

    return check


@cache
def _bounded(kind: Any) -> Any:
    """The draft's own rules, with an end to those that may have none."""
    from jsonschema import validators

    own = {
        name: _counted(kind.VALIDATORS[name])
        for name in ("$ref", "$dynamicRef", "$recursiveRef")
        if name in kind.VALIDATORS
    }
    bounded: Any = validators.extend  # It has no types.
    return bounded(kind, {**own, "pattern": _pattern, "required": _required})


def _counted(keyword: Any) -> Any:
    def follow(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Fault]:
        _budget.get().step()
        yield from keyword(validator, value, instance, schema) or ()

    return follow


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Fault]:
    from jsonschema import ValidationError as Fault

    if isinstance(instance, str) and not _budget.get().matches(pattern, instance):
        yield Fault("no match")


def _required(validator: Any, keys: list[str], instance: Any, schema: Any) -> Iterator[Fault]:
    from jsonschema import ValidationError as Fault

    if isinstance(instance, dict):
        yield from (Fault("missing", path=(key,)) for key in keys if key not in instance)


# --- what the model is told -------------------------------------------------------------------


def _details(fault: Fault) -> Iterator[InitErrorDetails]:
    place = tuple(fault.absolute_path)
    if fault.validator == "additionalProperties" and fault.validator_value is False:
        schema: Any = fault.schema
        instance: Any = fault.instance
        known, patterns = (schema.get(name, {}) for name in ("properties", "patternProperties"))
        for key in instance:
            if key not in known and not any(re.search(each, key) for each in patterns):
                yield InitErrorDetails(type="extra_forbidden", loc=(*place, key), input=None)
    else:
        yield _detail(place, _says(fault))


def _detail(place: tuple[str | int, ...], says: str) -> InitErrorDetails:
    kind = PydanticCustomError("mcp_schema", "{says}", {"says": says})
    return InitErrorDetails(type=kind, loc=place, input=None)


def _says(fault: Fault) -> str:
    rule = _json(fault.validator_value)
    match fault.validator:
        case "required":
            says = "is required, but missing"
        case "type":
            says = f"must be of type {rule}, but is {_kind(fault.instance)}"
        case "enum":
            says = f"must be one of {rule}"
        case "anyOf" | "oneOf" if fault.context:
            says = f"fits none of the allowed forms: {_forms(fault)}"
        case "additionalProperties" if fault.validator_value is False:
            says = "has an unknown key"
        case None:
            says = "is not allowed"
        case keyword:
            says = f"must keep to {keyword}: {rule}"
    return says


def _forms(fault: Fault) -> str:
    """Of each form the first thing that is wrong."""
    first: dict[Any, Fault] = {}
    for inner in fault.context or ():
        first.setdefault(inner.relative_schema_path[0], inner)
    said = (
        f"{'.'.join(map(str, inner.relative_path))} {_says(inner)}".lstrip()
        for inner in first.values()
    )
    return "; or ".join(islice(said, _FORMS))


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "number")


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SAID else f"{text[:_SAID]}…"
