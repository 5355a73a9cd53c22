"""The model can mend its mistake only if it is told which names would have been right."""


def act(tools, decision):
    tool = tools.get(decision["name"])
    if tool is None:
        return f"There is no tool {decision['name']}."
    try:
        return str(tool.handler(**decision["arguments"]))
    except Exception as error:
        return f"Tool {tool.name} failed: {error!r}"
