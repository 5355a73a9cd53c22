"""What README.md shows in Python runs as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
)
LAST_WORDS = ["2 + 3 is 5.", "Done.", "Kept as looks-at-one-build.case.json"]
"""What the blocks print of their runs, in order."""


@pytest.mark.parametrize(("number", "says"), list(enumerate(LAST_WORDS)))
def test_a_block_of_the_readme_runs_as_it_stands(number: int, says: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS[number]],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert says in done.stdout.splitlines()


def test_every_block_of_the_readme_is_run() -> None:
    assert len(BLOCKS) == len(LAST_WORDS)
