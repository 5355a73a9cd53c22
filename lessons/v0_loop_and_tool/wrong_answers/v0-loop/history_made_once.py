"""The history is made once, outside `pursue` or as a default value"""

from my_harness import act


def pursue(model, tools, goal, history=[]):
    history.append({"role": "user", "content": goal})
    while True:
        decision = model.decide(history, list(tools))
        if decision.get("type") == "final":
            return decision["output"]
        if decision.get("type") == "tool":
            result = act(tools, decision)
            entry = {"role": "tool", "tool": decision["name"], "tool_result": result}
        else:
            entry = {"role": "user", "content": f"Unknown decision: {decision}"}
        history.append(entry)
