"""A case that ended in an error, or was skipped, counts"""

from fractions import Fraction


def rate(outcomes, selected):
    ends = [outcomes.get(case) for case in set(selected)]
    judged = [each for each in ends if each in ("passed", "failed")]
    if not judged:
        return None
    return Fraction(judged.count("passed"), len(judged))
