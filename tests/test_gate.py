"""Only a clear yes of all rules is a pass."""

from dataclasses import FrozenInstanceError, replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.gate import Gate, GateFinding, GateResult, GateVerdict, Tally
from mini_harness.gate_baseline import NoRegression
from mini_harness.gate_rules import Coverage, Flaky, Forbidden, PassRate, Steps
from mini_harness.results import CaseOutcome, FailureKind, Report
from tests.gates import of, one, report

PASS, FAIL, INCONCLUSIVE = GateVerdict


def judged(found: Report, *rules: Any, **about: Any) -> GateResult:
    return Gate(rules or [PassRate(Decimal("0.9"))], **about).judge(found)


def test_three_verdicts_and_their_exit_codes() -> None:
    """report G05: 0 pass, 1 fail, 2 could not judge"""
    assert [each.exit_code for each in GateVerdict] == [0, 1, 2]
    passed = judged(report(*"PPPPPPPPPF"))
    assert (passed.verdict, passed.exit_code) == (PASS, 0)
    failed = judged(report(*"PPPPPPPPFF"))
    assert (failed.verdict, failed.exit_code) == (FAIL, 1)


@pytest.mark.parametrize(
    ("found", "source"),
    [
        (Report.of([], [], "nightly/*.case.json, tag 'slwo'"), "tag 'slwo'"),
        (Report.of([], [], "the folder casez, which isn't there"), "casez"),
        (report(*"SSS"), "cases/"),
        (report(*"---"), "cases/"),
        (report("SS", "S-"), "cases/"),
    ],
)
@pytest.mark.parametrize("rule", [PassRate(0), Forbidden(("x",)), NoRegression(report("P"))])
def test_a_report_of_no_cases_is_never_a_pass(found: Report, source: str, rule: Any) -> None:
    """report G01: empty, no folder, a tag that matches nothing, all skipped"""
    result = judged(found, rule)
    assert (result.verdict, result.exit_code, result.rate) == (INCONCLUSIVE, 2, None)
    assert result.no_cases
    assert result.findings[0].rule == "no_cases"
    assert source in result.findings[0].says
    assert "no case ran" in result.summary


def test_nothing_selected_passes_only_where_somebody_has_allowed_it() -> None:
    """report G01"""
    empty = Report.of([], [], "tag 'new'")
    rules = [PassRate(1), Flaky(0), Steps(1), Forbidden(("x",))]
    assert judged(empty, *rules, allow_empty=True).verdict is PASS
    assert judged(report(*"SS"), PassRate(0), allow_empty=True).verdict is INCONCLUSIVE
    assert judged(empty, NoRegression(report("P")), allow_empty=True).verdict is FAIL
    assert judged(empty, NoRegression(None), allow_empty=True).verdict is INCONCLUSIVE
    assert judged(empty, Coverage((FailureKind.NONE,)), allow_empty=True).verdict is FAIL
    with pytest.raises(TypeError, match="must be True or False"):
        Gate([PassRate(1)], allow_empty="no")  # type: ignore[arg-type]


def test_the_rate_is_over_all_selected_and_an_error_is_no_pass() -> None:
    """report G05: 1 pass, 9 errors; 9 passes, 1 skipped; nothing is left out"""
    broken = judged(report(*"PEEEEEEEEE"))
    assert (broken.verdict, str(broken.rate)) == (INCONCLUSIVE, "1/10")
    assert broken.findings[0].details[0] == "case-1: error"
    assert len(broken.findings[0].details) == 9
    skipped = judged(report(*"PPPPPPPPPS"))
    assert (skipped.verdict, str(skipped.rate)) == (INCONCLUSIVE, "9/10")
    assert "1 of 10 runs of 10 cases (1 skipped)" in skipped.findings[0].says
    missing = judged(report(*"PPPPPPPPP-"), PassRate(0))
    assert (missing.verdict, str(missing.rate)) == (INCONCLUSIVE, "9/10")
    assert "1 without a result" in missing.findings[0].says


def test_what_fails_whatever_the_rest_would_have_become_is_a_failure() -> None:
    assert judged(report(*"PFFFFFFFFE")).verdict is FAIL
    assert judged(report(*"PPPPPPPPFE")).verdict is INCONCLUSIVE


def test_one_failure_outweighs_all_and_one_doubt_all_passes() -> None:
    found = report(*"PPF")
    assert judged(found, PassRate(0), Flaky(0)).verdict is INCONCLUSIVE
    assert judged(found, PassRate(0), Flaky(0), PassRate(1)).verdict is FAIL


def test_a_gate_without_rules_is_refused() -> None:
    with pytest.raises(ValueError, match="would let everything through"):
        Gate([])


def test_what_was_found_and_what_was_asked_cannot_be_changed_afterwards() -> None:
    result = judged(report("F"))
    for frozen in (result, result.findings[0], PassRate(1), Steps(1), NoRegression(None)):
        with pytest.raises(FrozenInstanceError):
            frozen.verdict = PASS  # type: ignore[misc, union-attr]


class Raises:
    name = "mine"

    def judge(self, tally: Tally) -> GateFinding:
        raise ZeroDivisionError(f"\x1b[2K of {tally.total}")


class Answers:
    name = "mine"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def judge(self, tally: Tally) -> GateFinding:
        return self.answer  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "rule",
    [
        Raises(),
        Answers(True),
        Answers(None),
        Answers("pass"),
        Answers(GateFinding("mine", True, "fine")),  # type: ignore[arg-type]
        Answers(GateFinding("mine", "pass", "fine")),  # type: ignore[arg-type]
    ],
)
def test_a_rule_that_raises_or_answers_something_else_is_no_yes(rule: Any) -> None:
    """report G05, DESIGN rule 1: the others are asked all the same"""
    result = judged(report("P"), rule, PassRate(1))
    assert result.verdict is INCONCLUSIVE
    assert [each.rule for each in result.findings] == ["judged", "mine", "pass_rate"]
    assert "The rule itself is broken" in result.findings[1].says
    assert result.findings[1].says.isprintable()


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (of(one(), one()), "more than one result"),
        (of(one("P"), one("F")), "more than one result"),
        (of(one(repeat=1)), "it was to run 1 time"),
        (of(one(repeat=-1)), "it was to run 1 time"),
        (of(one(repeat=True), repeats=2), "it was to run 2 times"),
        (replace(of(one()), selected=("case-0", "case-0")), "selected twice"),
        (replace(report(*"PP"), selected=("case-0",)), "wasn't selected"),
        (replace(of(one()), repeats=0), "repeats is 0"),
        (replace(of(one()), repeats=True), "repeats is True"),
        (of(one(steps=-1)), "no number of steps"),
        (of(one(steps="3")), "no number of steps"),
        (of(one(cost=Decimal("NaN"))), "no sum of money"),
        (of(one(cost=Decimal(-1))), "no sum of money"),
        (of(one(cost=Decimal("1e999999999"))), "no sum of money"),
    ],
)
def test_a_report_that_contradicts_itself_is_no_pass(found: Report, says: str) -> None:
    """Neither result of a case that has two counts, so their order is no matter."""
    result = judged(found, PassRate(0))
    assert result.verdict is INCONCLUSIVE
    assert says in " ".join([result.findings[0].says, *result.findings[0].details, *said(result)])


def said(result: GateResult) -> list[str]:
    return [line for each in result.findings for line in each.details]


def test_a_gate_says_which_runs_it_blames_and_why_on_lines_that_nobody_can_forge() -> None:
    found = of(one("F", "\x1b[2Jevil", reasons=("expected 1\nGate PASS", "x" * 900)), one())
    (line,) = judged(found, PassRate(1)).findings[1].details
    assert line.startswith(r"\x1b[2Jevil: failed: expected 1\nGate PASS; xxx")
    assert line.isprintable() and len(line) < 500
    assert line.endswith("x [...] " + "x" * 75)


def test_the_summary_is_one_line_with_the_figures() -> None:
    result = judged(report(*"PPF"), PassRate(Decimal("0.67")), Flaky(0))
    assert repr(result) == (
        "Gate FAIL: 2/3=0.6667 of the runs passed; pass_rate failed; flaky is unclear."
    )
    assert repr(judged(report("P"))) == "Gate PASS: 1/1=1.0000 of the runs passed."


RUNS = st.lists(st.text("PFES-", min_size=3, max_size=3), max_size=6)


@given(RUNS, st.fractions(0, 1, max_denominator=20))
def test_whatever_became_of_the_runs_a_pass_means_that_all_were_judged(
    cases: list[str], limit: Any
) -> None:
    """An oracle of its own: counted from the letters."""
    letters = "".join(cases)
    result = judged(report(*cases), PassRate(limit))
    passed = letters.count("P")
    if result.verdict is PASS:
        assert letters and set(letters) <= {"P", "F"}
        assert passed >= limit * len(letters)
    if result.verdict is FAIL:
        assert len(letters) - letters.count("F") < limit * len(letters)
    if set(letters) <= {"S", "-"}:
        assert (result.rate, result.exit_code) == (None, 2)
    else:
        assert result.rate is not None
        assert result.rate * len(letters) == passed


@given(RUNS, st.randoms())
def test_the_order_of_results_is_no_matter(cases: list[str], random: Any) -> None:
    found = report(*cases)
    mixed = list(found.results)
    random.shuffle(mixed)
    again = replace(found, results=tuple(mixed))
    rules = PassRate(1), Flaky(0)
    one_, two = judged(found, *rules), judged(again, *rules)
    assert [(each.verdict, each.says) for each in one_.findings] == [
        (each.verdict, each.says) for each in two.findings
    ]
    assert two.tally.count(CaseOutcome.PASSED) == "".join(cases).count("P")
