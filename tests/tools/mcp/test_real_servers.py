"""Five servers that others wrote, each a process of its own, seen through a real harness."""

import asyncio
import os
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mini_harness.policy import Policy
from mini_harness.protocol import ToolCall
from mini_harness.run import Status
from mini_harness.tools.base import BaseTool
from mini_harness.tools.mcp.server import McpServer
from mini_harness.tools.registry import ToolRegistry
from tests.loops import DONE, Played, check, harness, play, tool_messages, turn
from tests.tools.mcp.conftest import Node

Tools = list[BaseTool]
PICTURE = b"\x89PNG\r\n\x1a\n" + b"\0" * 92


def sees(tools: Tools, *calls: tuple[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Outcome and output of each call, made by a model in one turn of a real harness."""
    made = [
        ToolCall(name, arguments, str(number)) for number, (name, arguments) in enumerate(calls)
    ]
    played: Played = play([turn(*made), DONE], tools)
    assert played.run.status is Status.COMPLETED
    messages = tool_messages(played.run)
    return [(seen.get("outcome", "ok"), seen["tool_result"]) for seen in messages]


@contextmanager
def running(name: str, command: str, *args: str, **settings: Any) -> Iterator[Tools]:
    """All tools of a server, none of them left out, and each with a legal and closed schema."""
    with McpServer(name, command=command, args=args, **settings) as server:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tools = server.tools()
        shown = ToolRegistry(tools).to_api_schema()
        assert len(shown) == len(tools)
        for schema in shown:
            assert schema["name"].startswith(f"mcp__{name}__")
            assert schema["description"]
            assert schema["input_schema"]["type"] == "object"
            assert schema["input_schema"]["additionalProperties"] is False
        assert not any(tool.idempotent for tool in tools)
        yield tools


@pytest.mark.once
def test_the_time_server() -> None:
    """B17, B18"""
    with running("time", "mcp-server-time", "--local-timezone", "UTC") as tools:
        assert [tool.name for tool in tools] == [
            "mcp__time__get_current_time",
            "mcp__time__convert_time",
        ]
        right = {"source_timezone": "UTC", "time": "10:00", "target_timezone": "Asia/Tokyo"}
        seen = sees(
            tools,
            ("mcp__time__convert_time", right),
            ("mcp__time__convert_time", {**right, "target_timezone": "Nowhere"}),
            ("mcp__time__convert_time", {**right, "tz": "UTC"}),
            ("mcp__time__get_current_time", {"timezone": 7}),
        )
    assert seen[0][0] == "ok"
    assert "T19:00:00+09:00" in seen[0][1]
    assert seen[1][0] == "error"
    assert "Nowhere" in seen[1][1]
    assert seen[2][0] == seen[3][0] == "invalid_arguments"
    assert "- tz: unknown argument" in seen[2][1]
    assert '- timezone: must be of type "string", but is number' in seen[3][1]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one commit and a change."""
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "The first"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    (tmp_path / "new.txt").write_text("new\n", encoding="utf-8")
    return tmp_path


@pytest.mark.once
def test_the_git_server(repository: Path) -> None:
    """B17, B18"""
    place = {"repo_path": str(repository)}
    with running("git", "mcp-server-git", "--repository", str(repository)) as tools:
        assert len(tools) == 12
        seen = sees(
            tools,
            ("mcp__git__git_status", place),
            ("mcp__git__git_log", {**place, "max_count": 1}),
            ("mcp__git__git_add", {**place, "files": ["new.txt"]}),
            ("mcp__git__git_show", {**place, "revision": "no-such"}),
            ("mcp__git__git_log", {**place, "max_count": True}),
        )
    outcomes = [outcome for outcome, _ in seen]
    assert outcomes == ["ok", "ok", "ok", "error", "invalid_arguments"]
    assert "new.txt" in seen[0][1]
    assert "The first" in seen[1][1]
    staged = subprocess.run(
        ["git", "diff", "--cached", "--name-only"],
        cwd=repository,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert staged.stdout == "new.txt\n"


@pytest.mark.once
def test_the_filesystem_server(node: Node, tmp_path: Path) -> None:
    """B17, B18"""
    (tmp_path / "picture.png").write_bytes(PICTURE)
    script = node.script("server-filesystem")
    with running("files", node.program, script, str(tmp_path)) as tools:
        assert len(tools) == 14
        file = str(tmp_path / "a.txt")
        seen = sees(
            tools,
            ("mcp__files__write_file", {"path": file, "content": "größe\n"}),
            ("mcp__files__read_text_file", {"path": file}),
            ("mcp__files__read_media_file", {"path": str(tmp_path / "picture.png")}),
            ("mcp__files__read_text_file", {"path": "/etc/hostname"}),
            ("mcp__files__read_text_file", {"path": file, "lines": 1}),
        )
    outcomes = [outcome for outcome, _ in seen]
    assert outcomes == ["ok", "ok", "ok", "error", "invalid_arguments"]
    assert Path(file).read_text(encoding="utf-8") == "größe\n"
    assert seen[1][1] == "größe\n"
    assert seen[2][1] == "[image, image/png, 100 bytes: not shown as text]"
    assert "denied" in seen[3][1]


@pytest.mark.once
def test_the_everything_server(node: Node) -> None:
    """B17, B18: images, links, embedded resources, structured content, resources"""
    name = "mcp__all__"
    with running("all", node.program, node.script("server-everything")) as tools:
        assert len(tools) == 15
        seen = sees(
            tools,
            (f"{name}echo", {"message": "hello"}),
            (f"{name}get-sum", {"a": 1, "b": 2.5}),
            (f"{name}get-tiny-image", {}),
            (f"{name}get-resource-links", {"count": 2}),
            (f"{name}get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
            (f"{name}get-resource-reference", {"resourceType": "Blob", "resourceId": 2}),
            (f"{name}get-structured-content", {"location": "Chicago"}),
            (f"{name}get-annotated-message", {"messageType": "error", "includeImage": True}),
            (f"{name}list_resources", {}),
            (f"{name}read_resource", {"uri": "demo://resource/dynamic/text/7"}),
            (f"{name}read_resource", {"uri": "demo://nowhere"}),
            (f"{name}get-sum", {"a": 1}),
        )
    texts = [text for _, text in seen]
    outcomes = [outcome for outcome, _ in seen]
    assert outcomes == ["ok"] * 10 + ["error", "invalid_arguments"]
    assert "hello" in texts[0]
    assert "3.5" in texts[1]
    assert "[image, image/png, 4,033 bytes: not shown as text]" in texts[2]
    assert texts[3].count(f"Read it with {name}read_resource.") == 2
    assert "[resource demo://resource/dynamic/text/1, text/plain]\nResource 1:" in texts[4]
    assert "[resource demo://resource/dynamic/blob/2, text/plain" in texts[5]
    assert '"temperature"' in texts[6]
    assert "image/png" in texts[7]
    assert "demo://resource/static/document/" in texts[8]
    assert "{resourceId}" in texts[8]
    assert "Resource 7" in texts[9]
    assert "MCP server 'all' answered with error" in texts[10]
    assert "- b: is required, but missing" in texts[11]


@pytest.mark.once
def test_the_memory_server(node: Node, tmp_path: Path) -> None:
    """B17, B18: nested arrays of objects, closed at every level"""
    env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    entity = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
    with running("memory", node.program, node.script("server-memory"), env=env) as tools:
        names = [tool.name for tool in tools]
        assert len([name for name in names if not name.endswith("_resource" + "s")]) >= 9
        seen = sees(
            tools,
            ("mcp__memory__create_entities", {"entities": [entity]}),
            ("mcp__memory__search_nodes", {"query": "Ada"}),
            ("mcp__memory__create_entities", {"entities": [{**entity, "kind": "x"}]}),
        )
    assert [outcome for outcome, _ in seen] == ["ok", "ok", "invalid_arguments"]
    assert "wrote programs" in seen[1][1]
    assert "- entities.0.kind: unknown argument" in seen[2][1]
    assert "Ada" in (tmp_path / "memory.jsonl").read_text(encoding="utf-8")


# --- with a policy ----------------------------------------------------------------------------


@pytest.mark.once
@pytest.mark.parametrize("trusted", [False, True])
def test_a_call_needs_approval_unless_the_user_trusts_the_hint(
    node: Node, tmp_path: Path, trusted: bool
) -> None:
    """B18, B19: the server says of this tool that it only reads"""
    (tmp_path / "a.txt").write_text("text\n", encoding="utf-8")
    script = node.script("server-filesystem")
    made = ToolCall("mcp__files__read_text_file", {"path": "a.txt"}, "1")
    settings: dict[str, Any] = {"trust_read_only": trusted, "cwd": tmp_path}
    with running("files", node.program, script, str(tmp_path), **settings) as tools:
        player, events = harness([turn(made), DONE], tools, layers=[Policy()], cwd=tmp_path)
        run = asyncio.run(player.run("go"))
    check(run, events)
    assert run.status is (Status.COMPLETED if trusted else Status.PAUSED)


def test_ci_has_what_these_tests_need() -> None:
    """Elsewhere they are skipped where it is missing, and say so."""
    if os.environ.get("MINI_HARNESS_REQUIRE_MCP") == "1":
        assert os.environ.get("MINI_HARNESS_NODE_MODULES")
