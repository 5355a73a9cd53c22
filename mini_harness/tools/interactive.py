"""Commands that would ask questions nobody can answer (SEEDS B15).

This spares a model the wait for an end of input, and no more: what a shell would make of the line
is only guessed. A scaffolder in a script, in ``bash -c "..."`` or in backquotes isn't noticed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

_ASKS = re.compile(
    r"""
    (?: (?:\w+=\S*
      | sudo | time | env | command | exec | nohup | npx | bunx | uvx | pipx\ run | uv\ tool\ run
      | (?:pnpm|yarn)\ dlx | python3?\ -m | if | then | else | do | while | until | ! | \{
        ) \ (?:-p\ \S+\ |-\S+\ )*
    )*+
    (?>(?:\S*/)?)
    (?:
        (?:npm|pnpm|yarn|bun)\ (?:init|create)
      | create-(?:next-app|react-app|vite|svelte|astro|vue|expo-app)
      | (?<=npx\ )create-\S+ | (?<=bunx\ )create-\S+ | (?<=dlx\ )create-\S+
      | \S+@latest\ init
      | cookiecutter | poetry\ init(?!.*\ -n(?:\ |$)) | cargo\ generate | ng\ new
    )
    (?=[\s@]|$)
    """,
    re.VERBOSE,
)
_ANSWERED = re.compile(
    r"\s(?:-y|--yes|--no-input|--no-interaction|--defaults?|--ci|--silent|-h|--help)(?=\s|=|$)"
)
_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?^\t*\2$", re.DOTALL | re.MULTILINE)
_LONGEST = 5_000


def asks_questions(command: str) -> str | None:
    """The simple command on a shell line that starts an interactive scaffolder, or None.

    One that is told to ask nothing (``--yes`` and the like), or that is given its input, is let
    through, and so is a line that is very long, or whose quotes aren't closed.
    """
    if len(command) > _LONGEST:
        return None
    try:
        commands = list(_without_input(command))
    except ValueError:
        return None
    return next((x for x in commands if _ASKS.match(x) and not _ANSWERED.search(x)), None)


def _without_input(line: str) -> Iterator[str]:
    """The simple commands that read nothing from a pipe or a file, in quotes what was in quotes.

    Raises ValueError for a line that can't be taken apart.
    """
    # Of a here-document only that there is one.
    line = _DOCUMENT.sub(r"< \2 \3", line)
    tokens = shlex.shlex(line, punctuation_chars=";&|()<>\n")
    tokens.whitespace, tokens.commenters, tokens.whitespace_split = " \t\r", "", True
    words: list[str] = []
    fed = comment = False
    for token in [*tokens, "\n"]:
        ends = {*";&|()\n"}.issuperset(token)
        if comment and "\n" not in token:
            continue
        comment = token.startswith("#")
        if "<" in token and {*"<>&"}.issuperset(token):
            fed = True
        elif not ends and not comment:
            words.append(token)
        elif ends:
            if words and not fed:
                yield " ".join(words)
            words, fed = [], token.rstrip("\n").endswith("|") and not token.endswith("||")
