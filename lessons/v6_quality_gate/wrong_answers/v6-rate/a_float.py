"""Return a Fraction, or None: a float is rounded."""


def rate(outcomes, selected):
    chosen = set(selected)
    ends = [outcomes.get(case, "skipped") for case in chosen]
    if set(ends) <= {"skipped"}:
        return None
    return ends.count("passed") / len(chosen)
