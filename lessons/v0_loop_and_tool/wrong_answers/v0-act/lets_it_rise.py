"""The error leaves `act`, and the whole run with it."""


def act(tools, decision):
    tool = tools[decision["name"]]
    return str(tool.handler(**decision["arguments"]))
