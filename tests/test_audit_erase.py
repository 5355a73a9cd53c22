"""A text can be erased and the chain stays whole; without an erasure that is recorded, it can't."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mini_harness.audit import AuditLog
from mini_harness.audit_entry import AuditDamaged
from mini_harness.audit_sink import Audit
from mini_harness.audit_texts import GONE
from mini_harness.tools.builds import TOOLS
from tests.audits import independent
from tests.course.disks import small_disk
from tests.loops import DONE, call, harness

FIELDS = ("text", "argument", "error", "content")
SAID = "I am Ann Lee, my number is 555-0142"


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    log = AuditLog(tmp_path / "audit.jsonl", erasable=FIELDS).start()
    for text in ("first", SAID, SAID, "last"):
        log.append("user_prompt", {"sessionId": "s1", "text": text}, timestamp=1)
    return log


def texts_of(log: AuditLog) -> Path:
    return log.path.with_suffix(".texts")


def told(log: AuditLog) -> list[Any]:
    return [log.told(entry).get("text") for entry in log.entries()]


def everything(log: AuditLog) -> bytes:
    return b"".join(path.read_bytes() for path in log.path.parent.iterdir())


def damaged(log: AuditLog, match: str) -> None:
    check = log.check()
    assert not check.ok
    assert match in str(check)
    with pytest.raises(AuditDamaged, match=match):
        AuditLog(log.path).start()


def test_by_default_every_text_stands_in_the_chain(tmp_path: Path) -> None:
    """C43: to the letter, unless somebody asked for texts that can be erased"""
    log = AuditLog(tmp_path / "audit.jsonl")
    assert log.append("x", {"text": SAID}).data == {"text": SAID}
    assert not texts_of(log).exists()
    with pytest.raises(LookupError, match="erasable"):
        log.erase(1)


def test_an_erased_text_is_nowhere_and_the_chain_is_whole(log: AuditLog) -> None:
    """issue 7: a redaction that keeps the chain, and says that it was one"""
    before = log.path.read_bytes()
    entry = log.erase(2, "she asked for it")
    assert (entry.action, entry.data) == ("erased", {"index": 2, "reason": "she asked for it"})
    assert log.path.read_bytes().startswith(before)
    assert told(log) == ["first", GONE, SAID, "last", None]
    log.erase(3)
    assert b"Ann" not in everything(log)
    assert log.verify()
    assert len(independent(log)) == 6
    again = AuditLog(log.path).start()
    assert again.verify()
    assert again.append("x", {"text": "plain"}).index == 7


def test_the_same_text_has_another_digest_each_time(log: AuditLog) -> None:
    """Else one could try all numbers, and compare"""
    one, other = (entry.data["sealed"]["text"] for entry in list(log.entries())[1:3])
    assert one != other
    salts = texts_of(log).read_text(encoding="utf-8").count('"salt":"')
    assert salts == 4


def test_a_changed_byte_of_a_text_is_seen_wherever_it_is(log: AuditLog) -> None:
    """In the text, its salt, its digest, or between"""
    whole = texts_of(log).read_bytes()
    for position in range(len(whole)):
        data = bytearray(whole)
        data[position] ^= 1
        texts_of(log).write_bytes(data)
        damaged(log, "is missing or was changed")


@pytest.mark.parametrize("number", range(4))
def test_a_text_that_is_missing_without_an_erasure_is_seen(log: AuditLog, number: int) -> None:
    lines = texts_of(log).read_bytes().splitlines(keepends=True)
    texts_of(log).write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
    damaged(log, f"the text of entry {number + 1} is missing")


def test_texts_that_are_all_missing_are_seen(log: AuditLog) -> None:
    texts_of(log).unlink()
    damaged(log, "is missing")


def test_an_erasure_that_was_interrupted_is_ended_at_the_next_start(log: AuditLog) -> None:
    old = texts_of(log).read_bytes()
    log.erase(2)
    texts_of(log).write_bytes(old)
    assert "log.start() takes it out" in str(log.check())
    assert AuditLog(log.path).start().repairs == ["Texts that no entry needs were taken out: 1."]
    assert log.verify()
    assert told(log)[1] == GONE


def test_a_text_whose_entry_was_never_written_is_taken_out_at_the_next_start(log: AuditLog) -> None:
    """A process may die between the two; and in the middle of the first"""
    whole = texts_of(log).read_bytes()
    torn = whole.splitlines()[1][:-7]
    texts_of(log).write_bytes(whole + torn)
    assert log.verify()
    log.append("x", {"text": "after"})
    assert log.verify()
    assert AuditLog(log.path).start().repairs == ["Texts that no entry needs were taken out: 1."]
    assert told(log) == ["first", SAID, SAID, "last", "after"]


@pytest.mark.parametrize("index", [0, 5, 6, -1])
def test_what_has_no_text_can_not_be_erased(log: AuditLog, index: int) -> None:
    """There is none; it is the record of an erasure; it was erased before"""
    log.erase(1)
    before = log.path.read_bytes()
    with pytest.raises(LookupError, match=f"Of entry {index} nothing"):
        log.erase(index)
    with pytest.raises(LookupError):
        log.erase(1)
    assert log.path.read_bytes() == before


@pytest.mark.parametrize(("action", "data"), [("erased", {"index": 1}), ("x", {"sealed": {}})])
def test_nobody_can_say_by_hand_that_something_was_erased(
    log: AuditLog, action: str, data: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="for the log itself"):
        log.append(action, data)
    assert log.verify()


def test_arguments_that_look_like_digests_are_arguments(log: AuditLog) -> None:
    """A model may send anything, and must not be able to spoil a log by it"""
    forged = {"sealed": {"text": "f" * 64}, "digest": "f" * 64}
    entry = AuditLog(log.path).append("tool_call", {"argument": forged})
    assert log.told(entry) == {"argument": forged}
    assert log.verify()


def test_a_run_leaves_nothing_personal_in_the_chain_itself(tmp_path: Path) -> None:
    """C43: all keys stay, and the digests stand beside"""
    log = AuditLog(tmp_path / "audit.jsonl", erasable=FIELDS)
    turns = [call("read_build", build_id="555-0142"), call("no_tool"), DONE]
    player, _ = harness(turns, TOOLS.values(), sinks=[Audit(log, session_id="s1")])
    asyncio.run(player.run(SAID))
    assert b"555-0142" not in log.path.read_bytes()
    prompt, asked, *_ = log.entries()
    assert prompt.data.keys() == {"sessionId", "text", "sealed"}
    assert log.told(prompt) == {"sessionId": "s1", "text": SAID}
    assert log.told(asked)["argument"] == {"build_id": "555-0142"}
    for entry in list(log.entries()):
        if "sealed" in entry.data:
            log.erase(entry.index)
    assert b"555-0142" not in everything(log)
    assert log.verify()


def test_on_a_full_disk_an_erasure_fails_aloud_and_is_ended_later() -> None:
    with small_disk("64k") as disk:
        log = AuditLog(disk / "audit.jsonl", erasable=["text"]).start()
        for number in range(30):
            log.append("x", {"text": f"{number} " + "x" * 300})
        ballast = disk / "ballast"
        with pytest.raises(OSError, match="No space left"), ballast.open("wb") as file:
            while True:
                file.write(b"x" * 4096)
                file.flush()
        with pytest.raises(OSError, match="Free some space"):
            log.erase(2)
        ballast.unlink()
        log.start()
        if log.tip().count == 30:
            log.erase(2)
        assert log.verify()
        assert log.told(list(log.entries())[1])["text"] == GONE
