"""What the lesson asks. The answers come from runs of the package."""

from mini_harness import (
    BaseTool,
    Budget,
    Harness,
    Layer,
    Policy,
    Retry,
    Run,
    ScriptedModel,
    Trace,
    TransientError,
    VirtualClock,
    approve_all,
    tool,
)
from mini_harness.course.questions import Question
from mini_harness.course.story import call, final


class Server:
    """Fails so often in a passing way, and counts how often it did what it was asked."""

    def __init__(self, fails: int) -> None:
        self.fails, self.done = fails, 0

    def tool(self, idempotent: bool) -> BaseTool:
        @tool(idempotent=idempotent)
        def mail(to: str) -> str:
            """Send a mail."""
            self.done += 1
            if self.done <= self.fails:
                raise TransientError("the connection broke")
            return "sent"

        return mail


def run(
    server: Server, *layers: Layer, idempotent: bool = False, trace: Trace | None = None
) -> Run:
    model = ScriptedModel([call("mail", to="ann"), final("Done.")])
    sinks = [] if trace is None else [trace]
    tools = [server.tool(idempotent)]
    harness = Harness(model, tools, layers=layers, sinks=sinks, clock=VirtualClock())
    return harness.run_sync("Write to Ann.")


def mails_that_were_sent() -> int:
    server = Server(fails=9)
    run(server, Retry(attempts=3))
    return server.done


def attempts_in_all() -> int:
    server = Server(fails=9)
    run(server, Retry(attempts=3), idempotent=True)
    return server.done


def questions_to_a_person() -> int:
    trace = Trace()
    layers = [Policy(approver=approve_all), Retry(attempts=3)]
    run(Server(fails=2), *layers, idempotent=True, trace=trace)
    return sum(each["type"] == "approval" for each in trace.to_dicts())


def status_with_a_budget_of_zero() -> str:
    return run(Server(fails=0), Budget(tool_calls=0)).status


QUESTIONS = (
    Question(
        "`mail` isn't idempotent. It sends the mail, and then raises `TransientError`, each time. "
        "`Retry(attempts=3)` lies around it. How many mails are sent?",
        {
            "1": "Yes. It may have had its effect, so it isn't tried again. The model is told that "
            "the outcome is unknown.",
            "2": "No. One try again could be one mail too many, like any number of them.",
            "3": "No. That is what a retry does that doesn't ask whether a call may be repeated.",
        },
        mails_that_were_sent,
    ),
    Question(
        "The same, but the tool is declared idempotent. How many attempts are there in all?",
        {
            "2": "No. `attempts` counts all of them, and the third is the last.",
            "3": "Yes. The first one counts too. All three have the same key, so a queue that "
            "knows it would do the thing once.",
            "4": "No. That would be one attempt and three *retries*. Here `attempts` is the total.",
        },
        attempts_in_all,
    ),
    Question(
        "`Policy` lies outside of `Retry`. The call needs approval, fails twice in a passing way, "
        "and works the third time. How often is a person asked?",
        {
            "1": "Yes. One approval is for one call, and the attempts of a call are one call under "
            "one key.",
            "2": "No. What failed isn't proposed anew: it is the same call.",
            "3": "No. That would be so with the policy inside of `Retry`. Nobody wants to be asked "
            "three times about one thing.",
        },
        questions_to_a_person,
    ),
    Question(
        "`Budget(tool_calls=0)`. The model calls a tool at once. What is `run.status`?",
        {
            "completed": "No. That would be so if 0 were taken for no limit. It is a number like "
            "any other.",
            "stopped": "Yes. 0 allows nothing. The stop carries the kind, what was used, and the "
            "limit; with a higher one the run can be resumed.",
            "failed": "No. Nothing went wrong. The run was ended by a rule, and it can be resumed.",
        },
        status_with_a_budget_of_zero,
    ),
)
