"""Where credentials are kept, and where a text leads if it is taken for a path.

A place is looked at twice: as it is written, and with its links followed. A link that stands
somewhere on the way therefore hides nothing (report B10). What this can't see is a hard link, and
a link that somebody swaps after the look: a tool has to open what it was allowed to open.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import NamedTuple

_ALWAYS_FOLLOWS = os.access not in os.supports_follow_symlinks

LONGEST_PATH = 4096
"""A longer text, in characters, is no path on any system."""

# On the text of a path with folded case, so that a disk that doesn't tell cases apart is covered.
_ANYWHERE = re.compile(
    r"""
    / (?:
        \.ssh | \.aws | \.azure | \.gnupg | \.docker | \.kube | \.config/gcloud
      | [._]netrc | \.pgpass | \.pypirc | \.npmrc | \.git-credentials
      | \.env (?: \. (?! (?:example|sample|template) (?:/|\Z) ) [^/]* )?
      | id_(?:rsa|dsa|ecdsa|ed25519)
    ) (?:/|\Z)
    """,
    re.VERBOSE,
)
_OF_THE_SYSTEM = re.compile(
    r"(?:/private)?/etc/(?:passwd|shadow|gshadow|sudoers)-?(?:/|\Z)"
    r"|/proc/[^/]+/(?:task/[^/]+/)?environ\Z"
)
_KEY_FILES = (".pem", ".p12", ".pfx", ".ppk")


class Place(NamedTuple):
    """Where a text leads: absolute, as it is ``written``, and ``resolved`` by following links."""

    written: str
    resolved: str

    @property
    def sensitive(self) -> bool:
        """Whether credentials are kept there (SEEDS B20)."""
        return is_sensitive(self.written) or (
            self.resolved != self.written and is_sensitive(self.resolved)
        )


def is_sensitive(path: str) -> bool:
    """Whether an absolute path names a place where credentials are kept, or something in it.

    These are the folders of SSH, GnuPG, Docker, Kubernetes and the large clouds, the files in
    which git, curl, pip, npm and PostgreSQL keep passwords, ``.env`` files, private keys by their
    usual names, and the system's lists of users. They are denied wherever they lie.
    """
    folded = path.casefold()
    return (
        _ANYWHERE.search(folded) is not None
        or _OF_THE_SYSTEM.match(folded) is not None
        or folded.endswith(_KEY_FILES)
    )


def place_of(text: str, cwd: str) -> Place:
    """Where a path leads, seen from ``cwd``; it needn't exist.

    Raises ValueError for a text that no system call takes.
    """
    whole = os.path.join(cwd, os.path.expanduser(text))  # noqa: PTH111, PTH118 - hot, and text
    return Place(_slashed(os.path.normpath(whole)), _slashed(os.path.realpath(whole)))


def place_if_any(text: str, cwd: str) -> Place | None:
    """The same for a text that may be no path at all. None if it can't be one.

    Links are followed only if it looks like a path, or if something of that name is there.
    """
    if not text or len(text) > LONGEST_PATH or "\0" in text:
        return None
    if not text.isascii():
        # Half of a character can't be in the name of a file.
        text = text.encode("utf-8", "ignore").decode()
    if text[:1] in "~." or "/" in text or os.sep in text:
        return place_of(text, cwd)
    whole = f"{cwd}/{text}"
    # Unlike lstat, this raises nothing for what isn't there, and so takes half the time.
    if os.access(whole, os.F_OK, follow_symlinks=_ALWAYS_FOLLOWS):
        return place_of(text, cwd)
    return Place(whole, whole)


def _slashed(path: str) -> str:
    # POSIX keeps two slashes at the start of a path, and they mean one.
    return path.replace(os.sep, "/").replace("//", "/", 1)


class PathPattern:
    """A pattern of places: ``*`` stands for anything within a part, ``**`` for any parts.

    A relative pattern is seen from the folder that the harness works in. A pattern that names a
    folder covers all that is in it (SEEDS B22).
    """

    def __init__(self, text: str) -> None:
        self._text = os.path.expanduser(text)  # noqa: PTH111 - a pattern isn't a path

    def covers(self, place: Place, cwd: str) -> bool:
        """Whether the place is surely meant, for an allow rule.

        The links of the place are followed. Those of the pattern are not: whoever may write there
        could make a folder that was allowed a link to any other.
        """
        pattern = os.path.normpath(self._seen_from(os.path.realpath(cwd)))
        return _fits(_parts(pattern), _parts(place.resolved))

    def touches(self, place: Place, cwd: str) -> bool:
        """Whether the place may be meant: written or resolved, in any case of its letters."""
        pattern = self._seen_from(cwd)
        patterns = {os.path.normpath(pattern), os.path.realpath(pattern)}
        return any(
            _fits(_parts(each.casefold()), _parts(path.casefold()))
            for path in {*place}
            for each in patterns
        )

    def _seen_from(self, cwd: str) -> str:
        return os.path.join(cwd, self._text)  # noqa: PTH118 - a pattern isn't a path


def _parts(path: str) -> list[str]:
    return [part for part in path.replace(os.sep, "/").split("/") if part]


def _fits(pattern: list[str], parts: list[str]) -> bool:
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_fits(pattern[1:], parts[start:]) for start in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(pattern[1:], parts[1:])
