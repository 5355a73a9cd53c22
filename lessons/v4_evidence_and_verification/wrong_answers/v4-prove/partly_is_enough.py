"""One claim of two holds: that is partly, and must be verified."""

from my_harness import examine, standing


def pursue_proved(model, tools, goal, changes):
    """Pursue a goal until there is an answer that the record bears out."""
    history = [{"role": "user", "content": goal}]
    record, sent_back = [], 0

    def find(claim):
        readable = isinstance(claim, dict) and "call_id" in claim
        return examine(record, claim) if readable else "malformed"

    while True:
        decision = model.decide(history, list(tools))
        if decision["type"] == "tool":
            name, call_id = decision["name"], f"call-{len(record) + 1}"
            try:
                output, ok = str(tools[name].handler(**decision["arguments"])), True
            except Exception as error:
                output, ok = f"Tool {name} failed: {error!r}", False
            about = {"call_id": call_id, "tool": name, "changes": changes.get(name)}
            record.append({**about, "ok": ok, "output": output, "command": None})
            seen = {"role": "tool", "tool": name, "call_id": call_id, "tool_result": output}
            history.append(seen)
            continue
        output = decision["output"]
        claims = output.get("claims") if isinstance(output, dict) else None
        findings = [find(each) for each in claims or []]
        if standing(findings) != "unverified":
            return output["answer"]
        if sent_back == 3:
            raise RuntimeError(f"The answer was rejected: {findings}")
        sent_back += 1
        history.append({"role": "user", "content": f"Not verified: {findings}"})
