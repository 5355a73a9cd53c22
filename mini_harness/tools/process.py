"""Run a program to its end, and leave nothing of it behind.

A program is more than one process: it starts others, and they start others. Some of them hold
its output open, ignore TERM, or leave its session on purpose. So every program gets a session
of its own and a mark in its environment, which all that it starts inherits. When it ends, or its
time is over, or nobody wants its result any more, everything that is in the session, carries the
mark, has a parent in the family, or holds the output, gets TERM, a moment's grace, and KILL.

One kind gets away: a process that left the session, lost its parent, wiped its environment and
turned its output elsewhere, all four before the first look. Only a container could hold that.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from mini_harness.clock import real_work

GRACE = 0.5
"""Seconds between TERM and KILL."""

LINGER = 0.2
"""Seconds in which the last output may still arrive after the program itself has ended."""

PATIENCE = 5.0
"""Seconds after KILL in which the system must have ended everything."""

_CHUNK = 65_536
_TICKS = (0.001, 0.05)
"""Seconds between two looks at a silent program: the shortest, and the longest."""
_LOOKS = 10


class NotStarted(Exception):
    """The program didn't run at all. The text says why."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended. ``returncode`` is negative for a signal, None after a time-out."""

    returncode: int | None
    survivors: tuple[int, ...] = ()
    """Ids of processes that even KILL didn't end, for instance those of another user."""

    @property
    def timed_out(self) -> bool:
        return self.returncode is None


async def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    seconds: float,
    receive: Callable[[bytes], None],
    stdin: int = subprocess.DEVNULL,
) -> Ended:
    """Run a program, without a terminal, for at most ``seconds`` of real time.

    Its input is nothing, or the file of the descriptor ``stdin``. ``receive`` gets its output in
    pieces, standard error included. The program has a thread of its own, so the event loop goes
    on meanwhile. Cancelling ends the program first, whole, and only then goes on up. Raises
    NotStarted.
    """
    job = _Job(argv, cwd, env, seconds, receive, stdin)
    ended = real_work(asyncio.wrap_future(job.start()))
    try:
        await asyncio.wait([ended])
    except asyncio.CancelledError:
        job.unwanted.set()
        while not ended.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([ended])
        # Looked at, so that asyncio doesn't report an error that nobody saw.
        ended.exception()
        raise
    finally:
        job.unwanted.set()
    return ended.result()


class _Job:
    """One program, from start to end, in one thread. Every wait in it has a bound."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        seconds: float,
        receive: Callable[[bytes], None],
        stdin: int,
    ) -> None:
        # The mark is a name and not a value, so that a harness inside a harness adds its own.
        self.mark = f"MINI_HARNESS_JOB_{secrets.token_hex(8)}"
        self.argv, self.cwd, self.env = argv, cwd, {**env, self.mark: "1"}
        self.seconds, self.stdin = seconds, stdin
        self.receive = receive
        self.unwanted = threading.Event()
        self.result: Future[Ended] = Future()

    def start(self) -> Future[Ended]:
        self.result.set_running_or_notify_cancel()
        threading.Thread(target=self._work, name=self.mark).start()
        return self.result

    def _work(self) -> None:
        try:
            self.result.set_result(self._run())
        except BaseException as error:  # noqa: BLE001 - whoever waits for the result raises it
            self.result.set_exception(error)

    def _run(self) -> Ended:
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            # Python would take an exit code that it can't get for 0.
            raise NotStarted("This process ignores SIGCHLD, so it learns no exit code")
        before, _ = _everyone()
        with _Pipe(self.receive) as pipe:
            process = self._spawn(pipe)
            try:
                tree = _Tree(process.pid, self.mark, pipe, before)
                in_time, survivors = self._follow(tree, pipe)
            finally:
                # Reaped only now: until then nobody else can get its number, which is also the
                # number of its group. The second KILL is for the case that looking failed.
                _signal_group(process.pid, signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE)
        return Ended(process.returncode if in_time else None, survivors)

    def _spawn(self, pipe: _Pipe) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self.argv,
                cwd=self.cwd,
                env=self.env,
                stdin=self.stdin,
                stdout=pipe.entrance,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise NotStarted(f"{error.strerror}: {error.filename!r}") from error
        finally:
            pipe.close_entrance()

    def _follow(self, tree: _Tree, pipe: _Pipe) -> tuple[bool, tuple[int, ...]]:
        """Whether the program ended in time, and who couldn't be ended after it."""
        try:
            in_time = pipe.drain_until(lambda: self._over(tree), self.seconds)
            if in_time:
                # A helper like `tee` may have something left to say after its shell is gone.
                pipe.drain_until(lambda: pipe.empty or self.unwanted.is_set(), LINGER)
        finally:
            survivors = _end(tree)
        pipe.drain_until(lambda: pipe.empty, LINGER)
        return in_time, survivors

    def _over(self, tree: _Tree) -> bool:
        return self.unwanted.is_set() or not _runs(tree.leader)


class _Pipe:
    """Where the output comes out. It is emptied as it fills, so that nobody blocks on it."""

    def __init__(self, receive: Callable[[bytes], None]) -> None:
        self._receive = receive
        self.empty = False

    def __enter__(self) -> _Pipe:
        with contextlib.ExitStack() as opened:
            self._selector = opened.enter_context(selectors.DefaultSelector())
            self._exit, self.entrance = os.pipe()
            opened.callback(os.close, self._exit)
            os.set_blocking(self._exit, False)
            self._selector.register(self._exit, selectors.EVENT_READ)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def close_entrance(self) -> None:
        """Only the program writes, so that its end is the end of the output."""
        os.close(self.entrance)

    def is_held_by(self, pid: int) -> bool:
        """Whether a process writes here as its output or error. Known on Linux only."""
        mine = os.fstat(self._exit)
        for number in (1, 2):
            with contextlib.suppress(OSError):
                if os.path.samestat(mine, Path(f"/proc/{pid}/fd/{number}").stat()):
                    return True
        return False

    def drain_until(self, over: Callable[[], bool], seconds: float) -> bool:
        """Pass output on until ``over()`` or the time is. Says whether it was over in time."""
        deadline = time.monotonic() + seconds
        pause, longest = _TICKS
        while not over():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            pause = _TICKS[0] if self._drain(min(left, pause)) else min(2 * pause, longest)
        return True

    def _drain(self, seconds: float) -> bool:
        """Wait for the next piece and pass it on. False if none came."""
        if self.empty:
            time.sleep(seconds)
            return False
        if not self._selector.select(seconds):
            return False
        piece = os.read(self._exit, _CHUNK)
        self.empty = not piece
        if piece:
            self._receive(piece)
        return bool(piece)


class _Tree:
    """A process that leads a session, and everything that it started."""

    def __init__(self, pid: int, mark: str, pipe: _Pipe, before: set[psutil.Process]) -> None:
        self.leader = psutil.Process(pid)
        self.mark = mark
        self.pipe = pipe
        self.before = before
        """Who was there before the leader, and so can't belong to it."""
        self.known: set[psutil.Process] = set()
        """Seen once is remembered: a child whose parent has just been ended is an orphan."""

    def alive(self) -> set[psutil.Process]:
        """All of the tree that still runs."""
        # Who ends under a look may leave a child that came too late for it. So nothing is left
        # only if a look shows nobody who hadn't ended before it began.
        ended = set() if _runs(self.leader) else {self.leader}
        for _ in range(_LOOKS):
            seen, clear = self._look()
            self.known = {process for process in self.known if _runs(process)}
            if self.known or (clear and seen <= ended):
                break
            ended = seen
            time.sleep(_TICKS[0])
        return self.known

    def _look(self) -> tuple[set[psutil.Process], bool]:
        """Add to ``known`` who can be seen now.

        Returns who was there and is no stranger for sure, and whether that is clear of everyone.
        """
        now, clear = _everyone()
        newcomers = now - self.before
        strangers: set[psutil.Process] = set()
        parents: dict[psutil.Process, int] = {}
        for process in newcomers:
            try:
                if _runs(process):
                    parents[process] = process.ppid()
                    clear = self._judge(process, strangers) and clear
            except (psutil.AccessDenied, PermissionError):
                strangers.add(process)
            except (psutil.NoSuchProcess, ProcessLookupError):
                clear = False
        while children := self._children(parents):
            self.known |= children
        return newcomers - strangers, clear

    def _judge(self, process: psutil.Process, strangers: set[psutil.Process]) -> bool:
        """Is it ours or a stranger? False if that can't be told yet."""
        if os.getsid(process.pid) == self.leader.pid:
            self.known.add(process)
            return True
        # Read once only. It is empty while a process is being turned into another program.
        environment = process.environ()
        if self.mark in environment or self.pipe.is_held_by(process.pid):
            self.known.add(process)
        elif environment:
            strangers.add(process)
        return bool(environment)

    def _children(self, parents: Mapping[psutil.Process, int]) -> set[psutil.Process]:
        family = {process.pid for process in self.known}
        return {child for child, parent in parents.items() if parent in family} - self.known


def _end(tree: _Tree) -> tuple[int, ...]:
    """TERM, a moment's grace, then KILL. Returns the ids of those that are still there."""
    for number, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, PATIENCE)):
        # Looked at before the signal: afterwards a child of the leader is nobody's child.
        if not tree.alive():
            break
        _signal_group(tree.leader.pid, number)
        if tree.pipe.drain_until(partial(_told, tree, number, set()), seconds):
            break
    return tuple(sorted(process.pid for process in tree.known))


def _signal_group(leader: int, number: signal.Signals) -> None:
    """Signal a whole group at once: nobody in it can fork out of the way."""
    # Where only zombies are left of it, some systems say PermissionError.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _told(tree: _Tree, number: signal.Signals, told: set[psutil.Process]) -> bool:
    """Send a signal once to everyone outside the leader's group. True if nobody is left."""
    alive = tree.alive()
    for process in alive - told:
        told.add(process)
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) != tree.leader.pid:
                process.send_signal(number)
    return not alive


def _everyone() -> tuple[set[psutil.Process], bool]:
    """All processes, told apart by id and birth, and whether none vanished under the look."""
    found: set[psutil.Process] = set()
    steady = True
    for pid in psutil.pids():
        try:
            found.add(psutil.Process(pid))
        except psutil.NoSuchProcess:
            steady = False
    return found, steady


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
