"""Nobody knows whether it happened: then a person looks, and decides."""

from __future__ import annotations

from dataclasses import replace

from mini_harness.approval import Approver, Asks, request_for, settle
from mini_harness.events import EventType
from mini_harness.layer import Act
from mini_harness.protocol import Observation
from mini_harness.rules import Verdict
from mini_harness.run import Run
from mini_harness.tools.call import Call, in_doubt
from mini_harness.visible import counted

RULE = "in-doubt"
REASON = (
    "It was started {times} and nobody recorded its end, so it may have had its effect. Look "
    "first. Yes runs it again; no tells the model that the outcome is unknown"
)
NO_EDITS = "What may have happened had the arguments that it had. Say yes or no to those."


class AskInDoubt(Asks):
    """Asks a person about a call that may have had its effect before the process died.

    Calls that only read, and those of idempotent tools, run again without a question, under the
    same idempotency key. Without this layer the model is told of any other that its outcome is
    unknown. With it a person may have it run again, or say what they saw: the model is told that.

    ``approver`` is asked, and has ``patience`` seconds; without one the run pauses. A yes counts
    once, whether or not it was meant for always. Put it inside the policy and outside of Retry.
    """

    def __init__(self, approver: Approver | None = None, *, patience: float | None = None) -> None:
        self.approver, self.patience = approver, patience

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        if not (run.in_doubt and run.doubts(call)):
            return await next(run, call)
        record, call_id = run.driver.record, call.call_id
        # How often it was started is part of the question: each time wants an answer of its own.
        reason = REASON.format(times=counted(run.attempts.get(call_id, 1), "time"))
        request = request_for(run, call, RULE, reason, self.asker(run))
        request = replace(request, yes_or_no=True)
        if (EventType.VERDICT, request.digest) not in run.named:
            about = {"call_id": call_id, "tool": call.name, "digest": request.digest}
            said = {"verdict": Verdict.REQUIRE_APPROVAL.value, "rule": RULE, "reason": reason}
            record.note(run, EventType.VERDICT, **about, **said)
        answered, how = self.was_answered(run, call), (self.approver, self.patience)
        ready = await settle(run, call, request, *how, lambda edited: NO_EDITS, answered)
        if isinstance(ready, Observation):
            words = getattr(ready.error, "reason", "")
            seen = in_doubt(call)
            return seen.replaced(output=f"{seen.output} {words}".strip())
        begun = {"call_id": call_id, "tool": call.name, "attempt": run.attempts.get(call_id, 1)}
        because = "it was in doubt, and a person said to run it again"
        record.note(run, EventType.RETRY, **begun, seconds=0.0, because=because)
        return await next(run, call)
