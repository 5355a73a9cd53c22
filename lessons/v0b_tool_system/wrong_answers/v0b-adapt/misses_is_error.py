"""A result with `isError` looks like any other, and here it is taken for an answer."""

import re
from dataclasses import dataclass
from hashlib import sha256

from mini_harness import Tool


@dataclass
class RemoteTool(Tool):
    input_schema: dict
    read_only: bool = False


def adapt(server, listed, call):
    """The tools of a server, by the names under which a model sees them."""
    tools = {}
    for told in listed:
        name = legal(server, told["name"], tools)
        about = told.get("description", ""), asking(told["name"], call), told["inputSchema"]
        tools[name] = RemoteTool(name, *about)
    return tools


def legal(server, name, taken):
    found = re.sub("[^A-Za-z0-9_-]", "_", f"mcp__{server}__{name}")
    if len(found) > 64 or found in taken:
        found = f"{found[:55]}_{sha256(name.encode()).hexdigest()[:8]}"
    return found


def asking(name, call):
    def handler(**arguments):
        try:
            result = call(name, arguments)
            text = "\n".join(map(flat, result["content"]))
        except Exception as error:
            raise RuntimeError(f"{name} failed: {error!r}") from error
        return text

    return handler


def flat(part):
    kind, inner = part["type"], part.get("resource", part)
    if "text" in inner:
        return inner["text"]
    if kind == "text":
        raise ValueError(f"A text without a text: {part}")
    return f"[{kind}, {inner.get('mimeType')}: not shown as text]"
