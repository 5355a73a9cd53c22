"""order isn't among the repeatable ones."""

from my_harness import limited, pursue, retry

from mini_harness import Tool


def survive(model, tools, goal, repeatable, sleep, max_calls=None):
    spent = None
    budgeted = limited(tools, max_calls)

    def around(tool):
        def handler(**arguments):
            nonlocal spent
            try:
                return retry(lambda key: tool.handler(**arguments), tool.name, True, sleep)
            except RuntimeError as error:
                if type(error).__name__ == "BudgetSpent":
                    spent = error
                raise

        return Tool(tool.name, tool.description, handler)

    class Model:
        def decide(self, history, tools):
            if spent is not None:
                raise spent
            return model.decide(history, tools)

    return pursue(Model(), {name: around(tool) for name, tool in budgeted.items()}, goal)
