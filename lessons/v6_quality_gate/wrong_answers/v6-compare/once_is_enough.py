"""What passed each time then has to pass each time now."""


def compare(before, now):
    words = {}
    for case, then in before.items():
        ends = now.get(case, ["failed"])
        if case not in now:
            words[case] = "worse"
        elif "passed" not in then or "passed" in ends:
            words[case] = "fine"
        else:
            words[case] = "worse" if set(ends) == {"failed"} else "unclear"
    return words
