"""Every call gets exactly one entry of its own"""

from my_harness import act


def pursue(model, tools, goal):
    history = [{"role": "user", "content": goal}]
    while True:
        turn = model.decide(history, list(tools))
        turn = turn if isinstance(turn, list) else [turn]
        if turn[0].get("type") == "final":
            return turn[0]["output"]
        results = [act(tools, decision) for decision in turn]
        names = ", ".join(decision["name"] for decision in turn)
        history.append({"role": "tool", "tool": names, "tool_result": ", ".join(results)})
