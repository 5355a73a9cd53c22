"""Chromium, and a JupyterLab that `mini-harness learn` really started."""

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.serving import private_environment, served

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
# Without the network flags Chromium asks its maker's servers many things at every start.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab: its address with the token, and the folder it serves."""

    address: str
    workspace: Path


@pytest.fixture(scope="session")
def chromium() -> str:
    found = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if found:
        return found
    reason = f"no Chromium here: none of {', '.join(CHROMIUMS)} is on PATH"
    if os.environ.get("MINI_HARNESS_REQUIRE_BROWSER") == "1":
        pytest.fail(f"{reason}, and MINI_HARNESS_REQUIRE_BROWSER=1 asks for one")
    pytest.skip(reason)


@pytest.fixture
def lab(chromium: str, tmp_path: Path) -> Iterator[Lab]:
    workspace = tmp_path / "workspace"
    command = [sys.executable, "-m", "mini_harness.cli", "learn", "--no-browser", "--port", "0"]
    with served(
        [*command, "--workspace", str(workspace)],
        cwd=tmp_path,
        env=private_environment(tmp_path),
        log=tmp_path / "server.log",
    ) as address:
        yield Lab(address, workspace)


@pytest.fixture
def page(chromium: str, tmp_path: Path) -> Iterator[Page]:
    """A tab in a Chromium with an empty profile. Closed before the next test: it holds a loop."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=chromium,
            headless=True,
            args=FLAGS,
            viewport={"width": 1280, "height": 1600},
        )
        try:
            yield context.new_page()
        finally:
            context.close()
