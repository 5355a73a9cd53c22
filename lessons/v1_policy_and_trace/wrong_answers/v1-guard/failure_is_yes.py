"""When the approver fails, the call goes through. Could not judge is never yes."""

from copy import deepcopy

from my_harness import judge

from mini_harness import Tool


def protect(tools, rules, approver):
    return {name: protected(tool, rules, approver) for name, tool in tools.items()}


def protected(tool, rules, approver):
    def handler(**arguments):
        verdict, reason = judge(rules, tool.name, deepcopy(arguments))
        refused = verdict == "deny"
        if verdict == "require_approval":
            try:
                refused = approver(tool.name, deepcopy(arguments)) is not True
            except Exception:
                refused = False
        if refused:
            return f"Tool not allowed: {tool.name}. {reason}"
        return tool.handler(**arguments)

    return Tool(tool.name, tool.description, handler)
