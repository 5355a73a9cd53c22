"""Its start must be in the journal before it runs"""

from my_harness import act, append, load


def pursue_on(path, model, tools, goal, safe):
    events, _ = load(path)
    history = [{"role": "user", "content": goal}]
    pending = None
    for event in events:
        match event["type"]:
            case "decision":
                pending = event["value"]
            case "end":
                history.append(event["value"])
                pending = None
    while True:
        if pending is None:
            pending = model.decide(history, list(tools))
            append(path, {"type": "decision", "value": pending})
        if pending["type"] == "final":
            return pending["output"]
        result = act(tools, pending)
        seen = {"role": "tool", "tool": pending["name"], "tool_result": result}
        append(path, {"type": "end", "value": seen})
        history.append(seen)
        pending = None
