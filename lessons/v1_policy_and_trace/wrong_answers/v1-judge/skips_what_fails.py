"""A rule that fails is skipped. It might have been the one that says no."""

STRICTNESS = ("allow", "require_approval", "deny")


def judge(rules, name, arguments):
    said = []
    for rule in rules:
        try:
            answer = rule(name, arguments)
        except Exception:
            continue
        if answer is not None:
            said.append(answer)
    silence = "require_approval", "No rule speaks about it."
    return max(said, key=lambda each: STRICTNESS.index(each[0]), default=silence)
