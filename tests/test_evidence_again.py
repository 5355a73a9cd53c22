"""Claims that hold are looked at once more: by a check of the harness, and by a judge."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mini_harness.budget import Budget
from mini_harness.checks import Check, ExitCheck
from mini_harness.events import EventType
from mini_harness.evidence import Standing, Verify, standing_of
from mini_harness.judge import Judge
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final, Usage
from mini_harness.run import Run
from tests.claiming import TOOLS, claim, final, note, verified
from tests.loops import call, harness, play

VERIFIED, PARTLY, UNVERIFIED = Standing.VERIFIED, Standing.PARTLY, Standing.UNVERIFIED
SEEN = call("read", "c1", path="a")
HOLDS = final(claim("c1", "It works."))


def exits(code: int, name: str = "tests", says: str = "") -> Check:
    return ExitCheck(name, ["sh", "-c", 'echo "$1"; exit "$0"', str(code), says])


def judging(*turns: Any) -> Judge:
    return Judge(ScriptedModel(turns), "Is it right?")


def test_an_answer_is_verified_if_the_checks_of_the_harness_pass_too(tmp_path: Path) -> None:
    """A26: independent evidence"""
    run = verified(SEEN, HOLDS, recheck=[exits(0, "a"), exits(0, "b")], cwd=tmp_path)
    assert standing_of(run) is VERIFIED
    assert [each["name"] for each in note(run)["rechecks"]] == ["a", "b"]


@pytest.mark.parametrize(
    "check",
    [
        exits(1, says="1 passed, 0 failed"),
        Check("tests", ["sh", "-c", "echo 4 passed"], expected=4),
        Check("tests", ["true"], setup=[["sh", "-c", "exit 127"]]),
        ExitCheck("tests", ["no-such-program"]),
    ],
)
def test_without_its_checks_an_answer_is_never_verified(check: Check, tmp_path: Path) -> None:
    """A26, report V02: failed, or no evidence"""
    run = verified(SEEN, HOLDS, recheck=[exits(0), check], cwd=tmp_path)
    assert run.rejections == 3
    assert {each["standing"] for each in run.notes[EventType.VERIFICATION]} == {PARTLY}
    told = [m["content"] for m in run.history.messages if m.get("because") == "rejected"]
    assert "- Check tests: " in told[0]
    partly = verified(SEEN, HOLDS, recheck=[check], require=PARTLY, cwd=tmp_path)
    assert standing_of(partly) is PARTLY


def test_checks_and_judge_are_spared_for_what_the_record_already_refutes(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    check = ExitCheck("tests", ["touch", str(mark)])
    run = verified(SEEN, final(claim("c9")), recheck=[check], judge=judging(), cwd=tmp_path)
    assert standing_of(run) is UNVERIFIED
    assert not mark.exists()


@pytest.mark.parametrize(
    ("says", "reached"), [("GRADE: C", VERIFIED), ("GRADE: I", PARTLY), ("Looks good!", PARTLY)]
)
def test_a_judge_can_only_take_something_away(says: str, reached: Standing) -> None:
    """report V04: no grade is no yes"""
    run = verified(SEEN, HOLDS, judge=judging(Final(says)), require=PARTLY)
    assert standing_of(run) is reached
    refuted = verified(SEEN, final(claim("c9")), judge=judging(Final(says)), require=UNVERIFIED)
    assert standing_of(refuted) is UNVERIFIED


def test_a_judge_sees_what_was_asked_answered_and_recorded() -> None:
    seen: list[str] = []

    def grades(history: Any, tools: Any) -> Final:
        seen.append(history[0]["content"])
        return Final("GRADE: C")

    assert standing_of(verified(SEEN, HOLDS, judge=judging(grades))) is VERIFIED
    for part in ('"asked":"go"', '"answer":"Done."', '"says":"It works."', "content of a"):
        assert part in seen[0]


def test_what_a_judge_costs_counts_as_the_run_own(tmp_path: Path) -> None:
    opinions = [Final("GRADE: I", usage=Usage(100, 50)), Final("GRADE: C", usage=Usage(1, 1))]
    run = play([SEEN, HOLDS, HOLDS], TOOLS, layers=[Verify(judge=judging(*opinions))]).run
    assert run.usage == Usage(101, 51)
    layers = [Verify(judge=judging(*opinions)), Budget(tokens=100)]
    stopped: Run = play([SEEN, HOLDS, HOLDS], TOOLS, layers=layers).run
    assert stopped.stop is not None
    assert stopped.stop["reason"] == "budget"


def test_a_cancelled_check_leaves_nothing_and_goes_up(tmp_path: Path) -> None:
    check = ExitCheck("tests", ["sh", "-c", "touch began; sleep 60; touch ended"])

    async def cancelled() -> None:
        layers = [Verify(recheck=[check])]
        player, _ = harness([SEEN, HOLDS], TOOLS, layers=layers, cwd=tmp_path)
        task = asyncio.create_task(player.run("go"))
        for _ in range(2_000):
            if (tmp_path / "began").exists():
                break
            await asyncio.sleep(0.005)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert [path.name for path in tmp_path.iterdir()] == ["began"]
