"""Commands that would ask questions nobody can answer (SEEDS B15)."""

from __future__ import annotations

import re

_ENDS = re.compile(r"&&|\|\||[;&|\n]")
_PROGRAM = re.compile(
    r"""
    (?:^|\s|/)
    (?:
        (?:npm|pnpm|yarn|bun) \s+ (?:init|create)
      | (?:npx|bunx|pnpm\s+dlx|yarn\s+dlx) \s+ (?:-\S+\s+)* (?:create-\S+|\S+@latest\s+init)
      | create-(?:next-app|react-app|vite|svelte|astro|vue|expo-app)
      | (?:django-admin\s+)?cookiecutter
      | poetry\s+init | cargo\s+generate | ng\s+new
    )
    (?=[\s@]|$)
    """,
    re.VERBOSE,
)
_ANSWERED = re.compile(
    r"(?:^|\s)(?:-y|--yes|--no-input|--no-interaction|--defaults?|--ci)(?=\s|=|$)"
)


def asks_questions(command: str) -> str | None:
    """The part of a shell line that starts an interactive scaffolder, or None.

    One that is told to ask nothing (``--yes`` and the like) is let through.
    """
    for part in _ENDS.split(command):
        if _PROGRAM.search(part) and not _ANSWERED.search(part):
            return part.strip()
    return None
