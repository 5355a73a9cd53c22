"""What a policy, an approval, a trace and a step limit must do, whoever wrote them."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from mini_harness.course.conformance import Check, Subject
from mini_harness.course.conformance.gated import (
    ALLOW,
    ASK,
    BUILD,
    DENY,
    NO_DEPLOY,
    NO_STEPS,
    VERDICTS,
    Approver,
    broken,
    judge,
    judges,
    protect,
    rule_of,
    says,
    supervise,
    supervises,
    told,
    tools,
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


def _one_rule(subject: Subject) -> None:
    for verdict in VERDICTS:
        rules = [says(None), rule_of(verdict), says(None)]
        said, reason = judge(subject, rules)
        if said != verdict:
            likely = "One rule speaks. The others answer None, and have nothing to say."
            wrong(judges(rules), repr(said), repr(verdict), likely)
        if f"reason to {verdict}" not in reason:
            likely = "The reason comes from the rule that gave the verdict."
            wrong(judges(rules), f"the reason {reason!r}", f"'reason to {verdict}'", likely)


def _strictest(subject: Subject) -> None:
    orders = [*permutations(VERDICTS), *permutations((ALLOW, ASK)), *permutations((ALLOW, DENY))]
    given = [(order, judge(subject, list(map(rule_of, order)))[0]) for order in orders]
    likely = "The strictest verdict counts: deny before require_approval before allow."
    if all(said == order[-1] for order, said in given):
        likely = "The last rule wins. Whoever adds a rule below could then undo the others."
    elif all(said == order[0] for order, said in given):
        likely = "The first rule that speaks wins. A stricter one below it is never heard."
    elif all(said == max(order) for order, said in given):
        likely = "Verdicts are compared as texts. By the alphabet, 'require_approval' is the last."
    for order, said in given:
        strictest = max(order, key=VERDICTS.index)
        if said != strictest:
            wrong(judges(list(map(rule_of, order))), repr(said), repr(strictest), likely)


def _silence(subject: Subject) -> None:
    for rules in ([], [says(None)]):
        likely = "What no rule speaks about must not be decided by accident: somebody is asked."
        said, _ = judge(subject, rules, likely)
        if said == ALLOW:
            likely = "What no rule speaks about is allowed. Nobody decided that."
        if said != ASK:
            wrong(judges(rules), repr(said), repr(ASK), likely)


def _broken(subject: Subject) -> None:
    for rules in ([broken], [rule_of(ALLOW), broken], [broken, rule_of(ALLOW)]):
        likely = "The rule's error leaves `judge`. A policy that can't judge says no."
        said, reason = judge(subject, rules, likely)
        if said != DENY:
            likely = "A rule that fails is skipped. It might have been the one that says no."
            wrong(judges(rules), repr(said), repr(DENY), likely)
        if "the rule can't be read" not in reason:
            likely = "Put the error into the reason, or nobody learns what is broken."
            wrong(judges(rules), f"the reason {reason!r}", "the rule's own error in it", likely)


def _junk(subject: Subject) -> None:
    for junk in (("maybe", "Who knows?"), ("ALLOW", "I shout."), True, "allow"):
        rules = [rule_of(ALLOW), says(junk)]
        likely = "What a rule says is taken for a verdict without a look. Could not judge is no."
        said, _ = judge(subject, rules, likely)
        if said != DENY:
            wrong(judges(rules), repr(said), f"{DENY!r}, since {junk!r} is no verdict", likely)


def _allowed(subject: Subject) -> None:
    ran, approver = list[Any](), Approver(False)
    got = told(protect(subject, [rule_of(ALLOW)], approver, tools(ran)), "read_build", **BUILD)
    called = "the protected read_build, where the rules say: allow"
    if ran != ["build-102"]:
        wrong(
            called, f"these ran: {ran}", "read_build runs once", "Return tool.handler(**arguments)."
        )
    if got != "failed":
        wrong(
            called, shown(got), "'failed'", "What the tool returns isn't what the handler returns."
        )
    if approver.asked:
        wrong(called, "the approver was asked", "nobody is asked", "What is allowed just runs.")


def _denied(subject: Subject) -> None:
    ran, approver = list[Any](), Approver(True)
    protected = protect(subject, [says((DENY, NO_DEPLOY))], approver, tools(ran))
    got = told(protected, "deploy_prod", **BUILD)
    called = "the protected deploy_prod, where a rule says: deny"
    if approver.asked:
        likely = "A denied call goes to the approver. What is denied is nobody's to approve."
        wrong(called, "the approver was asked", "nobody is asked", likely)
    if ran:
        wrong(
            called, "the tool ran", "it doesn't run", "The verdict isn't asked for, or not heeded."
        )
    if NO_DEPLOY not in got:
        likely = "The model isn't told why. It will try again, or try something else."
        wrong(called, shown(got), f"a text with the reason: {NO_DEPLOY!r}", likely)


def _approved(subject: Subject) -> None:
    ran, approver = list[Any](), Approver(True)
    got = told(protect(subject, [rule_of(ASK)], approver, tools(ran)), "deploy_prod", **BUILD)
    called = "the protected deploy_prod, where the rules say: require_approval"
    if approver.asked != [("deploy_prod", BUILD)]:
        asked = f"it was asked {approver.asked}" if approver.asked else "it wasn't asked"
        likely = "Ask once, and with everything: approver(tool.name, arguments)."
        wrong(called, asked, f"it is asked once about ('deploy_prod', {BUILD})", likely)
    if ran != ["deploy build-102"] or got != "build-102 is live":
        likely = "True means yes: the tool runs, and its result goes back."
        wrong(called, f"{ran} ran, and {got!r} came back", "it runs once", likely)


def _only_true(subject: Subject) -> None:
    for answer in (False, "no", "", None, 1, ["yes"]):
        ran = list[Any]()
        protected = protect(subject, [rule_of(ASK)], Approver(answer), tools(ran))
        got = told(protected, "deploy_prod", **BUILD)
        called = f"the protected deploy_prod, where the approver answers {answer!r}"
        if ran:
            likely = "The answer counts if it is *true*, and a text like 'no' is. Ask `is True`."
            wrong(called, "the tool ran", "it doesn't run: only True means yes", likely)
        if not got or got == "None":
            wrong(called, shown(got), "a text", "The model isn't told that its call didn't run.")


def _absent(subject: Subject) -> None:
    ran, error = list[Any](), LogServerError("nobody is there")
    protected = protect(subject, [rule_of(ASK)], Approver(error), tools(ran))
    told(protected, "deploy_prod", **BUILD)
    if ran:
        called = "the protected deploy_prod, where the approver raises an error"
        likely = "When the approver fails, the call goes through. Could not judge is never yes."
        wrong(called, "the tool ran", "it doesn't run", likely)


def _what_was_approved(subject: Subject) -> None:
    def swap(arguments: Any) -> bool:
        arguments["build_id"] = "build-101"
        return True

    def add(arguments: Any) -> bool:
        arguments["build_ids"].append("build-101")
        return True

    called = "a protected tool, where the approver changes the arguments that it was shown"
    likely = (
        "The approver holds the very arguments that run afterwards, so they can change after the "
        "yes. Show it a copy."
    )
    ran = list[Any]()
    told(protect(subject, [rule_of(ASK)], Approver(swap), tools(ran)), "deploy_prod", **BUILD)
    if ran != ["deploy build-102"]:
        wrong(called, f"these ran: {ran}", "deploy build-102, as was proposed", likely)
    ran.clear()
    protected = protect(subject, [rule_of(ASK)], Approver(add), tools(ran))
    told(protected, "rerun_builds", build_ids=["build-102"])
    if ran != [["build-102"]]:
        likely = "The copy shares what lies deeper, such as a list. Use `deepcopy`."
        wrong(called, f"rerun_builds ran with {ran}", "with ['build-102']", likely)


def _originals(subject: Subject) -> None:
    ran = list[Any]()
    here = tools(ran)
    protect(subject, [rule_of(DENY)], Approver(False), here)
    here["read_build"].handler(**BUILD)
    if ran != ["build-102"]:
        called, got = "tools['read_build'] after protect(tools, …)", "it is protected too"
        likely = "`protect` changed the tools that it was given. Make new ones."
        wrong(called, got, "the given tools stay as they were", likely)


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
        if not isinstance(output, RuntimeError) or f"{NO_STEPS}{limit}" not in str(output):
            likely = "The run ends quietly, as if it had an answer. Raise the error."
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


CHECKS = (
    Check("v1-judge", "A rule that speaks decides, and gives the reason.", _one_rule),
    Check("v1-judge", "The strictest verdict counts, whatever the order.", _strictest),
    Check("v1-judge", "If no rule speaks, somebody is asked.", _silence),
    Check("v1-judge", "A rule that fails denies the call.", _broken),
    Check("v1-judge", "What is no verdict denies the call.", _junk),
    Check("v1-guard", "An allowed call runs.", _allowed),
    Check("v1-guard", "A denied call doesn't run, and the model is told why.", _denied),
    Check("v1-guard", "What needs approval runs after a yes.", _approved),
    Check("v1-guard", "Only True is a yes.", _only_true),
    Check("v1-guard", "An approver that fails hasn't said yes.", _absent),
    Check("v1-guard", "What was approved is what runs.", _what_was_approved),
    Check("v1-guard", "The tools themselves stay as they were.", _originals),
    Check("v1-trace", "A run with one call leaves five events, in order.", _five_events),
    Check("v1-trace", "A tool that raises leaves a tool_error.", _tool_error),
    Check("v1-trace", "What is denied never starts.", _outside),
    Check("v1-trace", "An answer in the last step counts.", _last_step),
    Check("v1-trace", "After max_steps turns the run ends with an error.", _limit),
    Check("v1-trace", "The trace keeps what was, whatever changes later.", _frozen),
)
