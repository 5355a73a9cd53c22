"""An answer counts as verified only if the record bears it out."""

from pathlib import Path
from typing import Any

import pytest

from mini_harness.events import EventType
from mini_harness.evidence import Standing, Verify, standing_of
from mini_harness.layer import Feedback, Finish, Layer
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.outputs import LargeOutput
from mini_harness.protocol import Final
from mini_harness.run import Run, Status, StopReason
from mini_harness.sync import run_sync
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.function import FunctionTool, tool
from mini_harness.tools.shell import Bash
from tests.claiming import TOOLS, claim, final, finding, note, saying, shell, verified
from tests.loops import call, play, tool_messages, turn

VERIFIED, PARTLY, UNVERIFIED = Standing.VERIFIED, Standing.PARTLY, Standing.UNVERIFIED


def never(run: Run, found: str) -> None:
    """It was never verified, nor accepted, and for this reason."""
    assert standing_of(run) is UNVERIFIED
    assert run.stop is not None, run
    assert run.stop["reason"] == StopReason.REJECTED
    assert note(run)["standing"] != VERIFIED
    assert finding(run) == found


def test_an_answer_is_verified_if_all_its_claims_hold() -> None:
    """A26"""
    claims = claim("c1", quote="content of a"), claim("c1", about=["a"])
    run = verified(call("read", "c1", path="a"), final(*claims, answer=0))
    assert (run.status, run.output) == (Status.COMPLETED, 0)
    assert standing_of(run) is VERIFIED
    assert [each["holds"] for each in note(run)["findings"]] == [True, True]


def test_an_answer_of_which_some_claims_hold_is_partly_verified() -> None:
    """A26"""
    answer = final(claim("c1"), claim("c9"))
    run = verified(call("read", "c1", path="a"), answer, require=PARTLY)
    assert standing_of(run) is PARTLY
    assert finding(run, 1) == "no_such_call"
    assert verified(call("read", "c1", path="a"), answer).status is Status.STOPPED


@pytest.mark.parametrize("output", ["All tests pass.", "", 0, None, {"claims": []}, {"a": 1}, "{"])
def test_an_answer_without_claims_is_unverified(output: Any) -> None:
    """A26: a tool result alone is no proof"""
    run = verified(call("read", "c1", path="a"), Final(output))
    assert standing_of(run) is UNVERIFIED
    assert run.status is Status.STOPPED
    accepted = verified(Final(output), require=UNVERIFIED)
    assert (accepted.output, standing_of(accepted)) == (output, UNVERIFIED)


def test_it_goes_back_with_a_reason_for_each_claim_and_the_calls_that_can_be_cited() -> None:
    turns = [call("read", "c1", path="a"), final(claim("c7", "Seven."), claim("c8", "Eight."))]
    run = play([*turns, final(claim("c1"))], TOOLS, layers=[Verify()]).run
    assert standing_of(run) is VERIFIED
    told = [m["content"] for m in run.history.messages if m.get("because") == "rejected"]
    assert len(told) == 1
    for part in ('"Seven.": This run has no call c7', '"Eight.": ', "- c1: read", '"claims"'):
        assert part in told[0]


def test_how_often_it_goes_back_is_bounded() -> None:
    run = verified(Final("Done."))
    assert run.stop is not None
    assert (run.stop["reason"], run.stop["limit"]) == (StopReason.REJECTED, 3)
    assert run.rejections == 3


# --- sequences that can never end as verified


def test_success_claimed_with_a_failing_receipt(tmp_path: Path) -> None:
    """A26"""
    run = verified(shell("exit 3"), final(claim("c1", exit_code=0)), tools=[Bash()], cwd=tmp_path)
    never(run, "not_ok")
    run = verified(call("break_off", "c1", path="a"), final(claim("c1", "I changed a.")))
    never(run, "not_ok")
    never(verified(call("no_tool", "c1"), final(claim("c1"))), "not_ok")


def test_verification_older_than_the_change() -> None:
    """A26"""
    for change in (call("edit", path="a"), call("break_off", path="a"), call("deploy")):
        made = [call("check", "c1"), change, final(claim("c1", "It passes."))]
        never(verified(*made, checks=["check"]), "outdated")
    made = [turn(call("check", "c1"), call("edit", path="a")), final(claim("c1"))]
    never(verified(*made, checks=["check"]), "outdated")


def test_a_rejected_answer(tmp_path: Path) -> None:
    """A26: what was sent back isn't verified by what is accepted without Verify afterwards"""
    turns = [call("read", "c1", path="a"), final(claim("c1")), final(claim("c2"))]
    run = verified(*turns[:1], turns[2])
    assert run.rejections == 3
    other = Harness(ScriptedModel([final(claim("c1"))]), TOOLS, cwd=tmp_path)
    other.record.message(run, "And now?")
    assert standing_of(run_sync(other.resume(run))) is UNVERIFIED
    assert run.status is Status.COMPLETED


def test_an_answer_that_a_later_question_got_without_verify(tmp_path: Path) -> None:
    run = verified(call("read", "c1", path="a"), final(claim("c1")))
    assert standing_of(run) is VERIFIED
    other = Harness(ScriptedModel([Final("Yes.")]), TOOLS, cwd=tmp_path)
    other.record.message(run, "And now?")
    assert standing_of(run) is UNVERIFIED
    assert standing_of(run_sync(other.resume(run))) is UNVERIFIED


def test_an_answer_that_another_layer_sent_back() -> None:
    """A26: it had been verified, and what came after it was not"""

    class SendBackOnce(Layer):
        async def finish(self, run: Run, final: Final, next: Finish) -> Any:
            answer = await next(run, final)
            return answer if run.rejections else Feedback("Once more.")

    turns = [call("read", "c1", path="a"), final(claim("c1")), Final("Done.")]
    layers = [SendBackOnce(), Verify(require=UNVERIFIED)]
    run = play(turns, TOOLS, layers=layers).run
    assert [each["standing"] for each in run.notes[EventType.VERIFICATION]] == [
        VERIFIED,
        UNVERIFIED,
    ]
    assert (run.output, standing_of(run)) == ("Done.", UNVERIFIED)


def test_an_answer_that_another_layer_accepted_all_the_same() -> None:
    """A26: nobody but Verify says how far an answer is borne out"""

    class TakesAnything(Layer):
        async def finish(self, run: Run, final: Final, next: Finish) -> Any:
            await next(run, final)
            return "Done."

    turns = [call("read", "c1", path="a"), final(claim("c1"), claim("c2"))]
    run = play(turns, TOOLS, layers=[TakesAnything(), Verify()]).run
    assert (note(run)["standing"], run.output) == (PARTLY, "Done.")
    assert standing_of(run) is UNVERIFIED


def test_an_answer_that_a_layer_inside_sent_back_is_not_looked_at() -> None:
    class Refuses(Layer):
        async def finish(self, run: Run, final: Final, next: Finish) -> Any:
            return Feedback("Shorter, please.")

    run = play([final()] * 4, TOOLS, layers=[Verify(), Refuses()]).run
    assert run.stop is not None
    assert run.stop["because"] == "Shorter, please."
    assert EventType.VERIFICATION not in run.notes


@pytest.mark.parametrize(
    "output",
    [
        "0 passed, 5 failed",
        "5 failed, 3 passed in 0.1s",
        "3 passed, 1 error",
        "0 passed",
        "no tests ran in 0.01s",
        "collected 0 items",
        "Ran 0 tests in 0.000s\n\nOK",
        "Tests: 12 failed, 1 total",
        "failures=2",
        "1,204 failed",
        "..F5 failed",
        "..5 failed",
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_count_of_failures_read_as_success(output: str, read_only: bool) -> None:
    """report V02: "0 passed, 5 failed" read as success"""
    tools = [saying(output, read_only=read_only, returncode=0)]
    for quote in (None, output, "passed" if "passed" in output else output[:3]):
        made = claim("c1", "All tests pass.", quote=quote, exit_code=0)
        never(verified(call("check", "c1"), final(made), tools=tools), "reports_failure")


@pytest.mark.parametrize(
    "output",
    ["5 passed, 0 failed", "10 passed", "failures: 0", "no errors", "200 passed", "1.0 pass"],
)
def test_a_count_of_none_speaks_against_nothing(output: str) -> None:
    """report V02"""
    run = verified(call("check", "c1"), final(claim("c1")), tools=[saying(output)])
    assert standing_of(run) is VERIFIED


def test_of_a_text_that_is_only_read_the_quoted_lines_count() -> None:
    changing = [saying("5 failed\n3 passed")]
    run = verified(call("check", "c1"), final(claim("c1", quote="3 passed")), tools=changing)
    never(run, "reports_failure")
    twice = [saying("5 passed\n5 failed", read_only=True)]
    never(
        verified(call("check", "c1"), final(claim("c1", quote="5 ")), tools=twice),
        "reports_failure",
    )
    tools = [saying("run 1: 5 failed\nrun 2: 5 passed", read_only=True)]
    good = verified(call("check", "c1"), final(claim("c1", quote="2: 5 passed")), tools=tools)
    assert standing_of(good) is VERIFIED
    never(
        verified(call("check", "c1"), final(claim("c1", quote="5 ")), tools=tools),
        "reports_failure",
    )
    never(verified(call("check", "c1"), final(claim("c1")), tools=tools), "reports_failure")


@pytest.mark.parametrize("quote", ["content of b", "Content of a", "content of a ", "nt\nof"])
def test_a_quote_that_is_not_in_the_output(quote: str) -> None:
    """A26"""
    run = verified(call("read", "c1", path="a"), final(claim("c1", quote=quote)))
    never(run, "not_quoted")


@pytest.mark.parametrize("quote", ["", " ", "\n\t", "\u200b", "\u3164 \u2800"])
def test_a_blank_quote_proves_nothing(quote: str) -> None:
    """A26"""
    tools = [saying("a \n\t\u200b\u3164 \u2800 b")]
    run = verified(call("check", "c1"), final(claim("c1", quote=quote)), tools=tools)
    never(run, "blank_quote")


def test_what_was_cut_from_an_output_is_no_evidence(tmp_path: Path) -> None:
    """A26: only what was recorded counts"""
    tools = [saying("start" + "-" * 40_000 + "middle" + "-" * 40_000 + "end", read_only=True)]
    how: dict[str, Any] = {"tools": tools, "layers": [LargeOutput()], "cwd": tmp_path}
    never(verified(call("check", "c1"), final(claim("c1", quote="middle")), **how), "not_quoted")
    seen = verified(call("check", "c1"), final(claim("c1", quote="-end")), **how)
    assert standing_of(seen) is VERIFIED


def test_evidence_of_another_run(tmp_path: Path) -> None:
    """A26: neither a call of an earlier run, nor one of a run inside a call"""
    earlier = verified(call("read", "c1", path="a"), final(claim("c1")))
    assert standing_of(earlier) is VERIFIED
    never(verified(call("read", "c2", path="a"), final(claim("c1"))), "no_such_call")

    @tool(read_only=True, paths=())
    async def specialist(context: ToolExecutionContext) -> str:
        """Have somebody else look."""
        turns = [call("read", "inner", path="a"), Final("Looked.")]
        return str((await Harness(ScriptedModel(turns), TOOLS).run("Look.")).unwrap())

    run = verified(call("specialist", "c1"), final(claim("inner")), tools=[specialist])
    assert tool_messages(run)[0]["tool_result"] == "Looked."
    never(run, "no_such_call")


@pytest.mark.parametrize(
    "line",
    [
        "false | tail -5",
        "false || true",
        "false; echo done",
        "false 2>&1 | tee log",
        "(exit 1); true",
        "set -o pipefail; false | tail",
    ],
)
def test_an_exit_code_of_somebody_else(line: str, tmp_path: Path) -> None:
    """report V01: all six lines; only the last one really fails"""
    expected = "not_ok" if "pipefail" in line else "not_attributable"
    for more in ({"exit_code": 0}, {"quote": "o"}, {}):
        answer = final(claim("c1", "The tests pass.", **more))
        run = verified(shell(line), answer, tools=[Bash()], cwd=tmp_path)
        never(run, expected)


def test_the_exit_code_of_the_program_is_evidence(tmp_path: Path) -> None:
    """report V01"""
    for line in ("true", "cd . && true", "set -o pipefail; true | tail -5"):
        answer = final(claim("c1", exit_code=0))
        assert standing_of(verified(shell(line), answer, tools=[Bash()], cwd=tmp_path)) is VERIFIED
    wrong = final(claim("c1", exit_code=1))
    never(verified(shell("true"), wrong, tools=[Bash()], cwd=tmp_path), "wrong_exit_code")
    never(verified(call("read", "c1", path="a"), final(claim("c1", exit_code=0))), "no_exit_code")


def test_a_tool_that_cannot_say_what_it_ran_proves_nothing() -> None:
    """report V01: could not judge is never yes"""

    class Vague(FunctionTool):
        def command(self, arguments: Any) -> str | None:
            raise ValueError("who knows")

    vague = Vague(lambda: "ok", "vague", "Be vague.", read_only=True)
    never(verified(call("vague", "c1"), final(claim("c1")), tools=[vague]), "not_attributable")


@pytest.mark.parametrize("key", ["standing", "verified", "evidence"])
def test_a_standing_that_the_model_claims(key: str) -> None:
    """A26: it is computed, never claimed"""
    made = call("read", "c1", path="a")
    never(verified(made, final(claim("c1"), **{key: "verified"})), "malformed")
    never(verified(made, final(claim("c1", **{key: "verified"}))), "malformed")
    taken = verified(made, final(claim("c1"), **{key: "verified"}), require=UNVERIFIED)
    assert (taken.output, standing_of(taken)) == ("Done.", UNVERIFIED)
