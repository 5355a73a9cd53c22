"""The story of v3: a process that is killed, and the next one that goes on."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from mini_harness.course import night_shift as shift
from mini_harness.run import Status
from tests.kernels import code_cells, lesson

pytestmark = pytest.mark.once

LESSON = "v3_session_checkpoint_resume"


@pytest.fixture
def night() -> Iterator[Path]:
    yield shift.fresh("a-test")


def test_without_a_session_the_next_process_does_it_again(night: Path) -> None:
    assert shift.live(night, "memory", dies_after="page_oncall") == "killed right after page_oncall"
    shift.live(night, "memory")
    assert len(shift.pages(night)) == 2


def test_with_a_session_nothing_is_done_twice_and_the_plain_call_is_asked_about(
    night: Path,
) -> None:
    """report S05: idempotent calls go out under the same key"""
    assert shift.live(night, dies_after="rerun_build") == "killed right after rerun_build"
    assert shift.live(night, dies_after="page_oncall") == "killed right after page_oncall"
    run = shift.opened(night).run()
    assert run.status is Status.RUNNING and len(run.in_doubt) == 1
    assert "paused" in shift.live(night)
    assert (len(shift.queued(night)), len(shift.pages(night))) == (1, 1)


def test_nights_lie_in_one_place_that_goes_with_the_process(
    night: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shift.copied(shift.fresh("other"), "copy")
    assert list(tmp_path.iterdir()) == []


def test_the_real_night_goes_on_after_the_kernel_has_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the names of the first section alone, as the lesson says; then it begins anew."""
    monkeypatch.chdir(tmp_path)
    night = Path("real-night")
    died = "lambda *asked: os.kill(os.getpid(), signal.SIGKILL)"
    assert real_cell(f"[*shift.TURNS[:2], {died}]") == -signal.SIGKILL
    assert (len(shift.queued(night)), shift.pages(night)) == (1, [])

    for times, turns in ((1, "shift.TURNS[2:]"), (2, "shift.TURNS")):
        assert real_cell(turns) == 0
        session = shift.opened(night)
        assert session.run().status is Status.COMPLETED
        assert (len(session.runs), len(shift.queued(night)), len(shift.pages(night))) == (
            times,
        ) * 3


STAND_IN = """
import asyncio, os, signal
from types import SimpleNamespace
from mini_harness import RealClock, ScriptedModel
from mini_harness.course import night_shift as shift

model = ScriptedModel({turns})
real = SimpleNamespace(name="real")
mode = SimpleNamespace(mode=real, model=lambda turns: model, clock=RealClock)
ApprovalPanel, display = lambda harness, run: str(run), print
async def cell():
{body}
asyncio.run(cell())
"""


def real_cell(turns: str) -> int:
    """Run the lesson's cell in a process of its own, with a script in the place of a real model."""
    (cell,) = [each for each in code_cells(lesson(LESSON)) if each.id.endswith("_real")]
    program = STAND_IN.format(turns=turns, body=indent(cell.source, "    "))
    return subprocess.run([sys.executable, "-c", program], check=False).returncode
