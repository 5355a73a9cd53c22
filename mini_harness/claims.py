"""What a final answer claims, and whether the record bears it out (SEEDS A26).

An answer that carries claims is JSON: ``{"answer": ..., "claims": [{"says": ..., "call_id": ...,
"quote": ..., "exit_code": ..., "about": [...]}]}``. Each claim cites one recorded call. Whatever
the model says of its own standing counts for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mini_harness.attribution import why_not_attributable
from mini_harness.frozen import NotJson, canonical, freeze, parse_object
from mini_harness.protocol import Outcome
from mini_harness.receipts import Receipt, Receipts, resolved
from mini_harness.redact import MASK
from mini_harness.visible import shortened, visible

MOST = 100
"""An answer with more claims than this isn't looked at: nobody would read its verification."""


class Finding(StrEnum):
    """The closed list of what can be found out about a claim. Only HOLDS bears it out."""

    HOLDS = "holds"
    MALFORMED = "malformed"
    NO_SUCH_CALL = "no_such_call"
    NOT_OK = "not_ok"
    REPORTS_FAILURE = "reports_failure"
    OUTDATED = "outdated"
    BLANK_QUOTE = "blank_quote"
    NOT_QUOTED = "not_quoted"
    WRONG_EXIT_CODE = "wrong_exit_code"
    NO_EXIT_CODE = "no_exit_code"
    NOT_ATTRIBUTABLE = "not_attributable"
    OUTCOME_UNKNOWN = "outcome_unknown"


_UNJUDGED = (Finding.NO_EXIT_CODE, Finding.NOT_ATTRIBUTABLE, Finding.OUTCOME_UNKNOWN)


class Standing(StrEnum):
    """How far an answer is borne out. The harness computes it; nobody can claim it."""

    VERIFIED = "verified"
    PARTLY = "partly"
    UNVERIFIED = "unverified"

    @property
    def rank(self) -> int:
        """0 for UNVERIFIED up to 2 for VERIFIED."""
        return [Standing.UNVERIFIED, Standing.PARTLY, Standing.VERIFIED].index(self)


@dataclass(frozen=True)
class Claim:
    """One thing that an answer says, and the call that is to prove it.

    ``quote`` is a text that stands in the output of the call, ``exit_code`` what its program ended
    with. ``about`` are the files and folders that it speaks of; without them it speaks of
    everything, and any later change outdates it.
    """

    says: str
    call_id: str
    quote: str | None = None
    exit_code: int | None = None
    about: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """What was found out about one claim. ``reason`` is for people, and for the model."""

    claim: Claim
    finding: Finding
    reason: str

    @property
    def holds(self) -> bool | None:
        """None if it could not be judged."""
        if self.finding is Finding.HOLDS:
            return True
        return None if self.finding in _UNJUDGED else False


_CLAIM: TypeAdapter[Claim] = TypeAdapter(Claim)
_KEYS = {"answer", "claims"}
_WRITTEN = re.compile(r"\s*(?:```(?:json)?\s*(\{.*\})\s*```|(\{.*\}))\s*", re.DOTALL)
"""Models like to put their JSON between fences."""

# What test programs say of themselves. It can only speak against a claim, never for one. Bounded,
# since a text of nothing but numbers and commas would take minutes.
_NUMBER = r"(?<![\d,])(?<!\d\.)"
_FAILURES = re.compile(
    rf"{_NUMBER}0{{0,9}}[1-9][\d,]{{0,12}} (?:tests? |examples? )?"
    r"(?:failed|failures?|failing|errors?)\b"
    rf"|{_NUMBER}0{{1,9}} (?:tests? )?pass(?:ed|ing)\b"
    r"|\b(?:failed|failures?|errors?)[:=] ?0{0,9}[1-9]"
    r"|\bno tests (?:ran|were run|found|collected)\b|\b(?:ran|collected) 0 (?:tests?|items)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Answer:
    """A final answer, taken apart."""

    output: Any
    """The answer alone, without claims."""
    claims: tuple[Claim | Evidence, ...] = ()
    """Evidence stands where a claim can't be read."""

    @classmethod
    def read(cls, output: Any) -> Answer:
        """Take apart what a model gave as its answer. Anything without claims is an answer too."""
        found = _object(output)
        if found is None or "claims" not in found:
            return cls(output)
        listed, answer = found["claims"], found.get("answer", output)
        if unknown := sorted(found.keys() - _KEYS):
            names = ", ".join(map(repr, unknown))
            return cls(answer, (_malformed(f"Beside answer and claims stands {names:.200}."),))
        if not isinstance(listed, list) or len(listed) > MOST or "answer" not in found:
            why = f"There must be an answer, and a list of at most {MOST} claims."
            return cls(answer, (_malformed(why),))
        return cls(answer, tuple(map(_claim, listed)))


def _object(output: Any) -> Mapping[str, Any] | None:
    if isinstance(output, Mapping):
        return output
    found = _WRITTEN.fullmatch(output) if isinstance(output, str) else None
    if found is None:
        return None
    try:
        return parse_object(found[1] or found[2])
    except NotJson:
        return None


def _claim(wire: Any) -> Claim | Evidence:
    try:
        text = canonical(freeze(wire)).encode()
        claim = _CLAIM.validate_json(text, strict=True, extra="forbid")
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        return _malformed(f"{place:.100}: {fault['msg']}".removeprefix(": ") + ".")
    except NotJson as error:
        return _malformed(str(error))
    if any(map(_is_blank, (claim.says, claim.call_id, *claim.about))):
        return _malformed("says, call_id and what it is about must not be blank.")
    return claim


def _is_blank(text: str) -> bool:
    """Whether a person would see nothing of it."""
    return not any(visible(char) == char and not char.isspace() for char in text)


def _malformed(reason: str) -> Evidence:
    return Evidence(Claim("", ""), Finding.MALFORMED, f"It can't be read. {visible(reason)}")


def standing(evidence: Iterable[Evidence]) -> Standing:
    """VERIFIED only if there is a claim, and all of them hold."""
    holds = [each.holds is True for each in evidence]
    if not any(holds):
        return Standing.UNVERIFIED
    return Standing.VERIFIED if all(holds) else Standing.PARTLY


class Examiner:
    """Holds claims against the receipts of one run."""

    def __init__(self, receipts: Receipts, cwd: Path) -> None:
        self._receipts, self._cwd = receipts, cwd
        self._hidden = receipts.run.driver.record.redactor.hidden

    def examine(self, claim: Claim) -> Evidence:
        """What the record says of this claim. The first thing that is wrong with it counts."""
        receipt = self._receipts.all.get(claim.call_id)
        if receipt is None:
            reason = f"This run has no call {shortened(visible(claim.call_id), 100)}."
            return Evidence(claim, Finding.NO_SUCH_CALL, reason)
        steps = (self._ended, self._outdated, self._quoted, self._exit_code, self._failures)
        for step in steps:
            if (found := step(claim, receipt)) is not None:
                return Evidence(claim, *found)
        return Evidence(
            claim, Finding.HOLDS, f"{receipt.tool} ended well, and nothing speaks against it."
        )

    def _ended(self, claim: Claim, receipt: Receipt) -> tuple[Finding, str] | None:
        if receipt.outcome is Outcome.OK:
            return None
        if receipt.outcome is Outcome.UNKNOWN:
            return Finding.OUTCOME_UNKNOWN, f"Nobody knows whether {receipt.tool} took effect."
        return Finding.NOT_OK, f"{receipt.tool} did not end well: {receipt.outcome}."

    def _outdated(self, claim: Claim, receipt: Receipt) -> tuple[Finding, str] | None:
        places = resolved(self._cwd, claim.about) if claim.about else None
        later = self._receipts.changed_since(receipt, places)
        if later is None:
            return None
        what = "what it is about" if claim.about else "anything"
        if later.place < receipt.place:
            text = f"{later.tool} ({later.call_id}) was given up and may still change {what}."
        else:
            text = f"{later.tool} ({later.call_id}) came later and may have changed {what}."
        return Finding.OUTDATED, f"{text} Look again, and cite that."

    def _quoted(self, claim: Claim, receipt: Receipt) -> tuple[Finding, str] | None:
        if claim.quote is None:
            return None
        quote = self._hidden(claim.quote)
        if _is_blank(quote.replace(MASK, "")):
            return Finding.BLANK_QUOTE, "The quote is blank, and that proves nothing."
        if quote in self._hidden(receipt.output):
            return None
        return (
            Finding.NOT_QUOTED,
            f"The quote doesn't stand in the recorded output of {receipt.tool}.",
        )

    def _exit_code(self, claim: Claim, receipt: Receipt) -> tuple[Finding, str] | None:
        """Also without one in the claim: that a shell line ended well is its exit code."""
        if receipt.commands is None:
            return Finding.NOT_ATTRIBUTABLE, f"It can't be told what {receipt.tool} ran."
        for line in receipt.commands:
            if why := why_not_attributable(line):
                why = shortened(visible(why), 300)
                text = f"That it ended well proves nothing of the program: {why}."
                return Finding.NOT_ATTRIBUTABLE, text
        if claim.exit_code is None:
            return None
        code = receipt.metadata.get("returncode")
        if not isinstance(code, int) or isinstance(code, bool):
            return Finding.NO_EXIT_CODE, f"{receipt.tool} recorded no exit code."
        if code == claim.exit_code:
            return None
        return Finding.WRONG_EXIT_CODE, f"The exit code is {code}, not {claim.exit_code}."

    def _failures(self, claim: Claim, receipt: Receipt) -> tuple[Finding, str] | None:
        """A receipt that counts failures is one of a failure, whatever the call ended with. Of what
        is only read, the quoted lines count: a text may tell of other failures elsewhere."""
        text = self._hidden(receipt.output)
        if receipt.reads_only and claim.quote is not None:
            text = "\n".join(_lines_around(text, self._hidden(claim.quote)))
        if (said := _FAILURES.search(text)) is None:
            return None
        return Finding.REPORTS_FAILURE, f"The output itself says {visible(said[0])!r}."


def _lines_around(text: str, quote: str) -> Iterable[str]:
    """Every place in which the quote stands, with the rest of its lines."""
    at = text.find(quote)
    while at >= 0:
        start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at + len(quote))
        yield text[start : len(text) if end < 0 else end]
        at = text.find(quote, at + 1)
