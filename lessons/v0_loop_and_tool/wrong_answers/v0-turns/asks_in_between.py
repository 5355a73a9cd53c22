"""The model is asked again before all its calls have their results."""

from my_harness import act


def pursue(model, tools, goal):
    history = [{"role": "user", "content": goal}]
    waiting = []
    while True:
        turn = model.decide(history, list(tools))
        waiting += turn if isinstance(turn, list) else [turn]
        decision = waiting.pop(0)
        if decision.get("type") == "final":
            return decision["output"]
        result = act(tools, decision)
        history.append({"role": "tool", "tool": decision["name"], "tool_result": result})
