"""The audit chain: a log in which nobody can change the past unnoticed (SEEDS C40 to C48).

    log = AuditLog("audit.jsonl")
    run = await Harness(model, tools, sinks=[Audit(log)]).run(goal)
    print(log.check())

Each entry rests on the hash of the one before it, and ``audit.head`` beside the log says how many
there are and which is the last. So an edit, an entry that was removed or moved, and a tail that
was cut off are all found, and where. Who can rewrite both files from some entry on can still make
up a past: note ``log.tip()`` somewhere else, now and then, and compare.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from mini_harness.audit_entry import AuditDamaged, Entry, Tip, chained, forged, speakable
from mini_harness.audit_file import AuditFiles, explaining, lines
from mini_harness.audit_texts import ERASED, GONE, SEALED, Ledger, Texts
from mini_harness.redact import Redactor
from mini_harness.transcript import write

PATIENCE = 30.0
"""How many seconds to wait for others who append. Each of them takes milliseconds."""


class AuditCheck(NamedTuple):
    """What came of checking a whole log. ``line`` is where it is damaged; 0: not at one line."""

    ok: bool
    entries: int
    line: int
    says: str

    def __str__(self) -> str:
        return self.says


class _Place(NamedTuple):
    """How far somebody has checked the log."""

    tip: Tip = Tip()
    before: Tip = Tip()
    end: int = 0
    last: bytes = b""
    stamp: tuple[int, ...] = ()


class AuditLog:
    """A log to append to, from many threads and processes at once. It does nothing by itself.

    ``erasable`` names the keys of data that lie apart, so that they can be erased later: for the
    actions of ``Audit``, ``("text", "argument", "error", "content")``. What is known to be
    secret is masked before anything is hashed, and can never be had back from the log.
    """

    def __init__(
        self, path: Path | str, *, erasable: Iterable[str] = (), patience: float = PATIENCE
    ) -> None:
        self.path = Path(path)
        self.erasable = (erasable,) if isinstance(erasable, str) else tuple(erasable)
        self.patience = patience
        self.repairs: list[str] = []
        """What ``start`` had to put right, in words."""
        self._files = AuditFiles(self.path)
        self._texts = Texts(self.path.with_suffix(".texts"))
        self._redactor = Redactor()
        self._guard = RLock()
        self._known: _Place | None = None

    # --- writing

    def start(self) -> AuditLog:
        """Check all of it, and put right what one interrupted append has left (SEEDS C48).

        Makes the log if there is none. Raises AuditDamaged, AuditIsBusy and OSError.
        """
        with self._guard, self._files.locked(self.patience) as descriptor:
            ledger = Ledger()
            place = self._followed(descriptor, _Place(), ledger)
            head = self._files.read_head()
            if _is_one_behind(head, place):
                os.fsync(descriptor)  # Whoever was interrupted may not have come to that.
                self._files.write_head(place.tip)
                self.repairs.append(f"Entry {place.tip.count} is in the head now.")
            else:
                self._agreed(head, place)
            if taken := self._texts.keep(ledger.live):
                self.repairs.append(f"Texts that no entry needs were taken out: {taken}.")
            if damage := self._texts.objection(ledger):
                raise damage
            self._known = place
        return self

    def append(
        self, action: str, data: Mapping[str, Any], *, timestamp: int | None = None
    ) -> Entry:
        """Add an entry; when this returns, it would survive a power failure (SEEDS C45).

        ``timestamp`` is in milliseconds since the Unix epoch, by default now. Raises NotJson, and
        ValueError for the two names that the log needs itself; AuditDamaged if what is there
        isn't whole, AuditIsBusy, and OSError. Then nothing has been added, but if the system lets
        even that fail, an interrupted append is left to ``start``.
        """
        if SEALED in data or action == ERASED:
            raise ValueError(f'"{SEALED}" and "{ERASED}" are for the log itself. Choose a name.')
        if not isinstance(data, Mapping) or type(timestamp) not in (int, type(None)):
            raise TypeError("An entry has an object as its data, and whole milliseconds.")
        with self._guard:
            action, shown = speakable(str(action)), self._redactor.hidden(speakable(data))
            with self._files.locked(self.patience) as descriptor:
                place = self._current(descriptor)
                return self._add(descriptor, place, action, shown, timestamp)

    def erase(self, index: int, reason: str = "") -> Entry:
        """Delete what lies apart of the entry with this index. The chain stays, and says so.

        Returns the entry that says it. Raises LookupError if there is nothing of it to erase, and
        what ``append`` raises. If it is interrupted, ``start`` ends it.
        """
        with self._guard, self._files.locked(self.patience) as descriptor:
            ledger = Ledger()
            self._current(descriptor)
            place = self._followed(descriptor, _Place(), ledger)
            if not ledger.has(index):
                raise LookupError(
                    f"Of entry {index} nothing can be erased: there is none, its text was erased "
                    "before, or it was written without AuditLog(..., erasable=...)."
                )
            data = self._redactor.hidden(speakable({"index": index, "reason": reason}))
            entry = self._add(descriptor, place, ERASED, data, None)
            ledger.take(entry)
            self._texts.keep(ledger.live)
            return entry

    # --- reading

    def verify(self) -> bool:
        """Whether all of it is as it was written (SEEDS C42). No log isn't a good log."""
        return self.check().ok

    def check(self) -> AuditCheck:
        """Read all of it, and say what is wrong, where, and what to do. Raises AuditIsBusy and
        OSError if it couldn't be read: that says nothing about it."""
        place = _Place()
        try:
            with self._files.watched(self.patience) as descriptor:
                ledger = Ledger()
                for found in self._steps(descriptor, place, ledger):
                    place = found
                self._agreed(self._files.read_head(), place, needed=True)
                if damage := self._texts.objection(ledger):
                    raise damage
        except FileNotFoundError:
            head = self._files.read_head()
            lost = f" Its head counts {head.count} entries." if head else ""
            return AuditCheck(False, 0, 0, f"There is no audit log at {self.path}.{lost}")
        except AuditDamaged as damage:
            return AuditCheck(False, place.tip.count, damage.line, str(damage))
        tip = place.tip
        says = f"Entries: {tip.count:,}, all as they were written. The last is {tip.hash[:16]}."
        return AuditCheck(True, tip.count, 0, says)

    def tip(self) -> Tip:
        """How many entries the head counts, and the hash of the last: to note somewhere else."""
        return self._files.read_head() or Tip()

    def entries(self) -> Iterator[Entry]:
        """All entries, each checked against the one before. Raises AuditDamaged, OSError."""
        with self._files.watched(self.patience) as descriptor:
            size = os.fstat(descriptor).st_size
        with self.path.open("rb") as file:
            for entry, _ in chained(lines(file.fileno(), 0, size), self.path, Tip()):
                yield entry

    def told(self, entry: Entry) -> dict[str, Any]:
        """The data of an entry with its texts in their places; "[erased]" for those gone."""
        found = self._texts.read()
        sealed = entry.data.get(SEALED, {})
        texts = {name: found.get(digest, GONE) for name, digest in sealed.items()}
        return {name: texts.get(name, each) for name, each in entry.data.items() if name != SEALED}

    def __repr__(self) -> str:
        return f"<AuditLog {self.path.name}: {self.tip().count} entries>"

    # --- how it is done, with the lock held

    def _current(self, descriptor: int) -> _Place:
        """Where the log ends, checked. What this object has checked before isn't read again, if
        nobody touched it since: an append costs the same, however long the log is."""
        known = self._known or _Place()
        status = os.fstat(descriptor)
        untouched = _stamp(status) == known.stamp
        grown = status.st_size > known.end and known.stamp[:1] == (status.st_ino,)
        at = known.end - len(known.last)
        same = os.pread(descriptor, len(known.last), at) == known.last if known.last else True
        start = known if same and (untouched or grown) else _Place()
        place = self._followed(descriptor, start, Ledger())
        self._agreed(self._files.read_head(), place)
        return place

    def _agreed(self, head: Tip | None, place: _Place, *, needed: bool = False) -> None:
        """The head says the same as the log. Of a new log it is made, before the first entry."""
        if head is None and not place.tip.count and not needed:
            self._files.write_head(place.tip)
        elif head != place.tip:
            raise _disagreement(self._files, head, place)

    def _followed(self, descriptor: int, start: _Place, ledger: Ledger) -> _Place:
        """Check the log from there to its end. Raises AuditDamaged."""
        known, place = self._known or _Place(), start
        for found in self._steps(descriptor, start, ledger):
            place = found
            if place.tip.count == known.tip.count and place.tip != known.tip:
                why = "it was another one when this process wrote or read it"
                raise AuditDamaged(self.path, known.tip.count, why)
        status = os.fstat(descriptor)
        if place.tip.count < known.tip.count or not status.st_nlink:
            why = "it was longer when this process wrote or read it"
            raise AuditDamaged(self.path, 0, why)
        return place._replace(stamp=_stamp(status))

    def _steps(self, descriptor: int, place: _Place, ledger: Ledger) -> Iterator[_Place]:
        found = lines(descriptor, place.end, os.fstat(descriptor).st_size)
        for entry, line in chained(found, self.path, place.tip):
            try:
                ledger.take(entry)
            except (KeyError, TypeError, AttributeError):
                raise AuditDamaged(self.path, entry.index, "nobody writes such an entry") from None
            place = _Place(entry.tip, place.tip, place.end + len(line), line)
            yield place

    def _add(
        self, descriptor: int, place: _Place, action: str, data: Any, timestamp: int | None
    ) -> Entry:
        data, texts = self._texts.seal(data, self.erasable if action != ERASED else ())
        if texts:
            self._texts.add(texts)
        now = int(time.time() * 1000) if timestamp is None else timestamp
        entry, line = forged(place.tip, now, action, data)
        with self._undone_if_it_fails(descriptor, place, entry):
            with explaining(self.path, "written to"):
                write(descriptor, line)
                os.fsync(descriptor)
            self._files.write_head(entry.tip)
        stamp = _stamp(os.fstat(descriptor))
        self._known = _Place(entry.tip, place.tip, place.end + len(line), line, stamp)
        return entry

    @contextmanager
    def _undone_if_it_fails(self, descriptor: int, place: _Place, entry: Entry) -> Iterator[None]:
        try:
            yield
        except BaseException:
            # Somebody may have interrupted it after the head was written: then it is done.
            with suppress(OSError, AuditDamaged):
                if self._files.read_head() != entry.tip:
                    os.ftruncate(descriptor, place.end)
            raise


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_one_behind(head: Tip | None, place: _Place) -> bool:
    """Whether an append was interrupted after its entry and before its head."""
    return head is not None and place.tip.count > 0 and head == place.before


def _disagreement(files: AuditFiles, head: Tip | None, place: _Place) -> AuditDamaged:
    count = place.tip.count
    if head is None:
        why = f"it is gone, so nobody can say whether more came after entry {count}"
        return AuditDamaged(files.head, 0, why)
    if _is_one_behind(head, place):
        why = "the head doesn't count it yet, as after an append that was interrupted"
        return AuditDamaged(files.log, count, why, "log.start() puts that right.")
    if head.count > count:
        why = f"the head counts {head.count} entries, and {head.count - count} of them are gone"
        return AuditDamaged(files.log, count + 1, why)
    why = f"it counts {head.count} entries with another last one than the log, which has {count}"
    return AuditDamaged(files.head, 0, why)
