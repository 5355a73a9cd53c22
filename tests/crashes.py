"""A world in which every process is killed, and what is left of it.

One process imports the library once; for each life it forks a child, which is killed by SIGKILL
at a chosen moment: before the first or after any of the writes to the disk, those of the tools
included. To be before a write is to be after the one before it: nothing else outlives a process.
"""

import gc
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import mini_harness.checkpoint
from mini_harness.approval import ApprovalRequest
from mini_harness.doubt import RULE, AskInDoubt
from mini_harness.events import Event
from mini_harness.layer import Layer
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.policy import Policy
from mini_harness.retry import Retry
from mini_harness.rules import Rule, Verdict
from mini_harness.run import Run, Status
from mini_harness.session import Session
from mini_harness.sync import run_sync
from mini_harness.tools.base import BaseTool, ToolExecutionContext, TransientError
from mini_harness.tools.function import function_tool
from tests.conftest import ROOT
from tests.loops import DONE, call, turn

WRITES = ("write", "fsync", "replace", "link", "ftruncate", "mkdir", "unlink")
KILLED = -signal.SIGKILL

TURNS = [
    turn(call("look"), call("order", item="a"), call("mail", to="ann")),
    call("order_late", item="b"),
    turn(call("mail", to="bob"), call("look"), call("deploy", build="b-1")),
    turn(call("ring", whom="dan"), call("mail", to="cem")),
    DONE,
]


class Live(Protocol):
    def __call__(self, folder: str, moment: int, kind: str = "told") -> "Life":
        """Live once in this folder, and die at the moment of that number (0: never)."""


class Life(NamedTuple):
    """How one process ended: its exit code, and how many moments to die at it passed."""

    code: int
    moments: int


@contextmanager
def lives(root: Path, world: str = "tests.crashes") -> Iterator[Live]:
    """A function that lives once, in a process of its own. ``world`` is the module that serves."""
    with subprocess.Popen(
        [sys.executable, "-m", world, str(root)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        ask, answers = parent.stdin, parent.stdout

        def live(folder: str, moment: int, kind: str = "told") -> Life:
            (root / folder).mkdir(exist_ok=True)
            print(folder, moment, kind, file=ask, flush=True)
            return Life(*json.loads(answers.readline()))

        try:
            yield live
        finally:
            ask.close()


Living = Callable[[Path], object]
Kinds = Mapping[str, Living]
"""The kinds of life, by name."""


Write = Callable[[int, bytes], int]


def serve(root: Path, kinds: Kinds, write: Write = os.write) -> None:
    """``write`` stands for the system's own: it may take less than all at a time."""
    # What is made once, such as the schemas, no child has to make again.
    (root / "warm").mkdir()
    next(iter(kinds.values()))(root / "warm")
    gc.freeze()
    for line in sys.stdin:
        folder, moment, kind = line.split()
        counted, ticks = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                _live(root / folder, int(moment), kinds[kind], ticks, write)
                status = 0
            finally:
                os._exit(status)
        os.close(ticks)
        _, ended = os.waitpid(child, 0)
        with os.fdopen(counted, "rb") as pipe:
            moments = len(pipe.read())
        print(json.dumps([os.waitstatus_to_exitcode(ended), moments]), flush=True)


def _live(
    folder: Path, moment: int, life: Callable[[Path], object], ticks: int, write: Write
) -> None:
    """Count the moments, and die at one of them; go on until the life is over."""
    passed = 0
    tell = os.write

    def tick() -> None:
        nonlocal passed
        passed += 1
        tell(ticks, b".")
        if passed == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    # What is written outlives a killed process anyway, so nobody has to wait for the disk.
    ours: dict[str, Callable[..., Any]] = {
        "fsync": lambda descriptor: None,
        "write": write,
    }
    for name in WRITES:
        setattr(os, name, _ticking(ours.get(name, getattr(os, name)), tick))
    tick()
    life(folder)


def _in_two(real: Callable[[int, bytes], int], descriptor: int, data: bytes) -> int:
    """Of a record only the first half is written, as the system may; the rest comes next."""
    return real(descriptor, data[: len(data) // 2] if data.startswith(b'{"') else data)


def _ticking(real: Callable[..., Any], tick: Callable[[], None]) -> Callable[..., Any]:
    @wraps(real)
    def ticking(*args: Any, **options: Any) -> Any:
        result = real(*args, **options)
        tick()
        return result

    return ticking


# --- the world ---------------------------------------------------------------------------------


def told(folder: Path) -> Run:
    """What is in doubt is told to the model as unknown."""
    return go_on(folder, [Policy(rules=RULES), Retry()])


def asked(folder: Path) -> Run:
    """What is in doubt is asked about, and checkpoints come often."""
    mini_harness.checkpoint.EVERY = 6
    return go_on(folder, [Policy(rules=RULES), AskInDoubt(), Retry()])


KINDS: dict[str, Callable[[Path], Run]] = {"told": told, "asked": asked}


def go_on(folder: Path, layers: list[Layer]) -> Run:
    """Open the session or make it, take its run up or begin one, and answer what it asks."""
    session = opened(folder / "home")
    run = session.run() if session.runs else None
    SHOP.file = folder / "effects"
    harness = Harness(
        ScriptedModel(TURNS, asked=run.step if run else 0),
        TOOLS,
        layers=layers,
        sinks=[session],
        clock=session.clock(),
    )
    run = harness.run_sync("go") if run is None else _resumed(harness, run)
    while run.status is Status.PAUSED:
        answer(run)
        run = _resumed(harness, run)
    return run


def answer(run: Run) -> None:
    """Say yes; but where a call is in doubt, look first."""
    asked = ApprovalRequest.of(run)
    if asked.rule == RULE and SHOP.has_done(asked.tool, *asked.arguments.values()):
        run.deny("I looked: it was done.")
    else:
        run.approve()


def _resumed(harness: Harness, run: Run) -> Run:
    return run if run.status is Status.COMPLETED else run_sync(harness.resume(run))


def opened(home: Path) -> Session:
    try:
        return Session.open("s1", home)
    except FileNotFoundError:
        return Session.create(home, session_id="s1", cwd=home.parent)


RULES = [
    Rule("orders", Verdict.ALLOW, tool="order*", reason="they may"),
    Rule("mails", Verdict.ALLOW, tool="mail", reason="they may"),
    Rule("rings", Verdict.ALLOW, tool="ring", reason="they may"),
]


class Tools:
    """Their effects are lines of a file. A shop that is asked again under the same key does it
    once; the post does whatever it is asked."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def all(self) -> list[BaseTool]:
        return [
            function_tool(self.look, read_only=True),
            function_tool(self.order, idempotent=True),
            function_tool(self.order_late, idempotent=True),
            function_tool(self.mail),
            function_tool(self.deploy),
            function_tool(self.ring),
        ]

    def look(self) -> str:
        """Look around."""
        return "all is quiet"

    def order(self, item: str, context: ToolExecutionContext) -> str:
        """Order something, once."""
        self._once(f"order {item}", context.idempotency_key)
        return f"ordered {item}"

    def order_late(self, item: str, context: ToolExecutionContext) -> str:
        """Order something; the first answer of the shop gets lost."""
        if self._once(f"order {item}", context.idempotency_key):
            raise TransientError("the connection broke after the order")
        return f"ordered {item}"

    def mail(self, to: str) -> str:
        """Send a mail."""
        self._do(f"mail {to}")
        return f"sent to {to}"

    def deploy(self, build: str) -> str:
        """Deploy a build."""
        self._do(f"deploy {build}")
        return f"deployed {build}"

    def ring(self, whom: str) -> str:
        """Ring somebody. The line breaks before anybody knows whether it was heard."""
        self._do(f"ring {whom}")
        raise TransientError("the line broke")

    def has_done(self, *what: str) -> bool:
        return " ".join(what) in self.lines()

    def lines(self) -> list[str]:
        return self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []

    def _once(self, what: str, key: str) -> bool:
        if f"{what} {key}" in self.lines():
            return False
        self._do(f"{what} {key}")
        return True

    def _do(self, what: str) -> None:
        descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, f"{what}\n".encode())
        os.close(descriptor)


SHOP = Tools(Path())
TOOLS = SHOP.all()


class World(NamedTuple):
    """What is left in a folder."""

    run: Run
    events: list[Event]
    effects: Counter[str]


def world(folder: Path) -> World:
    session = Session.open("s1", folder / "home")
    lines = Tools(folder / "effects").lines()
    effects = Counter(" ".join(line.split()[:2]) for line in lines)
    return World(session.run(), list(session.events()), effects)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), KINDS, partial(_in_two, os.write))
