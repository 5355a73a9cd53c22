"""makes a text of BudgetSpent, like of any error."""

from my_harness import limited, pursue, retry

from mini_harness import Tool


def survive(model, tools, goal, repeatable, sleep, max_calls=None):
    budgeted = limited(tools, max_calls)

    def around(tool):
        def handler(**arguments):
            return retry(
                lambda key: tool.handler(**arguments), tool.name, tool.name in repeatable, sleep
            )

        return Tool(tool.name, tool.description, handler)

    return pursue(model, {name: around(tool) for name, tool in budgeted.items()}, goal)
