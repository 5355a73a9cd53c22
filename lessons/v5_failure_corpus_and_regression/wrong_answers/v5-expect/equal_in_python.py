"""For Python 1 equals True, and 0 False."""

KNOWN = {"output", "never", "at_most"}


def objections(expect, seen):
    if unknown := sorted(set(expect) - KNOWN):
        raise ValueError(f"Nobody looks at {unknown[0]}.")
    if "output" not in expect and not any(expect.values()):
        raise ValueError("It expects nothing.")
    found = []
    if "output" in expect and ("output" not in seen or seen["output"] != expect["output"]):
        found.append(f"The answer isn't {expect['output']!r}.")
    for tool in expect.get("never", []):
        if tool in seen["calls"]:
            found.append(f"{tool} began.")
    for tool, most in expect.get("at_most", {}).items():
        if seen["calls"].count(tool) > most:
            found.append(f"{tool} began too often.")
    return found
