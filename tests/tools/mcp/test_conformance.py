"""The client scenarios of the official conformance suite that aren't about authorization."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.tools.mcp.conftest import Node

CLIENT = Path(__file__).with_name("conformance_client.py")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """With room for compiled modules: the suite starts the client three times."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env.setdefault("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("bytecode")))
    return env


@pytest.mark.once
@pytest.mark.parametrize("scenario", ["initialize", "tools_call", "sse-retry"])
def test_a_scenario_passes(
    node: Node, environment: dict[str, str], scenario: str, tmp_path: Path
) -> None:
    """There is a fourth, about questions that a server asks a person. We offer none of that."""
    command = [node.program, node.script("conformance"), "client", "--scenario", scenario]
    done = subprocess.run(
        [*command, "--command", f"{sys.executable} {CLIENT}", "--output-dir", str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "OVERALL: PASSED" in done.stdout
