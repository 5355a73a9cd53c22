"""A case that is gone is worse: nobody looks any more."""


def compare(before, now):
    words = {}
    for case in before.keys() & now.keys():
        then, ends = before[case], now[case]
        passed, possible = ends.count("passed"), len(ends) - ends.count("failed")
        owed = min(then.count("passed"), 1)
        if set(then) == {"passed"}:
            owed = len(ends)
        words[case] = "fine" if passed >= owed else "unclear" if possible >= owed else "worse"
    return words
