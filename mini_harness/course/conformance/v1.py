"""What a policy and an approval must do, whoever wrote them; and what `watched` adds."""

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
    VERDICTS,
    Approver,
    broken,
    judge,
    judges,
    protect,
    rule_of,
    says,
    told,
    tools,
)
from mini_harness.course.conformance.stage import LogServerError, raised, wrong
from mini_harness.course.conformance.watched import WATCHED
from mini_harness.frozen import shown


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
    for junk in (("maybe", "Who knows?"), ("ALLOW", "I shout."), True, "allow", False, "", ()):
        rules = [rule_of(ALLOW), says(junk)]
        likely = "What a rule says is taken for a verdict without a look. Could not judge is no."
        if not junk:
            likely = "Whatever is false is taken for silence. Only None is: ask `is None`."
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
    ran, away = list[Any](), LogServerError("nobody is there")
    protected = protect(subject, [rule_of(ASK)], Approver(away), tools(ran))
    called = "the protected deploy_prod, where the approver raises an error"
    try:
        got = told(protected, "deploy_prod", away, **BUILD)
    except LogServerError as error:
        likely = "The approver's error leaves the handler. Ask it within a `try`."
        wrong(called, raised(error), "a text, and the tool doesn't run", likely)
    if ran:
        likely = "When the approver fails, the call goes through. Could not judge is never yes."
        wrong(called, "the tool ran", "it doesn't run", likely)
    if str(away) not in got:
        likely = "Put the approver's error into the reason, or nobody learns what is broken."
        wrong(called, shown(got), f"a text with the error in it: {str(away)!r}", likely)


def _own_error(subject: Subject) -> None:
    ways = {ALLOW: Approver(False), ASK: Approver(True)}
    for verdict, approver in ways.items():
        got = told(protect(subject, [rule_of(verdict)], approver, tools([])), "ask_server")
        if "the log server is away" not in got or "allowed" in got:
            called = f"the protected ask_server, which raises an error after the {verdict!r}"
            likely = (
                "The tool's own error is taken for a no. It ran: keep the `try` around the "
                "approver alone, and let the error go to `act`."
            )
            wrong(called, shown(got), "the tool's error, as without a policy", likely)


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


def _what_was_judged(subject: Subject) -> None:
    def swaps(name: str, arguments: Any) -> Any:
        arguments["build_ids"][:] = ["build-101"]
        return ALLOW, "It looks harmless now."

    ran = list[Any]()
    protected = protect(subject, [swaps], Approver(False), tools(ran))
    told(protected, "rerun_builds", build_ids=["build-102"])
    if ran != [["build-102"]]:
        called = "the protected rerun_builds, where a rule changes the arguments that it was shown"
        likely = (
            "A rule holds the very arguments that run afterwards. Give `judge` a copy, too: "
            "`deepcopy`."
        )
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
    Check("v1-guard", "What was judged is what runs.", _what_was_judged),
    Check("v1-guard", "A tool's own error isn't a denial.", _own_error),
    Check("v1-guard", "The tools themselves stay as they were.", _originals),
    *WATCHED,
)
