"""What a loop with tools must do, whoever wrote it."""

from __future__ import annotations

from itertools import pairwise

from mini_harness.course.conformance import Check, Subject, Wrong
from mini_harness.course.conformance.stage import (
    DONE,
    GOAL,
    MISSPELT,
    READ,
    Script,
    act,
    call,
    names_of,
    proposes,
    pursue,
    says,
    tools,
    wrong,
)
from mini_harness.frozen import shown

TEXT = "I think it's the network."
BOTH = [READ, call("read_build", build_id="build-101")]
BOTH_RESULTS = [("read_build", "failed"), ("read_build", "passed")]
ENTRY = {"role": "tool", "tool": "read_build", "tool_result": "failed"}


def _known(subject: Subject) -> None:
    ran: list[str] = []
    got = act(subject, READ, ran)
    called = proposes(READ)
    if not ran:
        likely = "The handler isn't called: tool.handler(**decision['arguments'])."
        wrong(called, "the tool didn't run", "it runs once", likely)
    if len(ran) > 1:
        wrong(called, f"the tool ran {len(ran)} times", "it runs once", "Call the handler once.")
    if ran != ["build-102"]:
        likely = "Unpack the arguments with two stars: tool.handler(**decision['arguments'])."
        wrong(called, f"the tool was called with {ran[0]!r}", "with 'build-102'", likely)
    if got != "failed":
        wrong(called, shown(got), "'failed'", "What the tool returns isn't what `act` returns.")


def _text(subject: Subject) -> None:
    got = act(subject, call("count_builds"))
    if got != "2":
        called = "act(tools, decision) for a tool that returns the number 2"
        likely = "The result goes back as it is. A model reads text: make one of it with `str`."
        wrong(called, shown(got), "the text '2'", likely)


def _unknown(subject: Subject) -> None:
    shouted, ran = {**READ, "name": "READ_BUILD"}, list[str]()
    act(subject, shouted, ran)
    got = act(subject, MISSPELT, ran)
    called = proposes(MISSPELT)
    if ran:
        called = f"{proposes(shouted)}, and {proposes(MISSPELT)}"
        likely = "The nearest name was taken. Nobody proposed that: the harness doesn't guess."
        wrong(called, "read_build ran", "nothing runs", likely)
    if not isinstance(got, str) or "read_biuld" not in got:
        likely = "The text doesn't say which name was wrong."
        wrong(called, shown(got), "a text with the name read_biuld", likely)
    if "read_build" not in got or "count_builds" not in got:
        likely = (
            "The model can mend its mistake only if it is told which names would have been right."
        )
        wrong(called, shown(got), "a text that also names the tools there are", likely)


def _arguments(subject: Subject) -> None:
    decision = call("read_build", wrongly="build-102")
    got = act(subject, decision)
    if not isinstance(got, str) or not ("wrongly" in got or "build_id" in got):
        likely = "The text doesn't say which argument was wrong: put the error into it."
        expected = "a text that names the wrong argument, or those that the tool takes"
        wrong(proposes(decision), shown(got), expected, likely)


def _raises(subject: Subject) -> None:
    ran: list[str] = []
    got = act(subject, call("ask_server"), ran)
    if ran != ["ask_server"]:
        called = proposes(call("ask_server"))
        likely = "A call that failed is made once more. Nobody knows here whether that is safe."
        wrong(called, f"the tool ran {len(ran)} times", "it runs once", likely)
    if not isinstance(got, str) or "the log server is away" not in got:
        called = "act(tools, decision) for a tool that raises LogServerError('the log server …')"
        wrong(called, shown(got), "a text with the error's own words", "The error's text is lost.")
    got = act(subject, call("silent"))
    if not isinstance(got, str) or "ValueError" not in got:
        called = "act(tools, decision) for a tool that raises ValueError() without a text"
        likely = (
            "`str(error)` can be empty, and then nobody knows what happened. `repr(error)` isn't."
        )
        wrong(called, shown(got), "a text that names ValueError", likely)


def _stop(subject: Subject) -> None:
    try:
        got = act(subject, call("stop"))
    except KeyboardInterrupt:
        return
    called = "act(tools, decision) while somebody presses the Stop button (KeyboardInterrupt)"
    likely = "A bare `except:` catches the Stop button too. Write `except Exception`."
    wrong(called, shown(got), "KeyboardInterrupt goes on up", likely)


def _final(subject: Subject) -> None:
    script = Script(DONE)
    got = pursue(subject, script)
    if got == DONE["output"]:
        return
    if not script.shown:
        likely = "The model isn't asked. Call `model.decide(history, list(tools))`."
    elif got is None:
        likely = "`pursue` returns nothing. Return the output of the final answer."
    else:
        likely = "The output is changed on its way, or something else is returned."
    wrong(says(script), shown(got), repr(DONE["output"]), likely)


def _falsy(subject: Subject) -> None:
    likely = "The loop asks whether the answer is true, and not what type the decision has."
    for answer in ("", 0, False, None):
        script = Script({"type": "final", "output": answer})
        try:
            got = pursue(subject, script)
        except Wrong as fault:
            fault.likely = likely
            raise
        if type(got) is not type(answer) or got != answer:
            wrong(says(script), shown(got), repr(answer), likely)


def _goal(subject: Subject) -> None:
    script = Script(DONE)
    pursue(subject, script)
    goal, view = {"role": "user", "content": GOAL}, script.view(0)
    if view[:1] != [goal]:
        likely = "The goal isn't put into the history before the model is asked."
        if GOAL in str(view):
            likely = "The goal is there, but its entry isn't the first, or has other keys."
        wrong(says(script), f"the model saw {view}", f"it sees [{goal}]", likely)


def _tools(subject: Subject) -> None:
    script = Script(READ, DONE)
    pursue(subject, script)
    for turn, given in enumerate(script.tools, start=1):
        if set(names_of(given)) != set(tools([])):
            got = f"in turn {turn} the model was given {shown(given)} as its tools"
            likely = "The model can only propose what it knows: model.decide(history, list(tools))."
            wrong(says(script), got, "it is given the names of all tools, every time", likely)


def _result(subject: Subject) -> None:
    script, ran = Script(READ, DONE), list[str]()
    pursue(subject, script, ran)
    if len(script.shown) < 2:
        likely = "The loop ends after the first turn: it must ask again after every call."
        wrong(says(script), "the model was asked once", "it is asked twice", likely)
    if script.results(1) != [("read_build", "failed")]:
        likely = (
            "The result isn't appended to the history. The history is all that the model knows: "
            "it will ask for the same thing for ever."
        )
        if len(script.view(1)) > len(script.view(0)):
            likely = "An entry was appended, but not this one: look at its keys and values."
        got = f"before its second turn the model saw {script.view(1)}"
        wrong(says(script), got, f"the last entry it sees is {ENTRY}", likely)
    if ran != ["build-102"]:
        likely = "A call is carried out once."
        wrong(says(script), f"the tool ran {len(ran)} times", "it runs once", likely)


def _anew(subject: Subject) -> None:
    first, last = Script(DONE), Script(DONE)
    for script in (first, Script(READ, DONE), last):
        pursue(subject, script)
    if len(last.view(0)) != len(first.view(0)):
        likely = (
            "The history is made once, outside `pursue` or as a default value, so the second run "
            "begins with what the first remembered. Make it inside."
        )
        got = f"in its first turn the model saw {len(last.view(0))} entries"
        wrong("pursue(…) once more, after a run", got, "it sees the goal only", likely)


def _errs(subject: Subject) -> None:
    turns = [MISSPELT, call("ask_server"), *[READ] * 150, DONE]
    script = Script(*turns)
    got = pursue(subject, script)
    if len(script.shown) < len(turns) or got != DONE["output"]:
        what = f"{shown(got)} after {len(script.shown)} turns"
        likely = "Only a final answer ends the loop: no mistake, and no number of turns."
        expected = f"{DONE['output']!r} after {len(turns)} turns"
        wrong(says(script), what, expected, likely)
    for before, after in pairwise(script.shown):
        if after[: len(before)] != before:
            likely = "A history only grows at its end. Use `history.append(…)`."
            wrong(says(script), f"after {before} came {after}", "what was there stays", likely)
    told = [name for name, _ in script.results(len(turns) - 1)]
    expected_names = [turn["name"] for turn in turns[:-1]]
    if told != expected_names:
        likely = "Not every call, the mistaken ones too, gets its entry in the history."
        got = f"results of {told}"
        wrong(says(script), got, f"results of {expected_names}", likely)


def _neither(subject: Subject) -> None:
    for junk in ({"type": "wish", "output": "a holiday"}, {"output": "no type"}, TEXT):
        script = Script(junk, DONE)
        got = pursue(subject, script)
        if got != DONE["output"]:
            likely = (
                "Anything that isn't a tool call is taken for an answer. Ask for both types by "
                "name, and treat the rest as a mistake."
            )
            wrong(says(script), shown(got), repr(DONE["output"]), likely)
        before, after = script.view(0), script.view(1)
        new = [entry for entry in after[len(before) :] if entry not in before]
        if not any(entry.get("role") != "assistant" for entry in new):
            likely = "The model isn't told: append an entry before the loop goes round."
            wrong(says(script), "nothing was told", "an entry says what was wrong", likely)


def _both(subject: Subject) -> None:
    # The third turn is for a loop that takes a turn's calls one at a time.
    script, ran = Script(BOTH, DONE, DONE), list[str]()
    got = pursue(subject, script, ran)
    if not ran:
        likely = "A turn can be a list of decisions. This loop takes every turn for one decision."
        wrong(says(script), "read_build didn't run", "it runs twice", likely)
    if ran == ["build-102"]:
        likely = "Only the first call of the list is carried out. The model proposed both."
        wrong(says(script), "read_build ran once", "it runs twice", likely)
    told = script.results(1)
    if told == BOTH_RESULTS[:1]:
        likely = (
            "The model is asked again before all its calls have their results. First all calls "
            "of the turn, then the next turn."
        )
        wrong(says(script), f"it saw {told}", f"it sees {BOTH_RESULTS}", likely)
    if told != BOTH_RESULTS:
        likely = "Every call gets exactly one entry of its own, in the order of the calls."
        wrong(says(script), f"it saw {told}", f"it sees {BOTH_RESULTS}", likely)
    if got != DONE["output"]:
        likely = "After the calls of a list the loop goes on until there is a final answer."
        wrong(says(script), shown(got), repr(DONE["output"]), likely)


def _mixed(subject: Subject) -> None:
    script = Script([MISSPELT, READ], DONE)
    pursue(subject, script)
    told = script.results(1)
    if len(told) != 2 or told[1] != ("read_build", "failed"):
        likely = "The loop leaves the turn at the first mistake. The next call may be right."
        wrong(says(script), f"it saw {told}", "an entry for each of the two calls", likely)


def _single(subject: Subject) -> None:
    script = Script(READ, DONE)
    likely = "A turn may be a list or a single decision. Make a list of it first."
    try:
        got = pursue(subject, script)
    except Wrong as fault:
        fault.likely = likely
        raise
    if got != DONE["output"] or script.results(1) != [("read_build", "failed")]:
        wrong(says(script), shown(got), repr(DONE["output"]), likely)


CHECKS = (
    Check("v0-act", "A known tool runs, and its result comes back.", _known),
    Check("v0-act", "The observation is a text.", _text),
    Check("v0-act", "An unknown tool is told to the model, with the names there are.", _unknown),
    Check("v0-act", "Wrong arguments are told to the model.", _arguments),
    Check("v0-act", "A tool that raises is told to the model.", _raises),
    Check("v0-act", "The Stop button works.", _stop),
    Check("v0-loop", "A final answer ends the run and is returned as it is.", _final),
    Check("v0-loop", "0, False, None and an empty text are answers too.", _falsy),
    Check("v0-loop", "The history begins with the goal.", _goal),
    Check("v0-loop", "Every run begins anew.", _anew),
    Check("v0-loop", "The model is given the tools.", _tools),
    Check("v0-loop", "The model sees what came of its call.", _result),
    Check("v0-loop", "The run lives when the model errs, and the history only grows.", _errs),
    Check("v0-loop", "What is neither a call nor an answer is told, never guessed at.", _neither),
    Check("v0-turns", "A turn of one decision still works.", _single),
    Check(
        "v0-turns",
        "Two calls in one turn: both run, in order, before the model is asked again.",
        _both,
    ),
    Check("v0-turns", "A mistaken call in a turn doesn't take the others with it.", _mixed),
)
