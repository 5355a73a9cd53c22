"""Begin again after each turn that went, until a whole round takes nothing away."""


def shrink(script, fails):
    kept, size = list(script), len(script)
    if fails(kept) is not True:
        raise ValueError("It doesn't fail as it is.")
    while size:
        start = 0
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if fails(rest) is True:
                kept = rest
            else:
                start += size
        size //= 2
    return kept
