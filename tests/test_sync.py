"""``run_sync``: for a caller that can't await, wherever it is called."""

import asyncio
import contextvars
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from mini_harness.events import Event
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.sync import run_sync
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.function import tool
from tests.kernels import kernel
from tests.loops import DONE, call

ROOT = Path(__file__).parent.parent
WHO = contextvars.ContextVar("WHO", default="nobody")


@tool
async def who(context: ToolExecutionContext) -> str:
    """Who asks?"""
    await asyncio.sleep(0)
    return WHO.get()


def ask() -> str:
    """What the tool saw of the caller's context, by way of a whole run."""
    harness = Harness(ScriptedModel([call("who"), DONE]), [who])
    return str(harness.run_sync("go").history.messages[2]["tool_result"])


def script(code: str) -> str:
    """What a fresh interpreter prints that runs this code."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_it_works_in_a_script_and_twice() -> None:
    """report N01"""
    code = """
        from mini_harness import DemoModel, Harness
        from mini_harness.tools.builds import TOOLS
        harness = Harness(DemoModel(), TOOLS)
        for _ in range(2):
            print(harness.run_sync("How is build-102?").unwrap())
    """
    assert script(code) == "The build status is: failed\n" * 2


def test_it_works_inside_a_running_loop_and_twice() -> None:
    """report N01: a notebook cell"""

    async def cell() -> list[str]:
        return [ask(), ask()]

    assert asyncio.run(cell()) == ["nobody", "nobody"]


def test_it_works_in_a_worker_thread_with_a_loop_or_without() -> None:
    """report N01"""
    seen: list[str] = []

    async def cell() -> None:
        seen.append(ask())

    for work in (lambda: seen.append(ask()), lambda: asyncio.run(cell())):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == ["nobody", "nobody"]


def test_the_callers_context_variables_are_kept() -> None:
    """report N01"""

    async def cell() -> str:
        WHO.set("the cell")
        return ask()

    def plain() -> str:
        WHO.set("the script")
        return ask()

    assert asyncio.run(cell()) == "the cell"
    assert contextvars.copy_context().run(plain) == "the script"
    assert WHO.get() == "nobody"


CELLS = {
    "plain": "print(harness.run_sync(GOAL).unwrap())",
    "awaited": "print((await harness.run(GOAL)).unwrap())",
    "inside an async function": """\
async def ask():
    return harness.run_sync(GOAL).unwrap()


print(await ask())
""",
    "in a worker thread": """\
answers = []
worker = Thread(target=lambda: answers.append(harness.run_sync(GOAL).unwrap()))
worker.start()
worker.join()
print(*answers)
""",
    "with a server that the cell starts and stops": """\
with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
    serving = Thread(target=server.serve_forever)
    serving.start()
    tool = Tool("read_build", "Read build status.", status)
    print(Harness(DemoModel(), [tool]).run_sync(GOAL).unwrap())
    server.shutdown()
    serving.join()
""",
}
FIRST_CELL = """\
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.error import HTTPError
from urllib.request import urlopen

from mini_harness import DemoModel, Harness, Tool
from mini_harness.tools.builds import TOOLS

GOAL = "How is build-102?"
harness = Harness(DemoModel(), TOOLS)
SimpleHTTPRequestHandler.log_message = lambda *_: None


def status(build_id: str) -> str:
    try:
        urlopen(f"http://127.0.0.1:{server.server_port}/{build_id}")
    except HTTPError as error:
        error.close()
        return "failed"
"""


def test_in_the_cells_of_a_real_notebook_each_way_works_and_twice(tmp_path: Path) -> None:
    """report N01: one kernel, one after the other"""
    with kernel(tmp_path) as shell:
        assert shell.run(FIRST_CELL) == []
        for way in [*CELLS, *CELLS]:
            assert shell.printed(CELLS[way]) == "The build status is: failed\n", way


async def fail() -> None:
    raise KeyError("wire")


async def leave() -> None:
    raise SystemExit(3)


@pytest.mark.parametrize("inside", [False, True])
def test_what_the_coroutine_raises_reaches_the_caller(inside: bool) -> None:
    """report N01"""

    async def cell() -> None:
        run_sync(fail())

    with pytest.raises(KeyError, match="wire"):
        asyncio.run(cell()) if inside else run_sync(fail())


def test_even_an_exit_reaches_the_caller_of_a_cell() -> None:
    async def cell() -> int:
        with pytest.raises(SystemExit):
            run_sync(leave())
        return 1

    assert asyncio.run(cell()) == 1


def test_it_leaves_no_thread_and_no_loop_behind() -> None:
    """Rule 5"""

    async def cell() -> None:
        for _ in range(20):
            ask()

    before = threading.active_count()
    asyncio.run(cell())
    assert threading.active_count() == before


def test_the_async_form_works_in_the_same_place() -> None:
    """report N01: await is the better way in a notebook"""

    async def cell() -> str:
        harness = Harness(ScriptedModel([call("who"), DONE]), [who])
        return str((await harness.run("go")).unwrap())

    assert asyncio.run(cell()) == "done"


def interrupted_cell() -> list[Event]:
    """The events of a run whose tool presses the stop button of its own cell."""
    events: list[Event] = []
    main = threading.main_thread().ident
    assert main is not None

    @tool
    async def press_stop() -> str:
        """Interrupt the cell, as the stop button does."""
        signal.pthread_kill(main, signal.SIGINT)
        await asyncio.sleep(60)
        return "went on"

    harness = Harness(
        ScriptedModel([call("press_stop"), DONE]), [press_stop], sinks=[events.append]
    )

    async def cell() -> None:
        harness.run_sync("go")

    loop = asyncio.new_event_loop()
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(cell())
    loop.close()
    return events


def test_interrupting_the_cell_cancels_the_run_and_ends_it_before_the_next_cell() -> None:
    """Rule 5, report N01: nothing goes on behind the back of a person who pressed stop"""
    # The signal may meet the waiting thread at any point, so once isn't enough.
    for _ in range(25):
        events = interrupted_cell()
        assert [event.type.value for event in events][-3:] == ["tool_start", "tool_error", "stop"]
        assert events[-2].data["outcome"] == "unknown"
        assert events[-1].data == {"reason": "cancelled"}
