"""Time, waiting and fresh names: the real ones, and those that lessons run on."""

import asyncio
import socket
import string
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_harness.clock import SETTLING, Clock, RealClock, VirtualClock
from mini_harness.sync import in_own_thread, run_sync
from mini_harness.tools.process import run_process


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


def told(*stories: Callable[[], Awaitable[None]], clock: VirtualClock) -> float:
    """Run these side by side. Returns the virtual time at the end."""

    async def together() -> None:
        await asyncio.gather(*(story() for story in stories))

    asyncio.run(together())
    return clock.now


def test_time_waits_for_whoever_still_acts_however_many_turns_that_takes() -> None:
    """DESIGN, determinism: no sleeper overtakes another for having had fewer turns"""
    clock = VirtualClock()
    woken: list[tuple[str, float]] = []

    async def quick() -> None:
        await clock.sleep(5)
        woken.append(("quick", clock.now))

    async def thorough() -> None:
        for _ in range(200):
            await asyncio.sleep(0)
        await clock.sleep(1)
        woken.append(("thorough", clock.now))

    told(quick, thorough, clock=clock)
    assert woken == [("thorough", 1), ("quick", 5)]


class Discreet(asyncio.SelectorEventLoop):
    """An event loop that doesn't show the clock what is ready, as one of another maker may."""

    def __getattribute__(self, name: str) -> Any:
        if name == "_ready" and sys._getframe(1).f_globals["__name__"] == "mini_harness.clock":
            raise AttributeError(name)
        return super().__getattribute__(name)


def test_in_a_loop_that_does_not_show_what_is_ready_the_others_get_a_number_of_turns() -> None:
    clock = VirtualClock()
    woken: list[float] = []

    async def sleeper(turns: int, seconds: float) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await clock.sleep(seconds)
        woken.append(clock.now)

    async def story() -> None:
        await asyncio.gather(sleeper(0, 5), sleeper(SETTLING // 2, 1))

    with asyncio.Runner(loop_factory=Discreet) as runner:
        runner.run(story())
    assert woken == [1, 5]


def test_the_loop_of_this_python_shows_what_is_ready() -> None:
    """If a new one doesn't, time must find another way to know."""
    with asyncio.Runner() as runner:
        assert hasattr(runner.get_loop(), "_ready")


def test_somebody_who_only_looks_again_and_again_does_not_stop_the_time() -> None:
    clock = VirtualClock()
    is_over = asyncio.Event()

    async def poll() -> None:
        while not is_over.is_set():  # noqa: ASYNC110 - that is what is tried
            await asyncio.sleep(0)

    async def sleep() -> None:
        await clock.sleep(5)
        is_over.set()

    assert told(poll, sleep, clock=clock) == 5


def test_two_clocks_in_one_event_loop_do_not_wait_for_each_other() -> None:
    clocks = VirtualClock(), VirtualClock()

    async def both() -> None:
        async with asyncio.timeout(20):
            await asyncio.gather(*(clock.sleep(n) for n, clock in enumerate(clocks, 3)))

    asyncio.run(both())
    assert [clock.now for clock in clocks] == [3, 4]


def test_what_has_come_in_is_dealt_with_before_time_goes_on() -> None:
    """Bytes that wait in a socket, and a callback from a thread, come before the next sleeper."""
    clock = VirtualClock()
    seen: list[tuple[str, float]] = []

    def take(end: socket.socket) -> None:
        end.recv(1)
        seen.append(("bytes", clock.now))

    async def story() -> None:
        loop = asyncio.get_running_loop()
        left, right = socket.socketpair()
        for end in (left, right):
            end.setblocking(False)
        with left, right:
            left.send(b"x")
            loop.add_reader(right, take, right)
            thread = threading.Thread(
                target=loop.call_soon_threadsafe, args=(lambda: seen.append(("call", clock.now)),)
            )
            thread.start()
            thread.join()
            await clock.sleep(1)
            loop.remove_reader(right)

    asyncio.run(story())
    assert sorted(seen) == [("bytes", 0), ("call", 0)]


def test_no_virtual_time_passes_while_real_work_is_under_way() -> None:
    """A command that really takes a while takes no virtual time, whoever sleeps beside it."""
    clock = VirtualClock()
    seen: list[tuple[str, float]] = []

    async def command() -> None:
        await run_process(
            ["sh", "-c", "sleep 0.2"], cwd=Path(), env={}, seconds=30, receive=lambda _: None
        )
        seen.append(("process", clock.now))

    async def thread() -> None:
        await in_own_thread(lambda: subprocess.run(["sleep", "0.2"], check=True))
        seen.append(("thread", clock.now))

    async def sleeper() -> None:
        await clock.sleep(5)
        seen.append(("sleeper", clock.now))

    told(command, thread, sleeper, clock=clock)
    assert sorted(seen[:2]) == [("process", 0), ("thread", 0)]
    assert seen[2] == ("sleeper", 5)


def test_work_that_begins_when_somebody_sleeps_already_holds_up_time_as_well() -> None:
    clock = VirtualClock()
    seen: list[float] = []

    async def sleeper() -> None:
        await clock.sleep(5)

    async def thread() -> None:
        await in_own_thread(lambda: subprocess.run(["sleep", "0.2"], check=True))
        seen.append(clock.now)

    told(sleeper, thread, clock=clock)
    assert (seen, clock.now) == ([0], 5)


def test_the_time_of_a_loop_in_a_thread_passes_and_the_waiting_loop_finds_it_passed() -> None:
    """A blocking tool that runs a harness: its loop goes on alone, the other one waits for it."""
    clock = VirtualClock()
    woke: list[float] = []

    async def sleeper() -> None:
        await clock.sleep(1)
        woke.append(clock.now)

    async def thread() -> None:
        await in_own_thread(run_sync, None, coroutine=clock.sleep(5))

    told(sleeper, thread, clock=clock)
    assert woke == [5]


def test_abandoned_real_work_holds_nobody_up() -> None:
    clock = VirtualClock()
    never = threading.Event()

    async def story() -> None:
        task = asyncio.create_task(in_own_thread(never.wait))
        await asyncio.sleep(0)
        task.cancel()
        await clock.sleep(5)

    asyncio.run(asyncio.wait_for(story(), timeout=20))
    never.set()
    assert clock.now == 5


# --- deadlines --------------------------------------------------------------------------------


def test_a_deadline_moves_nothing_and_no_sleeper_jumps_over_it() -> None:
    clock = VirtualClock()
    reached: list[float] = []

    async def story() -> None:
        with clock.deadline(30, lambda: reached.append(clock.now)):
            await asyncio.sleep(0)
        assert (clock.now, reached) == (0, [])
        with clock.deadline(30, lambda: reached.append(clock.now)):
            await clock.sleep(100)

    asyncio.run(story())
    assert (clock.now, reached) == (100, [30])


def test_what_takes_exactly_as_long_is_in_time() -> None:
    clock = VirtualClock()
    reached: list[float] = []

    async def story() -> None:
        with clock.deadline(30, lambda: reached.append(clock.now)):
            await clock.sleep(30)

    asyncio.run(story())
    assert (clock.now, reached) == (30, [])


@settings(max_examples=200)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=5),
    st.lists(st.integers(1, 40), max_size=5),
)
def test_side_by_side_everything_happens_when_it_should(
    sleepers: list[list[int]], deadlines: list[int]
) -> None:
    """Each sleeper wakes at the sum of its naps, in the order of time; each deadline that comes
    before the last of them is reached exactly then."""
    clock = VirtualClock()
    happened: list[tuple[str, float]] = []

    async def sleeper(naps: list[int]) -> None:
        for nap in naps:
            await clock.sleep(nap)
            happened.append(("woke", clock.now))

    async def story() -> None:
        with ExitStack() as stack:
            for when in deadlines:
                stack.enter_context(
                    clock.deadline(when, lambda: happened.append(("reached", clock.now)))
                )
            await asyncio.gather(*map(sleeper, sleepers))

    asyncio.run(story())
    end = max(map(sum, sleepers))
    woke = sorted(n for naps in sleepers for n in accumulate(naps))
    assert [at for what, at in happened if what == "woke"] == woke
    assert [at for what, at in happened if what == "reached"] == sorted(
        when for when in deadlines if when < end
    )
    assert [at for _, at in happened] == sorted(at for _, at in happened)


def test_a_deadline_of_another_event_loop_is_not_jumped_over_either() -> None:
    """A blocking tool runs a harness of its own, in a thread and a loop of its own."""
    clock = VirtualClock()
    reached: list[float] = []

    async def story() -> None:
        over = asyncio.Event()

        def reach() -> None:
            reached.append(clock.now)
            over.set()

        with clock.deadline(30, reach):
            await asyncio.gather(in_own_thread(run_sync, None, coroutine=clock.sleep(100)))
            await asyncio.wait_for(over.wait(), timeout=20)

    asyncio.run(story())
    assert clock.now == 100
    assert len(reached) == 1


def test_where_no_virtual_time_can_pass_a_deadline_is_reached_in_real_time() -> None:
    """Rule 5: nothing waits for ever"""
    clock = VirtualClock(hung=0.01)

    async def story() -> None:
        over = asyncio.Event()
        with clock.deadline(0.001, over.set):
            await asyncio.wait_for(over.wait(), timeout=20)

    asyncio.run(story())
    assert clock.now == 0


def test_a_real_deadline_is_reached_once_and_not_after_the_block() -> None:
    """report R10: on the monotonic clock, whatever the wall clock says"""

    class Wall(RealClock):
        walls = iter([100, 101, 99, 99])
        time = staticmethod(lambda: next(Wall.walls))

    clock = Wall()
    reached: list[str] = []

    async def story() -> None:
        over = asyncio.Event()

        def reach() -> None:
            reached.append("in time")
            over.set()

        with clock.deadline(3600, lambda: reached.append("late")):
            assert clock.time() == 100
        with clock.deadline(0.001, reach):
            await asyncio.wait_for(over.wait(), timeout=20)

    asyncio.run(story())
    assert reached == ["in time"]
