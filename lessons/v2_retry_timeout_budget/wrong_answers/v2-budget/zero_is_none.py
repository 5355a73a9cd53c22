"""0 is taken for no limit."""

from mini_harness import Tool


class BudgetSpent(RuntimeError):
    def __init__(self, used, limit):
        super().__init__(f"budget spent: {used} of {limit} calls")
        self.used, self.limit = used, limit


def limited(tools, max_calls):
    if max_calls and not max_calls >= 0:
        raise ValueError(f"max_calls is {max_calls}")
    used = 0

    def around(tool):
        def handler(**arguments):
            nonlocal used
            if max_calls and used >= max_calls:
                raise BudgetSpent(used, max_calls)
            used += 1
            return tool.handler(**arguments)

        return Tool(tool.name, tool.description, handler)

    return {name: around(tool) for name, tool in tools.items()}
