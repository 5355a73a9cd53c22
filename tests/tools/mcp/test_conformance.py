"""The client scenarios of the official conformance suite.

All but one: ``auth/2025-03-26-oauth-metadata-backcompat`` wants a client to take an authorization
server that gives another address than its own, and the SDK refuses that.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.tools.mcp.conftest import Node

SCENARIOS = [
    "initialize",
    "tools_call",
    "sse-retry",
    "elicitation-sep1034-client-defaults",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
]
CLIENT = Path(__file__).with_name("conformance_client.py")


@pytest.fixture(scope="module")
def reports(
    node: Node, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, subprocess.CompletedProcess[str]]:
    """How each scenario ended. Two at once: most of their time goes into starting programs."""
    folder = tmp_path_factory.mktemp("conformance")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    # With room for compiled modules: the suite starts the client again and again.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env.setdefault("PYTHONPYCACHEPREFIX", str(folder / "bytecode"))

    def run(scenario: str) -> subprocess.CompletedProcess[str]:
        command = [node.program, node.script("conformance"), "client", "--scenario", scenario]
        place = str(folder / scenario.replace("/", "-"))
        return subprocess.run(
            [*command, "--command", f"{sys.executable} {CLIENT}", "--output-dir", place],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(SCENARIOS, pool.map(run, SCENARIOS), strict=True))


@pytest.mark.once
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_passes(
    reports: dict[str, subprocess.CompletedProcess[str]], scenario: str
) -> None:
    """issue 5"""
    done = reports[scenario]
    assert done.returncode == 0, done.stdout
    assert "OVERALL: PASSED" in done.stdout
