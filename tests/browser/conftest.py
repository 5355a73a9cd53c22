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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one module's server and browser keep their files."""
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def lab(chromium: str, folder: Path) -> Iterator[Lab]:
    workspace = folder / "workspace"
    command = [sys.executable, "-m", "mini_harness.cli", "learn", "v0", "--no-browser"]
    with served(
        [*command, "--port", "0", "--workspace", str(workspace)],
        cwd=folder,
        env=private_environment(folder),
        log=folder / "server.log",
    ) as address:
        yield Lab(address, workspace)


@pytest.fixture(scope="module")
def page(chromium: str, folder: Path) -> Iterator[Page]:
    """A tab in a Chromium with an empty profile. Closed after the module: it holds a loop."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            folder / "profile",
            executable_path=chromium,
            headless=True,
            args=FLAGS,
            viewport={"width": 1280, "height": 1600},
        )
        try:
            yield context.new_page()
        finally:
            context.close()
