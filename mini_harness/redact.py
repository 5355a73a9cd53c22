"""Secrets don't leave: one filter, in front of every sink.

Two things make a text a secret. It is the value of something with the name of a secret: an
environment variable like ``TAVILY_API_KEY``, an argument like ``password``, or ``hide(value)``
was called with it. Or it stands beside such a name in a text: ``token=…``, ``Authorization:
Bearer …``. The first kind is found wherever it turns up afterwards, also over a line end.

It is a filter and no proof. It doesn't find a secret that nobody named, one of fewer than 8
characters, or one that was encoded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from operator import is_
from typing import TYPE_CHECKING, Any

from mini_harness.frozen import FrozenDict, FrozenList

if TYPE_CHECKING:
    from mini_harness.protocol import ToolCall

MASK = "[secret hidden]"
"""Stands where a secret was. A call that has it in its arguments doesn't run."""

SHORTEST = 8
_REMEMBERED = 4096
_LONGEST_REMEMBERED = 64

_ENVIRONMENT_NAME = re.compile(r"((^|_|API)KEY|TOKEN|SECRET|PASSWORD|PASSWD)$", re.IGNORECASE)
_WORDS = (
    r"(?:api|secret|private|access|auth|signing|encryption)[_-]?key|token|secret|password"
    r"|passwd|passphrase|credentials?"
)
_NAME = re.compile(rf"(?:{_WORDS}|authorization)$", re.IGNORECASE)
# A name, perhaps in quotes, then = or :, then the value. Not "tokens": those are counted.
_BESIDE_NAME = re.compile(
    rf"""((?:{_WORDS})["']?\s*[=:]\s*["']?)([^\s"',;&]{{{SHORTEST},}})"""
    rf"""|(\b(?:bearer|basic)\s+)([A-Za-z0-9+/=._~-]{{{SHORTEST},}})"""
    r"""|(://[^\s/:@]*:)([^\s/@]+)(?=@)""",
    re.IGNORECASE,
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END[^\n]*|\Z)", re.DOTALL)

_told: set[str] = set()


def hide(value: str) -> None:
    """Take this text for a secret from now on, in every record of this process.

    Raises ValueError for one that is so short that ordinary text would be hidden with it.
    """
    if len(value) < SHORTEST:
        raise ValueError(f"A secret must have at least {SHORTEST} characters to be found again.")
    _told.add(value)


def is_secret_variable(name: str) -> bool:
    """Whether an environment variable of this name holds a secret, by its last word."""
    return _ENVIRONMENT_NAME.search(name) is not None


class Redactor:
    """Replaces secrets in JSON values. It learns the values of secret names as they come by."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._known: re.Pattern[str] | None = None
        self.harmless: set[str] = set()
        """Short texts that came by before and hold no secret."""
        self._harmless_keys: set[str] = set()
        self.look_around()

    def look_around(self) -> None:
        """Learn what the environment holds now, and what ``hide`` was told."""
        named = {value for name, value in os.environ.items() if is_secret_variable(name)}
        self._learn(named | _told)

    def is_plain(self, calls: tuple[ToolCall, ...]) -> bool:
        """Whether this is one call, of texts that came by before and hold no secret.

        It is a quick look at the commonest turn. No means only that nobody knows yet.
        """
        call, harmless, keys = calls[0], self.harmless, self._harmless_keys
        if len(calls) > 1 or call.defect or call.name not in harmless:
            return False
        if type(call.arguments) is not FrozenDict:
            return False
        for key, item in call.arguments.items():
            if key not in keys or type(item) is not str or item not in harmless:
                return False
        return True

    def hidden(self, value: Any) -> Any:
        """The frozen value with every secret in it replaced; itself if there is none."""
        # First the names: what stands under one may turn up under another key before it.
        self._learn(self._named(value))
        return self._shown(value)

    def _named(self, value: Any) -> set[str]:
        """All texts that stand under the name of a secret."""
        found: set[str] = set()
        if type(value) is FrozenDict:
            for key, item in value.items():
                known = key in self._harmless_keys
                found |= self._named(item) if known or not _NAME.search(key) else _texts(item)
        elif type(value) is FrozenList:
            found = found.union(*map(self._named, value))
        return found

    def _shown(self, value: Any) -> Any:
        if type(value) is str:
            return value if value in self.harmless else self._text(value)
        if type(value) is FrozenList:
            shown = [self._shown(item) for item in value]
            return value if all(map(is_, shown, value)) else FrozenList(shown)
        if type(value) is FrozenDict:
            pairs = {self._key(key): self._item(key, item) for key, item in value.items()}
            same = all(map(is_, pairs.values(), value.values())) and pairs.keys() == value.keys()
            return value if same else FrozenDict(pairs)
        return value

    def _key(self, key: str) -> str:
        return key if key in self._harmless_keys else self._text(key)

    def _item(self, key: str, item: Any) -> Any:
        """What is shown of a value under this key."""
        if key in self._harmless_keys:
            return self._shown(item)
        if _NAME.search(key):
            return item if item is None or isinstance(item, bool) or item == "" else MASK
        if self._text(key) == key and len(self._harmless_keys) < _REMEMBERED:
            self._harmless_keys.add(key)
        return self._shown(item)

    def _text(self, text: str) -> str:
        shown = text
        if len(text) >= SHORTEST:
            if self._known is not None:
                shown = self._known.sub(MASK, shown)
            if "=" in text or ":" in text or " " in text:
                shown = _BESIDE_NAME.sub(_masked, shown)
                shown = _PRIVATE_KEY.sub(MASK, shown)
        if shown == text:
            self._remember(text)
            return text
        return shown

    def _remember(self, text: str) -> None:
        """Most texts come again and again: names, roles, ids of builds."""
        if len(text) <= _LONGEST_REMEMBERED and len(self.harmless) < _REMEMBERED:
            self.harmless.add(text)

    def _learn(self, values: set[str]) -> None:
        new = {v for v in map(str.strip, values) if len(v) >= SHORTEST} - self._values - {MASK}
        if new:
            self._values |= new
            # The longest first: one may be the beginning of another. Output may be wrapped.
            longest_first = sorted(self._values, key=len, reverse=True)
            self._known = re.compile("|".join(map(_over_lines, longest_first)))
            self.harmless.clear()
            self._harmless_keys.clear()


def _over_lines(value: str) -> str:
    return r"(?:\r?\n[ \t]*)?".join(map(re.escape, value))


def _masked(found: re.Match[str]) -> str:
    return next(name for name in found.groups()[::2] if name is not None) + MASK


def _texts(value: Any) -> set[str]:
    """All texts in a value."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, Mapping):
        return set().union(*map(_texts, value.values()))
    return set().union(*map(_texts, value)) if isinstance(value, list) else set()
