"""Reads of one turn that need approval come together, and are asked about one after the other."""

import asyncio

import pytest

from mini_harness import (
    Approval,
    ApprovalRequest,
    Harness,
    ParallelReads,
    Policy,
    Rule,
    Run,
    ScriptedModel,
    Verdict,
    tool,
)

ASK = Rule("ask", Verdict.REQUIRE_APPROVAL, tool="look")


@tool(read_only=True, paths=())
async def look(at: int) -> str:
    """Look."""
    return f"seen {at}"


def pursue(policy: Policy, *places: int) -> Run:
    calls = [{"type": "tool", "name": "look", "arguments": {"at": n}} for n in places]
    for number, each in enumerate(calls):
        each["call_id"] = f"c{number}"
    model = ScriptedModel([calls, {"type": "final", "output": "done"}])
    harness = Harness(model, [look], layers=[ParallelReads(), policy])
    return asyncio.run(harness.run("go"))


def outcomes(run: Run) -> list[str]:
    tools = [m for m in run.history.messages if m["role"] == "tool"]
    return [m.get("outcome", m["tool_result"]) for m in tools]


def test_a_person_is_asked_one_thing_at_a_time() -> None:
    """issue 4: in whatever order calls come"""
    open_questions, most = 0, 0

    async def person(request: ApprovalRequest) -> Approval:
        nonlocal open_questions, most
        open_questions += 1
        most = max(most, open_questions)
        await asyncio.sleep(0.005)
        open_questions -= 1
        return request.approve()

    run = pursue(Policy(rules=[ASK], approver=person), 1, 2, 3, 4)
    assert most == 1
    assert outcomes(run) == ["seen 1", "seen 2", "seen 3", "seen 4"]


def test_what_the_first_answer_allows_is_not_asked_again() -> None:
    asked = 0

    async def person(request: ApprovalRequest) -> Approval:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.005)
        return request.approve(remember=True)

    run = pursue(Policy(rules=[ASK], approver=person), 1, 1, 1)
    assert asked == 1
    assert outcomes(run) == ["seen 1"] * 3


def test_patience_begins_when_the_question_is_asked() -> None:
    """Waiting for another's answer is no silence"""
    desk = asyncio.Lock()

    async def person(request: ApprovalRequest) -> Approval:
        async with desk:
            await asyncio.sleep(0.3)
            return request.approve()

    run = pursue(Policy(rules=[ASK], approver=person, patience=0.55), 1, 2, 3)
    assert outcomes(run) == ["seen 1", "seen 2", "seen 3"]


@pytest.mark.parametrize("times", [1, 2])
def test_a_policy_serves_one_event_loop_after_another(times: int) -> None:
    async def person(request: ApprovalRequest) -> Approval:
        await asyncio.sleep(0)
        return request.approve()

    policy = Policy(rules=[ASK], approver=person)
    for _ in range(times + 1):
        assert outcomes(pursue(policy, 1, 2, 3)) == ["seen 1", "seen 2", "seen 3"]
