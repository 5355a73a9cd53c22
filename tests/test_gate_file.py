"""A file of rules is read strictly: what isn't understood is refused, with its place."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from mini_harness.gate import GateVerdict
from mini_harness.gate_baseline import CostRise, NoRegression
from mini_harness.gate_file import BadGate, Baseline, load_baseline, load_gate, load_report
from mini_harness.gate_rules import (
    Cost,
    Coverage,
    Flaky,
    Forbidden,
    PassRate,
    Steps,
    VerifiedShare,
)
from mini_harness.results import FailureKind
from tests.gates import report

WHOLE = """
allow_empty = true
[pass_rate]
at_least = 0.95
[no_regression]
[cost_rise]
at_most = 0.1
[forbidden]
tools = ["deploy_prod"]
[steps]
at_most = 12
[cost]
at_most = 1.50
[verified_share]
at_least = 0.8
[flaky]
at_most = 0
[coverage]
kinds = ["time_out", "endless"]
"""


def written(folder: Path, text: str, name: str = "gate.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_rule_can_be_written_as_toml_and_as_json(tmp_path: Path) -> None:
    before = report("P")
    gate = load_gate(written(tmp_path, WHOLE), Baseline(before))
    assert gate.allow_empty is True
    assert [type(each) for each in gate.rules] == [
        PassRate,
        NoRegression,
        CostRise,
        Forbidden,
        Steps,
        Cost,
        VerifiedShare,
        Flaky,
        Coverage,
    ]
    assert gate.rules[0] == PassRate(Decimal("0.95"))
    assert gate.rules[1] == NoRegression(before)
    assert gate.rules[8] == Coverage((FailureKind.TIME_OUT, FailureKind.ENDLESS))
    same = '{"pass_rate": {"at_least": 0.95}, "coverage": {"kinds": "all"}}'
    again = load_gate(written(tmp_path, same, "gate.json"))
    assert list(again.rules) == [PassRate(Decimal("0.95")), Coverage(tuple(FailureKind))]
    assert again.allow_empty is False


@pytest.mark.parametrize("name", ["gate.toml", "gate.json"])
def test_a_threshold_is_the_number_that_stands_there(tmp_path: Path, name: str) -> None:
    """report G04: 0.7000000000000000001 is more than 7 of 10, which no float knows"""

    def exit_code(number: str) -> int:
        text = f"[pass_rate]\nat_least = {number}\n"
        if name.endswith("json"):
            text = f'{{"pass_rate": {{"at_least": {number}}}}}'
        found = load_gate(written(tmp_path, text, name)).judge(report(*"PPPPPPPFFF"))
        return found.exit_code

    assert exit_code("0.7") == 0
    assert exit_code("0.7000000000000000001") == 1
    assert exit_code("0") == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[pass_rate]\nat_least = 90", r"\[pass_rate\] at_least is 90, but must be from 0 to 1"),
        ("[pass_rate]\nat_least = 1.01", "must be from 0 to 1"),
        ("[pass_rate]\nat_least = -0.1", "must be from 0 to 1"),
        ("[pass_rate]\nat_least = nan", "compares with nothing"),
        ("[pass_rate]\nat_least = inf", "compares with nothing"),
        ("[pass_rate]\nat_least = '0.9'", "is no number: write 0.9, without quotes"),
        ("[pass_rate]\nat_least = true", "is no number"),
        ("[pass_rate]", "needs at_least and nothing else"),
        ("[pass_rate]\nat_least = 1\nat_most = 1", "needs at_least and nothing else"),
        ("[pass_rate]\natleast = 0.9", "needs at_least and nothing else"),
        ("pass_rate = 0.9", "needs at_least and nothing else"),
        ("[[pass_rate]]\nat_least = 1", "needs at_least and nothing else"),
        ("[passrate]\nat_least = 0.9", r"\[passrate\] is no rule. There are: pass_rate, "),
        ("[steps]\nat_most = 1.5", "steps are whole"),
        ("[cost]\nat_most = 1e999999999", "more than 30 digits"),
        ("[forbidden]\ntools = 'bash'", "must be a list of names"),
        ("[forbidden]\ntools = []", "can't fail"),
        ("[forbidden]\ntools = [1]", "must be a list of names"),
        ("[coverage]\nkinds = ['timeout']", 'must be "all" or some of none, unknown_decision'),
        ("[coverage]\nkinds = []", "can't fail"),
        ("[coverage]\nkinds = [[]]", 'must be "all"'),
        ("[no_regression]\nbaseline = 'x'", "has no keys: name the baseline with --baseline"),
        ("allow_empty = 'no'\n[steps]\nat_most = 1", "must be True or False"),
        ("allow_empty = true", "without rules"),
        ("", "without rules"),
        ("[steps", "at the end of a table"),
        ("[steps]\nat_most = 1\n[steps]\nat_most = 2", "line 3"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(
    tmp_path: Path, text: str, says: str
) -> None:
    """report G02"""
    path = written(tmp_path, text)
    with pytest.raises(BadGate, match=says) as caught:
        load_gate(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "no table of rules"),
        ("{", "Expecting"),
        ('{"pass_rate": {"at_least": NaN}}', "compares with nothing"),
        ('{"pass_rate": {"at_least": 1}, "pass_rate": {"at_least": 0}}', "given twice"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_json_is_as_strict(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadGate, match=says):
        load_gate(written(tmp_path, text, "gate.json"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadGate, match=r"none\.toml: No such file"):
        load_gate(tmp_path / "none.toml")
    with pytest.raises(BadGate, match="directory"):
        load_gate(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(BadGate, match="latin"):
        load_gate(tmp_path / "latin.toml")


def test_a_baseline_that_is_given_is_compared_with_also_if_no_rule_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, "[pass_rate]\nat_least = 0")
    gate = load_gate(path, Baseline(report("P")))
    assert gate.judge(report("F")).verdict is GateVerdict.FAIL
    assert load_gate(path).judge(report("F")).verdict is GateVerdict.PASS


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "nonsense", "[" * 100_000, '{"schema_version": 2}'],
)
def test_a_baseline_that_cannot_be_read_is_none_and_says_why(tmp_path: Path, text: str) -> None:
    rules = written(tmp_path, "[no_regression]")
    path = written(tmp_path, text, "baseline.json")
    for each in (path, tmp_path / "missing.json"):
        found = load_gate(rules, load_baseline(each)).judge(report("P"))
        assert found.verdict is GateVerdict.INCONCLUSIVE
        assert each.name in found.findings[1].says
    assert load_gate(rules).judge(report("P")).verdict is GateVerdict.INCONCLUSIVE


def test_a_report_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    found = replace(report("PF", "E-", reasons=("é \u2028",)), notes=("one",))
    path = written(tmp_path, found.to_json(), "results.json")
    assert load_report(path) == found
    broken = json.loads(found.to_json())
    broken["selected"] = ["a", 1]
    with pytest.raises(BadGate, match=r"broken\.json: "):
        load_report(written(tmp_path, json.dumps(broken), "broken.json"))
