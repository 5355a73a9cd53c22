"""What no rule speaks about is allowed. Nobody decided that."""

STRICTNESS = ("allow", "require_approval", "deny")


def judge(rules, name, arguments):
    strictest, why = "allow", "No rule forbids it."
    for rule in rules:
        try:
            said = rule(name, arguments)
            if said is None:
                continue
            verdict, reason = said
            if STRICTNESS.index(verdict) >= STRICTNESS.index(strictest):
                strictest, why = verdict, reason
        except Exception as error:
            return "deny", f"A rule failed: {error!r}"
    return strictest, why
