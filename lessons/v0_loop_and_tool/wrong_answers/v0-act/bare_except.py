"""A bare `except:` catches the Stop button too."""

import sys


def act(tools, decision):
    tool = tools.get(decision["name"])
    if tool is None:
        return f"Unknown tool: {decision['name']}. Known: {', '.join(tools)}."
    try:
        return str(tool.handler(**decision["arguments"]))
    except:
        return f"Tool {tool.name} failed: {sys.exc_info()[1]!r}"
