"""Audit logs to try things on, and a verifier that shares no code with the package."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mini_harness.audit import AuditLog

FIELDS = {"index", "timestamp", "action", "data", "prev_hash", "hash"}
GENESIS = "0" * 64
EACH = 5
"""How many entries each thread of ``write`` appends."""


def filled(folder: Path, count: int, **options: Any) -> AuditLog:
    log = AuditLog(folder / "audit.jsonl", **options)
    for number in range(1, count + 1):
        log.append("tool_call", {"sessionId": "s1", "argument": f"n° {number}"}, timestamp=number)
    return log


def digest_of(entry: dict[str, Any]) -> str:
    """C41, as an auditor would write it down."""
    body = {name: each for name, each in entry.items() if name != "hash"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def independent(log: AuditLog) -> list[dict[str, Any]]:
    """The entries, if the files are as C40 to C42 say."""
    found = [json.loads(line) for line in log.path.read_bytes().splitlines(keepends=True)]
    before = GENESIS
    for index, entry in enumerate(found, 1):
        assert entry.keys() == FIELDS
        assert entry["index"] == index
        assert entry["prev_hash"] == before
        assert entry["hash"] == digest_of(entry)
        before = entry["hash"]
    head = json.loads(log.path.with_suffix(".head").read_text(encoding="utf-8"))
    assert head == {"count": len(found), "head": before}
    return found


def chain_on(log: AuditLog, **changes: Any) -> bytes:
    """A line that hangs on the last one as it should, which nobody had the right to write."""
    last = json.loads(log.path.read_bytes().splitlines()[-1])
    entry = {**last, "index": last["index"] + 1, "prev_hash": last["hash"], **changes}
    entry["hash"] = digest_of(entry)
    text = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{text}\n".encode()


def write(path: str, who: str, *, threads: int) -> None:
    """Append from many threads; every other one has a log object of its own."""
    shared = AuditLog(path)

    def append(number: int) -> None:
        log = shared if number % 2 else AuditLog(path)
        for count in range(EACH):
            log.append("x", {"who": f"{who}-{number}", "count": count})

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(append, range(threads)))
