"""The names of a server's tools: legal for every model, and one for each tool (SEEDS B18)."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

LONGEST = 64
"""How many characters the APIs of models take."""

_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_SERVER = re.compile(r"[A-Za-z](?:_?[A-Za-z0-9-]){0,31}")


def mcp_name(server: str, tool: str) -> str:
    """``mcp__<server>__<tool>``, for one tool alone.

    What isn't an ASCII letter, a digit, "_" or "-" becomes "_". A part that doesn't begin with a
    letter gets "mcp_" in front. A name of more than LONGEST characters is cut, and ends in 8 hex
    digits of a digest of server and tool.
    """
    name = f"mcp__{_part(server)}__{_part(tool)}"
    return name if len(name) <= LONGEST else _with_digest(name, server, tool)


def mcp_names(server: str, tools: Sequence[str]) -> list[str]:
    """The names of all tools of a server, in their order.

    Where two would be the same, both end in a digest of what the server calls them: so the name
    of a tool doesn't depend on the order in which a server lists them.
    """
    names = [mcp_name(server, tool) for tool in tools]
    times = Counter(names)
    return [
        _with_digest(name, server, tool) if times[name] > 1 else name
        for name, tool in zip(names, tools, strict=True)
    ]


def checked_server_name(name: str) -> str:
    """The name itself. Raises ValueError for one that could make two servers' tools the same.

    Without "__" inside and "_" at the end, what stands between "mcp__" and the next "__" is the
    server, and nothing else.
    """
    if not isinstance(name, str) or not _SERVER.fullmatch(name):
        raise ValueError(
            f"A server can't be called {name!r}. Use 1 to 32 ASCII letters, digits, '-' and single "
            "'_', beginning with a letter and not ending with '_'."
        )
    return name


def _part(text: str) -> str:
    legal = _ILLEGAL.sub("_", text) or "tool"
    return legal if legal[0].isalpha() else f"mcp_{legal}"


def _with_digest(name: str, server: str, tool: str) -> str:
    # A server may send lone surrogates, for which UTF-8 has no bytes.
    told_apart = f"{server}\n{tool}".encode(errors="backslashreplace")
    digest = hashlib.sha256(told_apart).hexdigest()[:8]
    return f"{name[: LONGEST - len(digest) - 1]}_{digest}"
