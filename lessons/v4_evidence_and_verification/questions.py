"""What the lesson asks. The answers come from runs of the package."""

import tempfile
from pathlib import Path
from typing import Any

from mini_harness import AuditLog, Bash, Harness, Run, ScriptedModel, Standing, Verify, tool
from mini_harness.course.proof import answer, claim
from mini_harness.course.questions import Question
from mini_harness.course.story import call

LOOK = call("count_tests") | {"call_id": "c-1"}


@tool(read_only=True, paths=())
def count_tests() -> str:
    """Count the tests."""
    return "3 tests"


def answered(*turns: Any, require: Standing = Standing.VERIFIED) -> Run:
    """A run that answers the same, again and again."""
    with tempfile.TemporaryDirectory() as folder:
        model = ScriptedModel([*turns, *[turns[-1]] * 3])
        harness = Harness(model, [count_tests, Bash()], layers=[Verify(require)], cwd=folder)
        return harness.run_sync("Count them.")


def verification(run: Run) -> Any:
    """What the last one came to."""
    (note,) = [each for (_, scope), each in run.named.items() if scope == "answer"]
    return note


def a_look_before_a_shell_line() -> str:
    shell = call("bash", command="true")
    told = claim("There are three.", "c-1", quote="3 tests", about=["tests"])
    note = verification(answered(LOOK, shell, answer("Three.", told)))
    return str(note["findings"][0]["finding"])


def status_of_half_an_answer() -> str:
    good = claim("There are three.", "c-1")
    bad = claim("All pass.", "c-1", quote="3 passed")
    return answered(LOOK, answer("Three.", good, bad)).status


def standing_of_a_pipe() -> str:
    pipe = call("bash", command="echo 3 passed | tail -1") | {"call_id": "c-1"}
    told = claim("All pass.", "c-1", quote="3 passed", exit_code=0)
    run = answered(pipe, answer("Well.", told), require=Standing.UNVERIFIED)
    return str(verification(run)["standing"])


def a_log_without_its_tail() -> str:
    with tempfile.TemporaryDirectory() as folder:
        log = AuditLog(Path(folder) / "audit.jsonl").start()
        for number in range(5):
            log.append("noted", {"number": number})
        lines = log.path.read_bytes().splitlines(keepends=True)
        log.path.write_bytes(b"".join(lines[:-2]))
        found = log.check()
        return "all as it was written" if found.ok else f"damaged from line {found.line} on"


QUESTIONS = (
    Question(
        "`count_tests` says how many there are. Then a shell line runs, and it is `true`. The "
        "answer cites `count_tests`, and is about `tests`. What does `Verify` find?",
        {
            "holds": "No. `true` changes nothing, but nobody reads that out of a shell line.",
            "outdated": "Yes. What a shell line changes can't be told from outside, so it may have "
            "changed everything. Look again, and cite that.",
            "not_attributable": "No. The cited call ran no shell line.",
        },
        a_look_before_a_shell_line,
    ),
    Question(
        "An answer has two claims. One holds; the quote of the other stands nowhere. The model "
        "says the same each time. What is `run.status` in the end, with a plain `Verify()`?",
        {
            "completed": "No. Partly isn't verified, and so it is never accepted.",
            "paused": "No. It waits for nobody. You may resume it with a lower bar.",
            "stopped": "Yes. It goes back three times, and then the run stops: rejected.",
        },
        status_of_half_an_answer,
    ),
    Question(
        "The only claim cites `echo 3 passed | tail -1`: its quote is there, its exit code is 0. "
        "What is the standing of the answer?",
        {
            "verified": "No. The quote is there, and nobody tested anything.",
            "partly": "No. There is one claim, and it doesn't hold.",
            "unverified": "Yes. The exit code is that of `tail`, so the claim could not be judged. "
            "Could not judge is never yes.",
        },
        standing_of_a_pipe,
    ),
    Question(
        "Of an audit log with 5 entries the last two lines are cut off. What does `check` say?",
        {
            "all as it was written": "No. The chain fits, but the head counts five.",
            "damaged from line 4 on": "Yes. Three fit, and the head counts five. The fourth is "
            "the first that is missing.",
            "damaged from line 5 on": "No. Line 4 is gone, too, and comes first.",
        },
        a_log_without_its_tail,
    ),
)
