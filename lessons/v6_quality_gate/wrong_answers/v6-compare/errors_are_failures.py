"""A run that wasn't judged might have gone either way."""


def compare(before, now):
    words = {}
    for case, then in before.items():
        ends = now.get(case)
        owed = len(ends or []) if set(then) == {"passed"} else min(then.count("passed"), 1)
        is_fine = ends is not None and ends.count("passed") >= owed
        words[case] = "fine" if is_fine else "worse"
    return words
