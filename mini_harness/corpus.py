"""Failures that are kept: each is a case, a small file that anybody can read and run (SEEDS A27).

    expect = Expectation(never=("deploy_prod",))
    about = {"id": "obeys-a-log", "kind": "forbidden_call", "harness": "my_harness.cases:triage"}
    Case.from_run(run, expect=expect, **about).save("cases")

A case holds what the model said (its script, or a cassette of recorded answers), what the world did
wrong (faults), and what must come of it. It doesn't hold the harness: that is what is under test.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from mini_harness.expectation import Expectation
from mini_harness.faults import Fault
from mini_harness.frozen import canonical, freeze, parse_object
from mini_harness.results import FailureKind
from mini_harness.run import Run
from mini_harness.scrub import Scrubber

SCHEMA_VERSION = 1
SUFFIX = ".case.json"
ANSWERS = ("approve", "deny")
"""What a person may say in a case, in its turn, to what a run asks."""

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
_HARNESS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class BadCase(ValueError):
    """A case can't be read. The text says which file, which place in it, and what is wrong."""


class DuplicateCase(ValueError):
    """Two cases of a corpus have one id, or show the same thing."""


@dataclass(frozen=True)
class Case:
    """One failure that must not come back.

    ``harness`` names a function, as "module:function", that makes the harness under test; see
    ``mini_harness.regression.World``. ``script`` are the model's turns, as JSON; instead of it
    ``cassette`` may hold recorded exchanges. ``tools`` must be there for the case to say anything.
    ``answers`` are given to what the run asks, one after the other. The JSON form has the fields
    that were given. Raises BadCase.
    """

    id: str
    kind: FailureKind
    goal: str
    harness: str
    expect: Expectation
    script: tuple[Any, ...] = ()
    cassette: tuple[Any, ...] = ()
    tools: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    answers: tuple[str, ...] = ()
    title: str = ""
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        for name in ("script", "cassette"):
            set_field(self, name, tuple(freeze(list(getattr(self, name)), -8)))
        for name in ("tools", "answers", "tags"):
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(each, str) for each in value):
                raise BadCase(f"Case {self.id}: {name} must be a list of texts.")
            set_field(self, name, tuple(value))
        set_field(self, "faults", tuple(self.faults))
        self._check()

    def _check(self) -> None:
        if not isinstance(self.id, str) or not _ID.fullmatch(self.id):
            raise BadCase(
                f"A case's id is 1 to 80 of a-z, 0-9 and -, and no - first. It is {self.id!r:.100}."
            )
        for name in ("goal", "title", "harness"):
            if not isinstance(getattr(self, name), str):
                raise BadCase(f"Case {self.id}: {name} must be text.")
        if not _HARNESS.fullmatch(self.harness):
            raise BadCase(
                f'Case {self.id}: harness must be "module:function", not {self.harness!r:.100}.'
            )
        if bool(self.script) == bool(self.cassette):
            raise BadCase(f"Case {self.id} must have a script or a cassette, and not both.")
        if unknown := set(self.answers) - set(ANSWERS):
            raise BadCase(f"Case {self.id}: an answer is approve or deny, not {min(unknown)!r}.")
        try:
            object.__setattr__(self, "kind", FailureKind(self.kind))
        except ValueError:
            known = ", ".join(each.value for each in FailureKind)
            raise BadCase(
                f"Case {self.id}: kind is {self.kind!r:.60}, but must be one of: {known}."
            ) from None

    # --- making one

    @classmethod
    def from_run(cls, run: Run, *, expect: Expectation, **about: Any) -> Case:
        """The case that this run shows, with what its model said as the script.

        ``about`` are the other fields; ``id``, ``kind`` and ``harness`` must be among them. Secrets
        are taken out. What couldn't be read as a decision is kept as the text that was shown of it.
        """
        found = {"goal": run.goal, "script": script_of(run), **about}
        plain = {name: found[name] for name in ("goal", "script", "title") if name in found}
        found |= Scrubber().scrubbed(freeze(plain, -8))
        return cls(expect=expect, **found)

    # --- the JSON form

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "id": self.id}
        for each in fields(self):
            value = getattr(self, each.name)
            if value not in ((), ""):
                found[each.name] = value
        found["kind"], found["expect"] = self.kind.value, self.expect.to_dict()
        if self.faults:
            found["faults"] = [fault.to_dict() for fault in self.faults]
        return found

    @classmethod
    def from_dict(cls, found: Mapping[str, Any], place: str = "A case") -> Case:
        """The case that ``to_dict`` wrote. Raises BadCase, also for a key that no case has."""
        known = {"schema_version", *(each.name for each in fields(cls))}
        if unknown := sorted(set(found) - known):
            raise BadCase(f"{place} has no {', '.join(unknown)}.")
        needed = ["schema_version", "id", "kind", "goal", "harness", "expect"]
        if missing := [name for name in needed if name not in found]:
            raise BadCase(f"{place} lacks {', '.join(missing)}.")
        given = dict(found)
        if (version := given.pop("schema_version")) != SCHEMA_VERSION:
            raise BadCase(f"{place} has the schema version {version!r}, not {SCHEMA_VERSION}.")
        try:
            given["expect"] = Expectation.from_dict(given["expect"])
            given["faults"] = tuple(map(Fault.from_dict, given.get("faults", ())))
            return cls(**given)
        except (TypeError, ValueError) as error:
            text = str(error)
            raise BadCase(text if text.startswith(place) else f"{place}: {text}") from error

    @classmethod
    def load(cls, path: Path | str) -> Case:
        """Raises BadCase that names the file, and OSError."""
        path = Path(path)
        try:
            found = parse_object(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise BadCase(f"{path.name}: {error}") from error
        case = cls.from_dict(found, path.name)
        if f"{case.id}{SUFFIX}" != path.name:
            raise BadCase(f"{path.name} holds the case {case.id}. Name it {case.id}{SUFFIX}.")
        return case

    def save(self, folder: Path | str) -> Path:
        """Write the file, which must not be there yet, and return its path. Raises OSError."""
        path = Path(folder) / f"{self.id}{SUFFIX}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(self.to_json())
        return path

    def to_json(self) -> str:
        """As it stands in its file: indented, a line for each thing."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of what it shows: goal, turns, faults and answers. Names, spaces and
        what is expected don't count, so two cases of one failure have the same."""
        said = [_without_ids(each) for each in (*self.script, *self.cassette)]
        faults = sorted(canonical(freeze(each.to_dict())) for each in self.faults)
        shows = (" ".join(self.goal.split()), said, faults, self.answers, self.harness)
        return hashlib.sha256(canonical(freeze(shows, -16)).encode()).hexdigest()

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of all of it: another one means that it must be run again."""
        return hashlib.sha256(canonical(freeze(self.to_dict(), -16)).encode()).hexdigest()


def script_of(run: Run) -> list[Any]:
    """What the model said in a run, in the form in which a script says it again."""
    turns: list[Any] = []
    for message in run.history.messages:
        if "calls" in message:
            calls = [
                {"type": "tool", "name": each["name"], "arguments": each["arguments"]}
                for each in message["calls"]
            ]
            turns.append(calls[0] if len(calls) == 1 else calls)
        elif message["role"] == "assistant":
            turns.append({"type": "final", "output": message["content"]})
        elif message.get("because") == "unknown_decision":
            turns.append(message["content"])
    return turns


def _without_ids(turn: Any) -> Any:
    """A turn without what differs each time that it is said."""
    if isinstance(turn, Mapping):
        return {k: _without_ids(v) for k, v in turn.items() if k not in ("call_id", "usage")}
    if isinstance(turn, list | tuple):
        return [_without_ids(each) for each in turn]
    return turn


@dataclass(frozen=True)
class Unreadable:
    """A file of a corpus that is no case. It counts as one that couldn't be judged."""

    id: str
    why: str


@dataclass(frozen=True)
class Corpus:
    """Cases, each with an id of its own, and none that shows what another one shows.

    ``source`` says for people where they come from and how they were chosen. Raises DuplicateCase.
    """

    cases: tuple[Case, ...]
    source: str = ""
    unreadable: tuple[Unreadable, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "cases", tuple(sorted(self.cases, key=lambda each: each.id)))
        by_id: dict[str, Case] = {}
        by_print: dict[str, Case] = {}
        for case in self.cases:
            if case.id in by_id:
                raise DuplicateCase(f"Two cases have the id {case.id}.")
            twin = by_print.setdefault(case.fingerprint, case)
            if twin is not case:
                raise DuplicateCase(f"Cases {twin.id} and {case.id} show the same. Keep one.")
            by_id[case.id] = case

    @classmethod
    def load(
        cls,
        folder: Path | str,
        *,
        ids: Iterable[str] | None = None,
        kinds: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
    ) -> Corpus:
        """All cases of a folder; or those with one of these ids, kinds, and tags.

        A file that can't be read is kept as ``unreadable``, whatever was asked for. A folder that
        isn't there has no cases, and ``source`` says so. Raises DuplicateCase, and ValueError for a
        kind that there isn't.
        """
        folder = Path(folder)
        wanted = {"id": list(ids or ()), "kind": [FailureKind(each).value for each in kinds or ()]}
        wanted["tag"] = list(tags or ())
        cases, unreadable = [], []
        for path in sorted(folder.glob(f"**/*{SUFFIX}")):
            try:
                cases.append(Case.load(path))
            except (BadCase, OSError) as error:
                unreadable.append(Unreadable(path.name.removesuffix(SUFFIX), str(error)))
        chosen = " and ".join(f"{k} {' or '.join(v)}" for k, v in wanted.items() if v)
        there = f"{folder}" if folder.is_dir() else f"{folder} (there is no such folder)"
        source = f"{there}, only {chosen}" if chosen else there
        whole = cls(tuple(cases), source, tuple(unreadable))
        kept = [case for case in whole.cases if _is_wanted(case, wanted)]
        return cls(tuple(kept), source, tuple(unreadable))

    def add(self, case: Case) -> Corpus:
        """The same corpus with one case more. Raises DuplicateCase."""
        return Corpus((*self.cases, case), self.source, self.unreadable)

    @property
    def ids(self) -> tuple[str, ...]:
        """Of all cases and unreadable files."""
        return tuple(sorted([each.id for each in self.cases] + [u.id for u in self.unreadable]))

    def __len__(self) -> int:
        return len(self.cases) + len(self.unreadable)

    def __getitem__(self, case_id: str) -> Case:
        """Raises KeyError that lists the ids there are."""
        for case in self.cases:
            if case.id == case_id:
                return case
        raise KeyError(f"There is no case {case_id!r}. The cases are: {', '.join(self.ids)}.")


def _is_wanted(case: Case, wanted: Mapping[str, Sequence[str]]) -> bool:
    return (
        (not wanted["id"] or case.id in wanted["id"])
        and (not wanted["kind"] or case.kind.value in wanted["kind"])
        and (not wanted["tag"] or not set(wanted["tag"]).isdisjoint(case.tags))
    )
