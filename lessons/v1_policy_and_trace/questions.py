"""What the lesson asks. The answers come from runs of the package."""

from mini_harness import (
    Approval,
    ApprovalRequest,
    Harness,
    MaxSteps,
    Policy,
    Rule,
    Run,
    ScriptedModel,
    Trace,
    Verdict,
    tool,
)
from mini_harness.approval import Approver
from mini_harness.course.questions import Question
from mini_harness.course.story import call, final


@tool
def deploy_prod(build_id: str) -> str:
    """Deploy a build."""
    return f"{build_id} is live."


ALLOW = Rule("release-day", Verdict.ALLOW, tool="deploy_prod")
DENY = Rule("no-deploys", Verdict.DENY, tool="deploy_prod")
DEPLOY = call("deploy_prod", build_id="build-102")


def run(policy: Policy, *turns: object, limit: int = 8, trace: Trace | None = None) -> Run:
    model = ScriptedModel([*turns, final("Done.")])
    sinks = [] if trace is None else [trace]
    harness = Harness(model, [deploy_prod], layers=[MaxSteps(limit), policy], sinks=sinks)
    return harness.run_sync("Deploy.")


def verdict_of_two_rules() -> str:
    trace = Trace()
    run(Policy(rules=[DENY, ALLOW]), DEPLOY, trace=trace)
    (verdict,) = (each["verdict"] for each in trace.to_dicts() if each["type"] == "verdict")
    return str(verdict)


def questions_about_a_denied_call() -> int:
    asked: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> Approval:
        asked.append(request)
        return request.approve()

    run(Policy(rules=[DENY], approver=approver), DEPLOY)
    return len(asked)


def status_when_the_approver_fails() -> str:
    def approver(request: ApprovalRequest) -> Approval:
        raise ConnectionError("nobody is there")

    known: Approver = approver
    return run(Policy(approver=known), DEPLOY).status


def status_after_an_answer_in_the_last_step() -> str:
    return run(Policy(["deploy_prod"]), DEPLOY, DEPLOY, limit=3).status


QUESTIONS = (
    Question(
        "The rules are, in this order: deny `deploy_prod`; allow `deploy_prod`. What is the "
        "verdict on `deploy_prod`?",
        {
            "deny": "Yes. The strictest counts, whatever the order. A rule added below can't undo "
            "one above.",
            "allow": "No. That would be so if the last rule won. Then whoever adds a rule could "
            "undo all the others by accident.",
            "require_approval": "No. Rules that disagree aren't averaged. The stricter one was "
            "written by somebody who meant it.",
        },
        verdict_of_two_rules,
    ),
    Question(
        "A rule denies the call, and the approver says yes to everything. How often is the "
        "approver asked?",
        {
            "0": "Yes. What is denied is nobody's to approve. A tired person who clicks Approve "
            "all day can't let it through.",
            "1": "No. Approval is for what the policy leaves open. A denial leaves nothing open.",
            "2": "No. No question is put twice, and this one isn't put at all.",
        },
        questions_about_a_denied_call,
    ),
    Question(
        "The approver raises `ConnectionError`. The model sees what came of its call, and gives a "
        "final answer. What is `run.status`?",
        {
            "paused": "No. A run pauses if nobody has decided *yet*. Here somebody was asked and "
            "failed, and that is a no.",
            "failed": "No. The error of an approver isn't an error of the run. The call is denied, "
            "and the model is told.",
            "completed": "Yes. Could not judge is never yes, so the call didn't run. The model was "
            "told, and the run went on to its answer.",
        },
        status_when_the_approver_fails,
    ),
    Question(
        "`MaxSteps(3)`. The model calls a tool, calls it again, and gives its final answer in its "
        "third turn. What is `run.status`?",
        {
            "stopped": "No. Three turns are allowed, and there were three. The fourth would have "
            "been refused.",
            "completed": "Yes. The limit is looked at before a turn is asked for. An answer in the "
            "last turn counts.",
            "running": "No. A run that nobody drives any more must not look as if it went on.",
        },
        status_after_an_answer_in_the_last_step,
    ),
)
