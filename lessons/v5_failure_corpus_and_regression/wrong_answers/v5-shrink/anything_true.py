"""Only True is a failure. Whoever couldn't judge hasn't said yes."""


def shrink(script, fails):
    kept, size = list(script), len(script)
    if not fails(kept):
        raise ValueError("It doesn't fail as it is.")
    while size:
        start, before = 0, len(kept)
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if fails(rest):
                kept = rest
            else:
                start += size
        if size > 1 or len(kept) == before:
            size //= 2
    return kept
