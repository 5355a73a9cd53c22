"""Verdicts are compared as texts."""

STRICTNESS = ("allow", "require_approval", "deny")


def judge(rules, name, arguments):
    said = [rule(name, arguments) for rule in rules]
    said = [each for each in said if each is not None]
    return max(said, default=("require_approval", "No rule speaks about it."))
