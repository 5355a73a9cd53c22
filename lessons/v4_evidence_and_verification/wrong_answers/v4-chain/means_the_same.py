"""compare the bytes of the line, and not what they mean."""

import hashlib
import json


def link(before, data):
    """The hash of an entry that comes after the hash `before`, and its line."""
    found = hashlib.sha256(f"{before} {json.dumps(data)}".encode()).hexdigest()
    return found, json.dumps({"data": data, "hash": found}).encode() + b"\n"


def follow(path):
    """The hash of each entry as far as they are right, after "start"; the lines; the head."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    head, hashes = path.with_suffix(".head"), ["start"]
    for line in lines:
        try:
            entry = json.loads(line)
            found, _ = link(hashes[-1], entry["data"])
        except (ValueError, KeyError, TypeError):
            break
        if found != entry.get("hash") or len(entry) != 2 or not line.endswith(b"\n"):
            break
        hashes.append(found)
    if not lines and not head.exists():
        return hashes, 0, [0, "start"]
    return hashes, len(lines), json.loads(head.read_bytes()) if head.exists() else None


def verify(path):
    """None if all is whole, else the number of the first line that isn't right."""
    hashes, lines, head = follow(path)
    whole = lines > 0 and head == [lines, hashes[-1]]
    return None if whole else len(hashes)


def add(path, data):
    """Add an entry after the last one, and only to what is whole."""
    hashes, lines, head = follow(path)
    fits = [[lines, hashes[-1]], [lines - 1, *hashes[-2:-1]]]
    if head not in fits:
        raise ValueError(f"{path.name} isn't whole: line {len(hashes)}")
    found, line = link(hashes[-1], data)
    with path.open("ab") as file:
        file.write(line)
    path.with_suffix(".head").write_bytes(json.dumps([lines + 1, found]).encode())
