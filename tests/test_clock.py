"""Time, waiting and fresh names: the real ones, and those that lessons run on."""

import asyncio
import string
import time

import pytest

from mini_harness.clock import Clock, RealClock, VirtualClock
from mini_harness.sync import run_sync


@pytest.mark.parametrize("clock", [RealClock(), VirtualClock()])
def test_both_clocks_answer_the_same_questions(clock: Clock) -> None:
    before = clock.monotonic(), clock.time()
    asyncio.run(clock.sleep(0.001))
    after = clock.monotonic(), clock.time()
    assert after[0] - before[0] >= 0.001
    assert after[1] >= before[1]


def test_the_real_clock_is_the_clock_of_the_machine() -> None:
    clock = RealClock()
    assert clock.monotonic() <= time.monotonic()
    assert abs(clock.time() - time.time()) < 60


@pytest.mark.parametrize("clock", [RealClock(), VirtualClock()])
def test_a_fresh_name_comes_once_and_is_safe_as_a_file_name(clock: Clock) -> None:
    """C21"""
    names = [clock.fresh() for _ in range(1000)]
    assert len(set(names)) == 1000
    assert set("".join(names)) <= set(string.ascii_letters + string.digits + "-")


def test_two_virtual_clocks_tell_the_same_story() -> None:
    """DESIGN, determinism"""

    def story() -> list[object]:
        clock = VirtualClock()
        told: list[object] = [clock.fresh(), clock.time()]
        asyncio.run(clock.sleep(1.5))
        return [*told, clock.fresh(), clock.time(), clock.monotonic()]

    assert story() == story() == ["1", 0.0, "2", 1.5, 1.5]


def test_a_virtual_day_takes_no_time() -> None:
    clock = VirtualClock()
    began = time.monotonic()
    asyncio.run(clock.sleep(24 * 3600))
    assert time.monotonic() - began < 5
    assert clock.time() == 24 * 3600


@pytest.mark.parametrize("seconds", [0, -1, -0.0])
def test_virtual_time_never_runs_backwards(seconds: float) -> None:
    clock = VirtualClock()
    asyncio.run(clock.sleep(3))
    asyncio.run(clock.sleep(seconds))
    assert clock.monotonic() == 3


def test_virtual_sleepers_side_by_side_take_as_long_as_the_longest() -> None:
    clock = VirtualClock()

    async def together() -> None:
        await asyncio.gather(*[clock.sleep(seconds) for seconds in (1, 3, 2)])

    asyncio.run(together())
    assert clock.monotonic() == 3


def test_a_loop_that_waits_for_another_one_does_not_hold_its_clock_up() -> None:
    """report N01, rule 5: run_sync in a cell, beside a task that sleeps on the same clock"""
    clock = VirtualClock()

    async def cell() -> None:
        task = asyncio.create_task(clock.sleep(1))
        await asyncio.sleep(0)
        run_sync(asyncio.wait_for(clock.sleep(5), timeout=20))
        await task

    asyncio.run(cell())
    assert clock.monotonic() == 5


def test_sleeping_gives_others_a_turn() -> None:
    """A cancelled run must come to know of it, also on the virtual clock."""
    clock = VirtualClock()

    async def cancelled() -> bool:
        task = asyncio.create_task(clock.sleep(1))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancelled())
    assert clock.monotonic() == 0
