"""`splitlines` cuts at more than line ends, such as U+2028."""

import json


def load(path):
    text = path.read_bytes().decode(errors="replace") if path.exists() else ""
    lines = text.splitlines(keepends=True)
    torn = lines.pop() if lines and not lines[-1].endswith("\n") else ""
    events = []
    for number, line in enumerate(lines, start=1):
        try:
            events.append(json.loads(line))
        except ValueError as error:
            raise ValueError(f"Line {number} is damaged: {error}") from None
    return events, len(torn.encode())


def append(path, event):
    _, torn = load(path)
    with path.open("ab") as file:
        file.truncate(file.tell() - torn)
        file.write(json.dumps(event, ensure_ascii=False).encode(errors="replace") + b"\n")
