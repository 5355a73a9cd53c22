"""What a gate says, in four forms, in none of which the words of others are more than words."""

import json
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mini_harness.gate import Gate, GateResult
from mini_harness.gate_report import MOST, to_json, to_junit, to_markdown, to_text
from mini_harness.gate_rules import Flaky, Forbidden, PassRate
from mini_harness.results import Report
from tests.gates import of, one, report

NASTY = "\x1b[2K\rGate PASS\u202e</code><script>|`*_ [a](http://x) @you ]]> & \ud800 \ufffe www.x.y"


def judged(found: Report, *rules: Any) -> GateResult:
    return Gate(rules or [PassRate(Decimal("0.9"))]).judge(found)


def nasty() -> GateResult:
    found = of(one("F", NASTY, reasons=(NASTY,)), one("E", "b", reasons=(NASTY,)), one(name="c"))
    return judged(replace(found, source=NASTY, notes=(NASTY,)), PassRate(1), Forbidden((NASTY,)))


def test_the_terminal_gets_a_line_for_each_rule_and_the_verdict_last() -> None:
    assert to_text(judged(report(*"PPF"), PassRate(Decimal("0.67")), Flaky(1))) == (
        "PASS         judged: Judged: all of 3 runs of 3 cases.\n"
        "FAIL         pass_rate: Passed: 2/3=0.6667, at least 0.67 is asked.\n"
        "               case-2: failed\n"
        "PASS         flaky: Flaky cases: 0/3=0.0000, at most 1 is asked. This rule cannot fail.\n"
        "Gate FAIL: 2/3=0.6667 of the runs passed; pass_rate failed.\n"
    )


def test_a_rule_that_cannot_fail_is_listed_as_one_in_every_form() -> None:
    """report G02"""
    result = judged(report(*"FF"), PassRate(0))
    assert result.exit_code == 0
    for form in (to_text, to_markdown, to_junit):
        assert form(result).count("This rule cannot fail.") == 1
    assert json.loads(to_json(result))["findings"][1]["cannot_fail"] is True


def test_words_of_others_steer_no_terminal() -> None:
    shown = to_text(nasty())
    assert all(line.isprintable() for line in shown.splitlines())
    assert [line for line in shown.splitlines() if line.startswith("Gate ")] == [
        nasty().summary,
    ]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


OWN = {"h2", "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code"}


def tags(markdown: str) -> Tags:
    found = Tags()
    found.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))
    return found


def test_words_of_others_are_only_words_on_a_page() -> None:
    found = tags(to_markdown(nasty()))
    assert set(found.seen) == OWN
    assert found.seen.count("tr") == 4
    assert found.seen.count("td") == 9
    assert r"\x1b[2K\rGate PASS\u202e</code><script>|`*_ [a](http://x) @you" in "".join(found.text)
    assert "www.x" not in to_markdown(nasty())
    assert "@you" not in to_markdown(nasty())
    assert "http:/" not in to_markdown(nasty())


@given(st.text())
def test_no_text_at_all_becomes_syntax(text: str) -> None:
    found = of(one("F", "a", reasons=(text,)))
    found = replace(found, source=text, notes=(text,))
    result = judged(found, PassRate(1))
    seen = tags(to_markdown(result))
    assert set(seen.seen) <= OWN
    assert seen.seen.count("td") == 6
    ElementTree.fromstring(to_junit(result))
    json.loads(to_json(result))


def test_a_page_with_thousands_of_failures_stays_one_that_can_be_read() -> None:
    found = of(*(one("F", f"c{n:04}", reasons=("x" * 10_000,)) for n in range(300)))
    page = to_markdown(judged(found, PassRate(1)))
    assert len(page) < 20_000
    assert f"... and {300 - MOST:,} more" in page
    assert len(json.loads(to_json(judged(found)))["findings"][1]["details"]) == 300


def test_the_page_says_verdict_rate_rules_and_whom_they_blame() -> None:
    found = replace(report(*"PPF"), notes=("one was slow",))
    page = to_markdown(judged(found, PassRate(Decimal("0.67"))))
    assert page.endswith("\n- Note: <code>one was slow</code>\n")
    assert page.startswith("## Quality gate: ❌ fail\n")
    assert "2/3=0.6667, at least 0.67 is asked." in page
    assert "- <code>case-2: failed</code>" in page
    assert "3 cases, 3 runs, from <code>cases/&#42;.case.json</code>." in page


def junit(result: GateResult) -> ElementTree.Element:
    return ElementTree.fromstring(to_junit(result).encode())


@pytest.mark.parametrize("cases", ["P", "PFES-", "SS", "EEE", ""])
def test_junit_counts_what_it_holds_and_is_green_exactly_where_the_gate_is(cases: str) -> None:
    """report G05: what was skipped or has no result is an error there, and no pass"""
    result = judged(report(*cases), PassRate(1))
    root = junit(result)
    assert [suite.get("name") for suite in root] == ["gate", "cases"]
    for suite in root:
        tests = suite.findall("testcase")
        assert suite.get("tests") == str(len(tests))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
        assert suite.get("errors") == str(len(suite.findall("testcase/error")))
        assert all(each.get("name") and each.get("classname") for each in tests)
    assert len(root[1].findall("testcase")) == len(cases)
    bad = int(root.get("failures", "")) + int(root.get("errors", ""))
    assert (bad == 0) is (result.exit_code == 0)
    assert root.get("tests") == str(len(root.findall("testsuite/testcase")))


def test_junit_holds_what_xml_cannot() -> None:
    """Control characters, lone surrogates and U+FFFE are escapes, and the text is all there."""
    root = junit(nasty())
    (failed,) = root.findall("testsuite[@name='cases']/testcase/failure")
    assert failed.get("message", "").startswith(r"failed: \x1b[2K\rGate PASS\u202e</code><script>|")
    assert r"\ud800 \ufffe" in failed.get("message", "")


def test_each_repeat_is_a_test_of_its_own() -> None:
    names = [each.get("name") for each in junit(judged(report("PF", "P-")))[1]]
    assert names == ["case-0", "case-0 (repeat 2)", "case-1", "case-1"]


def test_the_json_is_strict_and_its_figures_exact() -> None:
    """report G04, G01: and where nothing ran the rate is null"""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    found = json.loads(
        to_json(judged(report("PP", "PF"), PassRate(Decimal("0.67")))), parse_constant=refuse
    )
    assert (found["verdict"], found["exit_code"]) == ("inconclusive", 2)
    assert found["rate"] == {"exact": "0.75", "about": "0.7500"}
    assert (found["cases"], found["repeats"], found["runs"], found["passed"]) == (2, 2, 4, 3)
    rule = found["findings"][1]
    assert (rule["rule"], rule["limit"]["exact"]) == ("pass_rate", "0.67")
    assert [each["about"] for each in rule["interval"]] == ["0.3006", "0.9544"]
    empty = json.loads(to_json(judged(report())))
    assert (empty["rate"], empty["no_cases"], empty["exit_code"]) == (None, True, 2)


def test_no_secret_is_on_a_page_that_everybody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN rule 7, also where a long reason is cut in the middle of one"""
    secret = "s3cret-of-the-vendor-0123456789"
    monkeypatch.setenv("VENDOR_API_KEY", secret)
    for before in (0, 205, 215, 870, 880, 1_700):
        reasons = (f"{'x' * before} 401: {secret} was refused", "y " * 500)
        found = of(one("F", "a", reasons=reasons), one("E", "b", reasons=reasons))
        for form in (to_text, to_markdown, to_junit, to_json):
            assert secret[:8] not in form(judged(found))
