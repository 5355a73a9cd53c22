"""What an edit of a file must do, and leave alone, whoever wrote it."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mini_harness.course.conformance import Check, Subject, Wrong
from mini_harness.course.conformance.gated import Raised
from mini_harness.course.conformance.stage import plain, raised, wrong
from mini_harness.course.trouble import unknown_name
from mini_harness.frozen import shown

NAME = "shipping.py"
BOM = b"\xef\xbb\xbf"
PLAIN = b"FREE = 5000\nPRICE = 499\n"
TWICE = b"low = 1\nhigh = 1\n"
TIMES = re.compile(r"(?<!\d)2(?!\d)|\b(?:twice|two|second)\b", re.IGNORECASE)
OVERLAP = b"line = '== == =='\n"


@dataclass
class Edit:
    """One call of ``edit``: what it was asked, what it said, and the file afterwards."""

    before: bytes
    old: str
    new: str
    said: Any = None
    after: bytes = b""
    linked: bytes | None = None
    mode: int = 0
    left: list[str] = field(default_factory=list)

    @property
    def called(self) -> str:
        return f"edit({NAME!r}, {self.old!r}, {self.new!r}), where the file holds {self.before!r}"

    @property
    def refused(self) -> bool:
        return isinstance(self.said, Raised)

    def wrong(self, got: str, expected: str, likely: str) -> None:
        wrong(self.called, got, expected, likely)

    def must_be(self, expected: bytes, likely: str) -> None:
        """A finding unless the file was edited, and has just this content."""
        if self.refused:
            self.wrong(shown(self.said), f"the file holds {expected!r}", likely)
        if self.after != expected:
            self.wrong(f"the file holds {self.after!r}", f"{expected!r}", likely)

    def must_be_refused(self, likely: str) -> str:
        """A finding unless it was refused, and nothing has changed. The text of the refusal."""
        expected = "ValueError is raised, and the file stays as it is"
        if self.after != self.before:
            self.wrong(f"the file holds {self.after!r}", expected, likely)
        if not self.refused:
            self.wrong(f"{shown(self.said)} came back", expected, likely)
        return str(self.said.error)


SAY_WHY = "The text of the error is all that the model learns: say what is wrong, and what to do."
BYTES = "Text mode turns every CRLF into LF, or guesses the encoding. Read and write bytes."


def edit(subject: Subject, before: bytes, old: str, new: str, mode: int = 0o644) -> Edit:
    """Have a file edited in a folder of its own. A ValueError is a refusal."""
    done = Edit(before, old, new)
    with tempfile.TemporaryDirectory(prefix="mini-harness-") as folder:
        file, link = Path(folder, NAME), Path(folder, "link")
        file.write_bytes(before)
        file.chmod(mode)
        linked = _link(file, link)
        done.said = _call(subject, done, str(file))
        if not file.is_file():
            lost = "What is written beside has to take the file's place: `os.replace`."
            done.wrong("the file is gone", "the file is there", lost)
        done.after, done.mode = file.read_bytes(), stat.S_IMODE(file.stat().st_mode)
        done.linked = link.read_bytes() if linked else None
        names = {each.name for each in Path(folder).iterdir()}
        done.left = sorted(names - {NAME, "link"})
    return done


def _link(file: Path, link: Path) -> bool:
    """Give the file a second name: it shows whether the old content was written over."""
    try:
        link.hardlink_to(file)
    except OSError:
        return False
    return True


def _call(subject: Subject, done: Edit, path: str) -> Any:
    try:
        return plain(done.called, subject.edit, path, done.old, done.new)
    except (NotImplementedError, Wrong):
        raise
    except ValueError as error:
        return Raised(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it becomes the finding
        likely = unknown_name(error) or "What can't be done is refused with a ValueError."
        wrong(done.called, raised(error), "an edit, or a ValueError", likely)


def _once(subject: Subject) -> None:
    done = edit(subject, PLAIN, "499", "599")
    done.must_be(b"FREE = 5000\nPRICE = 599\n", "The passage is there once: replace it.")
    edit(subject, PLAIN, "PRICE = 499\n", "").must_be(b"FREE = 5000\n", "An empty `new` deletes.")


def _absent(subject: Subject) -> None:
    likely = "`replace` finds nothing, changes nothing and says nothing. Look first."
    done = edit(subject, PLAIN, "PRICE = 498", "PRICE = 599")
    done.must_be_refused(likely)


def _ambiguous(subject: Subject) -> None:
    done = edit(subject, TWICE, "= 1", "= 2")
    likely = "The passage is there twice, and nobody said which one is meant. Don't guess."
    if done.after == TWICE.replace(b"= 1", b"= 2"):
        likely = "`replace` takes every passage, also the one that nobody meant."
    done.must_be_refused(likely)


def _overlapping(subject: Subject) -> None:
    done = edit(subject, OVERLAP, "== ==", "--")
    likely = (
        "`count` goes on after the passage that it has found, so it misses one that overlaps. "
        "This one begins at two places."
    )
    done.must_be_refused(likely)


def _nothing(subject: Subject) -> None:
    done = edit(subject, PLAIN, "499", "499")
    done.must_be_refused("old and new are the same. An edit that changes nothing is a mistake.")
    for before in (PLAIN, b""):
        done = edit(subject, before, "", "x = 1\n")
        done.must_be_refused("An empty passage is everywhere, and nowhere. Refuse it.")


def _line_ends(subject: Subject) -> None:
    crlf = PLAIN.replace(b"\n", b"\r\n")
    edit(subject, crlf, "499", "599").must_be(crlf.replace(b"499", b"599"), BYTES)
    done = edit(subject, crlf, "5000\nPRICE", "6000\n# net\nPRICE")
    expected = b"FREE = 6000\r\n# net\r\nPRICE = 499\r\n"
    likely = "The new lines end otherwise than the file's. Translate `new` as well as `old`."
    if done.refused:
        likely = "A model writes LF, and this file has CRLF. Translate `old` before you look."
    elif b"\r" not in done.after:
        likely = BYTES
    done.must_be(expected, likely)


def _other_bytes(subject: Subject) -> None:
    for before in (BOM + PLAIN, b"# caf\xe9\n" + PLAIN, BOM + PLAIN.replace(b"\n", b"\r\n")):
        likely = "Whatever stands beside the passage stays, to the byte. Read and write bytes."
        if before.startswith(BOM):
            likely = f"The byte order mark belongs to the file. {likely}"
        edit(subject, before, "499", "599").must_be(before.replace(b"499", b"599"), likely)


def _whole(subject: Subject) -> None:
    done = edit(subject, PLAIN, "499", "599")
    if done.linked not in (None, PLAIN):
        likely = (
            "The file is written over in place. If that stops half-way, half of it is lost. "
            "Write beside it, then `os.replace`."
        )
        done.wrong("the old content was written over", "a new file takes its place", likely)
    for each in (done, edit(subject, TWICE, "= 1", "= 2")):
        if each.left:
            likely = "What was written beside is still there."
            each.wrong(f"the folder also holds {each.left[0]!r}", "nothing else", likely)


def _permissions(subject: Subject) -> None:
    done = edit(subject, PLAIN, "499", "599", mode=0o755)
    if os.name == "posix" and done.mode != 0o755:
        likely = "A new file has permissions of its own. `shutil.copymode(old, new)` takes them on."
        done.wrong(f"the mode is {done.mode:o}", "755, as before", likely)


def _no_file(subject: Subject) -> None:
    with tempfile.TemporaryDirectory(prefix="mini-harness-") as folder:
        called = f"edit({NAME!r}, '499', '599'), where there is no such file"
        try:
            got = plain(called, subject.edit, str(Path(folder, NAME)), "499", "599")
        except (OSError, ValueError):
            got = None
        made = [each.name for each in Path(folder).iterdir()]
    if made:
        wrong(called, f"{made[0]} was made", "nothing is made", "Read before you write.")
    if got is not None:
        likely = "The model takes this for a success. Let the FileNotFoundError rise."
        wrong(called, f"{shown(got)} came back", "FileNotFoundError is raised", likely)


def _says(subject: Subject) -> None:
    done = edit(subject, PLAIN, "499", "599")
    if not isinstance(done.said, str) or NAME not in done.said or "2" not in _last(done.said):
        likely = "Say what was done, and where: the path and the line, counted from 1."
        done.wrong(f"{_last(shown(done.said))} came back", f"a text: {NAME}, line 2", likely)
    for before, old in ((PLAIN, "498"), (TWICE, "= 1")):
        done = edit(subject, before, old, "= 2")
        said = _last(done.must_be_refused("This can't be done: refuse it."))
        if not said:
            done.wrong("ValueError() without a text", "a text that says what is wrong", SAY_WHY)
    if not TIMES.search(said):
        likely = "Say how often it is there, or in which lines: then the model can say more of it."
        expected = 'a text with "2", "twice" or "two": so often it is there, in the lines 1 and 2'
        done.wrong(f"the error {said!r}", expected, likely)


def _last(said: str) -> str:
    """Without the folder, in whose name there may be anything."""
    return re.sub(rf"\S*{NAME}", NAME, said)


EDITED = (
    Check("v0b-edit", "A passage that is there once is replaced.", _once),
    Check("v0b-edit", "A passage that isn't there is refused.", _absent),
    Check("v0b-edit", "A passage that is there twice is refused.", _ambiguous),
    Check("v0b-edit", "Passages that overlap count, too.", _overlapping),
    Check("v0b-edit", "An empty passage is refused, and what would change nothing.", _nothing),
    Check("v0b-edit", "Line ends stay as they are, and don't hide a passage.", _line_ends),
    Check("v0b-edit", "Everything beside the passage stays, to the byte.", _other_bytes),
    Check("v0b-edit", "The file is replaced in one piece, and nothing is left over.", _whole),
    Check("v0b-edit", "Permissions stay.", _permissions),
    Check("v0b-edit", "A file that isn't there isn't made.", _no_file),
    Check("v0b-edit", "It says where it was, or how often it is there.", _says),
)
