"""It may have had its effect: ask."""


def what_to_do(events, safe):
    last = {event["call"]: event["type"] for event in events}
    words = {"proposed": "run", "start": "run again", "end": "done"}
    return {call: words[kind] for call, kind in last.items()}
