"""Names: legal, unique, and the same every time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.tools.mcp.names import LONGEST, checked_server_name, mcp_name, mcp_names
from mini_harness.tools.mcp.server import McpServer

LEGAL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
SERVERS = st.from_regex(r"[A-Za-z](_?[A-Za-z0-9-]){0,31}", fullmatch=True)


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("git", "git_status", "mcp__git__git_status"),
        ("files", "read.text file", "mcp__files__read_text_file"),
        ("web", "größe", "mcp__web__gr__e"),
        ("web", "2fa", "mcp__web__mcp_2fa"),
        ("web", "_private", "mcp__web__mcp__private"),
        ("web", "", "mcp__web__tool"),
    ],
)
def test_a_name_says_server_and_tool_in_legal_characters(server: str, tool: str, name: str) -> None:
    """B18"""
    assert mcp_name(server, tool) == name


def test_a_long_name_is_cut_and_stays_distinct() -> None:
    """B18"""
    one, two = (mcp_name("server", "x" * 80 + end) for end in "ab")
    assert len(one) == len(two) == LONGEST
    assert one != two
    assert mcp_name("server", "x" * 80 + "a") == one


def test_names_that_would_be_the_same_are_told_apart_whatever_their_order() -> None:
    """B18"""
    names = mcp_names("s", ["a.b", "a_b", "c"])
    assert len(set(names)) == 3
    assert names[2] == "mcp__s__c"
    assert mcp_names("s", ["c", "a_b", "a.b"]) == names[::-1]


@given(SERVERS, st.lists(st.text(max_size=90), unique=True, max_size=8))
def test_every_name_is_legal_and_met_once(server: str, tools: list[str]) -> None:
    """B18"""
    names = mcp_names(server, tools)
    assert all(map(LEGAL.fullmatch, names))
    assert len(set(names)) == len(names)


@given(SERVERS, SERVERS, st.text(max_size=90), st.text(max_size=90))
def test_two_servers_never_have_a_name_in_common(a: str, b: str, one: str, two: str) -> None:
    """B18: "a" with "b__c" isn't "a__b" with "c", since no server is called "a__b"."""
    if a != b:
        assert mcp_name(a, one) != mcp_name(b, two)


@pytest.mark.parametrize("name", ["", "a__b", "a_", "1a", "a b", "ä", "x" * 40, "a\n"])
def test_a_server_whose_name_could_be_mistaken_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="can't be called"):
        McpServer(name, command="x")


@given(SERVERS)
def test_every_other_name_of_a_server_is_taken(name: str) -> None:
    assert checked_server_name(name) == name
