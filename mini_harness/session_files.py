"""Where sessions lie on the disk, and the small files beside their transcripts (SEEDS C01 to C03).

<home>/sessions/<id>.json                 the record: which session it is
<home>/projects/<workspace>/<id>.jsonl    the transcript: what happened
<home>/projects/<workspace>/<id>/         what belongs to it, such as its checkpoint
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from mini_harness.frozen import canonical, parse_object
from mini_harness.transcript import DamagedSession, Transcript, explaining, sync_folder

SCHEMA_VERSION = 1
FOLDER = "MINI_HARNESS_SESSIONS"
"""The environment variable that names the folder of all sessions."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PORTS = {f"{port}{number}" for port in ("com", "lpt") for number in range(10)}
_DEVICES = {"con", "prn", "aux", "nul"} | _PORTS
_LONGEST = 120
"""A longer name of a workspace is cut, and a hash tells it from others."""


@dataclass(frozen=True)
class SessionInfo:
    """What a session's record says (SEEDS C03). Times are in milliseconds since the Unix epoch."""

    id: str
    cwd: str
    title: str
    created_at: int
    updated_at: int


def checked_id(session_id: str) -> str:
    """The id itself. It becomes part of a path, so it never is one (report S11).

    Raises ValueError for what isn't 1 to 64 letters, digits, ``_`` and ``-``, or names a device.
    """
    if not isinstance(session_id, str) or not _ID.fullmatch(session_id):
        raise ValueError(
            f"A session's id is 1 to 64 letters, digits, _ and -, but it is {session_id!r:.100}."
        )
    if session_id.lower() in _DEVICES:
        raise ValueError(f"{session_id!r} is the name of a device on Windows. Choose another id.")
    return session_id


def workspace_id(cwd: str) -> str:
    """The name of the folder for all sessions about one folder (SEEDS C02)."""
    name = cwd.strip("/").replace("/", "-").replace(" ", "_") or "root"
    if len(name.encode()) <= _LONGEST:
        return name
    told = hashlib.sha256(cwd.encode()).hexdigest()[:16]
    return f"{name.encode()[: _LONGEST - 17].decode(errors='ignore')}-{told}"


def home_of(root: Path | str | None) -> Path:
    """The folder of all sessions: this, or what FOLDER names, or ``~/.mini_harness``."""
    chosen = root if root is not None else os.environ.get(FOLDER, "").strip() or "~/.mini_harness"
    return Path(chosen).expanduser().resolve()


def record_of(home: Path, session_id: str) -> Path:
    return home / "sessions" / f"{session_id}.json"


def transcript_of(home: Path, info: SessionInfo) -> Path:
    return home / "projects" / workspace_id(info.cwd) / f"{info.id}.jsonl"


def make(home: Path, info: SessionInfo) -> None:
    """The files of a new session. Raises FileExistsError for one that there is, and OSError."""
    path, record = transcript_of(home, info), record_of(home, info.id)
    for folder in (path.parent, record.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    header = {"schema_version": SCHEMA_VERSION, "session_id": info.id}
    Transcript.create(path, f"{canonical(header)}\n".encode())
    # Last of all: what has a record is whole.
    said = {"schema_version": SCHEMA_VERSION, **asdict(info)}
    with explaining(record, "made"):
        claim(record, json.dumps(said, indent=1).encode())


def read_record(path: Path, home: Path) -> SessionInfo:
    """What a record says, and when its transcript was written to last.

    Raises DamagedSession and OSError.
    """
    try:
        found = parse_object(path.read_text(encoding="utf-8"))
        version = found.pop("schema_version")
        if version != SCHEMA_VERSION:
            raise ValueError(f"it has the schema version {version}, not {SCHEMA_VERSION}")
        info = SessionInfo(**found)
        checked_id(info.id)
        if [type(value) for value in vars(info).values()] != [str, str, str, int, int]:
            raise ValueError("a field has another type than it should")
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedSession(path, 1, f"{type(error).__name__}: {error}.") from None
    changed = int(transcript_of(home, info).stat().st_mtime * 1000)
    return dataclasses.replace(info, updated_at=max(info.updated_at, changed))


def replace(path: Path, data: bytes) -> None:
    """Give a file this content: all of it, or the old one stays (report S07). Raises OSError."""
    with _written(path, data) as new:
        new.replace(path)


def claim(path: Path, data: bytes) -> None:
    """Make a file with this content: all of it, or none. Of several who try one succeeds.

    Raises FileExistsError and other OSErrors.
    """
    with _written(path, data) as new:
        os.link(new, path)


@contextmanager
def _written(path: Path, data: bytes) -> Iterator[Path]:
    """The content in a file beside, which is then put in its place."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        yield new
    finally:
        new.unlink(missing_ok=True)
    sync_folder(path.parent)
