"""A server's life, and all that can go wrong in it. Every server here is a process of its own."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mini_harness.protocol import Outcome
from mini_harness.redact import MASK
from mini_harness.sync import run_sync
from mini_harness.tools.mcp import process
from mini_harness.tools.mcp.errors import McpRequestFailed, McpServerFailed
from mini_harness.tools.mcp.server import McpServer
from tests.conftest import ROOT
from tests.tools.mcp.kit import by_name, call, runs, stub, told, until

TOOLS = [
    told("echo", "silent", "which_were_cancelled", "die", "junk", "huge", "shapeless"),
    told("environment", "children"),
]


@pytest.fixture
def server() -> Iterator[McpServer]:
    with stub(pages=TOOLS, settings={"timeout_seconds": 20}) as running:
        yield running


# --- from anywhere ----------------------------------------------------------------------------


def test_it_works_from_no_loop_from_any_loop_and_from_any_thread(server: McpServer) -> None:
    echo = by_name(server)["echo"]
    assert call(echo, n=1).outcome is Outcome.OK
    assert call(echo, n=2).outcome is Outcome.OK

    async def in_a_notebook() -> list[str]:
        # A cell has a running loop. What it calls may wait without giving the loop back.
        names = [tool.name for tool in server.tools()]
        run_sync(server.ask(lambda client: client.list_tools()))
        await server.ask(lambda client: client.list_tools())
        return names

    assert "mcp__stub__echo" in asyncio.run(in_a_notebook())
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(call(echo, n=3)))
    thread.start()
    thread.join()
    assert seen[0].outcome is Outcome.OK


def test_calls_side_by_side_are_answered_each_with_its_own(server: McpServer) -> None:
    async def many() -> list[Any]:
        def ask(number: int) -> Any:
            return server.ask(lambda client: client.session.call_tool("echo", {"n": number}))

        return await asyncio.gather(*(ask(number) for number in range(20)))

    answers = [json.loads(answer.content[0].text) for answer in asyncio.run(many())]
    assert [answer["params"]["arguments"]["n"] for answer in answers] == list(range(20))


def test_it_is_started_once_and_ended_for_good() -> None:
    async def life() -> None:
        async with stub(pages=TOOLS) as server:
            (pid, *_) = json.loads(await ask(server, "children"))
            assert runs(pid)
            assert server.start() is server
            assert json.loads(await ask(server, "children"))[0] == pid
        assert not runs(pid)
        with pytest.raises(McpServerFailed, match="isn't running: it was stopped"):
            server.tools()
        with server:
            assert by_name(server)

    asyncio.run(life())


async def ask(server: McpServer, tool: str) -> str:
    answer = await server.ask(lambda client: client.session.call_tool(tool, {}))
    text: str = answer.content[0].text  # type: ignore[union-attr]
    return text


def test_tools_start_a_server_that_nobody_has_started() -> None:
    server = stub(pages=TOOLS)
    with pytest.raises(McpServerFailed, match=r"isn't running. Start it with start\(\)"):
        asyncio.run(ask(server, "echo"))
    try:
        assert by_name(server)
    finally:
        server.stop()


# --- its end ----------------------------------------------------------------------------------


def test_its_end_is_the_end_of_all_that_it_started(server: McpServer) -> None:
    """Of a child in its session, and of one that has left it."""
    pids = json.loads(call(by_name(server)["children"]).output)
    assert all(map(runs, pids))
    # A Ctrl-C in the terminal is for the harness, and not for its servers.
    assert os.getsid(pids[0]) == pids[0]
    server.stop()
    assert not any(map(runs, pids))


@pytest.mark.once
def test_a_server_that_ignores_the_end_of_its_input_is_ended_too() -> None:
    with stub(pages=TOOLS, at_end="stay") as server:
        (pid, *_) = json.loads(call(by_name(server)["children"]).output)
    assert not runs(pid)


FORGOTTEN = """
import os, sys, signal
from tests.tools.mcp.kit import stub, told
at_end = "leave" if sys.argv[2] == "killed" else "stay"
server = stub(pages=[told("echo")], pid_file=sys.argv[1], at_end=at_end)
server.start()
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
elif sys.argv[2] == "raises":
    raise SystemExit(5)
"""


@pytest.mark.once
@pytest.mark.parametrize(("how", "code"), [("raises", 5), ("killed", -9)])
def test_a_server_doesnt_outlive_the_program_that_started_it(
    how: str, code: int, tmp_path: Path
) -> None:
    """Nobody has stopped it. A killed kernel can't: there the server sees its input end."""
    place = tmp_path / "pid"
    done = subprocess.run(
        [sys.executable, "-c", FORGOTTEN, str(place), how],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
    pid = int(place.read_text(encoding="utf-8"))
    until(lambda: not runs(pid))


# --- no start ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "says"),
    [
        (McpServer("x", command="no-such-program-here"), "There is no such program on the PATH"),
        (McpServer("x", command="python", cwd="/no/such/folder"), "There is no folder"),
        (McpServer("x", command=str(ROOT / "README.md")), "isn't executable"),
        (stub(at_start="exit"), r"with exit code 7\.\nThe last that it said:\nno licence found"),
        (
            stub(at_start="talk", settings={"timeout_seconds": 1}),
            r"no answer within 1 seconds. Is it an MCP server\?\n.*\nusage: this is no MCP server",
        ),
        (McpServer("x", url="http://127.0.0.1:9/mcp?token=abcdefgh"), "9/mcp"),
    ],
    ids=["program", "folder", "not executable", "exits", "talks", "refuses"],
)
def test_what_cant_be_started_says_what_to_do(server: McpServer, says: str) -> None:
    with pytest.raises(McpServerFailed, match=says) as raised:
        server.start()
    assert raised.value.server == server.name
    assert "abcdefgh" not in str(raised.value)


@pytest.mark.parametrize(
    "wrong",
    [{}, {"command": "a", "url": "b"}, {"command": "a", "timeout_seconds": 0}],
)
def test_settings_that_say_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="MCP server 'x'"):
        McpServer("x", **wrong)


# --- calls that go wrong ----------------------------------------------------------------------


def test_after_a_time_out_the_session_goes_on_and_the_server_knows() -> None:
    with stub(pages=TOOLS, settings={"timeout_seconds": 0.5}) as server:
        tools = by_name(server)
        seen = call(tools["silent"])
        assert seen.outcome is Outcome.ERROR
        assert "'stub' gave no answer within 0.5 seconds" in seen.output
        assert "Whether the request took effect is unknown" in seen.output
        assert len(json.loads(call(tools["which_were_cancelled"]).output)) == 1


def test_a_call_that_is_cancelled_is_cancelled_at_the_server(server: McpServer) -> None:
    tools = by_name(server)

    async def impatient() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(server, "silent"), 0.3)

    asyncio.run(impatient())
    until(lambda: json.loads(call(tools["which_were_cancelled"]).output) != [])


def test_a_server_that_dies_in_a_call_is_lost_until_it_is_started_again(server: McpServer) -> None:
    tools = by_name(server)
    for _ in range(2):
        seen = call(tools["die"])
        assert seen.outcome is Outcome.ERROR
        assert "MCP server 'stub' is lost. It ended with exit code 3" in seen.output
        assert "the flux capacitor is broken" in seen.output
        assert "start()" in seen.output
    with pytest.raises(McpServerFailed, match="is lost"):
        server.tools()
    server.start()
    assert call(tools["echo"]).outcome is Outcome.OK


def test_a_request_that_is_under_way_when_the_server_is_stopped_ends(server: McpServer) -> None:
    async def stopped() -> None:
        waiting = asyncio.create_task(ask(server, "silent"))
        await ask(server, "echo")
        await asyncio.to_thread(server.stop)
        with pytest.raises(McpServerFailed, match="it was stopped"):
            await waiting

    asyncio.run(stopped())


def test_also_one_that_doesnt_wait_for_the_server(server: McpServer) -> None:
    async def stopped() -> None:
        waiting = asyncio.create_task(server.ask(lambda _: asyncio.sleep(600)))
        await ask(server, "echo")
        await asyncio.to_thread(server.stop)
        with pytest.raises(McpServerFailed, match="it was stopped"):
            await waiting

    asyncio.run(stopped())


@pytest.mark.once
def test_a_start_that_nobody_awaits_any_more_is_given_up(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    server = stub(at_start="talk", pid_file=str(place), settings={"timeout_seconds": 600})

    async def impatient() -> None:
        starting = asyncio.create_task(server.__aenter__())
        await asyncio.to_thread(until, place.exists)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    asyncio.run(asyncio.wait_for(impatient(), 60))
    assert not runs(int(place.read_text(encoding="utf-8")))


def test_junk_between_the_messages_is_not_printed_and_does_no_harm(
    server: McpServer, capfd: pytest.CaptureFixture[str]
) -> None:
    tools = by_name(server)
    assert call(tools["junk"]).output == "after the junk"
    assert "almost" in call(tools["die"]).output
    assert capfd.readouterr() == ("", "")


def test_an_answer_beyond_every_measure_is_refused_and_the_session_goes_on(
    server: McpServer,
) -> None:
    tools = by_name(server)
    assert len(call(tools["huge"], size=1_000_000).output) == 1_000_000
    seen = call(tools["huge"], size=100_000_000)
    assert seen.outcome is Outcome.ERROR
    assert f"a message of more than {process.LARGEST:,} bytes" in seen.output
    assert call(tools["echo"]).outcome is Outcome.OK


def test_an_error_that_the_server_answers_with_is_told_with_its_code(server: McpServer) -> None:
    with pytest.raises(McpRequestFailed, match="'stub' answered with error -32601: no method"):
        run_sync(server.ask(lambda client: client.list_resources()))


def test_an_answer_that_is_no_mcp_is_told(server: McpServer) -> None:
    tools = by_name(server)
    seen = call(tools["shapeless"])
    assert seen.outcome is Outcome.ERROR
    assert "'stub' gave an answer that MCP doesn't allow" in seen.output
    assert call(tools["echo"]).outcome is Outcome.OK


# --- what it is given -------------------------------------------------------------------------


def test_a_server_sees_no_secrets_but_those_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-not-for-strangers")
    monkeypatch.setenv("SOMETHING_ELSE", "not theirs either")
    given = {"SERVICE_TOKEN": "tok-for-this-server", "MODE": "test"}
    with stub(pages=TOOLS, settings={"env": given}) as server:
        seen = json.loads(call(by_name(server)["environment"]).output)
    assert seen.items() >= given.items()
    assert {"PATH", "HOME"} <= set(seen)
    assert not {"SOME_API_KEY", "SOMETHING_ELSE", "MINI_HARNESS_MODE"} & set(seen)


TELLS = "import os, sys; sys.exit('refused: ' + os.environ['SERVICE_TOKEN'])"


def test_a_secret_that_a_server_tells_doesnt_get_into_an_error() -> None:
    """report S01 would have it in a notebook's output"""
    env = {"SERVICE_TOKEN": "tok-0123456789"}
    server = McpServer("x", command=sys.executable, args=["-c", TELLS], env=env)
    with pytest.raises(McpServerFailed, match="refused") as raised:
        server.start()
    assert f"refused: {MASK}" in str(raised.value)
    assert "tok-0123456789" not in f"{raised.value!r} {server!r}"


def test_without_the_extra_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    """And to import the module needs nothing."""
    program = (
        "import sys; sys.modules['mcp'] = None\n"
        "from mini_harness.tools.mcp.server import McpServer\n"
        "from mini_harness.tools.mcp import tool, arguments, session\n"
        "loaded = [name for name in sys.modules if name.partition('.')[0] in "
        "('mcp_types', 'jsonschema', 'httpx2', 'anyio')]\n"
        "print(loaded)\n"
        "try: McpServer('x', command='y').start()\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.split("\n")[:2] == [
        "[]",
        "The MCP SDK isn't installed. Install it with: pip install 'mini-harness[mcp]'",
    ]
