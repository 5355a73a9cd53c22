"""What a journal must do, whoever wrote it; what `judged` and `revived` add."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mini_harness.course.conformance import Check, Subject, Wrong
from mini_harness.course.conformance.gated import Raised, attempt
from mini_harness.course.conformance.judged import JUDGED_CHECKS
from mini_harness.course.conformance.revived import REVIVED_CHECKS
from mini_harness.course.conformance.stage import plain, raised, wrong
from mini_harness.course.trouble import unknown_name
from mini_harness.frozen import shown

EVENTS = [{"type": "start", "call": "c-1"}, {"type": "end", "call": "c-1", "said": "grün ✓"}]
ODD = "a\u2028b\u0085c\x0bd\x1ce\rf\n"


@contextmanager
def journal() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "journal.jsonl"


def append(subject: Subject, path: Path, event: Any, likely: str = "") -> None:
    called = f"append(path, {shown(event)})"
    attempt(called, "the event is in the file", likely, subject.append, path, event)


def load(subject: Subject, path: Path, where: str, likely: str = "") -> Any:
    """What the subject's ``load`` returns: the events, and how many bytes are torn."""
    called, expected = f"load(path), where {where}", "a pair: the events, and the torn bytes"
    got = attempt(called, expected, likely, subject.load, path)
    if not isinstance(got, tuple) or len(got) != 2:
        wrong(called, shown(got), expected, "Return two things: `return events, torn`.")
    return got


def filled(subject: Subject, path: Path) -> bytes:
    for event in EVENTS:
        append(subject, path, event)
    return path.read_bytes() if path.exists() else b""


def _round_trip(subject: Subject) -> None:
    with journal() as path:
        data = filled(subject, path)
        got = load(subject, path, "two events were appended")
        if got != (EVENTS, 0):
            likely = "One event is one line, and `append` never replaces what is there."
            wrong("append twice, then load", shown(got), f"({EVENTS}, 0)", likely)
        if data.count(b"\n") != 2 or not data.endswith(b"\n"):
            likely = "A line counts from its line end on: write it with the line."
            wrong("append twice", f"the file is {data!r}", "two lines, each with its end", likely)


def _nothing_yet(subject: Subject) -> None:
    with journal() as path:
        likely = "A journal in which nobody has written yet has no events. That is no error."
        got = load(subject, path, "there is no file yet", likely)
        if got != ([], 0):
            wrong("load(path), where there is no file yet", shown(got), "([], 0)", likely)


def _one_line(subject: Subject) -> None:
    event = {"said": ODD}
    with journal() as path:
        likely = "`splitlines` cuts at more than line ends, such as U+2028. Split at b'\\n'."
        append(subject, path, event)
        append(subject, path, EVENTS[0], likely)
        got = load(subject, path, f"a text was {ODD!r}", likely)
        if got != ([event, EVENTS[0]], 0):
            wrong(f"append and load {event}", shown(got), "the very same event", likely)


def _surrogate(subject: Subject) -> None:
    event = {"said": "\ud83d"}
    with journal() as path:
        append(subject, path, EVENTS[0])
        likely = "Half a character can't be written as UTF-8. `json.dumps` escapes it by itself."
        attempt("append(path, {'said': '\\ud83d'})", "it is escaped", likely, subject.append,
                path, event)  # fmt: skip
        got = load(subject, path, "a text was '\\ud83d'", likely)
        if got != ([EVENTS[0], event], 0):
            wrong("append and load '\\ud83d'", shown(got), "the very same event", likely)


def _torn(subject: Subject) -> None:
    with journal() as path:
        data = filled(subject, path)
        last = data.rstrip(b"\n").rfind(b"\n") + 1
        for cut in range(last, len(data)):
            path.write_bytes(data[:cut])
            where = f"the last record was cut after {cut - last} of {len(data) - last} bytes"
            _cut(subject, path, where, cut - last)


def _cut(subject: Subject, path: Path, where: str, torn: int) -> None:
    likely = "What comes after the last line end is torn. It is no record, and no damage."
    got = load(subject, path, where, likely)
    if got[0] == EVENTS:
        likely = "A line counts from its line end on, even if what is there is JSON."
    if got != (EVENTS[:1], torn):
        expected = f"the first event, and {torn} torn bytes"
        wrong(f"load(path), where {where}", shown(got), expected, likely)


def _glue(subject: Subject) -> None:
    with journal() as path:
        data = filled(subject, path)
        first = data.find(b"\n") + 1
        for cut in range(first + 1, len(data)):
            path.write_bytes(data[:cut])
            append(subject, path, {"type": "late"})
            _not_glued(path, f"append(path, event), where {cut - first} bytes of a record are torn")


def _not_glued(path: Path, called: str) -> None:
    likely = "The new record stands in one line with the torn one, and both are lost. Cut the "
    likely += "torn tail off before you append."
    try:
        found = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    except ValueError:
        wrong(called, f"the file is {path.read_bytes()!r}", "whole lines alone", likely)
    if found != [EVENTS[0], {"type": "late"}]:
        wrong(called, f"the lines are {found}", f"{[EVENTS[0], {'type': 'late'}]}", likely)


def _damage(subject: Subject) -> None:
    with journal() as path:
        filled(subject, path)
        append(subject, path, EVENTS[0])
        lines = path.read_bytes().split(b"\n")
        path.write_bytes(b"\n".join([lines[0], b"#" * 9, *lines[2:]]))
        called = "load(path), where the second of three lines is damaged"
        try:
            got: Any = plain(called, subject.load, path)
        except (NotImplementedError, Wrong):
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is looked at
            got = Raised(error)
        likely = "A line in the middle was whole once. Without it the record lies: refuse it."
        if not isinstance(got, Raised) or not isinstance(got.error, ValueError):
            unknown = unknown_name(got.error) if isinstance(got, Raised) else ""
            wrong(called, shown(got), "ValueError is raised", unknown or likely)
        if "2" not in str(got.error):
            likely = "Whoever has to mend it must know where: name the line, counted from 1."
            wrong(called, raised(got.error), "a text that names line 2", likely)


CHECKS = (
    Check("v3-append", "What was appended is read back.", _round_trip),
    Check("v3-append", "A journal that isn't there yet is empty.", _nothing_yet),
    Check("v3-append", "Any text is one line.", _one_line),
    Check("v3-append", "Half a character is kept, too.", _surrogate),
    Check("v3-append", "A torn record is left out, wherever it was cut.", _torn),
    Check("v3-append", "After a torn record the next one has a line of its own.", _glue),
    Check("v3-append", "Damage in the middle is refused, and its line is named.", _damage),
    *JUDGED_CHECKS,
    *REVIVED_CHECKS,
)
