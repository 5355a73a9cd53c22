"""The result isn't appended to the history."""

from my_harness import act


def pursue(model, tools, goal):
    history = [{"role": "user", "content": goal}]
    while True:
        decision = model.decide(history, list(tools))
        if decision.get("type") == "final":
            return decision["output"]
        if decision.get("type") == "tool":
            act(tools, decision)
        else:
            history.append({"role": "user", "content": f"Unknown decision: {decision}"})
