"""The run ended without an answer. `seen.get` takes that for the answer None."""

import json

KNOWN = {"output", "never", "at_most"}


def objections(expect, seen):
    if unknown := sorted(set(expect) - KNOWN):
        raise ValueError(f"Nobody looks at {unknown[0]}.")
    if "output" not in expect and not any(expect.values()):
        raise ValueError("It expects nothing.")
    found = []
    if "output" in expect:
        wanted = json.dumps(expect["output"], sort_keys=True)
        told = json.dumps(seen.get("output"), sort_keys=True)
        if told != wanted:
            found.append(f"The answer is {told}, and should be {wanted}.")
    for tool in expect.get("never", []):
        if tool in seen["calls"]:
            found.append(f"{tool} began.")
    for tool, most in expect.get("at_most", {}).items():
        if seen["calls"].count(tool) > most:
            found.append(f"{tool} began too often.")
    return found
