"""What counts is the last that is known of it"""


def what_to_do(events, safe):
    words = {}
    for event in events:
        call = event["call"]
        if words.get(call) == "done":
            continue
        if event["type"] == "end":
            words[call] = "done"
        elif event["type"] == "start":
            words[call] = "run again" if event["tool"] in safe else "ask"
        else:
            words[call] = "run"
    return words
