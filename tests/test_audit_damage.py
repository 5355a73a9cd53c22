"""Every way to change the past of a log is seen, and where; and nothing is appended to it then."""

import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from mini_harness.audit import AuditLog
from mini_harness.audit_entry import AuditDamaged, Tip, chained
from mini_harness.audit_sink import Audit
from tests.audits import chain_on, filled, independent
from tests.course.disks import small_disk

COUNT = 200
Damage = Callable[[list[bytes]], list[bytes]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    """A log of 200 entries, which no test changes."""
    log = filled(tmp_path_factory.mktemp("whole"), COUNT)
    assert log.verify()
    return log


@pytest.fixture
def log(whole: AuditLog, tmp_path: Path) -> AuditLog:
    """A copy of it, to be damaged, in the hands of somebody who has read it before."""
    for name in ("audit.jsonl", "audit.head"):
        shutil.copy(whole.path.with_name(name), tmp_path)
    return AuditLog(tmp_path / "audit.jsonl").start()


def lines_of(log: AuditLog) -> list[bytes]:
    return log.path.read_bytes().splitlines(keepends=True)


def tips(log: AuditLog) -> list[Tip]:
    """Where the chain stands before each of its entries."""
    return [Tip(), *(Tip(entry.index, entry.hash) for entry in log.entries())]


def seen_at(lines: Sequence[bytes], before: Tip) -> int | None:
    """The first line that ``check`` refuses, where all before these lines are as they were."""
    try:
        for _ in chained(lines, Path("audit.jsonl"), before):
            pass
    except AuditDamaged as damage:
        return damage.line
    return None


def edits(line: bytes, at: int, *, every: bool) -> Iterator[bytes]:
    """One byte changed; if every edit is to be tried, also removed or doubled."""
    yield line[:at] + bytes([line[at] ^ (1 << at % 8)]) + line[at + 1 :]
    if every:
        yield line[:at] + line[at + 1 :]
        yield line[:at] + line[at : at + 1] + line[at:]


def refused(log: AuditLog) -> AuditDamaged:
    """It doesn't verify; whoever knew it, and whoever opens it now, neither starts nor appends."""
    check = log.check()
    assert not check.ok
    before = log.path.read_bytes() if log.path.exists() else None
    for each in (log, AuditLog(log.path)):
        with pytest.raises(AuditDamaged):
            each.append("x", {})
        with pytest.raises(AuditDamaged) as caught:
            each.start()
    with pytest.raises(AuditDamaged):
        Audit(AuditLog(log.path))
    assert not log.verify()
    assert before == (log.path.read_bytes() if log.path.exists() else None)
    return caught.value


# --- all positions of 200 entries ---------------------------------------------------------------


def test_every_byte_that_is_changed_is_seen(whole: AuditLog) -> None:
    """C42, report D07: each position of a log with 200 entries, at its very line; and in some
    lines each one that is removed or doubled"""
    lines, before = lines_of(whole), tips(whole)
    tried = 0
    for number, (line, following) in enumerate(itertools.zip_longest(lines, lines[1:])):
        for at in range(len(line)):
            for edited in edits(line, at, every=number % 50 in (0, 49)):
                # A line end that was changed joins two lines; one put in makes two of one.
                rest = (edited + (following or b"")).splitlines(keepends=True)
                if b"\n" in edited[:-1]:
                    rest = [part + b"\n" for part in edited.split(b"\n")]
                found = seen_at(rest, before[number])
                assert found is not None, (number, at, edited)
                assert number + 1 <= found <= number + 2
                tried += 1
    assert tried > sum(map(len, lines)) > 200 * 200


def test_every_byte_of_the_head_that_is_changed_is_seen(whole: AuditLog) -> None:
    """C42: each position, each other value"""
    head = whole.path.with_suffix(".head").read_bytes()
    right = Tip.from_json(head.decode())
    for at, value in itertools.product(range(len(head)), range(256)):
        edited = head[:at] + bytes([value]) + head[at + 1 :]
        try:
            said = Tip.from_json(edited.decode())
        except ValueError:
            continue
        assert (said == right) is (edited == head)


@pytest.mark.parametrize("at", range(7, 40_000, 4999))
def test_a_changed_byte_in_the_file_itself_is_named_and_refused(log: AuditLog, at: int) -> None:
    """C42, C47: what the tests on single lines say holds for the whole file"""
    data = bytearray(log.path.read_bytes())
    data[at] ^= 1
    log.path.write_bytes(data)
    line = data[:at].count(b"\n") + 1
    assert log.check().line == line
    assert refused(log).line == line
    assert f"Line {line} of audit.jsonl is damaged" in str(log.check())


def test_every_line_that_is_removed_is_seen(log: AuditLog) -> None:
    """C42, report D07"""
    lines, before = lines_of(log), tips(log)
    for number in range(COUNT - 1):
        assert seen_at(lines[number + 1 :], before[number]) == number + 1
    for number in (*range(0, COUNT, 25), COUNT - 1):
        log.path.write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
        assert log.check().line == number + 1
        assert log.check().entries == number


def test_every_pair_of_lines_that_is_swapped_is_seen(whole: AuditLog) -> None:
    """C42"""
    lines, before = lines_of(whole), tips(whole)
    for one, other in itertools.combinations(range(COUNT), 2):
        assert seen_at([lines[other]], before[one]) == one + 1


def test_every_line_that_is_doubled_is_seen(whole: AuditLog) -> None:
    """report D07"""
    lines, before = lines_of(whole), tips(whole)
    for number in range(COUNT):
        assert seen_at([lines[number], lines[number]], before[number]) == number + 2


def test_every_tail_that_is_cut_off_is_seen(log: AuditLog) -> None:
    """C42, report D07: what is left is a whole chain, and only the head knows"""
    lines = lines_of(log)
    for left in range(COUNT):
        log.path.write_bytes(b"".join(lines[:left]))
        check = log.check()
        assert (check.ok, check.entries, check.line) == (False, left, left + 1)
        assert f"{COUNT - left} of them are gone" in str(check)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda lines: lines[:2] + lines[3:], "Line 3 .* removed, moved or put in"),
        (lambda lines: [*lines[:3], *lines[2:]], "Line 4 .* removed, moved or put in"),
        (lambda lines: [lines[0].replace(b"s1", b"s2"), *lines[1:]], "Line 1 .* so it was changed"),
        (lambda lines: [lines[0].replace(b'"h', b'"x":1,"h'), *lines[1:]], "Line 1 .* its fields"),
        (lambda lines: [lines[0].replace(b":1,", b': "1",'), *lines[1:]], "Line 1 .* another type"),
    ],
)
def test_damage_is_called_what_it_is(log: AuditLog, damage: Damage, says: str) -> None:
    """C42: for whoever has to find out what happened"""
    log.path.write_bytes(b"".join(damage(lines_of(log))))
    assert re.search(says, str(log.check()))


def test_an_entry_of_another_chain_is_called_that(log: AuditLog) -> None:
    """C40: right in itself, and with the right index"""
    line = chain_on(log, prev_hash="f" * 64)
    log.path.write_bytes(log.path.read_bytes() + line)
    assert "Line 201" in str(log.check())
    assert "doesn't name the hash of the entry before" in str(log.check())


# --- other damage -------------------------------------------------------------------------------


def test_an_emptied_log_is_refused(log: AuditLog) -> None:
    """C42, C47, report D07"""
    log.path.write_bytes(b"")
    assert refused(log).line == 1


def test_a_cut_tail_is_refused_and_nothing_goes_after_it(log: AuditLog) -> None:
    """C47, report D07"""
    log.path.write_bytes(b"".join(lines_of(log)[:-2]))
    assert "2 of them are gone" in str(refused(log))


def test_a_removed_log_is_refused_and_not_made_anew(log: AuditLog) -> None:
    """C47, report D07"""
    log.path.unlink()
    assert "counts 200 entries" in str(log.check())
    refused(log)
    assert not log.path.exists()


def test_a_log_without_its_head_is_refused(log: AuditLog) -> None:
    """C44 as decided: else a cut tail would go with it"""
    log.path.with_suffix(".head").unlink()
    assert refused(log).path.name == "audit.head"


def test_without_anything_there_is_nothing_that_verifies(tmp_path: Path) -> None:
    """report D07: no log isn't a good log, and an emptied one without head isn't either"""
    log = AuditLog(tmp_path / "audit.jsonl")
    assert not log.verify()
    log.path.touch()
    assert not log.verify()
    assert not log.path.with_suffix(".head").exists()


def test_who_wrote_it_sees_that_all_of_it_is_gone(log: AuditLog) -> None:
    """C47: log and head removed, as long as somebody still holds the log"""
    log.path.unlink()
    log.path.with_suffix(".head").unlink()
    with pytest.raises(AuditDamaged, match="it was longer when this process"):
        log.append("x", {})


def test_who_wrote_it_sees_that_it_was_made_up_anew(log: AuditLog, tmp_path: Path) -> None:
    """A whole chain with its head, in the place of another"""
    other = AuditLog(tmp_path / "other" / "audit.jsonl").start()
    lines = lines_of(log)[:-1]
    other.path.write_bytes(b"".join(lines))
    other.path.with_suffix(".head").write_text(tips(log)[-2].to_json(), encoding="utf-8")
    other.append("another", {})
    for name in ("audit.jsonl", "audit.head"):
        shutil.copy(other.path.with_name(name), log.path.with_name(name))
    assert AuditLog(log.path).verify()
    with pytest.raises(AuditDamaged, match="another one when this process"):
        log.append("x", {})


def test_an_edit_in_the_middle_is_seen_by_who_appends_next(log: AuditLog) -> None:
    """C47: though an append doesn't read all of it again"""
    log.append("x", {})
    data = log.path.read_bytes()
    log.path.write_bytes(data.replace("n° 77".encode(), "n° 78".encode(), 1))
    with pytest.raises(AuditDamaged, match="Line 77"):
        log.append("x", {})


def test_an_edit_of_the_last_entry_that_one_knows_is_seen_though_others_went_on(
    log: AuditLog,
) -> None:
    """C47: from there on it reads what the others wrote, and not what was before"""
    AuditLog(log.path).append("x", {})
    data = log.path.read_bytes()
    log.path.write_bytes(data.replace("n° 200".encode(), "n° 201".encode(), 1))
    with pytest.raises(AuditDamaged, match="Line 200"):
        log.append("x", {})


@pytest.mark.parametrize("cut", [1, 2, 50])
def test_a_torn_tail_is_called_torn_and_refused(log: AuditLog, cut: int) -> None:
    """C48, report D07: it isn't the one thing that is put right"""
    log.path.write_bytes(log.path.read_bytes() + chain_on(log)[:-cut])
    assert "torn" in str(refused(log))


@pytest.mark.parametrize(
    "line",
    [b"{}\n", b"\n", b"[1]\n", b"nonsense\n", b"\xff\n", b'{"a":' * 5000 + b"\n", b"1e999\n"],
    ids=["empty object", "blank", "list", "no JSON", "no UTF-8", "deep", "huge number"],
)
def test_a_line_that_is_no_entry_is_refused(log: AuditLog, line: bytes) -> None:
    """C42: bad JSON"""
    log.path.write_bytes(log.path.read_bytes() + line)
    assert refused(log).line == COUNT + 1


@pytest.mark.parametrize(
    "changes",
    [
        {"more": 1},
        {"index": 201.0},
        {"timestamp": 1.5},
        {"timestamp": "1"},
        {"action": 5},
        {"data": [1]},
        {"action": "erased", "data": {}},
        {"data": {"sealed": [1]}},
    ],
    ids=str,
)
def test_an_entry_of_another_shape_is_refused_though_its_hash_fits(
    log: AuditLog, changes: dict[str, object]
) -> None:
    """C42: an extra field; and types"""
    log.path.write_bytes(log.path.read_bytes() + chain_on(log, **changes))
    assert refused(log).line == COUNT + 1


def test_an_entry_in_another_spelling_is_refused(log: AuditLog) -> None:
    """C41: keys in another order, spaces, escapes"""
    last = json.loads(lines_of(log)[-1])
    for text in (json.dumps(last), json.dumps(last, sort_keys=True, separators=(",", ":"))):
        log.path.write_bytes(b"".join(lines_of(log)[:-1]) + f"{text}\n".encode())
        assert "another spelling" in str(log.check())


@pytest.mark.parametrize(
    "head",
    ["", "{}", "[]", '{"count": "200", "head": ""}', '{"count": true, "head": ""}', "{" * 99],
)
def test_a_head_that_is_none_is_refused(log: AuditLog, head: str) -> None:
    """C42"""
    log.path.with_suffix(".head").write_text(head, encoding="utf-8")
    assert refused(log).path.name == "audit.head"


# --- what an interrupted append leaves ----------------------------------------------------------


def behind(log: AuditLog, by: int) -> None:
    """The head as it was so many entries ago."""
    entry = list(log.entries())[-1 - by]
    log.path.with_suffix(".head").write_text(entry.tip.to_json(), encoding="utf-8")


def test_exactly_one_entry_that_the_head_does_not_count_is_taken_in_at_the_start(
    log: AuditLog,
) -> None:
    """C48; and until then nothing is appended (C47)"""
    behind(log, 1)
    assert log.check().line == COUNT
    assert "log.start() puts that right" in str(log.check())
    for each in (log, AuditLog(log.path)):
        with pytest.raises(AuditDamaged, match="interrupted"):
            each.append("x", {})
    again = AuditLog(log.path).start()
    assert again.repairs == ["Entry 200 is in the head now."]
    assert log.append("x", {}).index == COUNT + 1
    assert len(independent(log)) == COUNT + 1
    assert AuditLog(log.path).start().repairs == []


def test_an_entry_is_on_the_disk_before_the_head_counts_it(
    log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C45, C48: whoever was interrupted may not have come to that"""
    behind(log, 1)
    head, synced = log.path.with_suffix(".head"), []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_ino, head.read_bytes()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    before = head.read_bytes()
    AuditLog(log.path).start()
    assert (log.path.stat().st_ino, before) in synced


def test_the_very_first_entry_is_taken_in_too(tmp_path: Path) -> None:
    """C48"""
    log = filled(tmp_path, 1)
    log.path.with_suffix(".head").write_text(Tip().to_json(), encoding="utf-8")
    assert AuditLog(log.path).start().verify()


@pytest.mark.parametrize("by", [2, 3, 199])
def test_two_or_more_are_refused(log: AuditLog, by: int) -> None:
    """C48"""
    behind(log, by)
    refused(log)


def test_one_more_than_a_head_that_does_not_fit_is_refused(log: AuditLog) -> None:
    """C48"""
    head = log.path.with_suffix(".head")
    head.write_text(Tip(COUNT - 1, "f" * 64).to_json(), encoding="utf-8")
    refused(log)
    head.write_text(Tip(COUNT, "f" * 64).to_json(), encoding="utf-8")
    refused(log)


def test_one_more_entry_on_a_damaged_chain_is_refused(log: AuditLog) -> None:
    """C48: any damaged record"""
    behind(log, 1)
    data = log.path.read_bytes()
    log.path.write_bytes(data.replace("n° 77".encode(), "n° 78".encode(), 1))
    assert refused(log).line == 77


# --- where writing fails ------------------------------------------------------------------------


def test_on_a_full_disk_the_log_stays_whole_and_goes_on_later() -> None:
    """A failed append leaves nothing, whichever of its writes was the one that failed"""
    with small_disk("64k") as disk:
        log = AuditLog(disk / "audit.jsonl").start()
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 36 * 1024)
        with pytest.raises(OSError, match="Free some space"):
            for _ in range(1000):
                log.append("x", {"text": "x" * 500})
        count = log.check().entries
        assert log.verify()
        assert count
        ballast.unlink()
        assert log.append("x", {}).index == count + 1
        assert len(independent(log)) == count + 1


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """DESIGN, rule 8"""
    (tmp_path / "audit.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="never a link"):
        AuditLog(tmp_path / "audit.jsonl").start()
    assert not (tmp_path / "elsewhere").exists()
