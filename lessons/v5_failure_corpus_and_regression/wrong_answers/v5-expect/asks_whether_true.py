"""Ask whether the key is there: `"output" in expect`, not whether its value is true."""

import json

KNOWN = {"output", "never", "at_most"}


def objections(expect, seen):
    if unknown := sorted(set(expect) - KNOWN):
        raise ValueError(f"Nobody looks at {unknown[0]}.")
    if not expect or expect in ({"never": []}, {"at_most": {}}):
        raise ValueError("It expects nothing.")
    found = []
    if expect.get("output"):
        wanted = json.dumps(expect["output"], sort_keys=True)
        told = json.dumps(seen["output"], sort_keys=True) if "output" in seen else "missing"
        if told != wanted:
            found.append(f"The answer is {told}, and should be {wanted}.")
    for tool in expect.get("never", []):
        if tool in seen["calls"]:
            found.append(f"{tool} began.")
    for tool, most in expect.get("at_most", {}).items():
        if seen["calls"].count(tool) > most:
            found.append(f"{tool} began too often.")
    return found
