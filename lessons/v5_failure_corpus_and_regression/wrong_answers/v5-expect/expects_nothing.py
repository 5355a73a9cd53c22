"""It expects nothing, so no run could ever fail it."""

import json


def objections(expect, seen):
    found = []
    if "output" in expect:
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
