"""A server in a notebook: cells with a running loop, and a kernel that ends."""

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.kernels import kernel
from tests.tools.mcp.kit import runs, until

START = """
import asyncio, os, signal, sys
sys.path.insert(0, {root!r})
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.call import Call, execute
from tests.tools.mcp.kit import by_name, stub, told
server = stub(pages=[told("echo", "junk", "die")], pid_file={pid!r}).start()
tools = by_name(server)
"""
CALLS = """
async def called(name):
    return await execute(Call(tools[name], "1", {}), ToolExecutionContext())
seen = [await called(name) for name in ("echo", "junk")]
print([each.outcome.value for each in seen], seen[1].output)
"""
DIES = """
print((await called("die")).output.split(".")[0])
server.start()
"""


@pytest.mark.once
def test_cells_call_its_tools_and_the_kernels_end_is_its_end(tmp_path: Path) -> None:
    """Nothing but what the cell prints comes out, whatever the server writes."""
    place = tmp_path / "pid"
    with kernel(tmp_path) as cells:
        assert cells.run(START.format(root=str(ROOT), pid=str(place))) == []
        (printed,) = cells.run(CALLS)
        assert printed.text == "['ok', 'ok'] after the junk\n"
        first = int(place.read_text(encoding="utf-8"))
        printed, *_ = cells.run(DIES)
        assert printed.text == "MCP server 'stub' is lost\n"
        second = int(place.read_text(encoding="utf-8"))
        assert (runs(first), runs(second)) == (False, True)
    until(lambda: not runs(second))
