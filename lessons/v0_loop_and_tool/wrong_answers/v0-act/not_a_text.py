"""The result goes back as it is."""


def act(tools, decision):
    tool = tools.get(decision["name"])
    if tool is None:
        return f"Unknown tool: {decision['name']}. Known: {', '.join(tools)}."
    try:
        return tool.handler(**decision["arguments"])
    except Exception as error:
        return f"Tool {tool.name} failed: {error!r}"
