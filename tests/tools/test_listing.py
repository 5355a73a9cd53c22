"""list_files and glob show names inside the workspace, in order and within bounds."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.tools import listing
from mini_harness.tools.files import quoted_path
from mini_harness.tools.listing import MAX_BYTES, MAX_SHOWN, Glob, ListFiles, PathPattern
from mini_harness.tools.places import enter
from tests.tools.workshop import OUTSIDE, folder, play, told, use


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A workspace with links in and out, beside a folder that isn't in it."""
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    (tmp_path / "elsewhere/secret.py").write_bytes(b"secret")
    workspace = tmp_path / "workspace"
    for path in ("b.py", "a/x.py", "a/deep/y.py", "a.txt", ".git/config", ".mini_harness/r.txt"):
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_bytes(b"12345")
    (workspace / "in").symlink_to("a")
    (workspace / "out").symlink_to("../elsewhere")
    (workspace / "loop").symlink_to(".")
    return workspace


def listed(cwd: Path, path: str = ".", depth: int = 1) -> str:
    result = use(ListFiles(), cwd, path=path, depth=depth)
    assert not result.is_error, result.output
    return result.output


def found(cwd: Path, pattern: str, path: str = ".") -> list[str]:
    result = use(Glob(), cwd, pattern=pattern, path=path)
    assert not result.is_error, result.output
    return result.output.splitlines()


# --- what is shown


def test_a_folder_is_shown_in_the_order_of_its_paths(room: Path) -> None:
    os.mkfifo(room / "p")
    assert listed(room).splitlines() == [
        ".git/",
        ".mini_harness/",
        "a/",
        "a.txt (5 bytes)",
        "b.py (5 bytes)",
        "in (a link)",
        "loop (a link)",
        "out (a link)",
        "p (no regular file)",
    ]


def test_deeper_levels_are_shown_as_far_as_is_wanted(room: Path) -> None:
    inner = ["a/", "a/deep/", "a/x.py (5 bytes)"]
    assert listed(room, depth=2).splitlines()[2:5] == inner
    deep = ["a/deep/", "a/deep/y.py (5 bytes)", "a/x.py (5 bytes)"]
    assert listed(room, "a", depth=9).splitlines() == deep
    assert "config" not in listed(room, depth=9)


def test_a_skipped_folder_is_shown_if_it_is_asked_for(room: Path) -> None:
    """C25"""
    assert listed(room, ".mini_harness") == ".mini_harness/r.txt (5 bytes)"
    assert found(room, "*", ".git") == [".git/config"]


def test_an_empty_folder_is_no_error(room: Path) -> None:
    (room / "e").mkdir()
    assert listed(room, "e") == "(nothing in e)"
    assert found(room, "*.md") == ["(nothing fits *.md in .)"]


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("*.py", ["b.py"]),
        ("**/*.py", ["a/deep/y.py", "a/x.py", "b.py"]),
        ("a/**", ["a/deep/", "a/deep/y.py", "a/x.py"]),
        ("a/**/y.py", ["a/deep/y.py"]),
        ("**/deep/**/*.py", ["a/deep/y.py"]),
        ("./a//x.py", ["a/x.py"]),
        ("?.py", ["b.py"]),
        ("[ab]*", ["a/", "a.txt", "b.py"]),
        ("[!a].py", ["b.py"]),
        ("[", ["(nothing fits [ in .)"]),
        ("a", ["a/"]),
        ("*.{py,md}", ["b.py"]),
        ("{a,in}/**/{x,y}.p{y,}", ["a/deep/y.py", "a/x.py"]),
        ("{a}.txt", ["a.txt"]),
        ("[{]*", ["(nothing fits [{]* in .)"]),
        ("A/*", ["(nothing fits A/* in .)"]),
        ("in/*", ["(nothing fits in/* in .)"]),
        ("out", ["out"]),
        (".git/*", ["(nothing fits .git/* in .)"]),
    ],
)
def test_a_pattern_means_what_it_says(pattern: str, paths: list[str], room: Path) -> None:
    assert found(room, pattern) == paths


def test_paths_are_seen_from_the_workspace_and_patterns_from_their_folder(room: Path) -> None:
    assert found(room, "*.py", "a") == ["a/x.py"]
    assert found(room, "*.py", "in") == ["a/x.py"]
    assert found(room, "*.py", str(room / "a/../a")) == ["a/x.py"]


_PARTS = st.lists(st.sampled_from(["a", "b", "ab", "ba"]), min_size=1, max_size=5)
_PATTERN = st.lists(st.sampled_from(["a", "*", "a*", "?", "**", "[ab]"]), min_size=1, max_size=5)


def _fits(pattern: list[str], path: list[str]) -> bool:
    """The meaning of a pattern, as one would write it down."""
    if not pattern:
        return not path
    first, *rest = pattern
    if first == "**":
        return any(_fits(rest or ["*"], path[at:]) for at in range(len(path) + (rest != [])))
    one = ["a", "b"]
    names = {"a": ["a"], "*": path[:1], "a*": ["a", "ab"], "?": one, "[ab]": one}
    return bool(path) and path[0] in names[first] and _fits(rest, path[1:])


@given(_PATTERN, _PARTS)
def test_patterns_agree_with_their_meaning(pattern: list[str], path: list[str]) -> None:
    wanted = PathPattern("/".join(pattern))
    assert wanted.fits(tuple(path)) == _fits(pattern, path)
    if wanted.fits(tuple(path)):
        assert all(wanted.leads_into(tuple(path[:at])) for at in range(len(path)))


# --- inside and outside


@pytest.mark.parametrize("path", ["..", "out", "out/deep", "/etc", "a/../..", "out/../elsewhere"])
def test_nothing_outside_is_looked_at(path: str, room: Path) -> None:
    """C24, report B10"""
    said = f"Cannot look into folder: {quoted_path(path)}. {OUTSIDE}."
    assert use(ListFiles(), room, path=path).output == said
    assert use(Glob(), room, path=path, pattern="*").output == said


@pytest.mark.parametrize("pattern", ["../*", "a/../../*", "/etc/*", "/", "."])
def test_a_pattern_that_leads_out_is_refused(pattern: str, room: Path) -> None:
    """C24, report B10"""
    result = use(Glob(), room, pattern=pattern)
    assert result.is_error
    assert result.output.startswith("A pattern is seen from its folder")


@pytest.mark.parametrize("pattern", ["{a", "a}", "{a,{b,c}}", "{a/x,b}.py", "{a,b}" * 7])
def test_braces_that_cannot_be_taken_apart_are_refused(pattern: str, room: Path) -> None:
    result = use(Glob(), room, pattern=pattern)
    assert result.is_error
    assert "braces" in result.output or "more than 64 alternatives" in result.output


def test_a_name_with_a_brace_in_it_can_be_asked_for(room: Path) -> None:
    (room / "{x}.py").touch()
    assert found(room, "[{]x[}].{py,md}") == ["{x}.py"]


def test_no_link_to_a_folder_is_followed(room: Path) -> None:
    """C24, report B10"""
    everything = "\n".join(found(room, "**")) + listed(room, depth=10)
    assert "secret" not in everything
    assert "in/x.py" not in everything


def test_a_folder_swapped_for_a_link_while_it_is_walked_is_left_out(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C24, report B10"""

    def swap_then_enter(name: str, held: int) -> int:
        if name == "a":
            (room / "a").rename(room / "moved")
            (room / "a").symlink_to("../elsewhere")
        return enter(name, held)

    monkeypatch.setattr(listing, "enter", swap_then_enter)
    lines = found(room, "**/*.py")
    assert lines[0] == "b.py"
    assert lines[1].startswith("[Not everything was looked at: ")
    assert len(lines) == 2


def test_what_is_no_folder_gets_a_readable_error(room: Path) -> None:
    """report B07"""
    assert use(ListFiles(), room, path="no").output == "Folder not found: no"
    said = "It is no folder: b.py. Name the folder it lies in."
    assert use(ListFiles(), room, path="b.py").output == said
    for path in ("a\0", "\ud800", "x" * 300):
        assert use(ListFiles(), room, path=path).is_error
        assert use(Glob(), room, path=path, pattern="*").output.isprintable()


# --- bounds


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 100,000 files in it."""
    crowded = tmp_path_factory.mktemp("crowd")
    for number in range(100_000):
        os.mknod(crowded / f"f{number:06}")
    return crowded


@pytest.mark.once
def test_a_hundred_thousand_files_are_shown_in_part_and_counted(crowd: Path) -> None:
    begun = time.monotonic()
    for lines in (listed(crowd).splitlines(), found(crowd, "**/f*")):
        assert lines[0].startswith("f000000")
        assert len(lines) == MAX_SHOWN + 1
        assert lines[-1].startswith("[99,500 more are not shown. ")
    assert found(crowd, "f09999?")[9:] == ["f099999"]
    assert time.monotonic() - begun < 30


@pytest.mark.once
def test_a_pattern_of_many_stars_is_not_slow(crowd: Path) -> None:
    begun = time.monotonic()
    assert found(crowd, "**/" * 80 + "*f*" * 5 + "x")[0].startswith("(nothing fits")
    assert found(crowd, "*0" * 100 + "x")[0].startswith("(nothing fits")
    assert time.monotonic() - begun < 30


def test_more_names_than_may_be_looked_at_are_said_to_be_there(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MAX_LOOKED", 12)
    assert listed(room).count("\n") == 7
    for number in range(20):
        (room / f"a/{number}").touch()
    assert "[Not everything was looked at: " in listed(room, depth=2)
    monkeypatch.setattr(listing, "MAX_SHOWN", 3)
    assert listed(room, depth=2).splitlines()[3].startswith("[At least ")


def test_a_walk_ends_when_its_time_is_over(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SECONDS", -1)
    assert listed(room).startswith("[Not everything was looked at: ")


def test_a_very_deep_tree_ends_somewhere(room: Path) -> None:
    deep = room / "/".join(["d"] * 100)
    deep.mkdir(parents=True)
    lines = found(room, "d/**")
    assert len(lines) == 65
    assert lines[-1].startswith("[Not everything was looked at: ")


def test_an_answer_is_bounded_in_bytes(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"{number:03}{'€' * 80}").touch()
    output = listed(tmp_path)
    assert len(output.encode()) <= MAX_BYTES
    assert "more are not shown" in output.splitlines()[-1]
    assert len(output.encode()) > MAX_BYTES - 1_000


def test_names_with_line_ends_and_bad_bytes_stay_on_one_line(tmp_path: Path) -> None:
    """report B07"""
    names = [b"a\nb (1 bytes)", b"c\xff", b"d\x1b[2J", "e\u202e".encode()]
    for name in names:
        os.close(os.open(os.fsencode(tmp_path) + b"/" + name, os.O_CREAT))
    wanted = ["'a\\nb (1 bytes)'", "'c\\udcff'", "'d\\x1b[2J'", "'e\\u202e'"]
    assert found(tmp_path, "*") == wanted
    assert listed(tmp_path).splitlines() == [f"{name} (0 bytes)" for name in wanted]
    assert told(play(tmp_path, ("list_files", {}), ("glob", {"pattern": "*"})))[1].isascii()


@given(st.text(max_size=30), st.text(min_size=1, max_size=30))
def test_no_argument_makes_a_tool_raise(path: str, pattern: str) -> None:
    """report B07"""
    with folder() as cwd:
        use(Glob(), cwd, path=path, pattern=pattern)
        use(ListFiles(), cwd, path=path)


def test_listing_only_reads() -> None:
    """B04"""
    for tool in (ListFiles(), Glob()):
        given = tool.input_model(**({"pattern": "*"} if tool.name == "glob" else {}))
        assert tool.is_read_only(given)
        assert tool.idempotent
        assert tool.paths(given) == ["."]
