"""A failing script becomes as short as it can, and still fails."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.clock import VirtualClock
from mini_harness.corpus import Case
from mini_harness.expectation import Expectation
from mini_harness.faults import Fault, FaultKind, Faults
from mini_harness.loop import Harness
from mini_harness.minimal import minimise
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final, ToolCall, Turn
from mini_harness.results import FailureKind
from mini_harness.retry import Retry
from mini_harness.tools.function import function_tool


@dataclass(frozen=True)
class Script:
    """As a case has it."""

    title: str
    script: list[Any]
    faults: tuple[Fault, ...] = ()


def needs(*wanted: Any) -> Callable[[Sequence[Any]], bool]:
    """Fails as long as all of these are there."""
    return lambda turns: not (Counter(wanted) - Counter(turns))


def test_what_has_no_part_in_the_failure_goes() -> None:
    made = minimise(list(range(40)), needs(3, 17, 31))
    assert (made.found, made.is_minimal) == ([3, 17, 31], True)
    assert made.tries < 120


def test_a_failure_that_needs_nothing_leaves_nothing() -> None:
    made = minimise(("a", "b"), lambda turns: True)
    assert not made.found
    assert isinstance(made.found, tuple)
    assert (made.tries, made.is_minimal) == (2, True)


def test_a_failure_that_needs_everything_leaves_everything() -> None:
    assert minimise(["a", "b", "c"], lambda turns: len(turns) == 3).found == ["a", "b", "c"]


def test_what_becomes_needless_later_is_taken_away_too() -> None:
    def fails(turns: Sequence[int]) -> bool:
        """1 is needed as long as 2 is there, and 2 as long as 3 is."""
        return 4 in turns and (3 not in turns or 2 in turns) and (2 not in turns or 1 in turns)

    assert minimise([1, 2, 3, 4], fails).found == [4]


def test_calls_within_a_turn_go_and_one_of_them_stays() -> None:
    a, b, c = (ToolCall(name, {}) for name in "abc")
    wire = [{"type": "tool", "name": name, "arguments": {}} for name in "abc"]
    turns = [Turn((a, b, c), "hm"), [a, b], wire, Final("done")]

    def fails(some: Sequence[Any]) -> bool:
        kinds = [type(each) for each in some]
        return kinds == [Turn, list, list, Final] and b in some[0].calls and wire[2] in some[2]

    made = minimise(turns, fails)
    assert made.found == [Turn((b,), "hm"), [b], [wire[2]], Final("done")]
    assert made.is_minimal
    assert turns[0] == Turn((a, b, c), "hm")


def paid_twice(case: Script) -> bool:
    """Whether a harness that retries too much lets a payment happen twice."""
    paid: Counter[str] = Counter()

    def pay(bill: str) -> str:
        """Pay a bill."""
        paid[bill] += 1
        return "paid"

    def look() -> str:
        """Look around."""
        return "nothing"

    tools = [function_tool(pay, idempotent=True), function_tool(look, read_only=True)]
    layers = [Retry(), Faults(case.faults)]
    model = ScriptedModel(case.script)
    asyncio.run(Harness(model, tools, layers=layers, clock=VirtualClock()).run("go"))
    return max(paid.values(), default=0) > 1


def test_a_case_is_minimised_by_real_runs_with_its_faults() -> None:
    look, pay = ToolCall("look", {}), ToolCall("pay", {"bill": "b1"})
    faults = (
        Fault(FaultKind.TRANSIENT, "look", 2),
        Fault(FaultKind.TRANSIENT, turn=2),
        Fault(FaultKind.TRANSIENT, "pay", 1, moment="after"),  # type: ignore[arg-type]
    )
    case = Script("Paid twice", [look, [look, pay], look, Turn((look, look)), Final("ok")], faults)
    made = minimise(case, paid_twice)
    assert made.found == Script("Paid twice", [[pay]], faults[2:])
    assert made.is_minimal
    assert paid_twice(made.found)


def test_a_case_of_the_corpus_keeps_a_turn_since_without_one_it_is_no_case() -> None:
    answer = {"type": "final", "output": "ok"}
    expect = Expectation(status="failed")
    case = Case("c", FailureKind.NONE, "go", "m:f", expect, script=(answer, answer, answer))
    assert minimise(case, lambda each: True).found.script == (answer,)


def test_the_bound_on_tries_holds_and_what_was_found_by_then_fails() -> None:
    asked: list[int] = []

    def fails(turns: Sequence[int]) -> bool:
        asked.append(len(turns))
        return needs(5, 60)(turns)

    made = minimise(list(range(64)), fails, tries=9)
    assert (made.tries, len(asked), made.is_minimal) == (9, 9, False)
    assert needs(5, 60)(made.found)
    assert len(made.found) < 64


def test_a_try_is_never_made_twice_and_two_searches_are_the_same() -> None:
    def search() -> list[tuple[int, ...]]:
        seen: list[tuple[int, ...]] = []

        def fails(turns: Sequence[int]) -> bool:
            seen.append(tuple(turns))
            return needs(2, 9, 10)(turns)

        minimise(list(range(12)), fails)
        return seen

    tried = search()
    assert len(set(tried)) == len(tried)
    assert tried == search()


@pytest.mark.parametrize("answer", [None, 1, "yes"])
def test_what_is_not_a_clear_yes_is_no_failure(answer: Any) -> None:
    """DESIGN: could not judge is never yes"""
    with pytest.raises(ValueError, match="doesn't fail as it is"):
        minimise([1, 2], lambda turns: answer)
    assert minimise([1, 2], lambda turns: True if len(turns) == 2 else answer).found == [1, 2]


def test_what_the_judge_raises_is_seen() -> None:
    def judge(turns: Sequence[int]) -> bool:
        if len(turns) < 4:
            raise ZeroDivisionError
        return True

    with pytest.raises(ZeroDivisionError):
        minimise([1, 2, 3, 4], judge)


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        ("a text", "Give a list of turns"),
        (5, "Give a list of turns"),
        (Fault(FaultKind.CUT, turn=1), "Give a list of turns"),
        (Script("t", None), "script must be a list"),  # type: ignore[arg-type]
        (Script("t", [], "text"), "faults must be a list"),  # type: ignore[arg-type]
    ],
)
def test_what_has_no_turns_is_refused(subject: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        minimise(subject, lambda _: True)


def test_less_than_one_try_is_refused() -> None:
    with pytest.raises(ValueError, match="tries is 0, but must be at least 1"):
        minimise([1], lambda _: True, tries=0)


NUMBERS = st.integers(0, 9)
TURNS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3) | NUMBERS, max_size=9)


@given(TURNS, st.sets(st.integers(0, 9), max_size=3), st.integers(0, 3))
def test_whatever_the_failure_the_result_fails_and_nothing_single_can_go(
    turns: list[Any], wanted: set[int], least: int
) -> None:
    def fails(some: Sequence[Any]) -> bool:
        """Not monotone: a long script fails only if its length is odd."""
        flat = [n for each in some for n in (each if isinstance(each, list) else [each])]
        return wanted <= set(flat) and len(flat) >= least and (len(flat) < 7 or len(flat) % 2 == 1)

    if not fails(turns):
        with pytest.raises(ValueError, match="doesn't fail"):
            minimise(turns, fails)
        return
    made = minimise(turns, fails)
    assert made.is_minimal
    assert fails(made.found)
    for index, item in enumerate(made.found):
        rest = [made.found[:index], made.found[index + 1 :]]
        assert not fails([*rest[0], *rest[1]])
        for n in range(len(item) if isinstance(item, list) and len(item) > 1 else 0):
            assert not fails([*rest[0], [*item[:n], *item[n + 1 :]], *rest[1]])
