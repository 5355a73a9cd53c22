"""Commands that would ask questions are refused before they run."""

import asyncio
from pathlib import Path

import pytest

from mini_harness import Bash
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.interactive import asks_questions
from mini_harness.tools.shell import BashInput


@pytest.mark.parametrize(
    "command",
    [
        "npm init",
        "npm create vite@latest my-app",
        "npx create-next-app my-app",
        "npx create-next-app@latest",
        "npx -p foo create-react-app x",
        "create-next-app x",
        "./node_modules/.bin/create-vite x",
        "cd web && npm init",
        "mkdir a; pnpm create svelte",
        "yarn create react-app x",
        "cookiecutter gh:someone/template",
        "poetry init",
        "ng new shop",
        "npm  init",
        "FOO=1 sudo -E npm init",
        "x=$(npm init)",
        "yes | tee x; npm init",
        "ls # npm init -y\nnpm init",
        "if true; then npm init; fi",
        "uvx cookiecutter gh:someone/template",
        "npm init 2>&1 | tee log",
        "cat <<E > f\nx\nE\nnpm init",
    ],
)
def test_a_scaffolder_that_asks_is_refused(command: str) -> None:
    """B15"""
    assert asks_questions(command)


@pytest.mark.parametrize(
    "command",
    [
        "npm init -y",
        "npm init --yes",
        "npx create-next-app my-app --yes",
        "cookiecutter --no-input gh:someone/template",
        "poetry init --no-interaction",
        "npm install",
        "npm run create-report",
        "npm test",
        "grep -rn 'create-next-apple' .",
        "git init",
        "terraform init",
        "python -m pytest",
        "cat notes-on-npm-init.txt",
        "git log --grep npm init now",
        "echo run npm init first",
        "echo 'first; npm init now'",
        "# npm init",
        "ls # npm init",
        "ls cookiecutter",
        "pip show cookiecutter",
        "grep -rn cookiecutter docs",
        "yes '' | npm init",
        "yes |\nnpm init",
        "npm init < answers",
        "npm init <<< y",
        "poetry init -n",
        "cat > README.md <<'EOF'\nnpm init\nEOF",
        "echo 'never closed; npm init",
        "npm init" + "; true" * 1_000,
    ],
)
def test_everything_else_is_let_through(command: str) -> None:
    """B15"""
    assert asks_questions(command) is None


def test_yes_counts_for_its_own_part_of_the_line_only() -> None:
    """B15"""
    assert asks_questions("apt-get install -y nodejs && npm init") == "npm init"


def test_bash_says_which_part_and_runs_none_of_it(tmp_path: Path) -> None:
    """B15: refused before running, metadata.interactive_required"""
    arguments = BashInput(command="touch ran && npm init", timeout_seconds=5)
    result = asyncio.run(Bash().execute(arguments, ToolExecutionContext(cwd=tmp_path)))
    assert result.is_error
    assert result.metadata == {"interactive_required": True}
    assert "`npm init` would ask questions" in result.output
    assert not (tmp_path / "ran").exists()
