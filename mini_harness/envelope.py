"""The envelope in which a specialist hands back its result, and the prompt that asks for it
(SEEDS D03 to D06).

It is text with a header at the start of a line for each field. What a specialist says in it is a
claim like any: the envelope is checked for its form, and its evidence by whoever receives it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from mini_harness.frozen import FrozenDict


class Role(StrEnum):
    """The six specialists (SEEDS D01)."""

    EXPLORER = "explorer"
    LIBRARIAN = "librarian"
    OBSERVER = "observer"
    ORACLE = "oracle"
    DESIGNER = "designer"
    FIXER = "fixer"


class EnvelopeStatus(StrEnum):
    """How a specialist's work ended, written exactly so."""

    SUCCESS = "SUCCESS"
    PARTIAL = "PARTIAL"
    BLOCKED = "BLOCKED"
    NOT_APPLICABLE = "NOT_APPLICABLE"


EXPECTED = ("FINDINGS", "EVIDENCE", "UNCERTAINTIES", "RECOMMENDED_NEXT_STEP")
"""Without one of these an envelope is accepted with a warning."""

OWN: Mapping[Role, tuple[str, ...]] = MappingProxyType(
    {
        Role.FIXER: ("CHANGES", "VERIFICATION"),
        Role.OBSERVER: ("OBSERVED", "EXPECTED", "DIFFERENCE"),
        Role.DESIGNER: ("SPECIFICATION",),
    }
)
"""The fields that a role adds (SEEDS D05)."""

_NEEDED: Mapping[Role, tuple[str, ...]] = MappingProxyType(
    {
        Role.FIXER: ("CHANGES", "VERIFICATION"),
        Role.OBSERVER: ("OBSERVED",),
        Role.DESIGNER: ("SPECIFICATION",),
    }
)
"""What SUCCESS must come with (SEEDS D06)."""

_CANONICAL = ("TASK_ID", "STATUS", "SUMMARY", *EXPECTED)
_KNOWN = frozenset((*_CANONICAL, "REASON", *(name for names in OWN.values() for name in names)))
_HEADER = re.compile(r"([A-Z][A-Z_ ]+):(.*)")
_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FENCE = re.compile(r"\s*(?:```|~~~)[\w-]*\s*")
_BLANK = re.compile(r"<[^<>]*>")


@dataclass(frozen=True)
class Envelope:
    """What was read (SEEDS D04). ``status`` is None if there is none that is known."""

    ok: bool
    status: EnvelopeStatus | None
    summary: str
    fields: Mapping[str, str] = field(default_factory=FrozenDict)
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def feedback(self) -> str:
        """What the specialist is told about an envelope that isn't ok."""
        lines = ["The envelope can't be accepted:", *(f"- {each}" for each in self.errors)]
        return "" if self.ok else "\n".join(lines)


def read_envelope(
    text: str, role: Role | str | None = None, *, task_id: str | None = None
) -> Envelope:
    """Read what a specialist of this role handed back for this task.

    Lines before the first header, fences, and sections with unknown headers are left out. With a
    ``task_id``, the envelope must echo it exactly. Raises ValueError for an unknown role.
    """
    role = None if role is None else Role(role)
    sections = _sections(text)
    fields = {name: value for name, value in reversed(sections)}
    names = [name for name, _ in sections]
    said = _first_line(fields.get("STATUS", ""))
    status = EnvelopeStatus(said) if said in list(EnvelopeStatus) else None
    errors = [f"{name} is there twice." for name in sorted(_KNOWN) if names.count(name) > 1]
    if status is None:
        known = ", ".join(EnvelopeStatus)
        errors.append(f"STATUS is {said[:50]!r}, but must be one of {known}.")
    if not fields.get("SUMMARY"):
        errors.append("SUMMARY is missing or empty.")
    if task_id is not None and _first_line(fields.get("TASK_ID", "")) != task_id:
        errors.append(f"TASK_ID must be echoed exactly: {task_id}")
    if status is EnvelopeStatus.SUCCESS and role is not None:
        needed = (name for name in _NEEDED.get(role, ()) if not fields.get(name))
        errors += [f"{name} is missing or empty: SUCCESS of a {role} needs it." for name in needed]
    expected = [*EXPECTED, *OWN.get(role, ())] if role is not None else list(EXPECTED)
    if status is EnvelopeStatus.BLOCKED:
        expected.append("REASON")
    warnings = tuple(f"{name} is missing." for name in expected if not fields.get(name))
    summary = fields.get("SUMMARY", "")
    return Envelope(not errors, status, summary, FrozenDict(fields), tuple(errors), warnings)


def _sections(text: str) -> list[tuple[str, str]]:
    """The known fields in their order, each with all its lines."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.replace("\r\n", "\n").split("\n"):
        if header := _HEADER.fullmatch(line):
            found.append((header[1], [header[2]]))
        elif not _FENCE.fullmatch(line):
            found[-1][1].append(line)
    return [(name, "\n".join(lines).strip()) for name, lines in found if name in _KNOWN]


def _first_line(value: str) -> str:
    return value.partition("\n")[0].strip()


def envelope_template(role: Role | str, task_id: str | None = None) -> str:
    """The form to fill in: a placeholder in angle brackets for each field of this role.

    It isn't ok before it is filled in. Raises ValueError.
    """
    names = ["SUMMARY", *EXPECTED, *OWN.get(Role(role), ()), "REASON"]
    first = [] if task_id is None else [f"TASK_ID: {_checked(task_id)}"]
    lines = [f"{name}: <{name.replace('_', ' ').lower()}>" for name in names[:-1]]
    last = "REASON: <only if BLOCKED: what blocks you>"
    return "\n".join([*first, f"STATUS: <{' | '.join(EnvelopeStatus)}>", *lines, last])


def fill_in(template: str, values: Mapping[str, str]) -> str:
    """The template with these values for its fields. Fields without one are left out.

    Further lines of a value are indented, so that none of them can be a header.
    """
    lines = []
    for line in template.splitlines():
        name, _, placeholder = line.partition(": ")
        if not _BLANK.fullmatch(placeholder):
            lines.append(line)
        elif name in values:
            lines.append(f"{name}: {values[name]}".replace("\n", "\n  "))
    return "\n".join(lines)


def hand_off(
    role: Role | str,
    task: str,
    *,
    context: str = "",
    constraints: str = "",
    task_id: str | None = None,
) -> str:
    """The prompt that gives a task to a specialist (SEEDS D05b). Raises ValueError."""
    role = Role(role)
    may = (
        "You MAY modify files that the task needs."
        if role is Role.FIXER
        else "Do not modify any files."
    )
    parts = [
        f"You are the {role.capitalize()} specialist.",
        "" if task_id is None else f"TASK_ID: {_checked(task_id)}",
        f"TASK\n{task}",
        f"KNOWN CONTEXT\n{context}" if context else "",
        f"CONSTRAINTS\n{constraints}" if constraints else "",
        may,
        "Never invent facts. What you don't know belongs under UNCERTAINTIES. Answer with this:",
        envelope_template(role, task_id),
    ]
    return "\n\n".join(filter(None, parts))


def task_id_of(prompt: str) -> str:
    """The task id that a hand-off prompt names: ``TASK_ID: x`` as a full line (SEEDS D06).

    Raises ValueError if it names none, or several, or one that isn't allowed.
    """
    found = {line[8:].strip() for line in prompt.splitlines() if line.startswith("TASK_ID:")}
    if len(found) != 1:
        raise ValueError(f"A prompt must name one TASK_ID on a line of its own, not {len(found)}.")
    return _checked(found.pop())


def _checked(task_id: str) -> str:
    if not _TASK_ID.fullmatch(task_id):
        raise ValueError(
            f"The task id {task_id!r:.60} must begin with a letter or digit, and hold nothing but "
            "letters, digits, dots, dashes and underscores."
        )
    return task_id
