"""Where credentials are kept, and where a text leads if it is taken for a path.

A place is looked at twice: as it is written, and with its links followed. A link that stands
somewhere on the way therefore hides nothing (report B10). What this can't see is a hard link, and
a link that somebody swaps after the look: a tool has to open what it was allowed to open.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from glob import escape
from typing import Any, NamedTuple

_ALWAYS_FOLLOWS = os.access not in os.supports_follow_symlinks

LONGEST_PATH = 4096
"""A longer text, in characters, is no path on any system."""

# On the text of a path with folded case, so that a disk that doesn't tell cases apart is covered.
# In programs, process.env and import.meta.env are no files.
_ANYWHERE = re.compile(
    r"""
    / (?:
        \.ssh | \.aws | \.azure | \.gnupg | \.docker | \.kube | \.config/(?:gcloud|gh|hub)
      | \.password-store | \.local/share/keyrings | \.cargo/credentials(?:\.toml)?
      | \.m2/settings\.xml | \.cache/huggingface/token
      | (?: [._]netrc | \.pgpass | \.pypirc | \.npmrc | \.git-credentials | \.envrc
          | id_(?:rsa|dsa|ecdsa|ed25519) (?:_sk)?
          | [^/]* \. (?:pem|p12|pfx|ppk|key) | \.vault-token | \.my\.cnf | \.htpasswd
          | (?! (?:process|import\.meta|example|sample|template) \.env ) [^/]* \.env
        ) (?: ~ | \. (?:old|bak|orig|save|backup) )?
      | \.env \. (?! (?:example|sample|template) (?:/|\Z) ) [^/]*
    ) (?:/|\Z)
    """,
    re.VERBOSE,
)
_OF_THE_SYSTEM = re.compile(
    r"(?:/private)?(?:/etc/(?:passwd|shadow|gshadow|sudoers)-?|(?:/var)?/run/secrets)(?:/|\Z)"
    r"|(?:/private)?/etc/ssh/ssh_host_[^/]*_key\Z"
    r"|/proc/[^/]+/(?:task/[^/]+/)?(?:environ|mem)\Z"
)
_NOT_IN_PATHS = re.compile(r"[\s=:@,;'\"()<>|&\[\]{}]+")


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

    These are the folders of SSH, GnuPG, GitHub's client, Docker, Kubernetes and the large clouds,
    the files in which git, curl, pip, npm and PostgreSQL keep passwords, ``.env`` files, private
    keys by their usual names, all these also as a backup, and of the system the lists of users,
    the keys of SSH, the secrets of a container, and the memory of processes. They are denied
    wherever they lie.
    """
    folded = path.casefold().replace("\\", "/")
    return _ANYWHERE.search(folded) is not None or _OF_THE_SYSTEM.match(folded) is not None


def path_texts(text: str) -> Iterator[str]:
    """A text, and every part of it that could be a path: ``file:///x``, ``path=x``, ``-fx``.

    Of a sentence only what begins like an absolute path: it may well speak of a ``.env`` file.
    """
    yield text
    if text[:1] == "-" and len(text) > 2:
        yield text[2:]
    pieces = _NOT_IN_PATHS.split(text)
    if len(text.split()) > 2:
        pieces = [piece for piece in pieces if piece[:1] in ("/", "~")]
    yield from pieces if pieces != [text] else ()


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


def places_of(texts: Iterable[str], cwd: str) -> list[Place]:
    """Where these texts lead, as far as they can be paths."""
    return [place for text in texts if (place := place_if_any(text, cwd))]


def path_texts_in(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Every text in the arguments that could be a path, and every part of it."""
    for text in map(str.strip, _texts(arguments)):
        yield from path_texts(text) if len(text) <= LONGEST_PATH else ()


def _texts(value: Any) -> list[str]:
    """Every text anywhere in the arguments, the keys of objects within them included."""
    found = []
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict | list):
            found += [*item, *_texts(item)] if isinstance(item, dict) else _texts(item)
    return found


def _slashed(path: str) -> str:
    # POSIX keeps two slashes at the start of a path, and they mean one.
    return path.replace(os.sep, "/").replace("//", "/", 1)


_WILD = re.compile(r"[*?[]")


class PathPattern:
    """A pattern of places: ``*`` stands for anything within a part, ``**`` for any parts.

    A relative pattern is seen from the folder that the harness works in. A pattern that names a
    folder covers all that is in it (SEEDS B22).
    """

    def __init__(self, text: str) -> None:
        parts = text.split("/")
        wild = (at for at, part in enumerate(parts) if _WILD.search(part))
        first = next(wild, len(parts))
        # A star in the name of the home folder, or of the one worked in, is only a letter there.
        start = "/".join(parts[:first]) or ("/" if first and text.startswith("/") else "")
        self._start = os.path.expanduser(start)  # noqa: PTH111 - hot, and text
        self._rest = "/".join(parts[first:])

    def covers(self, place: Place, cwd: str) -> bool:
        """Whether the place is surely meant, for an allow rule.

        The links of the place are followed. Those of the pattern are not: whoever may write there
        could make a folder that was allowed a link to any other.
        """
        start = os.path.join(os.path.realpath(cwd), self._start)  # noqa: PTH118 - hot, and text
        return _fits(_parts(self._below(start)), _parts(place.resolved))

    def touches(self, place: Place, cwd: str) -> bool:
        """Whether the place may be meant: written or resolved, in any case of its letters."""
        start = os.path.join(cwd, self._start)  # noqa: PTH118 - hot, and text
        patterns = {self._below(start), self._below(os.path.realpath(start))}
        return any(
            _fits(_parts(each.casefold()), _parts(path.casefold()))
            for path in {*place}
            for each in patterns
        )

    def _below(self, start: str) -> str:
        return os.path.normpath(f"{escape(start)}/{self._rest}")


def _parts(path: str) -> list[str]:
    return [part for part in path.replace(os.sep, "/").split("/") if part]


def _fits(pattern: list[str], parts: list[str]) -> bool:
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_fits(pattern[1:], parts[start:]) for start in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(pattern[1:], parts[1:])
