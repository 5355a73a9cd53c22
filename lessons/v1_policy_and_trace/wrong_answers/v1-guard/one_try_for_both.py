"""The tool's own error is taken for a no."""

from copy import deepcopy

from my_harness import judge

from mini_harness import Tool


def protect(tools, rules, approver):
    return {name: protected(tool, rules, approver) for name, tool in tools.items()}


def protected(tool, rules, approver):
    def handler(**arguments):
        verdict, reason = judge(rules, tool.name, deepcopy(arguments))
        if verdict == "require_approval":
            try:
                if approver(tool.name, deepcopy(arguments)) is True:
                    return tool.handler(**arguments)
            except Exception as error:
                reason = f"The approver failed: {error!r}"
        if verdict == "allow":
            return tool.handler(**arguments)
        return f"Tool not allowed: {tool.name}. {reason}"

    return Tool(tool.name, tool.description, handler)
