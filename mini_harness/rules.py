"""What a policy goes by: a rule, the facts of a call that rules are about, and a judgement."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from mini_harness.command_line import CommandLine, CommandPattern
from mini_harness.frozen import shown
from mini_harness.sensitive import PathPattern, Place, path_texts_in, place_of, places_of
from mini_harness.shell_words import Unreadable
from mini_harness.tools.base import BaseTool
from mini_harness.tools.call import Call
from mini_harness.tools.function import FunctionTool


class Choice(StrEnum):
    """A closed list of words. One that isn't in it is answered with those that are."""

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise ValueError(f"There is no {cls.__name__} {value!r:.100}: choose {', '.join(cls)}.")


class Verdict(Choice):
    """What may happen to a call: allow, require_approval, deny (SEEDS A23)."""

    ALLOW = "allow"
    REQUIRE_APPROVAL = "require_approval"
    DENY = "deny"


class BuiltIn(StrEnum):
    """The ids under which a policy speaks itself. No rule can have one of them."""

    CREDENTIALS = "sensitive-path"
    COMMAND_LINE = "command-line"
    ALLOWED_TOOLS = "allowed-tools"
    TOGETHER = "allow-rules"
    PLAN_MODE = "plan-mode"
    READS = "read-only"
    FULL_AUTO = "full-auto"
    DEFAULT = "default"
    ALWAYS = "always"
    APPROVED = "approved"


class Judgement(NamedTuple):
    """A verdict, the id of the rule that gave it, and the reason in words for people."""

    verdict: Verdict
    rule: str
    reason: str


def meant_by(pattern: str, names: Collection[str]) -> str:
    """Which of these names a pattern seems to mean, if it is a name that isn't among them."""
    if pattern in names or any(c in pattern for c in "*?["):
        return ""
    known = {name.casefold(): name for name in names}
    close = get_close_matches(pattern.casefold(), known, 1, _CLOSE)
    return known[close[0]] if close else ""


class Habits:
    """What all calls of one tool have in common, so that a call costs only what differs."""

    __slots__ = ("always_same", "runs_commands", "silent", "tool", "touches_nothing")

    def __init__(self, tool: BaseTool) -> None:
        self.tool = tool
        function = tool if isinstance(tool, FunctionTool) else None
        same_paths = function is not None and _own(tool, "paths") is FunctionTool.paths
        named = function.path_fields if function and same_paths else ["?"]
        self.silent = _own(tool, "paths") is BaseTool.paths or named is None
        """It never says which paths it touches."""
        own_command = _own(tool, "command")
        self.runs_commands = own_command is not BaseTool.command and not (
            function and own_command is FunctionTool.command and function.command_field is None
        )
        self.touches_nothing = named == [] and not self.runs_commands
        """It says of every call that it touches no path."""
        own = _own(tool, "is_read_only")
        self.always_same = function if own is FunctionTool.is_read_only else None
        """The tool, if all its calls only read, or none does."""


def _own(tool: BaseTool, method: str) -> object:
    """The function behind a method, to see whether a tool has one of its own."""
    found = getattr(tool, method)
    return getattr(found, "__func__", found)


_UNKNOWN: Any = object()
_MOST_PLACES = 20_000


class Facts:
    """What one call is about, found out when somebody asks. ``cwd`` is where the harness works.

    Everything here may raise what the tool raises, and TypeError for an answer of a wrong type.
    """

    __slots__ = ("_declared", "_line", "_parsed", "_places", "call", "cwd", "habits")

    def __init__(self, call: Call, cwd: Path | str, habits: Habits) -> None:
        self.call = call
        self.cwd = os.fspath(cwd)
        self.habits = habits
        # Filled when asked for: a cached_property takes a lock on Python 3.11, for 1 µs each.
        self._parsed = self._declared = self._places = self._line = _UNKNOWN

    @property
    def parsed(self) -> Any:
        """The validated arguments, for what the tool says of them."""
        if self._parsed is _UNKNOWN:
            self._parsed = self.call.parsed
        return self._parsed

    @property
    def read_only(self) -> bool:
        """Whether the tool says that this very call changes nothing (SEEDS B04)."""
        fixed = self.habits.always_same
        said: object = fixed.read_only if fixed else self.call.tool.is_read_only(self.parsed)
        return exact(said, "is_read_only")

    @property
    def declared(self) -> list[Place] | None:
        """The places that the tool says it touches. None if it doesn't say."""
        if self._declared is _UNKNOWN:
            paths = None if self.habits.silent else self.call.tool.paths(self.parsed)
            self._declared = None if paths is None else self._resolved(paths)
        found: list[Place] | None = self._declared
        return found

    def _resolved(self, paths: object) -> list[Place]:
        if not isinstance(paths, list | tuple) or not all(isinstance(p, str) for p in paths):
            raise TypeError(f"paths returned {shown(paths):.100}, not a list of texts")
        return [place_of(path, self.cwd) for path in paths]

    @property
    def places(self) -> list[Place]:
        """Every place that the call might touch: what the tool declares, else every text in the
        arguments, and what is on a command line."""
        if self._places is _UNKNOWN:
            found, line = self.declared, self.line
            if found is None:
                texts = dict.fromkeys(path_texts_in(self.call.arguments))
                found = places_of(texts, self.cwd)
            if line is not None:
                texts = dict.fromkeys(line.paths())
                starts = _starts(line, [Place(self.cwd, self.cwd), *self._folders(found)])
                if len(starts) * len(texts) > _MOST_PLACES and len(starts) > 1:
                    raise Unreadable("it names too many paths in too many folders")
                found = [*found, *(each for start in starts for each in places_of(texts, start))]
            self._places = found
        places: list[Place] = self._places
        return places

    def _folders(self, places: list[Place]) -> list[Place]:
        """Where its line may begin: in a place that the tool declares, or in any folder named."""
        if self.declared is not None:
            return places
        return [each for each in places if os.path.isdir(each.resolved)]  # noqa: PTH112 - text

    @property
    def line(self) -> CommandLine | None:
        """The command line that the call runs, or None. Raises Unreadable."""
        if not self.habits.runs_commands:
            return None
        if self._line is _UNKNOWN:
            command: object = self.call.tool.command(self.parsed)
            if not isinstance(command, str | None):
                raise TypeError(f"command returned {shown(command):.100}, not a text")
            self._line = None if command is None else CommandLine.read(command)
        found: CommandLine | None = self._line
        return found


def exact(said: object, who: str) -> bool:
    if said is not True and said is not False:
        raise TypeError(f"{who} returned {shown(said):.100}, not True or False")
    return said


def _starts(line: CommandLine, begin: Iterable[Place]) -> Collection[str]:
    """The folders in which a line may run, if it begins in any of these places.

    After ``cd link/..`` a shell is where the words say, and some programs are where the link
    leads to.
    """
    folders = {each for place in begin for each in place}
    join = os.path.join
    wholes = [join(each, folder) for each in folders for folder in line.folders]
    found = [*map(os.path.normpath, wholes), *map(os.path.realpath, wholes)]
    return dict.fromkeys(found)


@dataclass(frozen=True)
class Rule:
    """A verdict for the calls that meet all conditions which are given.

    - ``tool``: a pattern for the tool's name. ``*`` stands for anything.
    - ``path``: a pattern for the paths it touches. ``*`` stays within a part, ``**`` doesn't, and
      what names a folder covers all that is in it. Relative ones start where the harness works.
    - ``command``: a pattern for a command, word by word: ``git status *``.
    - ``when``: a function of the validated arguments that returns True or False.

    A rule that restricts is for a call if *anything* in it fits: one path, as it is written or
    with its links followed; one command on the line, at any depth. A rule that allows is for a
    call only if *everything* fits: all paths that the tool declares, with links followed; all
    commands of a line that is plain. Several rules that allow commands may do that together. A path
    never allows a command line, and nothing allows one that isn't plain. A folder that is denied
    isn't closed to what reads the folder around it: ``grep -r x .``.

    Of a command, a rule that restricts compares the program, whatever its folder, and then wants
    its other words in this order, with anything between: ``git push`` is also for
    ``git -C . push -f``. It can't see what a program runs by itself: ``git -c alias.x=!cmd x``,
    ``awk``, ``make``, ``python -c``. So allow a program only if all that it can do may be done. It
    says nothing about a tool that declares no command, unless it names exactly that tool: then
    somebody is asked.

    A malformed rule raises TypeError or ValueError. To skip it with a warning (SEEDS B22) would
    turn a typing error in a DENY into permission.
    """

    id: str
    verdict: Verdict
    tool: str = "*"
    path: str | None = None
    command: str | None = None
    when: Callable[[Any], bool] | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", Verdict(self.verdict))
        for name in ("id", "tool", "path", "command"):
            value = getattr(self, name)
            if value is not None or name in ("id", "tool"):
                object.__setattr__(self, name, filled(f"The {name} of a rule", value))
        if "+" in self.id or self.id.partition(":")[0] in _RESERVED:
            raise ValueError(
                f"A rule can't have the id {self.id!r}: a policy itself uses such ids."
            )
        if self.when is not None and not callable(self.when):
            raise TypeError(f"The condition of rule {self.id!r} isn't a function: {self.when!r}.")
        if not isinstance(self.reason, str):
            raise TypeError(f"The reason of rule {self.id!r} isn't text: {self.reason!r}.")
        if self.verdict is _ALLOW and self.path is not None and self.command is not None:
            raise ValueError(
                f"Rule {self.id!r} would allow a command in a path, and nothing bounds the paths "
                "of a command. Give path for tools that declare theirs, or command alone."
            )
        # So that a pattern that is none fails here, and not when a call is judged.
        _ = self.path_pattern, self.command_pattern

    @cached_property
    def path_pattern(self) -> PathPattern | None:
        return None if self.path is None else PathPattern(self.path)

    @cached_property
    def command_pattern(self) -> CommandPattern | None:
        return None if self.command is None else CommandPattern(self.command)

    def may_concern(self, name: str) -> bool:
        """Whether the rule can be for a call of the tool of this name at all."""
        return fnmatchcase(name, self.tool)

    def misspelt(self, names: Collection[str]) -> str:
        """Which of these tools the rule seems to mean, if it is for one that isn't there."""
        return meant_by(self.tool, names)

    @property
    def unconditional(self) -> bool:
        """Whether it is for every call of its tools."""
        return self.path is None and self.command is None and self.when is None

    @property
    def allows_commands(self) -> bool:
        """Whether it allows commands by their words alone."""
        only = self.path is None and self.when is None
        return self.verdict is _ALLOW and self.command is not None and only

    def judge(self, facts: Facts) -> Judgement | None:
        """The judgement about a call of one of its tools, or None if it isn't for that call.

        Raises what ``when`` raises, and TypeError if that returns neither True nor False.
        """
        what = self._covered(facts) if self.verdict is _ALLOW else self._touched(facts)
        if what is None:
            return None
        if self.when is not None and not exact(self.when(facts.call.parsed), "the condition"):
            return None
        if self._blind(facts):
            reason = f"Rule {self.id!r} is about a command, but {facts.call.name} declares none."
            return Judgement(Verdict.REQUIRE_APPROVAL, self.id, reason)
        reason = self.reason or f"Rule {self.id!r} says {self.verdict}."
        return Judgement(self.verdict, self.id, f"{reason} It is about: {what}" if what else reason)

    def _blind(self, facts: Facts) -> bool:
        """Whether it is about the commands of a tool that doesn't say which it runs."""
        restricts = self.command is not None and self.verdict is not _ALLOW
        return restricts and self.tool == facts.call.name and not facts.habits.runs_commands

    def _covered(self, facts: Facts) -> str | None:
        """For a rule that allows: "" if all of the call is covered, else None."""
        path, command = self.path_pattern, self.command_pattern
        if command is not None and (facts.line is None or facts.line.uncovered(command)):
            return None
        if path is None:
            return ""
        if command is None and facts.line is not None:
            return None
        places = facts.declared
        return "" if places and all(path.covers(p, facts.cwd) for p in places) else None

    def _touched(self, facts: Facts) -> str | None:
        """For a rule that restricts: what of the call it is about, or None if nothing is."""
        path, command = self.path_pattern, self.command_pattern
        found = ""
        if command is not None and not self._blind(facts):
            found = "" if facts.line is None else facts.line.touched(command)
            if not found:
                return None
        if path is not None:
            touched = (p.written for p in facts.places if path.touches(p, facts.cwd))
            place = next(touched, None)
            return None if place is None else found or place
        return found


_ALLOW = Verdict.ALLOW
_RESERVED = frozenset(BuiltIn)
_CLOSE = 0.8


def filled(what: str, value: object) -> str:
    """A text that isn't blank, without the blanks around it. Raises TypeError and ValueError."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be text, but it is {shown(value):.100}.")
    if not value.strip():
        raise ValueError(f"{what} must not be blank.")
    return value.strip()
