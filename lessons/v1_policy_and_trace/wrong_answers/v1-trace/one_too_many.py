"""Count before you ask"""

from copy import deepcopy

from my_harness import protect, pursue

from mini_harness import Tool


def supervise(model, tools, goal, rules, approver, trace, max_steps=8):
    step = 0

    def note(kind, **data):
        trace.append(deepcopy({"type": kind, "step": step, **data}))

    class Watched:
        def decide(self, history, tools):
            nonlocal step
            if step > max_steps:
                raise RuntimeError(f"max_steps exceeded: {max_steps}")
            decision = model.decide(history, tools)
            step += 1
            note("model_decision", decision=decision)
            return decision

    def watched(tool):
        def handler(**arguments):
            note("tool_start", tool=tool.name, arguments=arguments)
            try:
                result = tool.handler(**arguments)
            except Exception as error:
                note("tool_error", tool=tool.name, error=repr(error))
                raise
            note("tool_result", tool=tool.name, result=result)
            return result

        return Tool(tool.name, tool.description, handler)

    inner = {name: watched(tool) for name, tool in tools.items()}
    output = pursue(Watched(), protect(inner, rules, approver), goal)
    note("final", output=output)
    return output
