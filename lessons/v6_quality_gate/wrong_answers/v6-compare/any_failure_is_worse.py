"""What passed some of the times owes one pass, and not more."""


def compare(before, now):
    words = {}
    for case, then in before.items():
        ends = now.get(case)
        if ends is None:
            words[case] = "worse"
        elif "passed" not in then:
            words[case] = "fine"
        elif "failed" in ends:
            words[case] = "worse"
        else:
            words[case] = "fine" if set(ends) == {"passed"} else "unclear"
    return words
