"""What the lesson asks. The answers come from runs of the package."""

import asyncio
from itertools import count

from mini_harness import (
    BaseTool,
    Harness,
    Layer,
    Policy,
    RepeatedCalls,
    Retry,
    Run,
    ScriptedModel,
    Timeout,
    ToolExecutionContext,
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


def outcome_of_what_is_late() -> str:
    @tool(read_only=True)
    async def search(context: ToolExecutionContext) -> str:
        """Search for 12 seconds. When it is ended, hand over what there is."""
        try:
            await context.clock.sleep(12)
        except asyncio.CancelledError:
            return "found 9 so far"
        return "found 12"

    model = ScriptedModel([call("search"), final("Done.")])
    harness = Harness(model, [search], layers=[Timeout(10)], clock=VirtualClock())
    return str(harness.run_sync("Search.").history.messages[2].get("outcome", "ok"))


def questions_to_a_person() -> int:
    trace = Trace()
    layers = [Policy(approver=approve_all), Retry(attempts=3)]
    run(Server(fails=2), *layers, idempotent=True, trace=trace)
    return sum(each["type"] == "approval" for each in trace.to_dicts())


def status_of_one_that_polls() -> str:
    percent = count(10, 10)

    @tool(read_only=True)
    def progress() -> str:
        """How far the build is."""
        return f"{next(percent)} %"

    model = ScriptedModel([*[call("progress")] * 10, final("Done.")])
    layers = [RepeatedCalls(3)]
    return Harness(model, [progress], layers=layers, clock=VirtualClock()).run_sync("Wait.").status


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
        "`search` only reads, and takes 12 seconds. When it is ended, it still returns what it has "
        "found. `Timeout(10)` lies around it, and no `Retry`. What is the outcome of the call?",
        {
            "ok": "No. What it returns comes after its limit. It is recorded as late, and changes "
            "nothing: whoever goes on after a limit must not be overtaken by an old result.",
            "timed_out": "Yes. After 10 seconds the call is over, and that is what the model is "
            "told. What it still returned is in the record only.",
            "unknown": "No. It only reads, so there is no effect to be in doubt about. That it "
            "took too long is known.",
        },
        outcome_of_what_is_late,
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
        "The model asks `progress()` ten times, and hears 10 %, 20 %, and so on up to 100 %. Then "
        "it answers. `RepeatedCalls(3)` lies around it. What is `run.status`?",
        {
            "completed": "Yes. It was the same call ten times, but each time it brought something "
            "new. Only what brings nothing new is counted.",
            "stopped": "No. That would be so if the number of calls counted. Then nobody could "
            "wait for a job.",
            "failed": "No. A layer that ends a run doesn't make it fail: the run is stopped, and "
            "can be resumed. And here there is nothing to end.",
        },
        status_of_one_that_polls,
    ),
)
