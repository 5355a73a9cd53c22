"""The last rule wins. Whoever adds a rule below could then undo the others."""

STRICTNESS = ("allow", "require_approval", "deny")


def judge(rules, name, arguments):
    found = "require_approval", "No rule speaks about it."
    for rule in rules:
        try:
            said = rule(name, arguments)
            if said is not None:
                verdict, reason = said
                STRICTNESS.index(verdict)
                found = verdict, reason
        except Exception as error:
            return "deny", f"A rule failed: {error!r}"
    return found
