"""The loop asks whether the answer is true, and not what type the decision has."""

from my_harness import act


def pursue(model, tools, goal):
    history = [{"role": "user", "content": goal}]
    answer = None
    while not answer:
        decision = model.decide(history, list(tools))
        if decision.get("type") == "tool":
            result = act(tools, decision)
            history.append({"role": "tool", "tool": decision["name"], "tool_result": result})
        elif decision.get("type") == "final":
            answer = decision["output"]
        else:
            history.append({"role": "user", "content": f"Unknown decision: {decision}"})
    return answer
