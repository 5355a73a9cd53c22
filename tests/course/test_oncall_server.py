"""The story's MCP server: quiet, the same each time, and wrong in the two ways it says it is."""

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from mini_harness.clock import VirtualClock
from mini_harness.course.story import call, final
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.policy import Policy
from mini_harness.run import Run
from mini_harness.tools.default import create_default_tool_registry
from mini_harness.tools.mcp.server import McpServer
from tests.kernels import kernel
from tests.serving import until

pytestmark = pytest.mark.once

MODULE = "mini_harness.course.oncall_server"
START = f"""\
import sys
from mini_harness import McpServer
server = McpServer("oncall", command=sys.executable, args=["-m", "{MODULE}"]).start()
print(len(server.tools()))
"""


def server(folder: Path, *, trusted: bool = False) -> McpServer:
    args = ["-m", MODULE]
    return McpServer(
        "oncall", command=sys.executable, args=args, cwd=folder, trust_read_only=trusted
    )


@pytest.fixture
def oncall(tmp_path: Path) -> Iterator[McpServer]:
    with server(tmp_path) as running:
        yield running


def asked(oncall: McpServer, name: str, **arguments: object) -> Run:
    """A run in which the model calls one of the server's tools, behind a policy."""
    model = ScriptedModel([call(f"mcp__oncall__{name}", **arguments), final("Done.")])
    tools = create_default_tool_registry(mcp=oncall)
    layers = [Policy(mode="full_auto")]
    return Harness(model, tools, layers=layers, clock=VirtualClock()).run_sync("Ask.")


def told(run: Run) -> str:
    return str(run.history.messages[2]["tool_result"])


def test_it_says_who_is_on_call_and_what_it_does_not_know(oncall: McpServer) -> None:
    """B17, B18"""
    assert told(asked(oncall, "who_is_on_call", team="shop")) == "Ada is on call for shop."
    assert told(asked(oncall, "rota", week=1)) == "Grace is on call in week 1."
    unknown = asked(oncall, "who_is_on_call", team="shp")
    assert unknown.history.messages[2]["is_error"]
    assert "There is no team 'shp'. There are: shop, farm." in told(unknown)


def test_its_claim_that_a_page_only_reads_counts_only_for_who_trusts_it(tmp_path: Path) -> None:
    """FACTS 5: an annotation is a hint from an untrusted server"""
    status = {}
    for trusts in (False, True):
        with server(tmp_path, trusted=trusts) as running:
            page = call("mcp__oncall__page", person="Ada", message="Look!")
            model = ScriptedModel([page, final("Done.")])
            run = Harness(model, running.tools(), layers=[Policy()]).run_sync("Help!")
        status[trusts] = run.status, (tmp_path / "pages.log").exists()
    assert status == {False: ("paused", False), True: ("completed", True)}


def test_when_it_dies_in_a_call_the_model_reads_its_last_words(oncall: McpServer) -> None:
    run = asked(oncall, "rota", week=53)
    assert "ended with exit code 3" in told(run)
    assert "rota: no line for week 53" in told(run)
    assert run.status == "completed"


def test_a_server_that_nobody_stopped_ends_when_the_kernel_is_killed(tmp_path: Path) -> None:
    """LESSONS: nothing of a lesson outlives its kernel"""
    (tmp_path / "work").mkdir()
    with kernel(tmp_path / "work") as shell:
        assert shell.printed(START) == "3\n"
        found = shell.printed("import os; print(os.getpid())")
        kernel_process = psutil.Process(int(found))
        (served,) = [each for each in kernel_process.children() if MODULE in each.cmdline()]
        kernel_process.kill()
        until(lambda: None if served.is_running() else True, 10, lambda: "the server lives")
