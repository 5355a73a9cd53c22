"""The story in the terminal: ``mini-harness demo`` triages a failing build."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mini_harness.clock import VirtualClock
from mini_harness.course import story
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.tools.builds import TOOLS
from mini_harness.tools.files import ReadFile
from mini_harness.tools.shell import Bash


def main(argv: Sequence[str] | None = None) -> int:
    """Run the story; 0 when the run ended with an answer."""
    parser = argparse.ArgumentParser(
        prog="mini-harness demo", description="Triage a failing build offline, without a key."
    )
    parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        harness = Harness(
            ScriptedModel(story.triage()),
            [*TOOLS.values(), ReadFile(), Bash()],
            sinks=[print],
            clock=VirtualClock(),
            cwd=story.fresh_farm(Path(folder) / "farm"),
        )
        run = harness.run_sync(story.GOAL)
    print()
    print(run.unwrap())
    return 0
