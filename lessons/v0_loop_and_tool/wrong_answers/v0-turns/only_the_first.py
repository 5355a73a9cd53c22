"""Only the first call of the list is carried out."""

from my_harness import act


def pursue(model, tools, goal):
    history = [{"role": "user", "content": goal}]
    while True:
        turn = model.decide(history, list(tools))
        decision = turn[0] if isinstance(turn, list) else turn
        if decision.get("type") == "final":
            return decision["output"]
        result = act(tools, decision)
        history.append({"role": "tool", "tool": decision["name"], "tool_result": result})
