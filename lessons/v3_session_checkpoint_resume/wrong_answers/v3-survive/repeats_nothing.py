"""look may be repeated: run it again, and tell the model what it gives."""

from my_harness import act, append, load


def pursue_on(path, model, tools, goal, safe):
    events, _ = load(path)
    history = [{"role": "user", "content": goal}]
    pending, is_open = None, False
    for event in events:
        match event["type"]:
            case "decision":
                pending, is_open = event["value"], False
            case "start":
                is_open = True
            case "end":
                history.append(event["value"])
                pending = None
    while True:
        if pending is None:
            pending, is_open = model.decide(history, list(tools)), False
            append(path, {"type": "decision", "value": pending})
        if pending["type"] == "final":
            return pending["output"]
        if is_open:
            result = "The outcome is unknown."
        else:
            append(path, {"type": "start", "value": pending["name"]})
            result = act(tools, pending)
        seen = {"role": "tool", "tool": pending["name"], "tool_result": result}
        append(path, {"type": "end", "value": seen})
        history.append(seen)
        pending = None
