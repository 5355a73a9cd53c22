"""What must come of a case: of the run's end, of its answer, and of what it did on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mini_harness.events import Event, EventType
from mini_harness.evidence import Standing, standing_of
from mini_harness.frozen import canonical, freeze, shown
from mini_harness.protocol import Outcome
from mini_harness.run import Run, Status, StopReason


class _NotGiven:
    """Tells an output that isn't expected from one that is None."""

    def __repr__(self) -> str:
        return "not given"

    def __reduce__(self) -> str:
        # Sent to another process it is still the same one.
        return "NOT_GIVEN"


NOT_GIVEN = _NotGiven()


@dataclass(frozen=True)
class Expectation:
    """What must hold when a case has run. At least one thing, or nothing could ever fail.

    ``output`` is the whole answer, and 0, False, "" and None are answers; ``contains`` are texts
    that must stand in it. ``calls`` are pairs of a tool and an outcome, in this order, others may
    come between. ``never`` are tools of which no attempt may begin, ``at_most`` says how many may.
    ``events`` are types that must occur, and ``standing`` is what verification makes of the answer.

    Raises ValueError for what there isn't, and for an expectation of nothing.
    """

    status: str | None = None
    stop_reason: str | None = None
    output: Any = NOT_GIVEN
    contains: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    never: tuple[str, ...] = ()
    at_most: Mapping[str, int] | None = None
    max_steps: int | None = None
    standing: str | None = None
    events: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        closed = {"status": Status, "stop_reason": StopReason, "standing": Standing}
        for name, known in closed.items():
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _member(known, name, value))
        for name in ("contains", "never", "events"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        pairs = tuple(_pair(each) for each in self.calls)
        object.__setattr__(self, "calls", pairs)
        for each in self.events:
            _member(EventType, "events", each)
        if self.output is not NOT_GIVEN:
            object.__setattr__(self, "output", freeze(self.output, -4))
        for tool, most in (self.at_most or {}).items():
            _check_count(f"at_most of {tool}", most)
        if self.max_steps is not None:
            _check_count("max_steps", self.max_steps)
        if not self.to_dict():
            raise ValueError("It expects nothing, so it could never fail. Say what must hold.")

    @classmethod
    def from_dict(cls, found: Any) -> Expectation:
        """What ``to_dict`` wrote. Raises ValueError and TypeError, also for an unknown key."""
        if not isinstance(found, Mapping):
            raise TypeError(f"expect must be an object, but it is {shown(found):.100}.")
        if unknown := sorted(set(found) - {each.name for each in fields(cls)}):
            raise ValueError(f"expect has no {', '.join(unknown)}.")
        return cls(**found)

    def to_dict(self) -> dict[str, Any]:
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: value
            for name, value in found.items()
            if value is not NOT_GIVEN and (name == "output" or value not in (None, (), {}))
        }

    def objections(self, run: Run, events: Sequence[Event]) -> list[str]:
        """What doesn't hold, a line each. None: it is as expected."""
        return [*self._of_the_end(run), *self._of_the_way(run, events)]

    def _of_the_end(self, run: Run) -> Iterable[str]:
        stopped = None if run.stop is None else run.stop["reason"]
        if self.status is not None and run.status != self.status:
            why = f" ({stopped})" if stopped else ""
            yield f"status: it is {run.status}{why}, and should be {self.status}."
        if self.stop_reason is not None and stopped != self.stop_reason:
            yield f"stop_reason: it is {stopped or 'none'}, and should be {self.stop_reason}."
        if self.output is not NOT_GIVEN or self.contains:
            yield from self._of_the_answer(run)
        if self.standing is not None and (found := standing_of(run)) != self.standing:
            yield f"standing: it is {found}, and should be {self.standing}."

    def _of_the_answer(self, run: Run) -> Iterable[str]:
        if run.status is not Status.COMPLETED:
            yield f"output: there is none, since the run is {run.status}."
            return
        # As text: in JSON, unlike in Python, 1 isn't true, and 0 isn't false.
        told = canonical(freeze(run.output, -4))
        if self.output is not NOT_GIVEN and told != canonical(self.output):
            yield f"output: it is {told:.200}, and should be {canonical(self.output):.200}."
        text = run.output if isinstance(run.output, str) else told
        for wanted in self.contains:
            if wanted not in text:
                yield f"contains: {wanted!r} doesn't stand in the answer {text!r:.200}."

    def _of_the_way(self, run: Run, events: Sequence[Event]) -> Iterable[str]:
        started = Counter(e.data["tool"] for e in events if e.type is EventType.TOOL_START)
        for tool in self.never:
            if started[tool]:
                yield f"never: {tool} began {started[tool]} times."
        for tool, most in (self.at_most or {}).items():
            if started[tool] > most:
                yield f"at_most: {tool} began {started[tool]} times, and may {most} times."
        if self.max_steps is not None and run.step > self.max_steps:
            yield f"max_steps: it took {run.step} steps, and may take {self.max_steps}."
        seen = [
            (m["tool"], str(m.get("outcome", Outcome.OK)))
            for m in run.history.messages
            if m["role"] == "tool"
        ]
        left = iter(seen)
        for pair in self.calls:
            if pair not in left:
                yield f"calls: {pair[0]} [{pair[1]}] doesn't come in its turn. There were: {seen}."
                break
        occurred = {event.type for event in events}
        for kind in self.events:
            if kind not in occurred:
                yield f"events: no {kind} was recorded."


def _member(known: Any, name: str, value: object) -> str:
    try:
        return str(known(value).value)
    except ValueError:
        names = ", ".join(each.value for each in known)
        raise ValueError(f"{name} is {value!r:.60}, but must be one of: {names}.") from None


def _texts(name: str, given: Any) -> tuple[str, ...]:
    texts = () if isinstance(given, str) else tuple(given)
    if isinstance(given, str) or not all(isinstance(each, str) and each for each in texts):
        raise TypeError(f"{name} must be a list of texts, but it is {shown(given):.100}.")
    return texts


def _pair(given: Any) -> tuple[str, str]:
    if isinstance(given, str) or len(given) != 2 or not isinstance(given[0], str):
        raise TypeError(f"calls holds pairs of a tool and an outcome, not {shown(given):.100}.")
    return given[0], _member(Outcome, "the outcome of a call", given[1])


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} must be a whole number from 0 on, but it is {value!r:.60}.")
