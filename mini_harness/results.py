"""What came of running cases: one result for each time that a case ran, and a report of all.

A case that couldn't be judged is neither passed nor left out: it is an ERROR, and it counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from enum import StrEnum
from typing import Any

from mini_harness.frozen import parse_object

SCHEMA_VERSION = 1


class FailureKind(StrEnum):
    """The closed list of what a case can be about."""

    NONE = "none"
    """Nothing goes wrong: the harness must not get in the way."""
    UNKNOWN_DECISION = "unknown_decision"
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    TOOL_ERROR = "tool_error"
    MODEL_ERROR = "model_error"
    FORBIDDEN_CALL = "forbidden_call"
    ENDLESS = "endless"
    REPEATED_CALL = "repeated_call"
    TRANSIENT = "transient"
    DOUBLE_EFFECT = "double_effect"
    TIME_OUT = "time_out"
    OVERSPENT = "overspent"
    INTERRUPTED = "interrupted"
    NO_EVIDENCE = "no_evidence"
    STALE_EVIDENCE = "stale_evidence"
    WRONG_ANSWER = "wrong_answer"


class CaseOutcome(StrEnum):
    """What came of one case. Only PASSED is a pass."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """It couldn't be judged: the case itself, its tools or the machine failed."""
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of running one case once. ``repeat`` counts from 0.

    ``calls`` names every tool attempt that was started, in order. ``cost`` is in the currency of
    whoever gave the price, exactly, and None if nobody did. ``standing`` is what verification
    made of the answer, None if nobody verified.
    """

    case_id: str
    outcome: CaseOutcome
    kind: FailureKind = FailureKind.NONE
    repeat: int = 0
    reasons: tuple[str, ...] = ()
    status: str = ""
    stop_reason: str | None = None
    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    calls: tuple[str, ...] = ()
    standing: str | None = None

    def to_dict(self) -> dict[str, Any]:
        cost = None if self.cost is None else str(self.cost)
        return asdict(self) | {
            "cost": cost,
            "reasons": list(self.reasons),
            "calls": list(self.calls),
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> CaseResult:
        """Raises ValueError, KeyError or TypeError for what ``to_dict`` hasn't written."""
        if unknown := set(found) - {each.name for each in fields(cls)}:
            raise ValueError(f"A result has no {', '.join(sorted(unknown))}.")
        cost = found.get("cost")
        return cls(
            **dict(found)
            | {
                "outcome": CaseOutcome(found["outcome"]),
                "kind": FailureKind(found["kind"]),
                "reasons": _texts("reasons", found["reasons"]),
                "calls": _texts("calls", found["calls"]),
                **{name: _count(name, found[name]) for name in _COUNTS},
                "cost": None if cost is None else Decimal(cost),
            }
        )


@dataclass(frozen=True)
class Report:
    """The results of all selected cases, sorted by case and repeat, so that order is no matter.

    ``selected`` are the ids of the cases that were to run, ``repeats`` is how often each was to,
    and ``source`` says where they come from and how they were chosen, for people.
    """

    results: tuple[CaseResult, ...]
    selected: tuple[str, ...]
    source: str = ""
    repeats: int = 1
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def of(
        cls,
        results: Iterable[CaseResult],
        selected: Iterable[str],
        source: str = "",
        repeats: int = 1,
        notes: Iterable[str] = (),
    ) -> Report:
        ordered = sorted(results, key=lambda each: (each.case_id, each.repeat))
        return cls(tuple(ordered), tuple(sorted(selected)), source, repeats, tuple(notes))

    def to_json(self) -> str:
        """One JSON document, the same for the same results in whatever order they came."""
        found = {
            "schema_version": SCHEMA_VERSION,
            "source": self.source,
            "repeats": self.repeats,
            "selected": list(self.selected),
            "notes": list(self.notes),
            "results": [each.to_dict() for each in self.results],
        }
        return json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Raises ValueError that says what is wrong with it."""
        try:
            found = parse_object(text)
            if found["schema_version"] != SCHEMA_VERSION:
                raise ValueError(f"schema_version is {found['schema_version']!r}")
            results = [CaseResult.from_dict(each) for each in found["results"]]
            selected, notes = (_texts(name, found[name]) for name in ("selected", "notes"))
            about = selected, str(found["source"]), _count("repeats", found["repeats"]), notes
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise ValueError(f"This is no report: {type(error).__name__}: {error}.") from error
        return cls.of(results, *about)


_COUNTS = ("repeat", "steps", "input_tokens", "output_tokens")


def _texts(name: str, found: object) -> tuple[str, ...]:
    """A text would pass for a list of letters, and hide a forbidden call."""
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise TypeError(f"{name} must be a list of texts")
    return tuple(found)


def _count(name: str, found: object) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise TypeError(f"{name} must be a whole number from 0 on")
    return found
