"""What the lesson asks. The answers come from runs of the package."""

import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from mini_harness import Gate, GateRule
from mini_harness.corpus import Corpus
from mini_harness.course import improve
from mini_harness.course.questions import Question
from mini_harness.gate_baseline import NoRegression
from mini_harness.gate_rules import PassRate
from mini_harness.results import CaseOutcome, CaseResult, Report


def report(*ends: Sequence[str]) -> Report:
    """A report of cases, each with what came of its runs."""
    results = [
        CaseResult(f"case-{case}", CaseOutcome(end), repeat=repeat)
        for case, several in enumerate(ends)
        for repeat, end in enumerate(several)
    ]
    selected = [f"case-{case}" for case in range(len(ends))]
    return Report.of(results, selected, repeats=len(ends[0]))


def said(now: Report, *rules: GateRule) -> str:
    return Gate(rules or [PassRate(Fraction(9, 10))]).judge(now).verdict


def exit_code_of_an_empty_folder() -> int:
    with tempfile.TemporaryDirectory() as folder:
        none = Corpus.load(Path(folder) / "casse")
    return improve.house_gate().judge(improve.measured(none)).exit_code


def verdict_with_one_error() -> str:
    return said(report(*[["passed"]] * 34, ["error"]))


def verdict_of_nine_in_ten_repeats() -> str:
    return said(report(["passed"] * 9 + ["failed"]))


def verdict_where_two_are_mended_and_one_broke() -> str:
    before = report(["passed"], ["failed"], ["failed"])
    now = report(["failed"], ["passed"], ["passed"])
    return said(now, PassRate(Fraction(1, 2)), NoRegression(before))


QUESTIONS = (
    Question(
        "The path of the corpus is mistyped, so no case runs. With which exit code does the gate "
        "end?",
        {
            "0": "No. Nothing failed, but nothing is known either. With 0 the change would be "
            "merged.",
            "1": "No. Nothing says that the change is bad.",
            "2": "Yes. It couldn't be judged. Whatever runs next only looks for 0, so this isn't "
            "let through.",
        },
        exit_code_of_an_empty_folder,
    ),
    Question(
        "34 of 35 cases passed. In the last one a tool was missing, so it ended in an error. At "
        "least 90 % is asked. What does the gate say?",
        {
            "pass": "No. The rate is high enough whatever the last case is, but every selected "
            "case has to be judged.",
            "fail": "No. No rule says no. Whether the last case is bad, nobody knows.",
            "inconclusive": "Yes. An error says nothing about the harness. Mend the case, and ask "
            "again.",
        },
        verdict_with_one_error,
    ),
    Question(
        "One case ran ten times, with a model that varies. Nine times it passed, and at least "
        "90 % is asked. What does the gate say?",
        {
            "pass": "No. 9 of 10 is 90 % of this sample. The interval goes from 60 to 98 %.",
            "fail": "No. It may well be better than 90 %.",
            "inconclusive": "Yes. The threshold lies within the interval. Run it more often. Had "
            "ten cases run once each, on scripts, it would be a pass.",
        },
        verdict_of_nine_in_ten_repeats,
    ),
    Question(
        "Two of three cases are mended, and the one that passed before fails now. The rules ask "
        "for a rate of 1/2, and for no regression. What does the gate say?",
        {
            "pass": "No. The rate rose from 1/3 to 2/3, and it isn't the only rule.",
            "fail": "Yes. What passed before has to pass still, whatever else got better.",
            "inconclusive": "No. All cases were judged, and there is a baseline.",
        },
        verdict_where_two_are_mended_and_one_broke,
    ),
)
