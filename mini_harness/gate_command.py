"""``mini-harness gate``: run a corpus or read its results, judge them, and say so by the exit code.

0 is a pass, 1 a failure, 2 whatever couldn't be judged, which includes a report that couldn't be
written and a fault of the gate itself. No fault ends in 0.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from mini_harness.corpus import Corpus
from mini_harness.gate import Gate, GateResult, GateVerdict
from mini_harness.gate_file import BadGate, Baseline, load_baseline, load_gate, load_report
from mini_harness.gate_report import to_json, to_junit, to_markdown, to_text
from mini_harness.regression import run_corpus
from mini_harness.results import CaseResult, FailureKind, Report
from mini_harness.visible import visible

COULD_NOT_JUDGE = GateVerdict.INCONCLUSIVE.exit_code

RULES, BASELINE = "gate.toml", "baseline.json"

REPEATS = 2
"""The least by which a flaky case can show."""

SHIPPED = Path(__file__).with_name("cases")
"""The corpus that comes with the package."""


def main(argv: Sequence[str]) -> int:
    """The exit code. Raises SystemExit(2) where it was wrongly asked."""
    options = _options(argv)
    try:
        return _judge(options)
    except BadGate as error:
        _complain(str(error))
    except (Exception, SystemExit):  # noqa: BLE001 - shown, and never a pass: not even a case's exit(0)
        traceback.print_exc()
    return COULD_NOT_JUDGE


def _judge(options: argparse.Namespace) -> int:
    report = _results(options)
    baseline = _baseline(options, report)
    gate = load_gate(options.rules, baseline)
    if options.allow_empty:
        gate = Gate(gate.rules, allow_empty=True)
    result = gate.judge(report)
    forms: list[tuple[Path | None, Callable[[GateResult], str]]] = [
        (options.report, to_markdown),
        (options.junit, to_junit),
        (options.json, to_json),
    ]
    written = [_write(path, form(result)) for path, form in forms if path]
    if options.update_baseline:
        written.append(_keep(options.baseline, report, result))
    written.append(_print(to_text(result)))
    return result.exit_code if all(written) else result.exit_code or COULD_NOT_JUDGE


def _results(options: argparse.Namespace) -> Report:
    if options.results:
        return _only(load_report(options.results), options.kind)
    chosen = Corpus.load(options.corpus or SHIPPED, kinds=options.kind)
    if options.corpus is None:
        # Where it lies is another place on each machine.
        chosen = replace(chosen, source="the corpus that is shipped")
    with ExitStack() as stack:
        executor = None
        if options.processes:
            pool = ProcessPoolExecutor(options.processes, mp_context=get_context("spawn"))
            executor = stack.enter_context(pool)
        return run_corpus(
            chosen,
            repeats=options.repeats or REPEATS,
            harness=options.harness,
            executor=executor,
            journal=options.journal,
            progress=_count if sys.stderr.isatty() else None,
        )


def _count(result: CaseResult, done: int, whole: int) -> None:
    """Where a person watches, one line that is written over."""
    sys.stderr.write(f"\r{done} of {whole} runs" + ("\n" if done == whole else ""))
    sys.stderr.flush()


def _baseline(options: argparse.Namespace, report: Report) -> Baseline | None:
    """What to compare with: results that become the baseline are compared with themselves."""
    if options.update_baseline:
        return Baseline(report)
    if options.baseline is None:
        return None
    found = load_baseline(options.baseline)
    if found.report is None:
        return found
    return replace(found, report=_only(found.report, options.kind))


def _only(report: Report, kinds: Sequence[FailureKind]) -> Report:
    """The cases of these kinds. A case without a result stays: nobody knows what it was about."""
    if not kinds:
        return report
    others = {each.case_id for each in report.results if each.kind not in kinds}
    return Report.of(
        (each for each in report.results if each.case_id not in others),
        (each for each in report.selected if each not in others),
        f"{report.source}, only {', '.join(kinds)}",
        report.repeats,
        report.notes,
    )


def _keep(path: Path, report: Report, result: GateResult) -> bool:
    """Make these results the baseline, if they pass. Whether it is as it should be."""
    if result.verdict is not GateVerdict.PASS or result.no_cases:
        _complain(f"{path} stays as it was: what didn't pass is no baseline")
        return False
    return _write(path, report.to_json())


def _write(path: Path, text: str) -> bool:
    """Whether it is written. A file is whole, or is as it was before."""
    try:
        if path.exists() and not path.is_file():
            # A pipe or a device: a file put in its place would be worse than no report.
            path.write_text(text, encoding="utf-8", newline="\n")
        else:
            _put(path.resolve(), text)
    except OSError as error:
        _complain(f"{path} could not be written: {error.strerror}")
        return False
    return True


def _put(path: Path, text: str) -> None:
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _print(text: str) -> bool:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Python would complain once more at its exit, and change the exit code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # Whoever read it went away, as `head` does: the verdict is the same.
        return isinstance(error, BrokenPipeError)
    return True


def _complain(says: str) -> None:
    sys.stderr.write(f"mini-harness gate: {visible(says)}\n")


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mini-harness gate",
        description="Judge a corpus of cases. Exit code: 0 pass, 1 fail, 2 could not judge.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("corpus", nargs="?", type=Path, metavar="CORPUS", help="default: the one that is shipped")
    add("--results", type=Path, metavar="FILE", help="judge these results, and run nothing")
    beside = "beside the corpus, else here"
    add("--rules", type=Path, metavar="FILE", help=f"default: {RULES} {beside}")
    add("--baseline", type=Path, metavar="FILE", help=f"default: {BASELINE} beside the corpus")
    add("--update-baseline", action="store_true", help="if they pass, these become the baseline")
    add("--report", type=Path, metavar="FILE", help="write a summary in Markdown")
    add("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    add("--json", type=Path, metavar="FILE", help="write everything as JSON")
    add("--kind", type=_kind, action="append", default=[], metavar="KIND", help="only these")
    add(
        "--repeats",
        type=_number,
        metavar="N",
        help=f"how often each case runs (default: {REPEATS})",
    )
    add("--harness", metavar="MODULE:FUNCTION", help="run all cases with this one")
    add("--processes", type=_number, metavar="N", help="run over so many processes")
    add("--journal", type=Path, metavar="FILE", help="keep what is done, and go on from there")
    add("--allow-empty", action="store_true", help="no case at all is a pass, too")
    options = parser.parse_args(argv)
    of_a_run = "corpus", "repeats", "processes", "harness", "journal"
    if options.results and any(getattr(options, name) for name in of_a_run):
        others = ", ".join(f"--{name}" for name in of_a_run[1:])
        parser.error(f"--results runs nothing: leave out CORPUS, {others}")
    folder = Path() if options.results else options.corpus or SHIPPED
    if options.rules is None:
        options.rules = folder / RULES if (folder / RULES).is_file() else Path(RULES)
    if options.baseline is None and not options.results and (folder / BASELINE).is_file():
        options.baseline = folder / BASELINE
    if options.update_baseline and (options.baseline is None or options.kind):
        parser.error("--update-baseline needs --baseline, and all kinds: leave out --kind")
    return options


def _number(text: str) -> int:
    if text.isascii() and text.isdecimal() and 1 <= int(text) <= 10_000:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 10,000")


def _kind(text: str) -> FailureKind:
    known = [each.value for each in FailureKind]
    if text in known:
        return FailureKind(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no kind: there are {', '.join(known)}")
