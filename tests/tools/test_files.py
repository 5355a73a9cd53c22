"""read_file shows bounded pieces of regular text files, and only of those inside the workspace."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_harness.protocol import Observation, ToolCall
from mini_harness.tools.base import ToolExecutionContext, ToolResult
from mini_harness.tools.call import prepare
from mini_harness.tools.files import MAX_BYTES, ReadFile, ReadFileInput, open_inside, quoted_path
from mini_harness.tools.registry import ToolRegistry

OUTSIDE = "With its links followed, it lies outside the workspace folder"


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A workspace folder, beside a secret that isn't in it."""
    (tmp_path / "secret.txt").write_text("secret\n", encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.txt").write_text("secret\n", encoding="utf-8")
    workspace = tmp_path / "workspace"
    (workspace / "sub").mkdir(parents=True)
    (workspace / "a.txt").write_text("inside\n", encoding="utf-8")
    (workspace / "sub" / "a.txt").write_text("inside\n", encoding="utf-8")
    return workspace


@pytest.fixture(params=["held place", "checked twice"])
def _opener(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules hold with Linux's O_PATH and on systems without it."""
    if request.param == "checked twice":
        monkeypatch.delattr(os, "O_PATH", raising=False)


both_openers = pytest.mark.usefixtures("_opener")


def read(cwd: Path, path: str, **arguments: Any) -> ToolResult:
    wanted = ReadFileInput(path=path, **arguments)
    return asyncio.run(ReadFile().execute(wanted, ToolExecutionContext(cwd=cwd)))


def shown(cwd: Path, data: bytes, **arguments: Any) -> str:
    (cwd / "f.txt").write_bytes(data)
    result = read(cwd, "f.txt", **arguments)
    assert not result.is_error, result.output
    return result.output


# --- what is shown


def test_lines_have_numbers_and_offset_and_limit_choose_them(tmp_path: Path) -> None:
    """B10, B11"""
    data = b"one\ntwo\n\nfour\n"
    assert shown(tmp_path, data) == "     1\tone\n     2\ttwo\n     3\t\n     4\tfour"
    note = "[More follows after line 3. To go on, read with offset=3.]"
    assert shown(tmp_path, data, offset=1, limit=2) == f"     2\ttwo\n     3\t\n{note}"
    assert shown(tmp_path, data, offset=2, limit=2) == "     3\t\n     4\tfour"


def test_two_hundred_lines_from_the_start_are_the_default(tmp_path: Path) -> None:
    """B11"""
    lines = shown(tmp_path, b"x\n" * 201).splitlines()
    assert lines[0] == "     1\tx"
    assert lines[199:] == [
        "   200\tx",
        "[More follows after line 200. To go on, read with offset=200.]",
    ]


@pytest.mark.parametrize(("field", "value"), [("offset", -1), ("limit", 0), ("limit", 2001)])
def test_offset_and_limit_have_bounds(field: str, value: int) -> None:
    """B11"""
    call = ToolCall(name="read_file", call_id="c", arguments={"path": "a", field: value})
    seen = prepare(ToolRegistry([ReadFile()]), call)
    assert isinstance(seen, Observation)
    assert field in seen.output


def test_an_empty_selection_is_no_error(tmp_path: Path) -> None:
    """B12, report B08"""
    nothing = "(no content in selected range for f.txt)"
    assert shown(tmp_path, b"") == nothing
    assert shown(tmp_path, b"\xef\xbb\xbf") == nothing
    assert shown(tmp_path, b"a\nb\n", offset=2) == nothing
    assert shown(tmp_path, b"a\nb\n", offset=10**18) == nothing


def test_a_line_ends_with_lf_or_crlf_and_with_nothing_else(tmp_path: Path) -> None:
    """Report B11"""
    assert shown(tmp_path, b"a\r\nb\nc\r\n") == "     1\ta\n     2\tb\n     3\tc"
    odd = "a\u2028b\u2029c\x0bd\x0ce\x85f\rg\r"
    assert shown(tmp_path, odd.encode()) == f"     1\t{odd}"


def test_a_byte_order_mark_is_not_shown(tmp_path: Path) -> None:
    """Report B11"""
    assert shown(tmp_path, b"\xef\xbb\xbfa\r\nb\r\n") == "     1\ta\n     2\tb"
    assert shown(tmp_path, b"\xef\xbb\xbfa\nb\n", offset=1) == "     2\tb"


def test_bad_utf8_is_replaced(tmp_path: Path) -> None:
    """B12"""
    assert shown(tmp_path, b"a\xffb\xf0\x9f\n") == "     1\ta\ufffdb\ufffd"


@given(st.lists(st.text(st.characters(exclude_characters="\0\n", codec="utf-8"))), st.booleans())
def test_what_is_shown_is_what_splitting_on_lf_gives(lines: list[str], ended: bool) -> None:
    """B10, report B11"""
    text = "\n".join(lines) + ("\n" if ended else "")
    wanted = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    if text.endswith("\r") or not text.removeprefix("\ufeff").endswith("\n"):
        wanted[-1] = text.removeprefix("\ufeff").split("\n")[-1]
    if not wanted[-1]:
        wanted.pop()
    with workspace() as folder:
        seen = shown(folder, text.encode(), limit=2000)
    expected = "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(wanted, 1))
    assert seen == (expected or "(no content in selected range for f.txt)")


@contextmanager
def workspace() -> Iterator[Path]:
    """A folder for one example of a property."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


# --- bounds


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_a_line_of_five_megabytes_is_cut_on_a_character_border(shift: int, tmp_path: Path) -> None:
    """Report B08"""
    start = b"x" * shift
    output = shown(tmp_path, start + "\u20ac".encode() * 1_700_000 + b"\nnext\n")
    line, note = output.split("\n")
    assert set(line.removeprefix("     1\t" + "x" * shift)) == {"\u20ac"}
    assert MAX_BYTES - 300 < len(output.encode()) <= MAX_BYTES
    assert re.fullmatch(r"\[Line 1 is cut: .* 50,9\d\d bytes .* offset=1\.\]", note)
    assert shown(tmp_path, b"a" * 5_000_000 + b"\nnext\n", offset=1) == "     2\tnext"


def test_bad_bytes_do_not_make_an_answer_larger_than_its_limit(tmp_path: Path) -> None:
    """B12, report B08"""
    output = shown(tmp_path, b"\xff" * 200_000)
    assert len(output.encode()) <= MAX_BYTES


@settings(max_examples=40)
@given(st.lists(st.sampled_from([0, 700, 20_000, 51_000, 60_000]), max_size=8))
def test_following_the_notes_shows_every_line_once(sizes: list[int]) -> None:
    """B11, report B08"""
    seen, offset = [], 0
    with workspace() as folder:
        data = b"".join(b"x" * size + b"\n" for size in sizes)
        while True:
            output = shown(folder, data, offset=offset, limit=5)
            assert len(output.encode()) <= MAX_BYTES
            seen += [int(number) for number in re.findall(r"^ *(\d+)\t", output, re.MULTILINE)]
            more = re.search(r"offset=(\d+)[^\n]*$", output)
            if not more:
                break
            offset = int(more[1])
    assert seen == list(range(1, len(sizes) + 1))


def test_a_sparse_file_of_two_gigabytes_is_bounded(tmp_path: Path) -> None:
    """Report B08"""
    with (tmp_path / "big").open("wb") as file:
        file.truncate(2 * 1024**3)
    assert read(tmp_path, "big").output == "Binary file cannot be read as text: big"
    with (tmp_path / "big").open("r+b") as file:
        file.write(b"line\n" * 10_000)
    output = read(tmp_path, "big", limit=2).output
    assert output.endswith("[More follows after line 2. To go on, read with offset=2.]")


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Report B08"""
    with (tmp_path / "big").open("wb") as file:
        for _ in range(100):
            file.write(b"x" * 1_000_000)
    program = f"""
import asyncio
from pathlib import Path
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.files import ReadFile, ReadFileInput

def peak():
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0])

async def read(offset):
    context = ToolExecutionContext(cwd=Path({str(tmp_path)!r}))
    return await ReadFile().execute(ReadFileInput(path="big", offset=offset), context)

before = peak()
print(len(asyncio.run(read(0)).output), len(asyncio.run(read(1)).output), peak() - before)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    cut, beyond, grown = map(int, done.stdout.split())
    assert cut > 50_000
    assert beyond < 100
    assert grown < 20_000, f"{grown} KiB more than before"


# --- errors


@both_openers
def test_errors_have_their_fixed_texts(room: Path) -> None:
    """B12"""
    (room / "n.bin").write_bytes(b"text\nthen\0")
    assert read(room, "no.txt") == ToolResult("File not found: no.txt", True)
    assert read(room, "a.txt/no") == ToolResult("File not found: a.txt/no", True)
    assert read(room, "sub") == ToolResult("Cannot read directory: sub", True)
    assert read(room, ".") == ToolResult("Cannot read directory: .", True)
    binary = "Binary file cannot be read as text: n.bin"
    assert read(room, "n.bin") == ToolResult(binary, True)


@both_openers
def test_a_fifo_and_a_socket_are_refused_at_once(room: Path, monkeypatch: Any) -> None:
    """Report B08, C24, B10"""
    os.mkfifo(room / "p")
    monkeypatch.chdir(room)  # The address of a socket may have 107 bytes only.
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
        assert read(room, "p").output == ("Cannot read file: p. It is a FIFO, not a regular file.")
        assert read(room, "s").output == (
            "Cannot read file: s. It is a socket, not a regular file."
        )


@both_openers
def test_a_device_is_refused_inside_the_workspace_too(room: Path) -> None:
    """Report B08, C24"""
    refused = "Cannot read file: zero. It is a device, not a regular file."
    assert read(Path("/dev"), "zero") == ToolResult(refused, True)
    assert read(room, "/dev/zero").is_error


@both_openers
def test_the_helper_raises_permission_error_for_what_it_refuses(room: Path) -> None:
    """C24"""
    os.mkfifo(room / "p")
    (room / "link").symlink_to(room.parent / "secret.txt")
    for path in ("p", "link", "../secret.txt", str(room.parent / "secret.txt")):
        with pytest.raises(PermissionError, match=re.escape(path)):
            open_inside(room, path)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a\0b", "It holds a NUL character"),
        ("a\udc00b\ud800", "It holds half of a character (a lone surrogate)"),
        ("x" * 300, "File name too long"),
    ],
)
@both_openers
def test_a_text_that_is_no_path_gets_a_readable_error(room: Path, path: str, reason: str) -> None:
    """Report B07"""
    result = read(room, path)
    assert result.is_error
    assert result.output.endswith(f" {reason}.")
    assert result.output.isprintable()
    assert not read(room, "a.txt").is_error


@given(st.text(max_size=40))
def test_no_path_makes_the_tool_raise(path: str) -> None:
    """Report B07"""
    with workspace() as folder:
        assert read(folder, path).is_error


def test_an_endless_link_is_a_readable_error(room: Path) -> None:
    """B12"""
    (room / "loop").symlink_to("loop")
    assert "symbolic links" in read(room, "loop").output


# --- inside and outside


@pytest.fixture
def links(room: Path) -> Path:
    outside = room.parent
    (room / "out").symlink_to(outside / "secret.txt")
    (room / "out2").symlink_to("out")
    (room / "escape").symlink_to(outside / "elsewhere")
    (room / "dangling").symlink_to(outside / "nobody")
    (room / "in").symlink_to("sub/a.txt")
    (room / "in-absolute").symlink_to(room / "a.txt")
    (room / "in-folder").symlink_to("sub")
    (room / "around").symlink_to("../workspace/a.txt")
    return room


@both_openers
@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "../nobody.txt",
        "sub/../../secret.txt",
        "/etc/passwd",
        "/etc/nobody",
        "out",
        "out2",
        "escape/a.txt",
        "escape/../secret.txt",
        "dangling",
        "..",
        "/proc/self/environ",
    ],
)
def test_a_path_that_leads_outside_is_refused_and_named(links: Path, path: str) -> None:
    """C24, report B10"""
    text = f"Cannot read file: {quoted_path(path)}. {OUTSIDE}."
    assert read(links, path) == ToolResult(text, True)


@both_openers
@pytest.mark.parametrize(
    "path", ["a.txt", "sub/../a.txt", "in", "in-absolute", "in-folder/a.txt", "around"]
)
def test_a_path_or_link_that_stays_inside_is_read(links: Path, path: str) -> None:
    """C24, report B10"""
    assert read(links, path).output == "     1\tinside"
    assert read(links, str(links / path)).output == "     1\tinside"


@both_openers
def test_the_workspace_itself_may_be_reached_through_a_link(room: Path) -> None:
    """B10"""
    (room.parent / "shortcut").symlink_to("workspace")
    assert read(room.parent / "shortcut", "a.txt").output == "     1\tinside"
    assert read(room.parent / "shortcut", "../secret.txt").is_error


@both_openers
def test_a_folder_whose_name_begins_alike_is_outside(room: Path) -> None:
    """C24"""
    (room.parent / "workspace2").mkdir()
    (room.parent / "workspace2" / "a.txt").write_text("secret", encoding="utf-8")
    assert OUTSIDE in read(room, "../workspace2/a.txt").output


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="without O_PATH a small gap is documented")
@pytest.mark.parametrize(
    ("path", "inside", "outside"),
    [("swapped", "sub/a.txt", "../secret.txt"), ("swapped/a.txt", "sub", "../elsewhere")],
    ids=["file", "parent folder"],
)
def test_a_link_swapped_while_reading_never_shows_outside_bytes(
    room: Path, path: str, inside: str, outside: str
) -> None:
    """Report B10, C24"""
    (room / "swapped").symlink_to(inside)
    swap = f"""
from pathlib import Path
while True:
    for target in ({outside!r}, {inside!r}):
        Path("next").symlink_to(target)
        Path("next").replace("swapped")
"""
    swapper = subprocess.Popen([sys.executable, "-c", swap], cwd=room)
    try:
        seen = asyncio.run(_read_until_both_seen(room, path))
    finally:
        swapper.kill()
        swapper.wait()
    assert set(seen) == {"     1\tinside", f"Cannot read file: {path}. {OUTSIDE}."}


@both_openers
def test_a_folder_swapped_between_check_and_open_is_noticed(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report B10, C24"""
    really_open = os.open

    def swap_then_open(path: Path, flags: int) -> int:
        if not (room / "sub").is_symlink():
            (room / "sub").rename(room / "moved")
            (room / "sub").symlink_to("../elsewhere")
        return really_open(path, flags)

    monkeypatch.setattr(os, "open", swap_then_open)
    with pytest.raises(PermissionError, match=OUTSIDE):
        open_inside(room, "sub/a.txt")


@both_openers
def test_a_fifo_swapped_in_between_check_and_open_blocks_nobody(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report B08, B10"""
    really_open, never_blocks = os.open, os.O_NONBLOCK | getattr(os, "O_PATH", 0)

    def swap_then_open(path: Path, flags: int) -> int:
        assert flags & never_blocks, "this open would wait for a writer"
        (room / "a.txt").unlink(missing_ok=True)
        os.mkfifo(room / "a.txt")
        return really_open(path, flags)

    monkeypatch.setattr(os, "open", swap_then_open)
    with pytest.raises(PermissionError, match="not a regular file"):
        open_inside(room, "a.txt")


async def _read_until_both_seen(room: Path, path: str) -> Counter[str]:
    """Read until two outcomes came often enough: else the race was never run."""
    wanted, context = ReadFileInput(path=path), ToolExecutionContext(cwd=room)
    seen: Counter[str] = Counter()
    for _ in range(50_000):
        seen[(await ReadFile().execute(wanted, context)).output] += 1
        if len(seen) > 1 and seen.most_common(2)[1][1] >= 500:
            return seen
    raise AssertionError(f"The link was never swapped often enough: {seen}")


# --- and the rest


def test_reading_only_reads() -> None:
    """B10"""
    assert ReadFile().is_read_only(ReadFileInput(path="a"))


def test_no_descriptor_is_left_open(links: Path) -> None:
    """B10"""
    os.mkfifo(links / "p")
    (links / "n.bin").write_bytes(b"\0")
    paths = ("a.txt", "sub", "out", "escape/a.txt", "p", "n.bin", "no", "a\0")
    read(links, "a.txt")
    before = psutil.Process().num_fds()
    for _ in range(25):
        for path in paths:
            read(links, path)
    assert psutil.Process().num_fds() == before
