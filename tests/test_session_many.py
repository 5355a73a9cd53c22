"""Many at once on one session: nothing is lost, doubled or mixed, and times never run backwards."""

import asyncio
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from mini_harness.clock import RealClock
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.run import Run, RunIsBusy, Status
from mini_harness.session import Session
from mini_harness.spans import tell
from mini_harness.sync import run_sync
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.builds import TOOLS
from mini_harness.tools.call import Call, prepare
from mini_harness.tools.function import function_tool, tool
from mini_harness.tools.registry import ToolRegistry
from mini_harness.transcript import SessionIsBusy
from tests.conftest import ROOT
from tests.loops import DONE, call, check, turn
from tests.sessions import TOUR, Halt, drive, new

THREADS, RUNS = 32, 2
EVENTS_OF_A_RUN = 9
"""Of a tour: the message, two calls of three events each, the last decision, and the answer."""

WRITER = """
import sys
from tests.test_session_many import write
write(sys.argv[1], threads=16, runs=2)
"""


def write(root: str, *, threads: int, runs: int) -> list[str]:
    """Open the session and drive runs in many threads; wait where somebody else is writing."""
    session = Session.open("s1", root, patience=60)

    def tour(_: int) -> str:
        harness = Harness(ScriptedModel(TOUR), TOOLS, sinks=[session], clock=RealClock())
        return harness.run_sync("go").id

    with session, ThreadPoolExecutor(threads) as pool:
        return list(pool.map(tour, range(threads * runs)))


def whole(root: Path, runs: int) -> None:
    """Every run is complete, with all of its events in order, and there is nothing else."""
    session = Session.open("s1", root)
    events = list(session.events())
    assert len(session.runs) == runs
    assert len(events) == runs * EVENTS_OF_A_RUN
    assert set(Counter(event.run_id for event in events).values()) == {EVENTS_OF_A_RUN}
    for name in session.runs:
        own = [event for event in events if event.run_id == name]
        check(session.run(name), own)
        assert Run.fold(own).status is Status.COMPLETED


def test_32_threads_lose_double_and_mix_nothing(tmp_path: Path) -> None:
    """issue 6"""
    new(tmp_path)
    write(str(tmp_path), threads=THREADS, runs=RUNS)
    whole(tmp_path, THREADS * RUNS)


def test_two_processes_with_16_threads_each_lose_double_and_mix_nothing(tmp_path: Path) -> None:
    """issue 6"""
    new(tmp_path)
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) for _ in range(2)]
    for each in writers:
        _, said = each.communicate(timeout=120)
        assert each.returncode == 0, said.decode()
    whole(tmp_path, 2 * 16 * 2)


def test_twins_run_both_each_under_its_own_key_and_a_key_outlives_the_process(
    tmp_path: Path,
) -> None:
    """report R02"""
    keys: list[str] = []

    def order(item: str, context: ToolExecutionContext) -> str:
        """Order something."""
        keys.append(context.idempotency_key)
        if len(keys) == 2:
            raise KeyboardInterrupt
        return "ordered"

    tools = [function_tool(order, idempotent=True)]
    session = new(tmp_path)
    turns = [turn(call("order", item="a"), call("order", item="a")), DONE]

    harness = Harness(ScriptedModel(turns), tools, sinks=[session], clock=session.clock())
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(harness.run("go"))
    session.close()
    again = Session.open("s1", tmp_path)
    run = again.run()
    assert len(run.in_doubt) == 1
    model = ScriptedModel(turns, asked=run.step)
    later = Harness(model, tools, sinks=[again], clock=again.clock())
    assert asyncio.run(later.resume(run)).status is Status.COMPLETED
    assert len(set(keys)) == 2
    assert keys[1] == keys[2]


def test_a_twin_in_flight_is_refused_and_never_runs(tmp_path: Path) -> None:
    """report R02: two threads take up one call, both by one Run or each by one of its own"""
    begun, go = Event(), Event()
    effects: list[str] = []

    @tool(idempotent=True, blocking=True)
    def order(context: ToolExecutionContext) -> str:
        """Order something."""
        effects.append(context.idempotency_key)
        begun.set()
        go.wait(20)
        return "ordered"

    def take_up(session: Session, run: Run) -> Run:
        model = ScriptedModel([DONE])
        harness = Harness(model, [order], sinks=[session], clock=session.clock())
        return run_sync(harness.resume(run))

    session = new(tmp_path)
    drive(session, [call("order"), DONE], [order], layers=[Halt(lambda: None, pauses=True)])
    other = Session.open("s1", tmp_path)
    run, twin = session.run(), other.run()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(take_up, session, run)
        try:
            assert begun.wait(20)
            with pytest.raises(RunIsBusy):
                take_up(session, run)
            with pytest.raises(SessionIsBusy):
                take_up(other, twin)
        finally:
            go.set()
        assert first.result(60).status is Status.COMPLETED
    with pytest.raises(ValueError, match="If the run went on elsewhere, read it again"):
        take_up(other, twin)
    assert len(effects) == 1
    assert other.run().status is Status.COMPLETED


def test_what_is_asked_about_is_told_apart_by_kind_and_not_by_order() -> None:
    """report R02: 1, 1.0 and true are three; the order of arguments is none"""

    def digest(**arguments: Any) -> str:
        told = prepare(ToolRegistry([function_tool(show)]), call("show", "a", **arguments))
        assert isinstance(told, Call)
        return told.digest

    def show(a: Any, b: Any = 0) -> str:
        """Show."""
        return "shown"

    assert len({digest(a=value) for value in (1, 1.0, True, "1")}) == 4
    assert digest(a=1, b=2) == digest(b=2, a=1)


class SetBack(RealClock):
    """A machine whose clock is set back in the middle of a run."""

    def __init__(self) -> None:
        self.times = iter([100.0, 101.0, 99.0, 99.0])

    def time(self) -> float:
        return next(self.times, 99.5)


def test_a_clock_that_is_set_back_changes_no_order_and_no_length(tmp_path: Path) -> None:
    """report R10"""
    session = new(tmp_path)
    harness = Harness(ScriptedModel(TOUR), TOOLS, sinks=[session], clock=SetBack())
    run = asyncio.run(harness.run("go"))
    events = list(session.events())
    assert [event.time for event in events[:5]] == [100.0, 101.0, 99.0, 99.0, 99.5]
    assert [event.sequence for event in events] == list(range(1, 10))
    offsets = [event.offset for event in events]
    assert offsets == sorted(offsets)
    assert all(span.end >= span.start for span in tell(events).spans)
    assert Session.open("s1", tmp_path).run().output == run.output
    assert drive(session).status is Status.COMPLETED
