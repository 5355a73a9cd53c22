"""The story of v4: what the lesson says of its boasts, lies and proofs is true."""

import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

from mini_harness.course import proof, story
from mini_harness.evidence import Standing, Verify, standing_of
from mini_harness.run import Run, Status
from mini_harness.sync import run_sync
from tests.kernels import code_cells, lesson

pytestmark = pytest.mark.once

LESSON = "v4_evidence_and_verification"
CHECKS = ["run_tests"]


@pytest.fixture
def farm() -> Path:
    return proof.fresh_farm()


def proved(farm: Path, turns: list[object]) -> Run:
    return proof.harness(farm, turns, Verify(checks=CHECKS)).run_sync(proof.GOAL)


def test_what_is_boasted_is_not_so(farm: Path) -> None:
    run = proof.harness(farm, proof.boasting()).run_sync(proof.GOAL)
    assert (run.output, standing_of(run)) == (proof.BOAST, Standing.UNVERIFIED)
    assert story.tests(farm) == "1 failed, 2 passed"


def test_an_answer_that_comes_back_makes_the_model_look(farm: Path) -> None:
    run = proved(farm, proof.learning())
    assert (run.output, run.rejections) == (proof.ANSWER, 1)
    assert (standing_of(run), story.tests(farm)) == (Standing.VERIFIED, "3 passed")


def test_a_liar_is_never_verified_even_where_it_did_well(farm: Path) -> None:
    run = proved(farm, proof.lying())
    assert (run.status, standing_of(run)) == (Status.STOPPED, Standing.UNVERIFIED)
    assert story.tests(farm) == "3 passed"


def test_half_a_proof_is_for_a_person_to_accept(farm: Path) -> None:
    """The record keeps that it was only partly."""
    run = proved(farm, proof.half_proving())
    assert run.status is Status.STOPPED
    lower = proof.harness(farm, [], Verify(Standing.PARTLY, checks=CHECKS))
    run = run_sync(lower.resume(run))
    assert (run.status, standing_of(run)) == (Status.COMPLETED, Standing.PARTLY)


def test_farms_lie_in_one_place_that_goes_with_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    proof.fresh_farm()
    assert list(tmp_path.iterdir()) == []


STAND_IN = """
import asyncio
from types import SimpleNamespace
from mini_harness import RealClock, ScriptedModel, Trace, Verify, standing_of
from mini_harness.course import proof

real = SimpleNamespace(name="real")
model = ScriptedModel(proof.learning())
mode = SimpleNamespace(mode=real, model=lambda turns: model, clock=RealClock)
proved, display = Verify(checks=["run_tests"]), print
async def cell():
{body}
asyncio.run(cell())
"""


def test_the_real_cell_works_with_a_model_that_has_no_script_in_the_harness() -> None:
    (cell,) = [each for each in code_cells(lesson(LESSON)) if each.id.endswith("_real")]
    program = STAND_IN.format(body=indent(cell.source, "    "))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nverified\n" in done.stdout
