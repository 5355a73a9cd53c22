"""Small lessons in a temporary folder, for the tests of the builder."""

from pathlib import Path

FRONT_MATTER = """\
---
lesson: {name}
title: A small lesson
step: v0
kind: ladder
---
"""
FIRST_BODY_LINE = FRONT_MATTER.count("\n") + 1


def make_lesson(root: Path, body: str, name: str = "v0_small") -> Path:
    """Write lessons/<name>/lesson.md below `root`; the file."""
    path = root / "lessons" / name / "lesson.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FRONT_MATTER.format(name=name) + body, encoding="utf-8")
    return path


def code(source: str, *options: str, name: str = "cell") -> str:
    """A code cell as an author writes it."""
    lines = [f":name: {name}", *options, "", source]
    return "\n".join(["```{code-cell}", *lines, "```", "", ""])
