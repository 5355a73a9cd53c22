"""What a case expects: each thing can hold and can fail, and a falsy answer is an answer."""

from typing import Any

import pytest

from mini_harness.budget import Budget
from mini_harness.course.cases import TOOLS
from mini_harness.expectation import Expectation
from tests.loops import DONE as END
from tests.loops import call, play, turn

READ = call("read_build", build_id="build-102")
HALF = [turn(READ, call("oops")), READ, END]


def objections(turns: list[Any], **expected: Any) -> list[str]:
    run, events = play(turns, TOOLS)
    return Expectation(**expected).objections(run, events)


@pytest.mark.parametrize(
    ("holds", "fails"),
    [
        ({"status": "completed"}, {"status": "stopped"}),
        ({"output": "done"}, {"output": "Done"}),
        ({"contains": ["do", "ne"]}, {"contains": ["do", "no"]}),
        ({"calls": [["read_build", "ok"], ["read_build", "ok"]]}, {"calls": [["oops", "ok"]]}),
        (
            {"calls": [["oops", "unknown_tool"], ["read_build", "ok"]]},
            {"calls": [["oops", "unknown_tool"], ["oops", "unknown_tool"]]},
        ),
        ({"never": ["deploy_prod", "oops"]}, {"never": ["read_build"]}),
        ({"at_most": {"read_build": 2, "oops": 0}}, {"at_most": {"read_build": 1}}),
        ({"max_steps": 3}, {"max_steps": 2}),
        ({"standing": "unverified"}, {"standing": "partly"}),
        ({"events": ["final", "tool_error"]}, {"events": ["final", "retry"]}),
    ],
)
def test_each_expectation_can_hold_and_can_fail(
    holds: dict[str, Any], fails: dict[str, Any]
) -> None:
    assert objections(HALF, **holds) == []
    (said,) = objections(HALF, **fails)
    assert said.startswith(f"{next(iter(fails))}: ")


def test_a_stop_is_told_by_its_reason() -> None:
    run, events = play([READ, END], TOOLS, layers=[Budget(tool_calls=0)])
    assert not Expectation(status="stopped", stop_reason="budget").objections(run, events)
    (said,) = Expectation(stop_reason="max_steps").objections(run, events)
    assert said == "stop_reason: it is budget, and should be max_steps."
    (said,) = Expectation(output=None).objections(run, events)
    assert said == "output: there is none, since the run is stopped."


VALUES: list[Any] = [0, False, "", None, [], {}, 0.0, "0", 1, True, "None"]


@pytest.mark.parametrize("expected", VALUES, ids=repr)
def test_an_answer_equals_itself_alone_however_false_it_is(expected: Any) -> None:
    """report C05: 0, False and "" are answers, and none of them is another one"""
    for answer in VALUES:
        found = objections([{"type": "final", "output": answer}], output=expected)
        assert (found == []) is (repr(answer) == repr(expected)), (answer, expected)


def test_an_answer_that_is_a_structure_is_compared_whole() -> None:
    said = [{"type": "final", "output": {"a": [1, 2], "b": None}}]
    assert objections(said, output={"b": None, "a": [1, 2]}) == []
    assert objections(said, output={"a": [1, 2]}) != []
    assert objections(said, contains=['"a":[1,2]']) == []


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "could never fail"),
        ({"calls": []}, "could never fail"),
        ({"at_most": {}}, "could never fail"),
        ({"status": "done"}, "must be one of"),
        ({"stop_reason": "tired"}, "must be one of"),
        ({"standing": "true"}, "must be one of"),
        ({"events": ["tool_began"]}, "must be one of"),
        ({"calls": [["read_build", "fine"]]}, "must be one of"),
        ({"calls": ["read_build"]}, "pairs"),
        ({"never": "deploy_prod"}, "list of texts"),
        ({"contains": [""]}, "list of texts"),
        ({"contains": [5]}, "list of texts"),
        ({"max_steps": True}, "whole number"),
        ({"max_steps": -1}, "whole number"),
        ({"at_most": {"read_build": 1.5}}, "whole number"),
    ],
)
def test_what_expects_nothing_or_what_there_isnt_is_refused(
    given: dict[str, Any], why: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=why):
        Expectation.from_dict(given)


@pytest.mark.parametrize("given", [{"output": None}, {"output": 0}, {"never": ["a"]}])
def test_an_expectation_comes_back_as_it_was_written(given: dict[str, Any]) -> None:
    again = Expectation.from_dict(Expectation.from_dict(given).to_dict())
    assert again == Expectation.from_dict(given)
