"""What a loop with tools must do, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable

from mini_harness.course.conformance import Check, Subject, Wrong
from mini_harness.course.conformance.stage import (
    DONE,
    GOAL,
    MISSPELT,
    READ,
    Script,
    act,
    call,
    pursue,
    says,
    short,
    tools,
    wrong,
)
from mini_harness.frozen import shown

_CHECKS: list[Check] = []


def _rule(exercise: str, title: str) -> Callable[[Callable[[Subject], None]], None]:
    return lambda check: _CHECKS.append(Check(exercise, title, check))


@_rule("v0-act", "A known tool runs, and its result comes back.")
def _known(subject: Subject) -> None:
    ran: list[str] = []
    got = act(subject, READ, ran)
    called = f"act(tools, decision), where the decision is to {short(READ)}"
    if ran != ["build-102"]:
        what = f"the tool ran {len(ran)} times"
        wrong(called, what, "it runs once", "`tool.handler` is called once, with the arguments.")
    if got != "failed":
        wrong(called, shown(got), "'failed'", "What the tool returns isn't what `act` returns.")


@_rule("v0-act", "The observation is a text.")
def _text(subject: Subject) -> None:
    got = act(subject, call("count_builds"))
    if got != "2":
        wrong(
            "act(tools, decision) for a tool that returns the number 2",
            shown(got),
            "the text '2'",
            "The result goes back as it is. A model reads text: make one of it with `str`.",
        )


@_rule("v0-act", "An unknown tool is told to the model, with the names there are.")
def _unknown(subject: Subject) -> None:
    ran: list[str] = []
    got = act(subject, MISSPELT, ran)
    called = f"act(tools, decision), where the decision is to {short(MISSPELT)}"
    if ran:
        likely = "The nearest name was taken. Nobody proposed that: the harness doesn't guess."
        wrong(called, "read_build ran", "nothing runs", likely)
    if not isinstance(got, str) or "read_biuld" not in got:
        likely = "The text doesn't say which name was wrong."
        wrong(called, shown(got), "a text with the name read_biuld", likely)
    if "read_build" not in got or "count_builds" not in got:
        wrong(
            called,
            shown(got),
            "a text that also names the tools there are",
            "The model can mend its mistake only if it is told which names would have been right.",
        )


@_rule("v0-act", "Wrong arguments are told to the model.")
def _arguments(subject: Subject) -> None:
    decision = call("read_build", build="build-102")
    got = act(subject, decision)
    if not isinstance(got, str) or "build" not in got.replace("read_build", ""):
        likely = "The text doesn't say which argument was wrong: put the error into it."
        called = f"act(tools, decision), where the decision is to {short(decision)}"
        wrong(called, shown(got), "a text that names the argument 'build'", likely)


@_rule("v0-act", "A tool that raises is told to the model.")
def _raises(subject: Subject) -> None:
    got = act(subject, call("ask_server"))
    called = "act(tools, decision) for a tool that raises ConnectionError('the log server is away')"
    if not isinstance(got, str) or "the log server is away" not in got:
        wrong(called, shown(got), "a text with the error's own words", "The error's text is lost.")
    got = act(subject, call("silent"))
    if not isinstance(got, str) or "ValueError" not in got:
        wrong(
            "act(tools, decision) for a tool that raises ValueError() without a text",
            shown(got),
            "a text that names ValueError",
            "`str(error)` can be empty, and then nobody knows what happened. `repr(error)` isn't.",
        )


@_rule("v0-act", "The Stop button works.")
def _stop(subject: Subject) -> None:
    try:
        got = subject.act(tools([]), call("stop"))
    except KeyboardInterrupt:
        return
    wrong(
        "act(tools, decision) while somebody presses the Stop button (KeyboardInterrupt)",
        shown(got),
        "KeyboardInterrupt goes on up",
        "A bare `except:` catches the Stop button too. Write `except Exception`.",
    )


@_rule("v0-loop", "A final answer ends the run and is returned as it is.")
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


@_rule("v0-loop", "0, False, None and an empty text are answers too.")
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


@_rule("v0-loop", "The history begins with the goal.")
def _goal(subject: Subject) -> None:
    script = Script(DONE)
    pursue(subject, script)
    goal = {"role": "user", "content": GOAL}
    if not script.shown or script.shown[0][:1] != [goal]:
        saw = script.shown[0] if script.shown else "the model wasn't asked"
        likely = "The goal isn't put into the history before the model is asked."
        wrong(says(script), f"the model saw {saw}", f"it sees [{goal}]", likely)


@_rule("v0-loop", "The model sees what came of its call.")
def _result(subject: Subject) -> None:
    script, ran = Script(READ, DONE), list[str]()
    pursue(subject, script, ran)
    expected = "before its second turn it sees {'role': 'tool', 'tool': 'read_build', …}"
    if len(script.shown) < 2:
        likely = "The loop ends after the first turn: it must ask again after every call."
        wrong(says(script), "the model was asked once", "it is asked twice", likely)
    if script.results(1) != [("read_build", "failed")]:
        likely = (
            "The result isn't appended to the history. The history is all that the model knows: "
            "it will ask for the same thing for ever."
        )
        wrong(says(script), f"it saw {script.shown[1]}", expected, likely)
    if ran != ["build-102"]:
        likely = "A call is carried out once."
        wrong(says(script), f"the tool ran {len(ran)} times", "it runs once", likely)


@_rule("v0-loop", "Every run begins anew.")
def _anew(subject: Subject) -> None:
    pursue(subject, Script(READ, DONE))
    script = Script(DONE)
    pursue(subject, script)
    if len(script.shown[0]) != 1:
        likely = (
            "The history is made once, outside `pursue` or as a default value, so the second run "
            "begins with what the first remembered. Make it inside."
        )
        saw = f"in its first turn the model saw {len(script.shown[0])} entries"
        wrong("pursue(…) for the second time", saw, "it sees the goal only", likely)


@_rule("v0-loop", "The run lives when the model errs.")
def _errs(subject: Subject) -> None:
    script = Script(MISSPELT, call("ask_server"), READ, DONE)
    got = pursue(subject, script)
    told = script.results(3) if len(script.shown) == 4 else []
    if got != DONE["output"] or len(told) != 3:
        what = f"the answer {got!r}, after {len(script.shown)} turns and {len(told)} results"
        likely = "Not every call, the mistaken ones too, gets its entry in the history."
        wrong(says(script), what, f"{DONE['output']!r}, after 4 turns and 3 results", likely)


@_rule("v0-loop", "What is neither a call nor an answer is told, never guessed at.")
def _neither(subject: Subject) -> None:
    for junk in ({"type": "wish", "output": "a holiday"}, {"output": "no type"}):
        script = Script(junk, DONE)
        got = pursue(subject, script)
        if got != DONE["output"]:
            likely = (
                "Anything that isn't a tool call is taken for an answer. Ask for both types by "
                "name, and treat the rest as a mistake."
            )
            wrong(says(script), shown(got), repr(DONE["output"]), likely)
        if len(script.shown[1]) <= len(script.shown[0]):
            likely = "The model isn't told: append an entry before the loop goes round."
            wrong(says(script), "the history didn't grow", "the model is told", likely)


BOTH = [READ, call("read_build", build_id="build-101")]
BOTH_RESULTS = [("read_build", "failed"), ("read_build", "passed")]


@_rule("v0-turns", "Two calls in one turn: both run, in order, before the model is asked again.")
def _both(subject: Subject) -> None:
    # The third turn is for a loop that takes a turn's calls one at a time.
    script, ran = Script(BOTH, DONE, DONE), list[str]()
    got = pursue(subject, script, ran)
    if ran == ["build-102"]:
        likely = "Only the first call of the list is carried out. The model proposed both."
        wrong(says(script), "read_build ran once", "it runs twice", likely)
    told = script.results(1) if len(script.shown) > 1 else []
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


@_rule("v0-turns", "A mistaken call in a turn doesn't take the others with it.")
def _mixed(subject: Subject) -> None:
    script, ran = Script([MISSPELT, READ], DONE), list[str]()
    pursue(subject, script, ran)
    told = script.results(1)
    if len(told) != 2 or told[1] != ("read_build", "failed"):
        likely = "The loop leaves the turn at the first mistake. The next call may be right."
        wrong(says(script), f"it saw {told}", "an entry for each of the two calls", likely)


@_rule("v0-turns", "A turn of one decision still works.")
def _single(subject: Subject) -> None:
    script = Script(READ, DONE)
    got = pursue(subject, script)
    if got != DONE["output"] or script.results(1) != [("read_build", "failed")]:
        likely = "A turn may be a list or a single decision. Make a list of it first."
        wrong(says(script), shown(got), repr(DONE["output"]), likely)


CHECKS = tuple(_CHECKS)
