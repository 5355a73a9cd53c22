"""nobody can say what it changed, so it may have changed everything."""

from mini_harness import attributable


def examine(record, claim):
    """What the record says of a claim, in one word."""
    ids = [entry["call_id"] for entry in record]
    if claim["call_id"] not in ids:
        return "no_such_call"
    place = ids.index(claim["call_id"])
    cited, about, quote = record[place], claim.get("about"), claim.get("quote")
    if not cited["ok"]:
        return "not_ok"
    for later in record[place + 1 :]:
        changes = later["changes"] or []
        if changes and (not about or set(changes) & set(about)):
            return "outdated"
    if cited["command"] and not attributable(cited["command"]):
        return "not_attributable"
    if quote is not None and (not quote.strip() or quote not in cited["output"]):
        return "not_quoted"
    return "holds"


def standing(findings):
    """verified if all of them hold, partly if some do, else unverified."""
    held = [each == "holds" for each in findings]
    if not any(held):
        return "unverified"
    return "verified" if all(held) else "partly"
