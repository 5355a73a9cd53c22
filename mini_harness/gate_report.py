"""What a gate says, for a terminal, for a CI page, for tools that read JUnit XML, and as JSON.

Names and reasons were written by others, a model among them. In none of these may they look like
the gate's own words, run as a script, or call somebody on a page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree as Xml

from mini_harness.gate import GateFinding, GateResult, GateVerdict, Tally, name_of
from mini_harness.gate_figures import plain, rounded
from mini_harness.results import CaseOutcome, CaseResult
from mini_harness.visible import counted, visible

SCHEMA_VERSION = 1

MOST = 20
"""How many details of one finding are shown. The JSON has all of them."""

_MARKS = {
    GateVerdict.PASS: "✅ pass",
    GateVerdict.FAIL: "❌ fail",
    GateVerdict.INCONCLUSIVE: "⚠️ inconclusive",
}
_SYNTAX = re.compile(r"[^\w\s,;.=/%:-]|_|:(?! |$)")
_ADDRESS = re.compile(r"www\.", re.IGNORECASE)


def to_text(result: GateResult) -> str:
    """Lines for a terminal, the verdict last."""
    lines = []
    for each in result.findings:
        lines.append(f"{each.verdict.upper():<13}{visible(each.rule)}: {_said(each)}")
        lines += [f"{'':<15}{detail}" for detail in _most(_blamed(each))]
    notes = [f"Note: {visible(note)}" for note in result.tally.report.notes]
    return "\n".join([*lines, *notes, result.summary]) + "\n"


def to_markdown(result: GateResult) -> str:
    """A summary for a CI page: the verdict, a row for each rule, and whom they blame."""
    tally = result.tally
    source = tally.report.source
    lines = [
        f"## Quality gate: {_MARKS[result.verdict]}",
        "",
        _markdown(result.summary),
        "",
        f"{counted(len(tally.cases), 'case')}, {counted(tally.total, 'run')}"
        + (f", from {_code(source)}." if source else "."),
        "",
        "| Rule | Verdict | What was found |",
        "| --- | --- | --- |",
        *(
            f"| {_code(each.rule)} | {_MARKS[each.verdict]} | {_markdown(_said(each))} |"
            for each in result.findings
        ),
    ]
    for each in result.findings:
        if blamed := _blamed(each):
            lines += ["", f"### {_code(each.rule)}", ""]
            lines += [f"- {_code(detail)}" for detail in _most(blamed)]
    notes = tally.report.notes
    lines += ["", *(f"- Note: {_code(note)}" for note in notes)] if notes else []
    return "\n".join(lines) + "\n"


def to_junit(result: GateResult) -> str:
    """JUnit XML: a suite of the rules, and a suite of the cases, each run a test.

    What wasn't judged is an error there, also a run that was skipped: a reader that counts
    failures and errors then agrees with the gate.
    """
    root = Xml.Element("testsuites", name="mini-harness gate")
    _suite(root, "gate", [_rule_test(each) for each in result.findings])
    _suite(root, "cases", list(_case_tests(result)))
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, 0)) for suite in root)))
    Xml.indent(root)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"
    )


def to_json(result: GateResult) -> str:
    """Everything, with exact figures as text: ``2/3``, beside what it is about."""
    tally = result.tally
    found = {
        "schema_version": SCHEMA_VERSION,
        "verdict": result.verdict,
        "exit_code": result.exit_code,
        "summary": result.summary,
        "no_cases": result.no_cases,
        "source": tally.report.source,
        "notes": list(tally.report.notes),
        "cases": len(tally.cases),
        "repeats": tally.repeats,
        "runs": tally.total,
        "passed": tally.passed,
        "failed": tally.count(CaseOutcome.FAILED),
        "unjudged": tally.unjudged,
        "rate": _figure(result.rate),
        "findings": [_finding(each) for each in result.findings],
    }
    return json.dumps(found, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _finding(found: GateFinding) -> dict[str, Any]:
    return {
        "rule": found.rule,
        "verdict": found.verdict,
        "says": found.says,
        "found": _figure(found.found),
        "limit": _figure(found.limit),
        "interval": None if found.interval is None else [*map(_figure, found.interval)],
        "cannot_fail": found.cannot_fail,
        "details": list(found.details),
    }


def _figure(value: Fraction | None) -> dict[str, str] | None:
    """The exact value, and one for people."""
    return None if value is None else {"exact": plain(value), "about": rounded(value)}


def _said(found: GateFinding) -> str:
    return f"{found.says} This rule cannot fail." if found.cannot_fail else found.says


def _blamed(found: GateFinding) -> Sequence[str]:
    """Whom to look at. A rule that passes blames nobody, also if not everything was well."""
    return () if found.verdict is GateVerdict.PASS else found.details


def _most(details: Sequence[str]) -> Iterator[str]:
    yield from details[:MOST]
    if len(details) > MOST:
        yield f"... and {len(details) - MOST:,} more"


def _code(text: str) -> str:
    """Words of others, in Markdown: in ``<code>`` nobody is called by his name."""
    return f"<code>{_markdown(text)}</code>"


def _markdown(text: str) -> str:
    """One line in which nothing is syntax, neither of Markdown nor of HTML, also in a table."""
    seen = _SYNTAX.sub(lambda found: f"&#{ord(found[0])};", visible(text))
    return _ADDRESS.sub("www&#46;", seen)


# --- JUnit XML --------------------------------------------------------------------------------


def _suite(root: Xml.Element, name: str, tests: Iterable[Xml.Element]) -> None:
    suite = Xml.SubElement(root, "testsuite", name=name)
    suite.extend(tests)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    suite.set("skipped", "0")
    suite.set("time", "0")


def _test(suite: str, name: str, ending: str | None, message: str, body: str = "") -> Xml.Element:
    """``visible`` leaves no character that XML couldn't hold."""
    test = Xml.Element("testcase", classname=visible(suite), name=visible(name), time="0")
    if ending:
        Xml.SubElement(test, ending, message=visible(message)).text = body or visible(message)
    elif message:
        Xml.SubElement(test, "system-out").text = visible(message)
    return test


def _rule_test(found: GateFinding) -> Xml.Element:
    ending = {GateVerdict.FAIL: "failure", GateVerdict.INCONCLUSIVE: "error"}.get(found.verdict)
    return _test("gate", found.rule, ending, _said(found), "\n".join(found.details))


def _case_tests(result: GateResult) -> Iterator[Xml.Element]:
    tally = result.tally
    for case, runs in tally.by_case.items():
        yield from (_run_test(each, tally) for each in runs)
        if missing := tally.repeats - len(runs):
            yield _test("cases", case, "error", f"{counted(missing, 'run')} without a result")


def _run_test(result: CaseResult, tally: Tally) -> Xml.Element:
    suite, name = f"cases.{result.kind}", name_of(result)
    if result.outcome is CaseOutcome.PASSED:
        return _test(suite, name, None, "")
    why = "; ".join(map(str, result.reasons)) or "no reason was given"
    says = f"{result.outcome}: {tally.fit(why)}"
    ending = "failure" if result.outcome is CaseOutcome.FAILED else "error"
    return _test(suite, name, ending, says)
