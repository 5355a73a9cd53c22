"""What doesn't fail can't be made smaller: ask first, and raise ValueError."""


def shrink(script, fails):
    kept, size = list(script), len(script)
    while size:
        start, before = 0, len(kept)
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if fails(rest) is True:
                kept = rest
            else:
                start += size
        if size > 1 or len(kept) == before:
            size //= 2
    return kept
