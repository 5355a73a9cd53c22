"""grep shows the lines that match, reads no secrets, and always comes to an end."""

import asyncio
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_harness.tools import grep_child
from mini_harness.tools.base import ToolExecutionContext, ToolResult
from mini_harness.tools.grep import MAX_BYTES, MAX_LINES, Grep
from mini_harness.tools.listing import SKIPPED, Glob
from tests.tools.workshop import OUTSIDE, folder, play, told, use

HOPELESS = "(a+)+$"
HOSTILE = b"a" * 40 + b"!\n"


def grep(cwd: Path, pattern: str, path: str = ".", **more: Any) -> str:
    result = use(Grep(), cwd, pattern=pattern, path=path, **more)
    assert not result.is_error, result.output
    return result.output


def fill(cwd: Path, **files: bytes) -> None:
    for name, data in files.items():
        path = cwd / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


# --- what is shown


def test_matching_lines_are_shown_with_path_and_number_in_order(tmp_path: Path) -> None:
    fill(tmp_path, b_py=b"x = 1\ny = 2\n", a__c_py=b"\nx = 3", a_txt=b"x\n")
    assert grep(tmp_path, "x") == "a/c.py:2: x = 3\na.txt:1: x\nb.py:1: x = 1"
    assert grep(tmp_path, r"^x = \d$") == "a/c.py:2: x = 3\nb.py:1: x = 1"
    assert grep(tmp_path, "nobody") == "(no line matches)"
    assert grep(tmp_path, "x", "b.py") == "b.py:1: x = 1"
    assert grep(tmp_path, "x", "a") == "a/c.py:2: x = 3"


def test_files_are_chosen_by_a_glob(tmp_path: Path) -> None:
    fill(tmp_path, a_py=b"x", d__b_py=b"x", d__e__c_py=b"x", d__c_md=b"x")
    assert grep(tmp_path, "x", glob="*.py") == "a.py:1: x\nd/b.py:1: x\nd/e/c.py:1: x"
    assert grep(tmp_path, "x", glob="d/*.py") == "d/b.py:1: x"
    assert grep(tmp_path, "x", "d", glob="e/*") == "d/e/c.py:1: x"
    assert grep(tmp_path, "x", "d", glob="*.{py,md}").splitlines() == [
        "d/b.py:1: x",
        "d/c.md:1: x",
        "d/e/c.py:1: x",
    ]


def test_where_no_file_was_searched_nothing_is_said_of_lines(tmp_path: Path) -> None:
    fill(tmp_path, a_py=b"x", empty=b"")
    nothing = "(there is no file with anything in it in '.'"
    assert grep(tmp_path, "x", glob="*.rs") == f"{nothing} whose path fits *.rs)"
    assert grep(tmp_path, "x", glob="empty") == f"{nothing} whose path fits empty)"
    (tmp_path / "d").mkdir()
    assert grep(tmp_path, "x", "d") == "(there is no file with anything in it in d)"


def test_the_description_says_which_folders_are_left_out() -> None:
    for name in SKIPPED:
        assert name in Grep.description
        assert name in Glob.description


def test_case_counts_unless_it_is_ignored(tmp_path: Path) -> None:
    fill(tmp_path, f="Straße Öl\n".encode())
    assert grep(tmp_path, "öl") == "(no line matches)"
    assert grep(tmp_path, "öl", ignore_case=True) == "f:1: Straße Öl"


def test_lines_around_a_match_are_shown_once_with_gaps_between(tmp_path: Path) -> None:
    fill(tmp_path, f=b"1\n2x\n3\n4x\n5\n6\n7\n8\n9x", g=b"x")
    assert grep(tmp_path, "x", context=1).splitlines() == [
        "f-1- 1",
        "f:2: 2x",
        "f-3- 3",
        "f:4: 4x",
        "f-5- 5",
        "--",
        "f-8- 8",
        "f:9: 9x",
        "--",
        "g:1: x",
    ]


def test_line_ends_marks_and_bad_bytes_do_not_hide_a_match(tmp_path: Path) -> None:
    """report B11"""
    fill(tmp_path, f=b"\xef\xbb\xbfab\r\nb\xff\rb\n\xe2\x80\xa8b\n")
    assert grep(tmp_path, "^ab$") == "f:1: ab"
    assert grep(tmp_path, "b$") == "f:1: ab\nf:2: b\ufffd\rb\nf:3: \u2028b"


_LINES = st.lists(st.text("ab \r€", max_size=6), max_size=12)


@settings(max_examples=60)
@given(_LINES, st.sampled_from(["a", "b a", "a$", "^b", "€+", "[^a]", "^$", r"\r"]))
def test_the_lines_found_are_those_that_a_plain_search_finds(
    lines: list[str], pattern: str
) -> None:
    data = "\n".join(lines).encode()
    found: list[int] = []
    texts = data.decode().replace("\r\n", "\n").split("\n")
    wanted = [n for n, text in enumerate(texts, 1) if re.search(pattern, text)]
    if not texts[-1] and len(texts) in wanted:
        wanted.remove(len(texts))
    with folder() as cwd, pytest.MonkeyPatch.context() as patch:
        patch.setattr(grep_child, "say", lambda **said: found.append(said["line"]))
        request = {"pattern": pattern, "ignore_case": False, "context": 0, "lines": 99}
        search = grep_child.Search({**request, "root": str(cwd)})
        search._through(io.BytesIO(data))
        for _, descriptor in search._folders._held:
            os.close(descriptor)
    assert found == wanted


def test_a_pattern_that_is_none_is_refused_with_its_fault(tmp_path: Path) -> None:
    fill(tmp_path, f=b"x")
    for pattern in (
        "(",
        "a{2,1}",
        "(?<=a+)b",
        "(?P<a>x)(?P<a>y)",
        "*",
        "\\",
        "x{99999999999999999}",
    ):
        result = use(Grep(), tmp_path, pattern=pattern)
        assert result.is_error
        assert result.output.startswith("The pattern is no regular expression that can be used: ")
    warned = use(Grep(), tmp_path, pattern="[[x]]|x")
    assert warned.output == "f:1: x"


# --- what isn't read


@pytest.mark.parametrize(
    "name", [".env", ".ssh/id_rsa", "sub/.netrc", "deploy.pem", ".aws/credentials", "id_ed25519"]
)
def test_the_content_of_credentials_is_never_shown(name: str, tmp_path: Path) -> None:
    """B20"""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"TOKEN=hunter22\n")
    fill(tmp_path, f=b"hunter\n")
    said = "[Files that weren't searched: 1 that may hold credentials.]"
    assert grep(tmp_path, "hunter") == f"f:1: hunter\n{said}"
    assert grep(tmp_path, "hunter", name) == f"(no line matches)\n{said}"
    parent = str(Path(name).parent)
    assert "hunter22" not in grep(tmp_path, "hunter", parent, context=5)
    assert "hunter22" not in grep(tmp_path, "hunter", glob="**/*")


def test_no_link_is_read_wherever_it_leads(tmp_path: Path) -> None:
    """C24, report B10"""
    (tmp_path / "home/.ssh").mkdir(parents=True)
    fill(tmp_path, home__notes=b"hunter22")
    (tmp_path / "home/.ssh/id_rsa").write_bytes(b"hunter22")
    room = tmp_path / "room"
    (room / ".ssh").mkdir(parents=True)
    (room / ".ssh/key").write_bytes(b"hunter22")
    for name, target in {
        "keys": "../home/.ssh",
        "key": "../home/.ssh/id_rsa",
        "notes": "../home/notes",
        "home": str(tmp_path / "home"),
        "inner": ".ssh",
        "inner-key": ".ssh/key",
    }.items():
        (room / name).symlink_to(target)
    assert "hunter22" not in grep(room, "hunter")
    for path in ("keys", "key", "notes", "home", "home/notes", "../home"):
        result = use(Grep(), room, pattern="hunter", path=path)
        assert result.is_error
        assert OUTSIDE in result.output
    assert "hunter22" not in grep(room, "hunter", "inner")
    assert "hunter22" not in grep(room, "hunter", "inner-key")


def test_a_link_with_the_name_of_a_secret_is_taken_for_one(tmp_path: Path) -> None:
    """B20"""
    fill(tmp_path, notes=b"hunter22")
    (tmp_path / "id_rsa").symlink_to("notes")
    assert grep(tmp_path, "hunter", "id_rsa").startswith("(no line matches)\n[Files that weren't")


def test_a_folder_or_file_swapped_for_a_link_is_not_read(tmp_path: Path) -> None:
    """C24, report B10: between the choice of the files and the search"""
    fill(tmp_path, elsewhere__f=b"hunter22", room__a__f=b"inside", room__g=b"inside")
    request = {"pattern": ".", "ignore_case": False, "context": 0, "lines": 9}
    search = grep_child.Search({**request, "root": str(tmp_path / "room")})
    (tmp_path / "room/a").rename(tmp_path / "room/moved")
    (tmp_path / "room/a").symlink_to("../elsewhere")
    (tmp_path / "room/g").unlink()
    (tmp_path / "room/g").symlink_to("../elsewhere/f")
    search.through([["a", "f"], ["g"]])
    assert search.found == {"lines": 0, "files": 0, "binary": 0, "unread": 2}
    for _, descriptor in search._folders._held:
        os.close(descriptor)


def test_binary_files_and_what_is_no_file_are_left_out(tmp_path: Path) -> None:
    fill(tmp_path, early=b"x\0", late=b"x\n" * 9_000 + b"\0x\n", f=b"x")
    os.mkfifo(tmp_path / "p")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_bytes(b"x")
    assert grep(tmp_path, "x") == "f:1: x\n[Files that weren't searched: 2 that are binary.]"
    assert grep(tmp_path, "x", ".git") == ".git/config:1: x"
    refused = use(Grep(), tmp_path, pattern="x", path="p")
    assert refused.is_error


def test_a_path_or_glob_that_cannot_be_gets_a_readable_error(tmp_path: Path) -> None:
    """report B07"""
    for path in ("no", "a\0", "\ud800", "x" * 300, ".."):
        result = use(Grep(), tmp_path, pattern="x", path=path)
        assert result.is_error
        assert result.output.isprintable()
    assert use(Grep(), tmp_path, pattern="x", glob="../*").is_error
    assert use(Grep(), tmp_path / "gone", pattern="x").is_error


# --- it ends


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def test_a_hopeless_pattern_ends_in_time_and_leaves_no_process(tmp_path: Path) -> None:
    fill(tmp_path, a=b"aaa\n", b=HOSTILE)
    before = children()
    begun = time.monotonic()
    result = use(Grep(seconds=1.5), tmp_path, pattern=HOPELESS)
    assert time.monotonic() - begun < 15
    assert result.is_error
    assert result.metadata == {"timed_out": True}
    assert result.output == (
        "a:1: aaa\n[The search was ended after 1.5 seconds. It was at b. "
        "Use a simpler pattern, or a narrower path or glob.]"
    )
    assert children() == before


def test_a_cancelled_search_leaves_no_process(tmp_path: Path) -> None:
    fill(tmp_path, b=HOSTILE)
    before = children()

    async def cancel() -> None:
        tool = Grep()
        wanted = tool.input_model(pattern=HOPELESS)
        task = asyncio.create_task(tool.execute(wanted, ToolExecutionContext(cwd=tmp_path)))
        for _ in range(1_000):
            if len(children()) > len(before):
                break
            await asyncio.sleep(0.01)
        assert len(children()) == len(before) + 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert children() == before


@pytest.mark.once
def test_a_search_that_nobody_waits_for_any_more_ends_by_itself(tmp_path: Path) -> None:
    """The harness was killed: only the system can end the search then."""
    fill(tmp_path, b=HOSTILE)
    request = {"pattern": HOPELESS, "ignore_case": False, "context": 0, "lines": 9, "seconds": 1}
    program = Path(grep_child.__file__)
    done = subprocess.run(
        [sys.executable, "-I", str(program)],
        input=json.dumps({**request, "root": str(tmp_path), "files": [["b"]]}),
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode < 0


@pytest.mark.once
def test_a_search_that_wants_too_much_memory_breaks_off(tmp_path: Path) -> None:
    fill(tmp_path, a=b"aaa\n", b=b"ab" * 8_000_000)
    result = use(Grep(seconds=60), tmp_path, pattern="(?:(a)|b)*?c|^aaa")
    assert result.output.startswith("a:1: aaa\n[The search broke off: MemoryError. It was at b.")
    assert result.is_error


def test_the_time_must_be_more_than_nothing() -> None:
    for seconds in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="must be more than 0"):
            Grep(seconds)


# --- bounds


def test_matches_beyond_the_bound_are_counted(tmp_path: Path) -> None:
    fill(tmp_path, a=b"x\n" * 150, b=b"x\n" * 150)
    lines = grep(tmp_path, "x").splitlines()
    assert len(lines) == MAX_LINES + 1
    assert lines[MAX_LINES - 1] == "b:50: x"
    assert lines[-1].startswith("[300 lines in 2 files match. The first 200 are shown. ")
    assert len(grep(tmp_path, "x", context=5).splitlines()) < MAX_LINES + 10
    fill(tmp_path, a=b"x\n" * 50_000)
    assert (
        grep(tmp_path, "x").splitlines()[-1].startswith("[At least 10,000 lines in 1 file match. ")
    )


@pytest.mark.once
def test_a_line_of_ten_megabytes_is_shown_where_it_matches(tmp_path: Path) -> None:
    fill(tmp_path, f=b"x" * 5_000_000 + b"needle" + b"y" * 5_000_000, g=b"needle")
    first, second = grep(tmp_path, "n.edle", context=5).replace("--\n", "").splitlines()
    assert first == f"f:1: [...]{'x' * 60}needle{'y' * 234}[...]"
    assert second == "g:1: needle"
    slow = use(Grep(seconds=1), tmp_path, pattern="x+y").output
    assert slow.startswith("[The search was ended after 1 seconds. It was at f.")


def test_an_answer_is_bounded_in_bytes(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{'€' * 80}{number:02}").write_bytes("x😀".encode() * 500 + b"\n")
    output = grep(tmp_path, "x")
    assert MAX_BYTES - 3_000 < len(output.encode()) <= MAX_BYTES
    assert "40 lines in 40 files match. The first " in output.splitlines()[-1]


@pytest.mark.once
def test_a_hundred_thousand_files_are_searched(tmp_path: Path) -> None:
    fill(tmp_path, a=b"a", b=b"b", z=b"needle")
    for number in range(50_000):
        os.link(tmp_path / "a", tmp_path / f"fa{number:06}")
        os.link(tmp_path / "b", tmp_path / f"fb{number:06}")
    (tmp_path / "fb025000").unlink()
    fill(tmp_path, fb025000=b"needle")
    found = use(Grep(seconds=120), tmp_path, pattern="needle")
    assert found.output == "fb025000:1: needle\nz:1: needle"


def test_names_with_line_ends_and_bad_bytes_stay_on_one_line(tmp_path: Path) -> None:
    """report B07"""
    for name in (b"a\nb:1: x", b"c\xff"):
        path = os.fsencode(tmp_path) + b"/" + name
        with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY), "wb") as file:
            file.write(b"x")
    assert grep(tmp_path, "x") == "'a\\nb:1: x':1: x\n'c\\udcff':1: x"
    assert told(play(tmp_path, ("grep", {"pattern": "x"})))[0].count("\n") == 1


@settings(max_examples=15)
@given(st.text(max_size=20), st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=9))
def test_no_argument_makes_the_tool_raise(path: str, pattern: str, glob: str) -> None:
    """report B07"""
    with folder() as cwd:
        fill(cwd, f=b"aaa")
        try:
            wanted = Grep.input_model(path=path, pattern=pattern, glob=glob)
        except ValueError:
            return
        context = ToolExecutionContext(cwd=cwd)
        assert isinstance(asyncio.run(Grep().execute(wanted, context)), ToolResult)


def test_searching_only_reads() -> None:
    """B04"""
    given_arguments = Grep.input_model(pattern="x", path="a")
    assert Grep().is_read_only(given_arguments)
    assert Grep().idempotent
    assert Grep().paths(given_arguments) == ["a"]


def test_the_program_that_searches_knows_only_the_standard_library() -> None:
    program = f"import runpy, sys; runpy.run_path({grep_child.__file__!r}); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded <= {*sys.stdlib_module_names, "__main__", "<run_path>"}
