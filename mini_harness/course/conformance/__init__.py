"""One suite a step, three subjects: the package, the reference solutions, a learner's own harness.

A check runs the subject and returns nothing, or raises ``Wrong``: what was called, what came
back, what was expected, and the likely cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

SUITES = ("v0", "v0b", "v1", "v2", "v3", "v4", "v5", "v6")
"""The steps that have a suite: each is a module here, with its CHECKS."""


class Wrong(Exception):
    """A check's finding, for the person who wrote the code."""

    def __init__(self, *, called: str, got: str, expected: str, likely: str) -> None:
        super().__init__(called, got, expected, likely)
        self.called, self.got, self.expected, self.likely = called, got, expected, likely

    @property
    def parts(self) -> dict[str, str]:
        """The four, by the names under which people read them. ``likely`` may be empty."""
        return {
            "called": self.called,
            "got": self.got,
            "expected": self.expected,
            "likely": self.likely,
        }


class Subject(NamedTuple):
    """What is checked. The functions are found by name when a check asks for one."""

    name: str
    find: Callable[[str], Callable[..., Any]]

    def act(self, tools: Mapping[str, Any], decision: Any) -> Any:
        """Carry out one proposal: the text that the model gets to see."""
        return self.find("act")(tools, decision)

    def pursue(self, model: Any, tools: Mapping[str, Any], goal: str) -> Any:
        """Work towards a goal with a model: the final answer."""
        return self.find("pursue")(model, tools, goal)

    def describe(self, function: Callable[..., Any]) -> Any:
        """What a model is shown of a typed function."""
        return self.find("describe")(function)

    def check_arguments(self, function: Callable[..., Any], arguments: Any) -> Any:
        """The arguments as the function takes them, or what the model is told is wrong."""
        return self.find("check_arguments")(function, arguments)

    def edit(self, path: str, old: str, new: str) -> Any:
        """Replace the one passage of a file that is like this. Raises ValueError for none."""
        return self.find("edit")(path, old, new)

    def adapt(self, server: str, listed: Sequence[Mapping[str, Any]], call: Any) -> Any:
        """A server's tools, by name, each of which asks ``call``."""
        return self.find("adapt")(server, listed, call)

    def judge(self, rules: Sequence[Any], name: str, arguments: Mapping[str, Any]) -> Any:
        """What may happen to a call: a verdict and its reason."""
        return self.find("judge")(rules, name, arguments)

    def protect(self, tools: Mapping[str, Any], rules: Sequence[Any], approver: Any) -> Any:
        """The tools again, each behind the rules and the approver."""
        return self.find("protect")(tools, rules, approver)

    def supervise(self, model: Any, tools: Mapping[str, Any], goal: str, *more: Any) -> Any:
        """``pursue`` with rules, an approver, a list for the events and perhaps a step limit."""
        return self.find("supervise")(model, tools, goal, *more)

    def retry(self, attempt: Callable[[Any], Any], key: Any, *more: Any) -> Any:
        """Try again what may be repeated: ``more`` is repeatable, sleep and attempts."""
        return self.find("retry")(attempt, key, *more)

    def limited(self, tools: Mapping[str, Any], max_calls: float | None) -> Any:
        """The tools again, which together may be called that often."""
        return self.find("limited")(tools, max_calls)

    def survive(self, model: Any, tools: Mapping[str, Any], goal: str, *more: Any) -> Any:
        """``pursue`` with both: ``more`` is the repeatable names, sleep and max_calls."""
        return self.find("survive")(model, tools, goal, *more)

    def append(self, path: Path, event: Any) -> Any:
        """Write one event at the end of a journal."""
        return self.find("append")(path, event)

    def load(self, path: Path) -> Any:
        """The events of a journal, and how many bytes are torn at its end."""
        return self.find("load")(path)

    def what_to_do(self, events: Sequence[Mapping[str, Any]], safe: Any) -> Any:
        """A word for each call: done, run, run again, ask."""
        return self.find("what_to_do")(events, safe)

    def pursue_on(self, path: Path, model: Any, tools: Mapping[str, Any], *more: Any) -> Any:
        """``pursue`` with a journal: ``more`` is the goal and the names that may be repeated."""
        return self.find("pursue_on")(path, model, tools, *more)

    def examine(self, record: Sequence[Mapping[str, Any]], claim: Mapping[str, Any]) -> Any:
        """What the record says of a claim: a word."""
        return self.find("examine")(record, claim)

    def standing(self, findings: Sequence[str]) -> Any:
        """How far an answer is borne out of whose claims this was found."""
        return self.find("standing")(findings)

    def add(self, path: Path, data: Mapping[str, Any]) -> Any:
        """Add an entry to a chained log."""
        return self.find("add")(path, data)

    def verify(self, path: Path) -> Any:
        """Where a chained log isn't what was written; None if it is."""
        return self.find("verify")(path)

    def pursue_proved(self, model: Any, tools: Mapping[str, Any], *more: Any) -> Any:
        """``pursue`` for answers that must be borne out: ``more`` is the goal and the changes."""
        return self.find("pursue_proved")(model, tools, *more)

    def objections(self, expect: Mapping[str, Any], seen: Mapping[str, Any]) -> Any:
        """What doesn't hold of what was expected, a text each. Raises ValueError for nonsense."""
        return self.find("objections")(expect, seen)

    def triage(self, world: Any) -> Any:
        """The night shift's harness in a case's world."""
        return self.find("triage")(world)

    def verified(self, world: Any) -> Any:
        """The same, which accepts an answer only with proof."""
        return self.find("verified")(world)

    def shrink(self, script: Sequence[Any], fails: Callable[[Sequence[Any]], Any]) -> Any:
        """What is left of a failing script. Raises ValueError if it doesn't fail."""
        return self.find("shrink")(script, fails)

    def rate(self, outcomes: Mapping[str, str], selected: Sequence[str]) -> Any:
        """The exact share of passes among the selected cases; None where none ran."""
        return self.find("rate")(outcomes, selected)

    def compare(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> Any:
        """A word for each case of a baseline: fine, worse, unclear."""
        return self.find("compare")(before, now)

    def gate(self, now: Mapping[str, Any], *more: Any) -> Any:
        """A verdict: ``more`` is the selected cases, repeats, the threshold and the baseline."""
        return self.find("gate")(now, *more)


@dataclass(frozen=True)
class Check:
    """One rule. ``exercise`` is the exercise that it grades; ``title`` says the rule."""

    exercise: str
    title: str
    run: Callable[[Subject], None]


def conformance(step: str) -> tuple[Check, ...]:
    """The checks of one step, in order. Raises ValueError for a step without a suite."""
    if step not in SUITES:
        raise ValueError(f"There is no suite for {step!r}. There are: {', '.join(SUITES)}.")
    checks: tuple[Check, ...] = import_module(f"{__name__}.{step}").CHECKS
    return checks
