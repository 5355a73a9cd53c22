"""Secrets don't leave: one filter, in front of every sink.

A text is a secret if it is the value of something with the name of a secret: of an environment
variable like ``TAVILY_API_KEY``, or of an argument like ``password``; or if ``hide(value)`` was
called with it. Then it is hidden wherever it turns up afterwards. In free text, what stands beside
such a name is hidden too (``DB_PASSWORD=…``, ``Authorization: Bearer …``), and what has the form
of a well-known key.

The model and the tools work with what is real, except for the secrets of the environment, which
nobody needs to see. So does a person who is asked: a secret that the model made up must not hide a
command.

It is a filter and no proof. It doesn't find a secret that nobody named, one of fewer than 8
characters, one that is a mere word, one that was encoded, or one that a variable got while the run
was on. What a tool raises isn't changed: ``run.unwrap()`` may raise it with a secret in its text.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import TYPE_CHECKING, Any

from mini_harness.frozen import FrozenDict, FrozenList

if TYPE_CHECKING:
    from mini_harness.protocol import ToolCall

MASK = "[secret hidden]"
"""Stands where a secret was. A call that has it in its arguments doesn't run."""

SHORTEST, LONGEST = 8, 512
"""How many characters a value has that is learned from arguments. Those of the environment may be
longer."""

MOST = 200
"""How many values are learned from arguments. Those of the environment don't count."""

_REMEMBERED = 4096
_LONGEST_REMEMBERED = 64

_WORDS = (
    r"(?:api|secret|private|access|auth|signing|encryption)[_-]?keys?|token|secrets?|password"
    r"|passwd|passphrase"
)
_NAME = re.compile(
    rf"(?:{_WORDS}|credentials?|authorization|[_-]pass|[_-]pat)(?:[_-]?\d+)?$", re.IGNORECASE
)
_VARIABLE = re.compile(
    rf"(?:{_WORDS}|(?:^|_)(?:KEY|PASS|PAT|CREDENTIALS?))(?:[_-]?\d+)?$",
    re.IGNORECASE,
)
_BESIDE_NAME = re.compile(
    # In a header.
    r"""(authorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token)\s+)?)([^\s"',;]{8,})"""
    r"""|(\bbearer\s+)(?=\S{0,99}\d)([\w+/=.~-]{16,})"""
    # Behind a name: in quotes; for a variable of the shell and an option of a command, anything;
    # else only what doesn't look like code or talk.
    rf"""|((?:{_WORDS})["']?\s*[:=]\s*")([^"\n]{{8,}})(?=")"""
    rf"""|((?:{_WORDS})["']?\s*[:=]\s*')([^'\n]{{8,}})(?=')"""
    rf"""|((?-i:\b[A-Z][A-Z0-9_]*)(?<=KEY|ORD|SWD|KEN|RET|IAL|ALS|ASS|PAT)=)([^\s"'`$;&|]{{8,}})"""
    rf"""|((?<![\w-])--[\w-]{{0,60}}(?:{_WORDS})[= ])([^\s"'`$;&|]{{8,}})"""
    rf"""|((?:{_WORDS})["']?\s*[:=]\s*)(?=\S{{0,99}}[\d-])([\w+/=~-]{{8,}})(?![\w.(\[])"""
    # In an address.
    r"""|(://[^\s/:@"']{0,99}:)([^\s/@"',]{1,199})(?=@)"""
    # By its form.
    r"""|()(\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16})\b)"""
    r"""|()((?<![\w-])eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})""",
    re.IGNORECASE,
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\sA-Za-z0-9+/=]*(?:-----END [A-Z ]{0,40}-----)?"
)
_WRAP = re.compile(r"\r?\n[ \t]*")
_OURS = frozenset(
    (
        "role",
        "tool",
        "call_id",
        "type",
        "name",
        "outcome",
        "verdict",
        "rule",
        "digest",
        "scope",
        "by",
    )
)
"""Keys of events whose values are the harness's own words, or names that it must find again."""

_told: set[str] = set()


def hide(value: str) -> None:
    """Take this text for a secret, in every run of this process that begins or goes on later.

    Raises ValueError for one that is so short that ordinary text would be hidden with it.
    """
    if len(value) < SHORTEST:
        raise ValueError(f"A secret must have at least {SHORTEST} characters to be found again.")
    _told.add(value)


def is_secret_variable(name: str) -> bool:
    """Whether an environment variable of this name holds a secret, by its last word."""
    return _VARIABLE.search(name) is not None


class Values:
    """Texts that are to be hidden, as they are and as JSON and Python write them."""

    def __init__(self) -> None:
        self._found: dict[str, re.Pattern[str] | None] = {}

    def add(self, values: Iterable[str]) -> bool:
        """Whether there was a new one among them."""
        before = len(self._found)
        for value in map(str.strip, values):
            if len(value) >= SHORTEST and value != MASK:
                for written in (value, json.dumps(value)[1:-1], repr(value)[1:-1]):
                    self._found.setdefault(written, None)
        return len(self._found) > before

    def __len__(self) -> int:
        return len(self._found)

    def hidden(self, text: str) -> str:
        """The text without any of them, also where an output was wrapped within one."""
        flat = _WRAP.sub("", text) if "\n" in text else text
        for value in self._longest_first():
            if value in text:
                text = text.replace(value, MASK)
            if value in flat and "\n" in text and len(value) <= LONGEST:
                text = self._pattern(value).sub(MASK, text)
        return text

    def rests_hidden(self, text: str) -> str:
        """The text without what a cut has left of one of them."""
        for value in self._longest_first():
            if value[:SHORTEST] in text or value[-SHORTEST:] in text:
                text = "\n".join(_without_rest(line, value) for line in text.split("\n"))
        return text

    def _longest_first(self) -> list[str]:
        """One may be the beginning of another."""
        return sorted(self._found, key=len, reverse=True) if self._found else []

    def _pattern(self, value: str) -> re.Pattern[str]:
        pattern = self._found[value]
        if pattern is None:
            pattern = re.compile(r"(?:\r?\n[ \t]*)?".join(map(re.escape, value)))
            self._found[value] = pattern
        return pattern


def _without_rest(line: str, value: str) -> str:
    """Mask what a cut has left of a secret: its beginning at the end of a line, or its end."""
    for size in range(len(value) - 1, SHORTEST - 1, -1):
        if line.endswith(value[:size]):
            return line[:-size] + MASK
        if line.startswith(value[-size:]):
            return MASK + line[size:]
    return line


class Redactor:
    """Replaces secrets in JSON values. It learns the values of secret names as they come by."""

    def __init__(self) -> None:
        self._environment = Values()
        self._learned = Values()
        self.harmless: set[str] = set()
        """Short texts that came by before and hold no secret."""
        self._harmless_keys: set[str] = set()
        self._harmless_names: set[str] = set()
        self.look_around()

    def look_around(self) -> None:
        """Learn what the environment holds now, and what ``hide`` was told."""
        named = {value for name, value in os.environ.items() if is_secret_variable(name)}
        # "postgres" or "disabled" would take ordinary text along.
        worth = {value for value in named if not (value.isalpha() and len(value) < 12)}
        if self._environment.add(worth | _told):
            self.harmless.clear()
            self._harmless_names.clear()

    def is_plain(self, calls: tuple[ToolCall, ...]) -> bool:
        """Whether this is one call, of texts that came by before and hold no secret.

        It is a quick look at the commonest turn. No means only that nobody knows yet.
        """
        call, harmless, keys = calls[0], self.harmless, self._harmless_keys
        if len(calls) > 1 or call.defect or call.name not in self._harmless_names:
            return False
        if type(call.arguments) is not FrozenDict:
            return False
        for key, item in call.arguments.items():
            if key not in keys or type(item) is not str or item not in harmless:
                return False
        return True

    def for_people(self, value: Any) -> Any:
        """The frozen value without the secrets of the environment, and without what stands under
        the name of a secret: for a person who has to decide, and for the model."""
        if type(value) is str:
            return self._known(value)
        if type(value) is FrozenList:
            return FrozenList([self.for_people(item) for item in value])
        if type(value) is FrozenDict:
            return FrozenDict(
                {
                    self._known(k): _masked(v) if _NAME.search(k) else self.for_people(v)
                    for k, v in value.items()
                }
            )
        return value

    def for_answer(self, value: Any) -> Any:
        """The frozen value without the secrets that are known by now, under whatever name."""
        if type(value) is str:
            return self._learned.hidden(self._known(value))
        if type(value) is FrozenList:
            return FrozenList([self.for_answer(item) for item in value])
        if type(value) is FrozenDict:
            return FrozenDict({self._known(k): self.for_answer(v) for k, v in value.items()})
        return value

    def _known(self, text: str) -> str:
        return self._environment.rests_hidden(self._environment.hidden(text))

    def hidden(self, value: Any) -> Any:
        """The frozen value with every secret in it replaced; itself if there is none."""
        # First the names: what stands under one may turn up under another key before it.
        if len(self._learned) < MOST and self._learned.add(self._named(value)):
            self.harmless.clear()
        return self._event(value) if type(value) is FrozenDict else self._shown(value)

    def _event(self, data: FrozenDict) -> FrozenDict:
        """The data of an event, or a call in it: there the harness's own words stand."""
        return self._pairs(data, self._own)

    def _own(self, key: str, item: Any) -> Any:
        if key in _OURS and type(item) is str:
            return self._known(item) if key == "call_id" else self._name(item)
        if key == "calls" and type(item) is FrozenList:
            calls = [self._event(e) if type(e) is FrozenDict else self._shown(e) for e in item]
            return item if all(map(is_, calls, item)) else FrozenList(calls)
        return self._item(key, item)

    def _pairs(self, items: FrozenDict, shown: Callable[[str, Any], Any]) -> FrozenDict:
        pairs = {self._known(key): shown(key, item) for key, item in items.items()}
        same = all(map(is_, pairs.values(), items.values())) and pairs.keys() == items.keys()
        return items if same else FrozenDict(pairs)

    def _named(self, value: Any) -> set[str]:
        """What stands under the name of a secret and isn't a mere word."""
        found: set[str] = set()
        if type(value) is FrozenDict:
            for key, item in value.items():
                known = key in self._harmless_keys
                found |= self._named(item) if known or not _NAME.search(key) else _texts(item)
        elif type(value) is FrozenList:
            found = found.union(*map(self._named, value))
        return {each for each in found if len(each) <= LONGEST and not _is_word(each)}

    def _shown(self, value: Any) -> Any:
        if type(value) is str:
            return value if value in self.harmless else self._text(value)
        if type(value) is FrozenList:
            shown = [self._shown(item) for item in value]
            return value if all(map(is_, shown, value)) else FrozenList(shown)
        if type(value) is FrozenDict:
            return self._pairs(value, self._item)
        return value

    def _item(self, key: str, item: Any) -> Any:
        """What is shown of a value under this key."""
        if key in self._harmless_keys:
            return self._shown(item)
        if _NAME.search(key):
            return _masked(item)
        if len(self._harmless_keys) < _REMEMBERED:
            self._harmless_keys.add(key)
        return self._shown(item)

    def _name(self, text: str) -> str:
        """One of the harness's own words, or an id or a name that it must find again."""
        if text in self._harmless_names:
            return text
        shown = self._known(text)
        if shown == text and len(self._harmless_names) < _REMEMBERED:
            self._harmless_names.add(text)
        return shown

    def _text(self, text: str) -> str:
        shown = text
        if len(text) >= SHORTEST:
            shown = self._learned.hidden(self._known(text))
            shown = _BESIDE_NAME.sub(_value_masked, shown)
            shown = _PRIVATE_KEY.sub(MASK, shown)
        if shown == text:
            # Most texts come again and again: names, roles, ids of builds.
            if len(text) <= _LONGEST_REMEMBERED and len(self.harmless) < _REMEMBERED:
                self.harmless.add(text)
            return text
        return shown


def _is_word(text: str) -> bool:
    """Whether ordinary text and code are full of it."""
    return text.isidentifier() and not any(char.isdigit() for char in text)


def _masked(item: Any) -> Any:
    """What is shown under the name of a secret. That there is none may be known."""
    return item if item is None or isinstance(item, bool) or item == "" else MASK


def _value_masked(found: re.Match[str]) -> str:
    groups = zip(found.groups()[::2], found.groups()[1::2], strict=True)
    name = next(name for name, value in groups if value is not None)
    return f"{name}{MASK}"


def _texts(value: Any) -> set[str]:
    """All texts in a value."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, Mapping):
        return set().union(*map(_texts, value.values()))
    return set().union(*map(_texts, value)) if isinstance(value, list) else set()
