"""A turn can be a list of decisions. This loop takes every turn for one decision."""

from my_harness import act


def pursue(model, tools, goal):
    history = [{"role": "user", "content": goal}]
    while True:
        decision = model.decide(history, list(tools))
        if decision.get("type") == "final":
            return decision["output"]
        result = act(tools, decision)
        history.append({"role": "tool", "tool": decision["name"], "tool_result": result})
