"""What a trace and a step limit must do, whoever wrote them."""

from __future__ import annotations

from typing import Any

from mini_harness.course.conformance import Check, Subject
from mini_harness.course.conformance.gated import (
    ASK,
    BUILD,
    DENY,
    NO_DEPLOY,
    NO_STEPS,
    Approver,
    Raised,
    rule_of,
    says,
    supervise,
    supervises,
)
from mini_harness.course.conformance.stage import (
    DONE,
    READ,
    LogServerError,
    Script,
    call,
    short,
    wrong,
)
from mini_harness.frozen import shown

DEPLOY = call("deploy_prod", **BUILD)
RERUN = call("rerun_builds", build_ids=["build-102"])
DEFAULT_LIMIT = 8
FIVE = ["model_decision", "tool_start", "tool_result", "model_decision", "final"]


def _five_events(subject: Subject) -> None:
    script = Script(READ, DONE)
    output, trace = supervise(subject, script)
    if output != DONE["output"]:
        likely = "Return what `pursue` returns."
        wrong(supervises(script), shown(output), repr(DONE["output"]), likely)
    kinds = [event["type"] for event in trace]
    if kinds != FIVE:
        likely = (
            "Each event is appended when it happens: a turn of the model, then what it leads to."
        )
        wrong(supervises(script), f"the events {kinds}", str(FIVE), likely)
    if [event["step"] for event in trace] != [1, 1, 1, 2, 2]:
        got = f"the steps {[event['step'] for event in trace]}"
        likely = "A step is a turn of the model. They count from 1."
        wrong(supervises(script), got, "[1, 1, 1, 2, 2]", likely)
    about = {"tool": "read_build"}
    rest = [
        {"decision": READ},
        {**about, "arguments": BUILD},
        {**about, "result": "failed"},
        {"decision": DONE},
        {"output": DONE["output"]},
    ]
    likely = "What belongs to the event is another: use the names of the table."
    for event, more in zip(trace, rest, strict=True):
        if {key: event[key] for key in event if key not in ("type", "step")} != more:
            wrong(supervises(script), f"the event {event}", f"beside type and step: {more}", likely)


def _tool_error(subject: Subject) -> None:
    script = Script(call("ask_server"), DONE)
    output, trace = supervise(subject, script)
    last = [event for event in trace if event["type"] == "tool_error"]
    if output != DONE["output"]:
        likely = "After noting the error, raise it again: `act` tells the model, and the run lives."
        wrong(supervises(script), shown(output), repr(DONE["output"]), likely)
    if len(last) != 1 or "the log server is away" not in str(last[0].get("error")):
        likely = "The tool raises, and no event says so: note 'tool_error' with error=repr(error)."
        kinds = [event["type"] for event in trace]
        wrong(supervises(script), f"the events {kinds}", "a tool_error with the error", likely)
    if last[0]["error"] != repr(LogServerError("the log server is away")):
        got, likely = (
            shown(last[0]["error"]),
            "`str` drops what kind of error it was: note the `repr`.",
        )
        wrong(supervises(script), f"a tool_error with {got}", "the `repr` of the error", likely)
    if not any("log server is away" in str(told) for _, told in script.results(1)):
        likely = "The error is noted and swallowed. Raise it again, so that the model is told."
        wrong(supervises(script), f"the model saw {script.results(1)}", "the error", likely)


def _outside(subject: Subject) -> None:
    script, ran = Script(DEPLOY, DONE), list[Any]()
    _, trace = supervise(subject, script, ran=ran, rules=[says((DENY, NO_DEPLOY))])
    if ran:
        likely = "The tools that `pursue` gets aren't protected."
        wrong(f"{supervises(script)}, which a rule denies", "the tool ran", "it doesn't", likely)
    likely = "The watching is outside and the policy inside. Protect the watched tools."
    if any(event["type"] == "tool_start" for event in trace):
        called = f"{supervises(script)}, which a rule denies"
        wrong(called, "a tool_start", "none, for nothing started", likely)
    seen: list[bool] = []

    def look(arguments: Any) -> bool:
        seen.append(any(event["type"] == "tool_start" for event in trace))
        return True

    script = Script(DEPLOY, DONE)
    _, trace = supervise(subject, script, rules=[rule_of(ASK)], approver=Approver(look))
    if not any(event["type"] == "tool_start" for event in trace):
        called = f"{supervises(script)}, which needs approval and gets it"
        wrong(
            called, "no tool_start", "one, after the yes", "The approver isn't asked, or not heard."
        )


def _limit(subject: Subject) -> None:
    for more in ((3,), (1,), ()):
        limit = more[0] if more else DEFAULT_LIMIT
        script = Script(*[READ] * 20)
        output, trace = supervise(subject, script, *more)
        called, expected = supervises(script, *more), f"RuntimeError('{NO_STEPS}{limit}')"
        if len(script.shown) != limit:
            likely = "Count before you ask: the turn after the last one isn't asked for."
            got = f"the model was asked {len(script.shown)} times"
            wrong(called, got, f"it is asked {limit} times", likely)
        if not isinstance(output, Raised) or f"{NO_STEPS}{limit}" not in str(output.error):
            likely = "The run ends quietly, as if it had an answer. Raise the error."
            if isinstance(output, Exception):
                likely = "The error is returned, and so it looks like an answer. Raise it."
            wrong(called, shown(output), expected, likely)
        if len(trace) != 3 * limit:
            likely = "What happened before the stop belongs to the trace too."
            wrong(called, f"{len(trace)} events", f"{3 * limit} events", likely)


def _last_step(subject: Subject) -> None:
    script = Script(READ, DONE)
    output, _ = supervise(subject, script, 2)
    if output != DONE["output"]:
        likely = "The answer came in the last step that was allowed. It counts."
        wrong(supervises(script, 2), shown(output), repr(DONE["output"]), likely)


def _frozen(subject: Subject) -> None:
    script, ran = Script(RERUN, DONE), list[Any]()
    _, trace = supervise(subject, script, ran=ran)
    kept = [event.get("arguments") for event in trace if event["type"] == "tool_start"]
    if kept != [RERUN["arguments"]]:
        called = f"{supervises(script)}, and the tool changes its list afterwards"
        likely = (
            "The trace holds the very list that the tool changes. Copy what you note: `deepcopy`."
        )
        wrong(called, f"tool_start now says {kept}", f"[{RERUN['arguments']}]", likely)
    decided = trace[0].get("decision")
    if decided != RERUN:
        called = f"{supervises(script)}, and the tool changes its list afterwards"
        likely = "The trace holds the very decision that the tool changes. Copy it: `deepcopy`."
        wrong(called, f"the decision is now to {short(decided)}", f"to {short(RERUN)}", likely)


WATCHED = (
    Check("v1-trace", "A run with one call leaves five events, in order.", _five_events),
    Check("v1-trace", "A tool that raises leaves a tool_error.", _tool_error),
    Check("v1-trace", "What is denied never starts.", _outside),
    Check("v1-trace", "An answer in the last step counts.", _last_step),
    Check("v1-trace", "After max_steps turns the run ends with an error.", _limit),
    Check("v1-trace", "The trace keeps what was, whatever changes later.", _frozen),
)
