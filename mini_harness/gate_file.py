"""The rules of a gate, read from a file: ``gate.toml``, or the same as JSON.

A table for each rule, with what the rule asks for::

    [pass_rate]
    at_least = 0.95

    [forbidden]
    tools = ["deploy_prod"]

Nothing in it is guessed: an unknown rule or key, a threshold that is left out, and a number in
quotes are refused, with the place where they stand.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from mini_harness.frozen import shown
from mini_harness.gate import Gate, GateRule
from mini_harness.gate_baseline import CostRise, NoRegression
from mini_harness.gate_rules import (
    Cost,
    Coverage,
    Flaky,
    Forbidden,
    PassRate,
    Steps,
    VerifiedShare,
)
from mini_harness.results import FailureKind, Report
from mini_harness.visible import visible


class BadGate(ValueError):
    """A file of rules, or of results, that can't be used: which one, where, and what to do."""


@dataclass(frozen=True)
class Baseline:
    """A report to compare with, or why there is none."""

    report: Report | None = None
    missing: str = "none was given"


_Maker = Callable[[Any, Baseline], GateRule]

_RULES: Mapping[str, tuple[str | None, _Maker]] = {
    "pass_rate": ("at_least", lambda given, _: PassRate(given)),
    "no_regression": (None, lambda _, base: NoRegression(base.report, base.missing)),
    "cost_rise": ("at_most", lambda given, base: CostRise(base.report, given, base.missing)),
    "forbidden": ("tools", lambda given, _: Forbidden(_names(given))),
    "steps": ("at_most", lambda given, _: Steps(given)),
    "cost": ("at_most", lambda given, _: Cost(given)),
    "verified_share": ("at_least", lambda given, _: VerifiedShare(given)),
    "flaky": ("at_most", lambda given, _: Flaky(given)),
    "coverage": ("kinds", lambda given, _: Coverage(_kinds(given))),
}
"""Each rule with the one key it must have, and how it is made."""


def load_gate(path: Path | str, baseline: Baseline | None = None) -> Gate:
    """The gate that this file describes. A baseline that is given is compared with in any case.

    Raises BadGate that names the file and the place in it.
    """
    path = Path(path)
    found = _read(path)
    empty = found.pop("allow_empty", False)
    if baseline is not None:
        found.setdefault("no_regression", {})
    rules = [_rule(path, name, given, baseline or Baseline()) for name, given in found.items()]
    try:
        return Gate(rules, allow_empty=empty)
    except (TypeError, ValueError) as error:
        raise BadGate(f"{visible(str(path))}: {error}") from error


def load_report(path: Path | str) -> Report:
    """A report from its file. Raises BadGate that names it."""
    try:
        return Report.from_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, TypeError, ValueError, RecursionError) as error:
        raise BadGate(f"{visible(str(path))}: {_why(error)}") from error


def load_baseline(path: Path | str) -> Baseline:
    """Never raises: a baseline that can't be read is none, and then nothing passes."""
    try:
        return Baseline(load_report(path))
    except BadGate as error:
        return Baseline(None, str(error))


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix.lower() == ".json":
            found = json.loads(
                text, parse_float=Decimal, parse_constant=Decimal, object_pairs_hook=_no_key_twice
            )
        else:
            found = tomllib.loads(text, parse_float=Decimal)
    except (OSError, ValueError, ArithmeticError, RecursionError) as error:
        raise BadGate(f"{visible(str(path))}: {_why(error)}") from error
    if not isinstance(found, dict):
        raise BadGate(f"{visible(str(path))}: this is {shown(found)}, and no table of rules.")
    return found


def _rule(path: Path, name: str, given: Any, baseline: Baseline) -> GateRule:
    place = f"{visible(str(path))}: [{visible(name)}]"
    if name not in _RULES:
        raise BadGate(f"{place} is no rule. There are: {', '.join(_RULES)}.")
    key, make = _RULES[name]
    wanted = {key} if key else set()
    if not isinstance(given, dict) or set(given) != wanted:
        needs = (
            f"needs {key} and nothing else"
            if key
            else "has no keys: name the baseline with --baseline"
        )
        raise BadGate(f"{place} {needs}, but it is {visible(shown(given))}.")
    try:
        return make(given.get(key), baseline)
    except (TypeError, ValueError) as error:
        raise BadGate(f"{place} {visible(str(error))}") from error


def _names(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise TypeError(f"tools is {given!r}, but must be a list of names.")
    return tuple(given)


def _kinds(given: Any) -> tuple[FailureKind, ...]:
    """A list of kinds, or ``"all"`` for every one there is."""
    if given == "all":
        return tuple(FailureKind)
    known = [each.value for each in FailureKind]
    if not isinstance(given, list) or any(each not in known for each in given):
        raise ValueError(f'kinds is {given!r}, but must be "all" or some of {", ".join(known)}.')
    return tuple(map(FailureKind, given))


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("A key is given twice.")
    return found


def _why(error: BaseException) -> str:
    return visible(shown(getattr(error, "strerror", None) or error, str))
