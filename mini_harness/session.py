"""A session: a conversation that outlives the process in which it is held (SEEDS A24).

    session = Session.create()
    run = await Harness(model, tools, sinks=[session]).run(goal)

The process may die at any moment. In another one the run goes on:

    session = Session.open("the id")
    run = await Harness(model, tools, sinks=[session]).resume(session.run())

A session is a sink. Every event is in its file before the run goes on, and a tool begins only when
the line that says so would survive a power failure. So what happened is known, or known to be
unknown.
"""

from __future__ import annotations

import builtins
import hashlib
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any
from weakref import finalize

from mini_harness.checkpoint import Block, Known, Store
from mini_harness.clock import VirtualClock
from mini_harness.events import Event, EventType
from mini_harness.export import event_of
from mini_harness.frozen import canonical, parse_object
from mini_harness.run import Run
from mini_harness.session_files import (
    SCHEMA_VERSION,
    SessionInfo,
    checked_id,
    home_of,
    make,
    read_record,
    record_of,
    replace,
    transcript_of,
)
from mini_harness.trace import Trace
from mini_harness.transcript import DamagedSession, Line, Transcript

_TOOL_START, _LATE_RESULT = EventType.TOOL_START, EventType.LATE_RESULT
_ENDS = frozenset((EventType.FINAL, EventType.STOP, EventType.PAUSE))
"""After one of these nobody goes on with the run, until it is resumed."""
_TAIL = 4096
"""By how many bytes before its place in the transcript a checkpoint is known to belong to it."""


class Session:
    """A sink that keeps all events of a conversation in a file, and gives its runs back.

    Give it to a harness as the first of its sinks. From a run's first event until its answer, stop
    or pause nobody else can write to the session; two runs of one Session object can. Reading
    needs no permission of anybody.
    """

    def __init__(self, info: SessionInfo, root: Path, patience: float = 0.0) -> None:
        """For ``create`` and ``open``. Raises DamagedSession and OSError."""
        self.info = info
        self.patience = patience
        self.repairs: list[str] = []
        """What had to be mended or left out, in words."""
        self._transcript = Transcript(transcript_of(root, info))
        self.folder = self.path.with_suffix("")
        """Where what belongs to the session lies beside its transcript."""
        self._guard = RLock()
        self._going: set[str] = set()
        self._is_closed = False
        finalize(self, Transcript.unlock, self._transcript)
        self._header = self._read_header()
        self._known = self._restored() or Known(self._header.end)
        self._catch_up()

    @classmethod
    def create(
        cls,
        root: Path | str | None = None,
        *,
        cwd: Path | str = ".",
        title: str = "",
        session_id: str | None = None,
    ) -> Session:
        """A new session, in the folder that MINI_HARNESS_SESSIONS names, or in ``~/.mini_harness``.

        ``cwd`` is the folder that it is about. Raises ValueError for an id that isn't 1 to 64
        letters, digits, ``_`` and ``-``, FileExistsError for one that there is, and OSError.
        """
        name = checked_id(str(uuid.uuid4()) if session_id is None else session_id)
        home, now = home_of(root), int(time.time() * 1000)
        info = SessionInfo(name, str(Path(cwd).resolve()), str(title), now, now)
        make(home, info)
        return cls(info, home)

    @classmethod
    def open(
        cls, session_id: str, root: Path | str | None = None, *, patience: float = 0.0
    ) -> Session:
        """A session that there is. To write, it waits ``patience`` seconds for somebody else.

        Raises ValueError for what is no id, FileNotFoundError, DamagedSession that names the line,
        and OSError.
        """
        home, name = home_of(root), checked_id(session_id)
        try:
            info = read_record(record_of(home, name), home)
        except FileNotFoundError:
            known = ", ".join(each.id for each in cls.list(home)[:5]) or "none"
            raise FileNotFoundError(
                f"There is no session {name} in {home}. The latest there: {known}."
            ) from None
        if info.id != name:
            # On a disk that doesn't tell "A" from "a", they would share a file.
            raise FileNotFoundError(f"There is no session {name} in {home}, but {info.id}.")
        return cls(info, home, patience)

    @classmethod
    def list(cls, root: Path | str | None = None) -> builtins.list[SessionInfo]:
        """All sessions, the one that was used last first. Unreadable ones are left out."""
        home, found = home_of(root), []
        for path in sorted((home / "sessions").glob("*.json")):
            with suppress(DamagedSession, OSError):
                found.append(read_record(path, home))
        return sorted(found, key=lambda info: (-info.updated_at, info.id))

    # --- writing

    def __call__(self, event: Event) -> None:
        """Keep an event. Raises OSError, SessionIsBusy, DamagedSession, and ValueError for an
        event that can't come next; then nothing has been written."""
        with self._guard:
            if self._is_closed or not self._transcript.is_locked:
                self._take_over()
            try:
                if why := self._known.objection(event):
                    raise ValueError(
                        f"Session {self.id} can't keep this: {why}. If the run went on elsewhere, "
                        "read it again with session.run(); for new ones use session.clock()."
                    )
                line, kind = f"{event.to_json()}\n".encode(), event.type
                begins, ends = kind is _TOOL_START, kind in _ENDS
                if begins or ends:
                    self._transcript.make_sure()
                self._transcript.append(line, durable=begins)
                checkpoint = self._known.take(event, len(line))
                if checkpoint is not None:
                    self._keep(checkpoint)
                if ends:
                    self._going.discard(event.run_id)
                elif kind is not _LATE_RESULT:
                    self._going.add(event.run_id)
            except BaseException:
                self._going.discard(event.run_id)
                raise
            finally:
                if not self._going:
                    self._transcript.unlock()

    def let_go(self, run_id: str) -> None:
        """Nobody drives this run any more, though it may not have ended: others may write."""
        with self._guard:
            self._going.discard(run_id)
            if not self._going:
                self._transcript.unlock()

    def close(self) -> None:
        """Nobody writes by this object any more, and others may. What is written stays."""
        with self._guard:
            self._is_closed = True
            self._transcript.unlock()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- reading

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def path(self) -> Path:
        """The transcript: a header, then one event a line."""
        return self._transcript.path

    @property
    def runs(self) -> tuple[str, ...]:
        """The ids of its runs, in the order in which they began."""
        with self._guard:
            self._catch_up()
            return tuple(self._known.runs)

    def run(self, run_id: str | None = None) -> Run:
        """A run as it stands, to read or to resume; the last one that isn't inside another.

        What it had done before its last checkpoint is read from the file when somebody asks for
        it. Raises LookupError that lists the runs there are, and DamagedSession.
        """
        with self._guard:
            self._catch_up()
            known, main = self._known, self._known.main
            wanted = main.id if run_id is None and main is not None else run_id
            if wanted is None or wanted not in known.runs:
                names = ", ".join(known.runs) or "none yet"
                missing = wanted or "at all"
                raise LookupError(f"Session {self.id} has no run {missing}. It has: {names}.")
            run, start, line = known.begun(wanted, self._store(wanted))
            for event in self._events(start, line, known.end):
                if event.run_id == wanted:
                    run.apply(event)
            return run

    def events(self) -> Iterator[Event]:
        """All events, in the order in which they were written."""
        with self._guard:
            self._catch_up()
        return self._events(self._header.end, 2, self._known.end)

    def trace(self) -> Trace:
        """All events as a trace. As one of the sinks beside the session it goes on with them."""
        return Trace(self.events())

    def clock(self) -> VirtualClock:
        """A virtual clock that goes on where the transcript ends, in time and in names."""
        with self._guard:
            self._catch_up()
            given = (re.fullmatch(r"run-(\d+)", name) for name in self._known.runs)
            names = max((int(each[1]) for each in given if each), default=0)
            return VirtualClock(now=self._known.time, names=names)

    def __repr__(self) -> str:
        with self._guard:
            self._catch_up()
            known = self._known
            torn = 0 if self._transcript.is_locked else self._transcript.size() - known.end
        rest = f", {torn} torn bytes at the end left out" if torn else ""
        return f"<Session {self.id}: {known.lines - 1} events, runs: {len(known.runs)}{rest}>"

    # --- how it is done

    def _read_header(self) -> Line:
        first = next(self._transcript.read(0, 1), None)
        if first is None:
            raise DamagedSession(self.path, 1, "it has no header.")
        try:
            found = parse_object(first.text.decode())
        except ValueError as error:
            raise DamagedSession(self.path, 1, str(error)) from None
        if found != {"schema_version": SCHEMA_VERSION, "session_id": self.id}:
            raise DamagedSession(self.path, 1, f"it isn't the header of session {self.id}.")
        return first

    def _restored(self) -> Known | None:
        """What the checkpoint says, if there is one and it belongs to this transcript."""
        try:
            found = parse_object((self.folder / "checkpoint.json").read_text(encoding="utf-8"))
            here = found["schema_version"], found["session_id"]
            if here != (SCHEMA_VERSION, self.id):
                raise ValueError("it belongs to another session")
            known = Known.from_dict(found, self._store_of_known)
            if self._tail(known.end) != found["tail"]:
                raise ValueError("it doesn't fit the transcript")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            why = f"{type(error).__name__}: {error}"
            self.repairs.append(f"The checkpoint was left out, and all was read instead: {why}.")
            return None
        return known

    def _keep(self, checkpoint: dict[str, Any]) -> None:
        """Write the checkpoint. If that can't be done, there is only more to read."""
        about = {"schema_version": SCHEMA_VERSION, "session_id": self.id}
        tail = self._tail(checkpoint["blocks"][-1].start)
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            text = canonical({**about, "tail": tail, **checkpoint})
            replace(self.folder / "checkpoint.json", text.encode())
        except OSError as error:
            self.repairs.append(f"A checkpoint couldn't be written: {error}.")

    def _tail(self, end: int) -> str:
        """A hash of what stands in the transcript just before this place."""
        return hashlib.sha256(self._transcript.part(max(0, end - _TAIL), end)).hexdigest()

    def _take_over(self) -> None:
        """Become the writer, and mend what the last one may have left."""
        if self._is_closed:
            raise ValueError(f"Session {self.id} is closed. Open it again: Session.open(...).")
        self._transcript.lock(self.patience)
        try:
            self._read_new()
            if torn := self._transcript.repair():
                self.repairs.append(f"A torn record at the end was taken away: {torn} bytes.")
        except BaseException:
            self._transcript.unlock()
            raise

    def _catch_up(self) -> None:
        if not self._transcript.is_locked:
            self._read_new()

    def _read_new(self) -> None:
        """Take in what others have written. Raises DamagedSession that names the line."""
        if self._transcript.size() < self._known.end:
            raise DamagedSession(self.path, self._known.lines, "what was there is missing.")
        for line in self._transcript.read(self._known.end, self._known.lines + 1):
            event = self._event(line)
            if why := self._known.objection(event):
                raise DamagedSession(self.path, line.number, f"{why}.")
            try:
                self._known.take(event, line.end - line.start)
                self._known.settle()
            except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
                why = f"it makes no sense here: {type(error).__name__}: {error}"
                raise DamagedSession(self.path, line.number, why) from error
        self._transcript.end = self._known.end

    def _events(self, start: int, line: int, stop: int) -> Iterator[Event]:
        return map(self._event, self._transcript.read(start, line, stop))

    def _event(self, line: Line) -> Event:
        try:
            return event_of(line.text)
        except ValueError as error:
            raise DamagedSession(self.path, line.number, str(error)) from None

    def _store(self, run_id: str) -> Store:
        def between(first: Block, after: Block) -> Iterator[Event]:
            found = self._events(first.start, first.line, after.start)
            return (event for event in found if event.run_id == run_id)

        return Store(between, self._transcript.find)

    def _store_of_known(self, run_id: str) -> Store:
        # Whoever wrote an event has looked whether its ids are new.
        return Store(self._store(run_id).read, lambda text, start, stop: False)
