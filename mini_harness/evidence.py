"""An answer must be borne out by the record before it is accepted (SEEDS A26).

A model that says "all tests pass" has said so, and nothing more. It cites the calls that prove it,
and the harness looks them up in what it recorded itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from mini_harness.checks import Check, CheckResult, CheckVerdict
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
from mini_harness.judge import Judge, Opinion
from mini_harness.layer import Act, Feedback, Finish, Layer
from mini_harness.protocol import Final, Observation, Outcome
from mini_harness.receipts import Receipts
from mini_harness.run import Run, Status
from mini_harness.tools.call import Call
from mini_harness.visible import shortened, visible

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


@dataclass(frozen=True)
class Verification:
    """All that was found out about one answer."""

    standing: Standing
    evidence: tuple[Evidence, ...]
    results: tuple[CheckResult, ...] = ()
    opinion: Opinion | None = None

    def objections(self) -> list[str]:
        """What speaks against it, a line each."""
        lines = [told(each) for each in self.evidence if each.holds is not True]
        for each in self.results:
            if each.verdict is not CheckVerdict.PASSED:
                last = shortened(visible(each.tail[-_LONGEST:]), _LONGEST)
                printed = f" It printed: {last}" if last else ""
                lines.append(f"Check {visible(each.name)}: {each.verdict}. {each.reason}{printed}")
        if self.opinion is not None and self.opinion.holds is not True:
            lines.append(self.opinion.reason)
        return lines

    def __str__(self) -> str:
        """One line for people."""
        held = sum(each.holds is True for each in self.evidence)
        first = next(iter(self.objections()), "")
        return f"{held} of {len(self.evidence)} claims hold. {first}".strip()


class Verify(Layer):
    """Accepts an answer only if the record bears out what it claims.

    Below ``require`` it goes back, with a reason for each claim; the loop bounds how often. An
    answer without claims is UNVERIFIED. With ``require=Standing.UNVERIFIED`` everything is
    accepted, and the standing is only recorded.

    ``checks`` names the tools that only check something, such as one that runs tests: what they do
    is no change, though they don't only read. Every other call that doesn't only read is a change,
    of the paths that its tool names, or else of everything. It outdates what was seen before.

    If all claims hold, the harness runs every check of ``recheck`` itself, and asks ``judge`` if
    they passed. Unless all say yes, the answer is PARTLY verified at best. What the judge cost
    counts as the run's own; a Budget sees it at the next turn.

    The output of the run is the answer alone; what was claimed and found is in the record. Put it
    outside of the policy, so that it sees calls that a policy refuses on a resume, and inside of
    ParallelReads.
    """

    def __init__(
        self,
        require: Standing = Standing.VERIFIED,
        *,
        checks: Iterable[str] = (),
        recheck: Iterable[Check] = (),
        judge: Judge | None = None,
    ) -> None:
        """Raises TypeError for a lone name in the place of a list, and ValueError for what is no
        standing."""
        if isinstance(checks, str):
            raise TypeError(f"Give the checks as a list: [{checks!r}].")
        self.require = Standing(require)
        self.checks = frozenset(checks)
        self.recheck, self.judge = tuple(recheck), judge

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
        found = Verification(standing(evidence), tuple(evidence))
        if found.standing is Standing.VERIFIED:
            found = await self._looked_again(run, answer, receipts, found)
        accepted = found.standing.rank >= self.require.rank
        _note(run, found, accepted)
        return answer.output if accepted else Feedback(self._reason(found, receipts))

    async def _looked_again(
        self, run: Run, answer: Answer, receipts: Receipts, found: Verification
    ) -> Verification:
        """What the checks and the judge say of an answer of which all claims hold."""
        cwd = run.driver.cwd
        results = tuple([await check.run(cwd) for check in self.recheck])
        good = all(each.verdict is CheckVerdict.PASSED for each in results)
        opinion = None
        if good and self.judge is not None:
            subject = _subject(run, answer, receipts)
            opinion = await self.judge.ask(subject, run.driver.clock)
            good = opinion.holds is True
        reached = found.standing if good else Standing.PARTLY
        return Verification(reached, found.evidence, results, opinion)

    def _reason(self, found: Verification, receipts: Receipts) -> str:
        lines = [f"The answer is {found.standing}, and it must be {self.require}."]
        if not found.evidence:
            lines.append("It claims nothing that the record could bear out.")
        lines += [f"- {each}" for each in found.objections()]
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
    says = shortened(visible(evidence.claim.says), _LONGEST)
    return f'"{says}": {evidence.reason}' if says else f"A claim: {evidence.reason}"


def _note(run: Run, found: Verification, accepted: bool) -> None:
    data: dict[str, Any] = {
        "scope": SCOPE,
        "step": run.step,
        "standing": found.standing.value,
        "accepted": accepted,
        "told": str(found),
        "findings": [
            {
                **{name: value for name, value in vars(each.claim).items() if value is not None},
                "holds": each.holds,
                "finding": each.finding.value,
                "reason": each.reason,
            }
            for each in found.evidence
        ],
    }
    if found.results:
        data["rechecks"] = [vars(each) for each in found.results]
    if found.opinion is not None:
        data["judge"] = {"holds": found.opinion.holds, "reason": found.opinion.reason}
        if found.opinion.usage is not None:
            data["usage"] = asdict(found.opinion.usage)
    run.driver.record.note(run, EventType.VERIFICATION, **data)


def _subject(run: Run, answer: Answer, receipts: Receipts) -> dict[str, Any]:
    """What a judge gets to see: the question, the answer, and of each claim what was recorded."""
    cited = [
        {
            "says": each.says,
            "tool": receipts.all[each.call_id].tool,
            "output": shortened(receipts.all[each.call_id].output),
        }
        for each in answer.claims
        if isinstance(each, Claim)
    ]
    asked = [
        m["content"] for m in run.history.messages if m["role"] == "user" and "because" not in m
    ]
    return {"asked": asked[-1], "answer": answer.output, "claims": cited}


def _citable(receipts: Receipts) -> list[str]:
    """The calls that could be cited, the last ones first. A model doesn't always see their ids."""
    well = [each for each in receipts.all.values() if each.outcome is Outcome.OK]
    if not well:
        return ["No call of this run has ended well yet."]
    lines = [f"- {visible(each.call_id)}: {each.tool}" for each in well[: -_SHOWN - 1 : -1]]
    return ["Calls of this run that ended well, the last first:", *lines]
