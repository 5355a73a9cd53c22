"""A call that fails isn't counted."""

from mini_harness import Tool


class BudgetSpent(RuntimeError):
    def __init__(self, used, limit):
        super().__init__(f"budget spent: {used} of {limit} calls")
        self.used, self.limit = used, limit


def limited(tools, max_calls):
    if max_calls is not None and not max_calls >= 0:
        raise ValueError(f"max_calls is {max_calls}")
    used = 0

    def around(tool):
        def handler(**arguments):
            nonlocal used
            if max_calls is not None and used >= max_calls:
                raise BudgetSpent(used, max_calls)
            used += 1
            try:
                return tool.handler(**arguments)
            except Exception:
                used -= 1
                raise

        return Tool(tool.name, tool.description, handler)

    return {name: around(tool) for name, tool in tools.items()}
