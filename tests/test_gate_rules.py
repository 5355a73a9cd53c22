"""Each rule: what passes it, what doesn't, and what nobody can tell."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from mini_harness.gate import GateFinding, GateVerdict, Tally
from mini_harness.gate_baseline import CostRise, NoRegression
from mini_harness.gate_rules import (
    Cost,
    Coverage,
    Flaky,
    Forbidden,
    PassRate,
    Steps,
    VerifiedShare,
)
from mini_harness.results import FailureKind, Report
from tests.gates import costing, of, one, report

PASS, FAIL, INCONCLUSIVE = GateVerdict


def finding(rule: Any, found: Report) -> GateFinding:
    answer: GateFinding = rule.judge(Tally(found))
    assert answer.rule == rule.name
    return answer


def verdict(rule: Any, found: Report) -> GateVerdict:
    return finding(rule, found).verdict


# --- thresholds -------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [PassRate, VerifiedShare, Flaky])
@pytest.mark.parametrize("wrong", [1.01, -0.1, 90, "0.9", math.nan, None, True])
def test_a_threshold_that_is_no_share_is_refused(rule: Any, wrong: Any) -> None:
    """report G02"""
    with pytest.raises((TypeError, ValueError), match=r"^at_(least|most) is "):
        rule(wrong)


@pytest.mark.parametrize("rule", [PassRate, VerifiedShare, Flaky, Steps, Cost, Forbidden, Coverage])
def test_a_threshold_that_is_left_out_is_refused(rule: Any) -> None:
    """report G02: nothing is 0 because nobody said what it is"""
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        rule()


def test_a_threshold_of_0_is_honoured_and_listed_as_one_that_cannot_fail() -> None:
    """report G02"""
    for found in (report(*"FFF"), report("FF", "FF")):
        answer = finding(PassRate(0), found)
        assert (answer.verdict, answer.cannot_fail) == (PASS, True)
    assert finding(VerifiedShare(0), report(*"PP", status="completed")).cannot_fail
    assert finding(Flaky(1), report("PF")).cannot_fail
    assert not finding(Flaky(0), report("PF")).cannot_fail
    assert not finding(PassRate(Decimal("0.01")), report(*"FFF")).cannot_fail


@pytest.mark.parametrize("wrong", [1.5, -1, "12", None, True, math.nan, math.inf])
def test_steps_and_costs_have_a_limit_that_is_one(wrong: Any) -> None:
    """report G02"""
    with pytest.raises((TypeError, ValueError), match="at_most"):
        Steps(wrong)
    if wrong != 1.5:
        with pytest.raises((TypeError, ValueError), match="at_most"):
            Cost(wrong)


@pytest.mark.parametrize("rule", [Forbidden, Coverage])
def test_a_rule_that_names_nothing_is_refused(rule: Any) -> None:
    """report G01: an empty list of what is expected"""
    with pytest.raises(ValueError, match="can't fail"):
        rule(())
    with pytest.raises(TypeError, match="must be a list"):
        rule("bash")


# --- shares -----------------------------------------------------------------------------------


def test_the_border_is_exact() -> None:
    """report G04"""
    answer = finding(PassRate(Decimal("0.67")), report(*"PPF"))
    assert (answer.verdict, answer.found) == (FAIL, Fraction(2, 3))
    assert "2/3=0.6667, at least 0.67" in answer.says
    assert verdict(PassRate(0.7), report(*"PPPPPPPFFF")) is PASS
    assert verdict(PassRate(0.29), report(*"P" * 29, *"F" * 71)) is PASS
    assert verdict(PassRate(0.3), report(*"P" * 29, *"F" * 71)) is FAIL
    assert verdict(PassRate(Fraction(2, 3)), report(*"PPF")) is PASS
    assert verdict(Cost(0.3), costing("0.1", "0.2")) is PASS
    assert verdict(Cost(0.3), costing("0.1", "0.2", "0.0000001")) is FAIL
    assert verdict(CostRise(costing("4.1"), 0.1), costing("4.2")) is PASS
    assert verdict(CostRise(costing("4.1"), 0.0999), costing("4.2")) is FAIL


def test_of_repeated_cases_the_interval_has_to_be_clear_of_the_threshold() -> None:
    few = finding(PassRate(0.8), report(*["PPPPPPPPPF"] * 2))
    assert (few.verdict, few.found) == (INCONCLUSIVE, Fraction(9, 10))
    assert few.interval is not None and few.interval[0] < Fraction(8, 10) < few.interval[1]
    assert "95 % interval by Wilson: 0.6990 to 0.9721. Too few runs" in few.says
    assert verdict(PassRate(0.8), report(*["PPPPPPPPPF"] * 20)) is PASS
    assert verdict(PassRate(0.8), report(*["PFFFFFFFFF"] * 2)) is FAIL
    assert verdict(PassRate(0.95), report(*["PPPPPPPPPF"] * 20)) is FAIL


def test_once_each_is_compared_plainly_and_all_means_all() -> None:
    once = finding(PassRate(0.8), report(*"PPPPPPPPPF"))
    assert (once.verdict, once.interval) == (PASS, None)
    assert verdict(PassRate(1), report("PPP", "PPP")) is PASS
    assert verdict(PassRate(1), report("PPP", "PPF")) is FAIL


def test_runs_that_were_not_judged_are_taken_both_ways() -> None:
    assert verdict(PassRate(0.5), report(*"PPPE")) is PASS
    assert verdict(PassRate(0.5), report(*"PEEF")) is INCONCLUSIVE
    assert verdict(PassRate(0.5), report(*"EFFF")) is FAIL
    assert verdict(Flaky(0.5), report("PF", "P-")) is INCONCLUSIVE
    assert verdict(Flaky(0.5), report("PF", "PP", "P-", "PP")) is PASS
    assert verdict(Flaky(0), report("PF", "P-")) is FAIL


def test_the_verified_share_is_of_the_answers_and_silence_is_not_verified() -> None:
    done = {"status": "completed"}
    four = of(
        one(name="a", **done, standing="verified"),
        one(name="b", **done, standing="partly"),
        one(name="c", **done, standing=None),
        one(name="d", status="stopped", standing="verified"),
    )
    answer = finding(VerifiedShare(Fraction(1, 3)), four)
    assert (answer.verdict, answer.found) == (PASS, Fraction(1, 3))
    assert answer.details == ("b: partly", "c: nobody verified it")
    assert verdict(VerifiedShare(0.34), four) is FAIL
    assert verdict(VerifiedShare(0.5), of(one("P", status="stopped"))) is INCONCLUSIVE
    none = Tally(of(one("P", status="stopped")), allow_empty=True)
    assert VerifiedShare(0).judge(none).verdict is INCONCLUSIVE
    broken = of(one(name="a", **done, standing="verified"), one("E", "b", standing="verified"))
    assert verdict(VerifiedShare(1), broken) is INCONCLUSIVE


def test_a_rule_without_a_gate_does_not_pass_an_empty_report_either() -> None:
    """report G01"""
    for rule in (PassRate(0), VerifiedShare(0), Flaky(1)):
        assert verdict(rule, report()) is INCONCLUSIVE
        assert rule.judge(Tally(report(), allow_empty=True)).verdict is PASS
    assert Tally(of(one(), repeats=0)).total == 1


def test_a_case_that_sometimes_passes_is_flaky_and_one_run_does_not_tell() -> None:
    answer = finding(Flaky(0.25), report("PF", "PP", "FF", "PP"))
    assert (answer.verdict, answer.details) == (PASS, ("case-0",))
    assert verdict(Flaky(0.24), report("PF", "PP", "FF", "PP")) is FAIL
    assert verdict(Flaky(0), report(*"PPF")) is INCONCLUSIVE
    assert verdict(Flaky(1), report("F")) is PASS
    assert "repeat them" in finding(Flaky(0), report("P")).says


# --- every run --------------------------------------------------------------------------------


def test_a_forbidden_tool_is_one_that_was_started_also_in_a_run_that_passed_or_broke() -> None:
    rule = Forbidden(("deploy_prod", "rm"))
    assert verdict(rule, report("P", "F", calls=("read", "deploy"))) is PASS
    assert verdict(rule, report("P", "E", calls=("read",))) is INCONCLUSIVE
    for outcome in "PFES":
        answer = finding(rule, report(outcome, calls=("read", "rm", "deploy_prod", "rm")))
        assert (answer.verdict, answer.details) == (FAIL, ("case-0: deploy_prod, rm",))


def test_no_run_takes_more_steps_than_allowed() -> None:
    assert verdict(Steps(3), report("P", steps=3)) is PASS
    assert verdict(Steps(0), report("P", steps=0)) is PASS
    answer = finding(Steps(3), of(one(name="a", steps=4), one(name="b", steps=1)))
    assert (answer.verdict, answer.details) == (FAIL, ("a: 4 steps",))
    assert answer.found == 4
    assert verdict(Steps(3), report("P", "-", steps=1)) is INCONCLUSIVE
    assert verdict(Steps(3), report("P", "E", steps=4)) is FAIL


def test_a_cost_that_nobody_knows_is_not_0() -> None:
    assert verdict(Cost(1), costing("0.5", "0.5")) is PASS
    assert verdict(Cost(0), costing("0")) is PASS
    assert verdict(Cost(1), costing("0.5", None)) is INCONCLUSIVE
    assert verdict(Cost(1), costing("1.5", None)) is FAIL
    assert verdict(Cost(1), report("P", "-", cost=Decimal("0.1"))) is INCONCLUSIVE


def test_a_kind_is_covered_by_a_case_that_was_judged() -> None:
    rule = Coverage((FailureKind.TIME_OUT, FailureKind.ENDLESS))
    late, endless = {"kind": FailureKind.TIME_OUT}, {"kind": FailureKind.ENDLESS}
    assert verdict(rule, of(one(name="a", **late), one("F", "b", **endless))) is PASS
    answer = finding(rule, of(one(name="a", **late)))
    assert (answer.verdict, answer.found) == (FAIL, Fraction(1, 2))
    assert answer.details == ("endless: no case of it was judged",)
    assert verdict(rule, of(one(name="a", **late), one("E", "b", **endless))) is INCONCLUSIVE
    assert verdict(rule, report("P", "-", **late)) is INCONCLUSIVE
    with pytest.raises(ValueError, match="'timeout' is not a valid"):
        Coverage(("timeout",))  # type: ignore[arg-type]


# --- the baseline -----------------------------------------------------------------------------


def test_what_passed_passes_still_and_nothing_is_gone() -> None:
    before = report(*"PPF")
    assert verdict(NoRegression(before), report(*"PPF")) is PASS
    assert verdict(NoRegression(before), report(*"PPPFF")) is PASS
    worse = finding(NoRegression(before), report(*"PFP"))
    assert worse.verdict is FAIL
    assert worse.details == ("case-1: it passed 1 of 1 then, and 0 of 1 now",)
    gone = finding(NoRegression(before), report(*"PP"))
    assert gone.verdict is FAIL
    assert gone.details == ("case-2: it is in the baseline, and wasn't run now",)


@pytest.mark.parametrize("now", "ES-")
def test_a_case_that_was_not_judged_is_no_proof_that_nothing_is_worse(now: str) -> None:
    assert verdict(NoRegression(report(*"PP")), report("P", now)) is INCONCLUSIVE
    assert verdict(NoRegression(report("P", now)), report(*"PF")) is INCONCLUSIVE
    assert verdict(NoRegression(report("P", now)), report(*"PP")) is PASS


@pytest.mark.parametrize(
    "before",
    [None, report(), report(*"SS"), of(one(), one()), Report.of([], ["a"])],
    ids=["none", "empty", "skipped", "twice", "no results"],
)
def test_a_missing_baseline_never_passes(before: Report | None) -> None:
    for rule in (NoRegression(before), CostRise(before, 1)):
        answer = finding(rule, report("P", cost=Decimal(0)))
        assert answer.verdict is INCONCLUSIVE
        assert "no baseline to compare with" in answer.says
    assert "no file b.json" in finding(NoRegression(None, "no file b.json"), report("P")).says


def test_a_case_owes_what_it_did_in_the_baseline() -> None:
    always, sometimes = NoRegression(report("PPP")), NoRegression(report("PFF"))
    assert verdict(always, report("PPPP")) is PASS
    assert verdict(always, report("PPF")) is FAIL
    assert verdict(sometimes, report("FPF")) is PASS
    assert verdict(sometimes, report("FFF")) is FAIL
    assert verdict(sometimes, report("FF-")) is INCONCLUSIVE
    assert verdict(NoRegression(report("FFF")), report("FFF")) is PASS


def test_a_rise_in_cost_is_of_the_same_cases_and_of_one_run_each() -> None:
    before = costing("1", "2")
    assert verdict(CostRise(before, 0), costing("2", "1", "99")) is PASS
    twice = of(
        *(one(name=f"case-{n}", repeat=r, cost=Decimal(n + 1)) for n in (0, 1) for r in (0, 1)),
        repeats=2,
    )
    assert finding(CostRise(before, 0), twice).found == 0
    assert verdict(CostRise(before, 1), costing("1")) is INCONCLUSIVE
    assert verdict(CostRise(before, 1), costing("1", None)) is INCONCLUSIVE
    assert verdict(CostRise(costing("1", None), 1), costing("1", "1")) is INCONCLUSIVE
    assert verdict(CostRise(costing("0"), 0), costing("0")) is PASS
