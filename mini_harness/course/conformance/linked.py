"""What a chained log must notice, whoever wrote it and in whatever form."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mini_harness.course.conformance import Check, Subject, Wrong
from mini_harness.course.conformance.gated import attempt
from mini_harness.course.conformance.stage import plain, raised, wrong
from mini_harness.course.trouble import unknown_name
from mini_harness.frozen import shown

DATA: Sequence[Mapping[str, Any]] = (
    {"did": "mended", "by": "grün ✓"},
    {"did": "tested", "exit_code": 0, "a": [1, None]},
    {"did": "answered", "said": "a\u2028b\u0085c"},
    {"did": "left"},
)


@contextmanager
def log(subject: Subject, entries: int = len(DATA)) -> Iterator[Path]:
    """A log of the subject's, with so many entries."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "audit.jsonl"
        for data in DATA[:entries]:
            add(subject, path, data)
        if entries and not path.is_file():
            wrong("add(path, data)", "there is no file", "the log is in it", "Write to `path`.")
        yield path


def add(subject: Subject, path: Path, data: Any, likely: str = "", where: str = "") -> None:
    called = f"add(path, {shown(data)}){where}"
    attempt(called, "the entry is in the log", likely, subject.add, path, data)


def verify(subject: Subject, path: Path, where: str, likely: str) -> Any:
    called, expected = f"verify(path), where {where}", "None, or the number of a line"
    got = attempt(called, expected, likely, subject.verify, path)
    if got is not None and (not isinstance(got, int) or isinstance(got, bool)):
        known = "`verify` returns None if all is whole, else a number, counted from 1."
        wrong(called, shown(got), expected, known)
    return got


WHERE = (
    "Whoever looks into it must know where: give the first line that isn't right, counted from 1."
)


def found(subject: Subject, path: Path, where: str, likely: str, line: int = 0) -> None:
    """The damage is found, and at this line if one is given."""
    got = verify(subject, path, where, likely)
    called = f"verify(path), where {where}"
    if got is None:
        expected = f"{line}, the line of it" if line else "a number: it isn't whole"
        wrong(called, "None: all is whole", expected, likely)
    if line and got != line:
        # A head alone says too late that something is wrong.
        wrong(called, shown(got), str(line), likely if got > line else WHERE)


def whole(subject: Subject, path: Path, where: str, likely: str, entries: int) -> None:
    got = verify(subject, path, where, likely)
    if got is not None:
        wrong(f"verify(path), where {where}", shown(got), "None: all is whole", likely)
    if (number := path.read_bytes().count(b"\n")) != entries:
        expected = f"{entries} lines, each with its end"
        wrong(where, f"the log has {number} lines", expected, "One entry is one line.")


def refused(subject: Subject, path: Path, where: str, likely: str) -> None:
    """Nothing is added, and ValueError says so."""
    called, before = f"add(path, data), where {where}", path.read_bytes()
    try:
        got: Any = plain(called, subject.add, path, DATA[0])
    except (NotImplementedError, Wrong):
        raise
    except ValueError:
        got = None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it becomes the finding
        wrong(called, raised(error), "ValueError is raised", unknown_name(error) or likely)
    else:
        wrong(called, shown(got), "ValueError is raised", likely)
    if path.read_bytes() != before:
        known = "Look first, and write only then."
        wrong(called, "something was written", "the log stays as it is", known)


def beside(path: Path) -> dict[Path, bytes]:
    """What lies beside the log, such as its head."""
    return {each: each.read_bytes() for each in path.parent.iterdir() if each != path}


def _whole(subject: Subject) -> None:
    likely = "What was added and never touched is whole."
    for entries in range(1, len(DATA) + 1):
        with log(subject, entries) as path:
            whole(subject, path, f"{entries} entries were added", likely, entries)


def _none(subject: Subject) -> None:
    with log(subject, 0) as path:
        likely = "No log isn't a good log: somebody may have taken all of it."
        found(subject, path, "there is no file", likely, 1)


def _each_byte(subject: Subject) -> None:
    with log(subject, 2) as path:
        data, line = path.read_bytes(), 1
        for place, byte in enumerate(data):
            flipped = bytes([byte ^ (128 if place % 2 else 1)])
            path.write_bytes(data[:place] + flipped + data[place + 1 :])
            where = f"byte {place} of {len(data)} was changed, in line {line}"
            likely = "Each entry has a hash of all that it says. What isn't hashed can be changed, "
            likely += "and what can't be read is damage, too."
            found(subject, path, where, likely, line)
            line += byte == ord("\n")


def _spelling(subject: Subject) -> None:
    with log(subject) as path:
        lines = path.read_bytes().split(b"\n")
        try:
            meant = json.loads(lines[1])
        except ValueError:
            return  # It isn't JSON, so this is no other spelling of it.
        for separators in ((",", ":"), (", ", ": "), (" , ", " : ")):
            text = json.dumps(meant, separators=separators).encode()
            if text != lines[1]:
                path.write_bytes(b"\n".join([lines[0], text, *lines[2:]]))
                likely = "It means the same and isn't what was written: compare the bytes of the "
                likely += "line, and not what they mean."
                found(subject, path, "line 2 has other spaces in it", likely, 2)


def _moved(subject: Subject) -> None:
    likely = "Nothing ties an entry to the one before it: take its hash into the next hash."
    with log(subject) as path:
        *lines, _ = path.read_bytes().split(b"\n")
        for at in range(len(lines) - 1):
            left = [*lines[:at], *lines[at + 1 :]]
            swapped = [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]
            twice = [*lines[: at + 1], *lines[at:]]
            for now, line, what in (
                (left, at + 1, f"line {at + 1} was taken out"),
                (swapped, at + 1, f"lines {at + 1} and {at + 2} were swapped"),
                (twice, at + 2, f"line {at + 1} stands there twice"),
            ):
                path.write_bytes(b"\n".join([*now, b""]))
                found(subject, path, what, likely, line)


def _cut(subject: Subject) -> None:
    likely = "A chain without its end is a chain. Keep beside it how many entries there are, and "
    likely += "the hash of the last."
    with log(subject) as path:
        data = path.read_bytes()
        *lines, _ = data.split(b"\n")
        for kept in range(len(lines)):
            path.write_bytes(b"".join(line + b"\n" for line in lines[:kept]))
            where = f"the log was cut after {kept} of {len(lines)} entries"
            found(subject, path, where, likely, kept + 1)
        path.write_bytes(data[:-1])
        torn = "What has no line end isn't an entry."
        found(subject, path, "the last line end was cut off", torn, len(lines))


def _headless(subject: Subject) -> None:
    with log(subject) as path:
        for file in beside(path):
            file.unlink()
        likely = "Without its head nobody can say whether more came: that isn't whole."
        found(subject, path, "what lay beside the log is gone", likely)


def _refused(subject: Subject) -> None:
    with log(subject) as path:
        data, likely = path.read_bytes(), "What isn't whole must not go on: look before you add."
        path.write_bytes(data[: data.rstrip(b"\n").rfind(b"\n") + 1])
        refused(subject, path, "the last entry was cut off", likely)
        path.write_bytes(data.replace(b"mended", b"broken"))
        refused(subject, path, "line 1 was changed", likely)


def _healed(subject: Subject) -> None:
    with log(subject, 2) as path:
        earlier = beside(path)
        add(subject, path, DATA[2])
        for file, content in earlier.items():
            file.write_bytes(content)
        where = ", where the last add was killed before it wrote the head"
        likely = "The log is one entry ahead of its head, and that entry hangs on the head's hash: "
        likely += "an add was interrupted there. Go on after it."
        add(subject, path, DATA[3], likely, where)
        whole(subject, path, f"something was added{where}", likely, 4)


def _not_healed(subject: Subject) -> None:
    with log(subject, 2) as path:
        earlier = beside(path)
        for data in DATA[2:]:
            add(subject, path, data)
        for file, content in earlier.items():
            file.write_bytes(content)
        likely = "A crash leaves one entry that the head doesn't count, and never two. Refuse it."
        refused(subject, path, "the log is two entries ahead of its head", likely)


LINKED_CHECKS = (
    Check("v4-chain", "What was added is whole.", _whole),
    Check("v4-chain", "No log isn't a good log.", _none),
    Check("v4-chain", "Every byte counts.", _each_byte),
    Check("v4-chain", "Another spelling is a change.", _spelling),
    Check("v4-chain", "A line that was removed, moved or doubled is found.", _moved),
    Check("v4-chain", "A tail that was cut off is found.", _cut),
    Check("v4-chain", "A log without its head isn't whole.", _headless),
    Check("v4-chain", "Nothing is added to what isn't whole.", _refused),
    Check("v4-chain", "One interrupted add is healed.", _healed),
    Check("v4-chain", "Anything more is refused.", _not_healed),
)
