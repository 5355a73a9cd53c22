"""Anything that isn't a tool call is taken for an answer."""

from my_harness import act


def pursue(model, tools, goal):
    history = [{"role": "user", "content": goal}]
    while True:
        decision = model.decide(history, list(tools))
        if decision.get("type") != "tool":
            return decision["output"]
        result = act(tools, decision)
        history.append({"role": "tool", "tool": decision["name"], "tool_result": result})
