"""A server that does what a test wants, most of it wrong. It needs nothing but Python.

Its one argument is JSON: ``pages`` of tools, the ``cursor`` that the last page leads to ("on" for
one more each time), what to do ``at_start``. To call a tool is to call the function of its name.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

VERSION = "2025-11-25"
Message = dict[str, Any]


class Stub:
    def __init__(self, config: Message) -> None:
        self.config = config
        self.cancelled: list[Any] = []

    def answer(self, line: bytes) -> Message | None:
        """The answer to a message, or None if it gets none."""
        message: Message = json.loads(line)
        if message["method"] == "notifications/cancelled":
            self.cancelled.append(message["params"]["requestId"])
        if "id" not in message:
            return None
        result = self.result(message["method"], message.get("params", {}), line)
        if result is None:
            return None
        kind = "error" if "code" in result else "result"
        return {"jsonrpc": "2.0", "id": message["id"], kind: result}

    def result(self, method: str, params: Message, line: bytes) -> Message | None:
        result: Message | None = {"code": -32601, "message": f"no method {method}"}
        match method:
            case "initialize":
                able = {"tools": {}, **self.config.get("able", {})}
                able = {name: each for name, each in able.items() if each is not None}
                info = {"name": "stub", "version": "1"}
                result = {"protocolVersion": VERSION, "capabilities": able, "serverInfo": info}
            case "tools/list":
                result = self.page(int(params.get("cursor", 0)))
            case "tools/call":
                result = self.call(params["name"], params.get("arguments", {}), line)
            case "resources/list" if "resources" in self.config:
                result = {"resources": self.config["resources"]}
            case "resources/read" if params["uri"] == "file:///thing":
                text = {"mimeType": "text/plain", "text": "the thing itself"}
                result = {"contents": [{"uri": params["uri"], **text}]}
            case "resources/read":
                result = {"code": -32002, "message": "no such resource"}
        return result

    def page(self, number: int) -> Message:
        pages = self.config.get("pages", [[]])
        tools = pages[number] if number < len(pages) else []
        follows = number + 1 < len(pages)
        cursor = str(number + 1) if follows else self.config.get("cursor")
        cursor = str(number + 1) if cursor == "on" else cursor
        return {"tools": tools} | ({"nextCursor": cursor} if cursor else {})

    def call(self, name: str, arguments: Message, line: bytes) -> Message | None:
        does: Callable[[Message], str | None] = getattr(self, name, lambda _: line.decode())
        if name == "shapeless":
            return {"content": [{"type": "text"}]}
        text = does(arguments)
        return None if text is None else {"content": [{"type": "text", "text": text}]}

    # --- what its tools do --------------------------------------------------------------------

    def silent(self, _: Message) -> None:
        """Never answers."""

    def which_were_cancelled(self, _: Message) -> str:
        return json.dumps(self.cancelled)

    def die(self, _: Message) -> None:
        print("the flux capacitor is broken", file=sys.stderr, flush=True)
        os._exit(3)

    def junk(self, _: Message) -> str:
        os.write(1, b'Hello!\n\n{"almost": json}\n\xff\xfe\n')
        return "after the junk"

    def huge(self, arguments: Message) -> str:
        return "x" * int(arguments["size"])

    def environment(self, _: Message) -> str:
        return json.dumps(dict(os.environ))

    def children(self, _: Message) -> str:
        """Two that don't end by themselves: one in the session, one that has left it."""
        sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        one = subprocess.Popen(sleeper, stdin=quiet["stdin"], stdout=quiet["stdout"])
        two = subprocess.Popen(
            sleeper, stdin=quiet["stdin"], stdout=quiet["stdout"], start_new_session=True
        )
        return json.dumps([os.getpid(), one.pid, two.pid])


def main(config: Message) -> None:
    if "pid_file" in config:
        Path(config["pid_file"]).write_text(str(os.getpid()), encoding="utf-8")
    match config.get("at_start"):
        case "exit":
            print("no licence found", file=sys.stderr)
            sys.exit(7)
        case "talk":
            print("usage: this is no MCP server", flush=True)
            time.sleep(600)
    stub = Stub(config)
    for line in sys.stdin.buffer:
        answer = stub.answer(line)
        if answer is not None:
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    if config.get("at_end") == "stay":
        time.sleep(600)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
