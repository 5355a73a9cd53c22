"""A run can be stopped at once, or as soon as what runs now has ended. Nothing keeps running."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from mini_harness.approval import ApprovalRequest
from mini_harness.clock import Clock, RealClock, VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.layer import Layer
from mini_harness.limits import MaxSteps
from mini_harness.loop import Harness
from mini_harness.models.base import ModelError
from mini_harness.models.scripted import ScriptedModel
from mini_harness.policy import Policy
from mini_harness.protocol import Final
from mini_harness.retry import Retry
from mini_harness.run import Run, Status
from mini_harness.timeout import Timeout
from mini_harness.tools.base import TransientError
from mini_harness.tools.function import tool
from mini_harness.tools.shell import Bash
from tests.loops import DONE, call, check, kinds, outcomes, turn

PATIENCE = 20.0
"""Real seconds, as a bound only."""

MARK = "73.1846"
"""How long the shell command sleeps: nothing else on the machine sleeps so long."""


LONG_WAIT = Retry(base=300, cap=300)


class Busy(ModelError):
    transient = True


class Scene:
    """A run that has come to the point where somebody wants to stop it."""

    def __init__(
        self,
        turns: Sequence[Any],
        tools: Sequence[Any] = (),
        layers: Sequence[Layer] = (),
        clock: Clock | None = None,
        cwd: Path | str = ".",
    ) -> None:
        self.reached, self.let_go = threading.Event(), threading.Event()
        self.events: list[Event] = []
        self.model = ScriptedModel(turns)
        self.harness = Harness(
            self.model,
            tools,
            layers=[MaxSteps(8), *layers],
            sinks=[self.events.append],
            clock=clock or VirtualClock(),
            cwd=cwd,
        )
        self.run = Run("run-1")
        self.harness.record.message(self.run, "go")

    async def play(self, act: Callable[[asyncio.Task[Run]], Awaitable[None]]) -> Any:
        """Drive the run, and act when the scene is reached. Returns what the run ended with."""
        task = asyncio.create_task(self.harness.resume(self.run))
        async with asyncio.timeout(PATIENCE):
            while not (self.reached.is_set() or task.done()):  # noqa: ASYNC110 - also of a thread
                await asyncio.sleep(0.001)
            await act(task)
            (ended,) = await asyncio.gather(task, return_exceptions=True)
        return ended

    def goes_on(self) -> None:
        """The rest of the script is played to its end."""
        self.let_go.set()
        asyncio.run(self.harness.resume(self.run))
        check(self.run, self.events)
        assert self.run.unwrap() == "done"


def v2(**parts: Any) -> list[Layer]:
    return [Retry(jitter=0), Timeout(60, **parts)]


def in_bash(folder: Path) -> Scene:
    ready = folder / "ready"
    command = f"trap '' TERM; (sleep {MARK} &) ; touch {ready}; sleep {MARK}"
    scene = Scene(
        [turn(call("bash", "a", command=command), call("bash", "b", command="true")), DONE],
        [Bash()],
        v2(),
        clock=RealClock(),
        cwd=folder,
    )
    scene.reached.is_set = ready.exists  # type: ignore[method-assign]
    return scene


def in_an_async_tool(folder: Path) -> Scene:
    @tool
    async def pay() -> str:
        """Pay, slowly."""
        scene.reached.set()
        while not scene.let_go.is_set():  # noqa: ASYNC110 - as long as the test wants
            await asyncio.sleep(0.001)
        return "paid"

    scene = Scene([turn(call("pay", "a"), call("pay", "b")), DONE], [pay], v2())
    return scene


def in_a_blocking_tool(folder: Path) -> Scene:
    @tool(blocking=True)
    def pay() -> str:
        """Pay, slowly."""
        scene.reached.set()
        assert scene.let_go.wait(PATIENCE)
        return "paid"

    scene = Scene([turn(call("pay", "a"), call("pay", "b")), DONE], [pay], v2())
    return scene


def in_the_model(folder: Path) -> Scene:
    async def say(history: Any, tools: Any) -> Any:
        scene.reached.set()
        while not scene.let_go.is_set():  # noqa: ASYNC110 - as long as the test wants
            await asyncio.sleep(0.001)
        return call("bash", "a", command="true")

    scene = Scene([say, DONE], [Bash()], v2(model=60))
    return scene


def in_the_wait_for_a_tool(folder: Path) -> Scene:
    @tool(idempotent=True)
    def book() -> str:
        """Book."""
        if not scene.let_go.is_set():
            scene.reached.set()
            raise TransientError("busy")
        return "booked"

    turns = [turn(call("book", "a"), call("book", "b")), DONE]
    scene = Scene(turns, [book], [LONG_WAIT, Timeout(60)], RealClock())
    return scene


def in_the_wait_for_the_model(folder: Path) -> Scene:
    def fail(history: Any, tools: Any) -> Any:
        scene.reached.set()
        return Busy("busy")

    scene = Scene([fail, DONE], [], [LONG_WAIT, Timeout(60)], RealClock())
    return scene


def in_an_approval(folder: Path) -> Scene:
    @tool
    def pay() -> str:
        """Pay."""
        return "paid"

    async def think(request: ApprovalRequest) -> Any:
        scene.reached.set()
        while not scene.let_go.is_set():  # noqa: ASYNC110 - as long as the test wants
            await asyncio.sleep(0.001)
        return request.approve()

    policy = Policy(approver=think)
    scene = Scene([turn(call("pay", "a"), call("pay", "b")), DONE], [pay], [policy, *v2()])
    return scene


SCENES: dict[Callable[[Path], Scene], list[tuple[str, str]]] = {
    in_bash: [("a", "unknown"), ("b", "not_run")],
    in_an_async_tool: [("a", "unknown"), ("b", "not_run")],
    in_a_blocking_tool: [("a", "unknown"), ("b", "not_run")],
    in_the_model: [],
    in_the_wait_for_a_tool: [("a", "error"), ("b", "not_run")],
    in_the_wait_for_the_model: [],
    in_an_approval: [("a", "not_run"), ("b", "not_run")],
}
"""How the calls are observed after a cancellation."""


def sleepers() -> list[psutil.Process]:
    return [
        each
        for each in psutil.process_iter(["cmdline"])
        if MARK in " ".join(each.info["cmdline"] or ())
    ]


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_cancelled_at_once_nothing_keeps_running_and_nothing_is_swallowed(
    scene: Callable[[Path], Scene], times: int, tmp_path: Path
) -> None:
    """report R08, DESIGN: the running call is unknown, the rest not run, then it goes on up"""
    staged = scene(tmp_path)

    async def cancel(task: asyncio.Task[Run]) -> None:
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)

    ended = asyncio.run(staged.play(cancel))
    assert isinstance(ended, asyncio.CancelledError)
    check(staged.run, staged.events)
    assert staged.run.status is Status.STOPPED
    assert staged.events[-1].data == {"reason": "cancelled"}
    assert outcomes(staged.run) == SCENES[scene]
    assert staged.model.asked == 1, "no further model call"
    assert sleepers() == []
    staged.goes_on()


def let_finish(scene: Callable[[Path], Scene]) -> list[tuple[str, str]]:
    """How the calls are observed if the one that runs may end first."""
    if scene is in_the_model:
        return [("a", "not_run")]
    return [(name, "ok" if how == "unknown" else how) for name, how in SCENES[scene]]


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(
    "scene", [each for each in SCENES if each is not in_bash], ids=lambda scene: scene.__name__
)
def test_asked_to_stop_it_does_as_soon_as_what_runs_has_ended(
    scene: Callable[[Path], Scene], times: int, tmp_path: Path
) -> None:
    """Issue: at once, or after the running tool. What only waits ends at once."""
    staged = scene(tmp_path)

    async def ask(task: asyncio.Task[Run]) -> None:
        for _ in range(times):
            await asyncio.to_thread(staged.run.cancel)
        staged.let_go.set()

    ended = asyncio.run(staged.play(ask))
    assert ended is staged.run
    check(staged.run, staged.events)
    assert staged.run.status is Status.STOPPED
    assert staged.events[-1].data == {"reason": "cancelled"}
    assert outcomes(staged.run) == let_finish(scene)
    assert staged.model.asked == 1, "no further model call"
    staged.goes_on()


def test_asked_to_stop_during_the_last_call_of_a_turn_the_model_is_not_asked_again() -> None:
    """report R08"""

    @tool
    def step() -> str:
        """Do it."""
        scene.run.cancel()
        return "done it"

    scene = Scene([call("step", "a"), DONE], [step], v2())
    asyncio.run(scene.harness.resume(scene.run))
    assert (scene.model.asked, outcomes(scene.run)) == (1, [("a", "ok")])
    scene.goes_on()


def test_without_a_layer_that_obeys_at_least_no_tool_begins() -> None:
    began: list[int] = []

    @tool
    def step() -> str:
        """Do it."""
        began.append(1)
        scene.run.cancel()
        return "done it"

    scene = Scene([turn(call("step", "a"), call("step", "b")), call("step", "c"), DONE], [step])
    asyncio.run(scene.harness.resume(scene.run))
    assert (len(began), outcomes(scene.run)) == (1, [("a", "ok"), ("b", "not_run")])


def test_a_paused_run_that_is_cancelled_does_nothing_more_when_it_is_resumed() -> None:
    began: list[int] = []

    @tool
    def pay() -> str:
        """Pay."""
        began.append(1)
        return "paid"

    scene = Scene([call("pay", "a"), DONE], [pay], [Policy(), *v2()])
    asyncio.run(scene.harness.resume(scene.run))
    assert scene.run.status is Status.PAUSED
    scene.run.approve()
    scene.run.cancel()
    asyncio.run(scene.harness.resume(scene.run))
    assert (scene.run.status, began) == (Status.STOPPED, [])
    assert outcomes(scene.run) == [("a", "not_run")]


@pytest.mark.parametrize("turns", [[DONE], [ValueError("no"), DONE]])
def test_to_cancel_what_is_over_changes_nothing(turns: list[Any]) -> None:
    """report R08: a second cancel is harmless"""
    scene = Scene(turns, [], v2())
    asyncio.run(scene.harness.resume(scene.run))
    scene.run.cancel()
    if scene.run.status is Status.FAILED:
        asyncio.run(scene.harness.resume(scene.run))
    assert scene.run.unwrap() == "done"


def test_a_tool_that_swallows_its_cancellation_does_not_swallow_the_runs() -> None:
    """report R08: the loop would make another model call"""

    @tool
    async def deaf() -> str:
        """Hear nothing."""
        scene.reached.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "as if nothing had happened"

    scene = Scene([turn(call("deaf", "a"), call("deaf", "b")), DONE], [deaf], v2())

    async def cancel(task: asyncio.Task[Run]) -> None:
        task.cancel()

    assert isinstance(asyncio.run(scene.play(cancel)), asyncio.CancelledError)
    check(scene.run, scene.events)
    assert scene.model.asked == 1
    assert outcomes(scene.run) == [("a", "ok"), ("b", "not_run")]
    scene.goes_on()


def test_a_call_that_is_out_of_time_and_cancelled_is_cancelled() -> None:
    """A time-out is never mistaken for a cancellation, nor the other way round."""

    @tool
    async def slow() -> str:
        """Take long to end."""
        try:
            await asyncio.Event().wait()
        finally:
            scene.reached.set()
            await asyncio.sleep(0.05)
        return ""

    scene = Scene(
        [call("slow", "a"), DONE], [slow], [Retry(), Timeout(0.001)], VirtualClock(hung=0.001)
    )

    async def cancel(task: asyncio.Task[Run]) -> None:
        task.cancel()

    assert isinstance(asyncio.run(scene.play(cancel)), asyncio.CancelledError)
    check(scene.run, scene.events)
    assert outcomes(scene.run) == [("a", "unknown")]
    scene.goes_on()


def test_a_time_out_leaves_no_trace_of_a_cancellation_behind() -> None:
    """What comes after it in the same task must not take itself for cancelled."""
    counts: list[int] = []

    @tool
    async def slow() -> str:
        """Hang."""
        await asyncio.Event().wait()
        return ""

    async def say(history: Any, tools: Any) -> Final:
        task = asyncio.current_task()
        assert task is not None
        counts.append(task.cancelling())
        return DONE

    scene = Scene([call("slow", "a"), say], [slow], [Timeout(0.001)], VirtualClock(hung=0.001))
    asyncio.run(scene.harness.resume(scene.run))
    assert (counts, scene.run.unwrap()) == ([0], "done")
    assert kinds(scene.events)[-1] == EventType.FINAL
