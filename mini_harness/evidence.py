"""An answer must be borne out by the record before it is accepted (SEEDS A26).

A model that says "all tests pass" has said so, and nothing more. It cites the calls that prove it,
and the harness looks them up in what it recorded itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mini_harness.claims import (
    Answer,
    Claim,
    Evidence,
    Examiner,
    Finding,
    Standing,
    standing,
)
from mini_harness.events import EventType
from mini_harness.layer import Act, Feedback, Finish, Layer
from mini_harness.protocol import Final, Observation, Outcome
from mini_harness.receipts import Receipts
from mini_harness.run import Run, Status
from mini_harness.tools.call import Call
from mini_harness.visible import counted, shortened, visible

__all__ = ["Claim", "Evidence", "Finding", "Standing", "Verify", "standing_of"]

SCOPE = "answer"
"""By this name the last verification of a run is found again."""

HOW_TO_CLAIM = (
    'Answer with JSON: {"answer": ..., "claims": [{"says": "one thing that you claim", "call_id": '
    '"the call of this run that proves it", "quote": "a text from its output", "exit_code": 0, '
    '"about": ["the files or folders that it speaks of"]}]}. quote, exit_code and about may be '
    "left out."
)
"""What the model is told when an answer goes back. Put it into the goal too, and it needn't."""

_SHOWN = 20
_LONGEST = 300


class Verify(Layer):
    """Accepts an answer only if the record bears out what it claims.

    Below ``require`` it goes back, with a reason for each claim; the loop bounds how often. An
    answer without claims is UNVERIFIED. With ``require=Standing.UNVERIFIED`` everything is
    accepted, and the standing is only recorded.

    ``checks`` names the tools that only check something, such as one that runs tests: what they do
    is no change, though they don't only read. Every other call that doesn't only read is a change,
    of the paths that its tool names, or else of everything. It outdates what was seen before.

    The output of the run is the answer alone; what was claimed and found is in the record. Put it
    outside of the policy, so that it sees calls that a policy refuses on a resume, and inside of
    ParallelReads.
    """

    def __init__(
        self, require: Standing = Standing.VERIFIED, *, checks: Iterable[str] = ()
    ) -> None:
        """Raises TypeError for a lone name in the place of a list, and ValueError for what is no
        standing."""
        if isinstance(checks, str):
            raise TypeError(f"Give the checks as a list: [{checks!r}].")
        self.require = Standing(require)
        self.checks = frozenset(checks)

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        """What was started before the process died may have had its effect, also if it is refused
        now. Only this moment knows."""
        if call.call_id in run.in_doubt:
            run.driver.record.note(run, EventType.VERIFICATION, began=call.call_id)
        return await next(run, call)

    async def finish(self, run: Run, final: Final, next: Finish) -> Any:
        output = await next(run, final)
        if isinstance(output, Feedback):
            return output
        answer = Answer.read(output)
        receipts = Receipts(run, self.checks)
        examiner = Examiner(receipts, run.driver.cwd)
        evidence = [
            each if isinstance(each, Evidence) else examiner.examine(each) for each in answer.claims
        ]
        reached = standing(evidence)
        accepted = reached.rank >= self.require.rank
        _note(run, reached, evidence, accepted)
        return answer.output if accepted else Feedback(self._reason(reached, evidence, receipts))

    def _reason(self, reached: Standing, evidence: Sequence[Evidence], receipts: Receipts) -> str:
        lines = [f"The answer is {reached}, and it must be {self.require}."]
        if not evidence:
            lines.append("It claims nothing that the record could bear out.")
        lines += [f"- {told(each)}" for each in evidence if each.holds is not True]
        return "\n".join([*lines, HOW_TO_CLAIM, *_citable(receipts)])


def standing_of(run: Run) -> Standing:
    """How far the accepted answer of this run is borne out, as Verify found it.

    UNVERIFIED if there is none, or if it was accepted without Verify. An answer that was sent back
    never counts.
    """
    note = run.named.get((EventType.VERIFICATION, SCOPE))
    is_of_answer = run.status is Status.COMPLETED and note is not None
    if note is None or not is_of_answer or note["step"] != run.step or not note["accepted"]:
        return Standing.UNVERIFIED
    return Standing(note["standing"])


def told(evidence: Evidence) -> str:
    """One line for people: what was claimed, and what was found."""
    says = shortened(visible(evidence.claim.says), _LONGEST) or "A claim"
    return f"{says}: {evidence.finding}. {evidence.reason}"


def _note(run: Run, reached: Standing, evidence: Sequence[Evidence], accepted: bool) -> None:
    findings = [
        {
            "says": each.claim.says,
            "call_id": each.claim.call_id,
            "about": list(each.claim.about),
            "holds": each.holds,
            "finding": each.finding.value,
            "reason": each.reason,
        }
        for each in evidence
    ]
    bad = next((told(each) for each in evidence if each.holds is not True), "")
    held = sum(each.holds is True for each in evidence)
    run.driver.record.note(
        run,
        EventType.VERIFICATION,
        scope=SCOPE,
        step=run.step,
        standing=reached.value,
        accepted=accepted,
        told=f"{held} of {counted(len(evidence), 'claim')} hold. {bad}".strip(),
        findings=findings,
    )


def _citable(receipts: Receipts) -> list[str]:
    """The calls that could be cited, the last ones first. A model doesn't always see their ids."""
    well = [each for each in receipts.all.values() if each.outcome is Outcome.OK]
    if not well:
        return ["No call of this run has ended well yet."]
    lines = [f"- {visible(each.call_id)}: {each.tool}" for each in well[: -_SHOWN - 1 : -1]]
    return ["Calls of this run that ended well, the last first:", *lines]
