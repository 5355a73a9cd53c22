"""Take away large parts first, then ever smaller ones"""


def shrink(script, fails):
    if fails(script) is not True:
        raise ValueError("It doesn't fail as it is.")
    kept, start = list(script), 0
    while start < len(kept):
        rest = kept[:start] + kept[start + 1 :]
        if fails(rest) is True:
            kept, start = rest, 0
        else:
            start += 1
    return kept
