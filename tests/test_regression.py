"""Running a corpus: each case alone, in any order, over anything that runs code, and resumable."""

import pickle
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mini_harness.corpus import Corpus
from mini_harness.course.cases import TOOLS
from mini_harness.expectation import Expectation
from mini_harness.faults import Fault
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.regression import World, run_case, run_corpus
from mini_harness.replay import Recorder
from mini_harness.results import CaseOutcome, CaseResult, Report
from tests.cases import DONE, READ, READ_LOG, broken, case, plain

P, F, E = CaseOutcome.PASSED, CaseOutcome.FAILED, CaseOutcome.ERROR


def mixed(tmp_path: Path) -> Corpus:
    """What passes, what fails, what can't be made, and what can't be read."""
    cases = [
        case("passes"),
        case("fails", expect=Expectation(output="something else")),
        case("cant-be-made", harness="tests.cases:broken"),
        case("isnt-there", harness="tests.cases:nobody"),
        case("lacks-a-tool", tools=("read_mind",)),
        case("asks-nobody", answers=("approve",)),
    ]
    for each in cases:
        each.save(tmp_path)
    (tmp_path / "torn.case.json").write_text("{", encoding="utf-8")
    return Corpus.load(tmp_path)


RIGHT = {
    "passes": P,
    "fails": F,
    "cant-be-made": E,
    "isnt-there": E,
    "lacks-a-tool": E,
    "asks-nobody": E,
    "torn": E,
}


def outcomes(report: Report) -> dict[str, CaseOutcome]:
    return {each.case_id: each.outcome for each in report.results}


def test_a_case_that_fails_or_cant_be_judged_is_told_apart_and_stops_no_other(
    tmp_path: Path,
) -> None:
    report = run_corpus(mixed(tmp_path))
    assert outcomes(report) == RIGHT
    assert report.selected == tuple(sorted(RIGHT))
    said = {each.case_id: " ".join(each.reasons) for each in report.results}
    assert "ValueError: no such layer" in said["cant-be-made"]
    assert "There is no harness tests.cases:nobody" in said["isnt-there"]
    assert "no tool read_mind" in said["lacks-a-tool"]
    assert "Nobody asked for the answer approve" in said["asks-nobody"]
    assert "torn.case.json" in said["torn"]


def test_the_order_of_cases_changes_nothing(tmp_path: Path) -> None:
    """report C05"""
    corpus = mixed(tmp_path)
    whole = run_corpus(corpus, repeats=2)
    for seed in range(5):
        cases = list(corpus.cases)
        Random(seed).shuffle(cases)
        object.__setattr__(corpus, "cases", tuple(cases))
        assert run_corpus(corpus, repeats=2).to_json() == whole.to_json()


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_the_report_is_the_same_over_threads_and_processes(tmp_path: Path, kind: str) -> None:
    corpus = mixed(tmp_path)
    executor: Executor = ThreadPoolExecutor(4)
    if kind == "processes":
        executor = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    with executor:
        spread = run_corpus(corpus, repeats=3, executor=executor)
    assert spread.to_json() == run_corpus(corpus, repeats=3).to_json()


@pytest.mark.slow
@pytest.mark.once
def test_the_report_is_the_same_on_a_dask_cluster(tmp_path: Path) -> None:
    """Two processes on this machine, reached over loopback."""
    from distributed import Client, LocalCluster

    corpus = mixed(tmp_path)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,  # type: ignore[no-untyped-call]
        Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        spread = run_corpus(corpus, repeats=3, executor=client.get_executor())
    assert spread.to_json() == run_corpus(corpus, repeats=3).to_json()


def test_a_case_and_its_result_go_to_another_process_and_back() -> None:
    kept = case(expect=Expectation(output=None))
    assert pickle.loads(pickle.dumps(kept)) == kept
    assert "output" not in pickle.loads(pickle.dumps(case())).expect.to_dict()
    result = run_case(kept)
    assert CaseResult.from_dict(result.to_dict()) == result


def test_what_is_done_isnt_done_again_unless_it_has_changed(tmp_path: Path) -> None:
    """Interrupted after the second result, it goes on with the third."""
    corpus, journal = mixed(tmp_path / "cases"), tmp_path / "journal"
    seen: list[str] = []

    def watch(result: CaseResult, done: int, whole: int) -> None:
        seen.append(f"{result.case_id} {done}/{whole}")
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_corpus(corpus, journal=journal, progress=watch)
    report = run_corpus(corpus, journal=journal, progress=watch)
    assert report.to_json() == run_corpus(corpus).to_json()
    assert len({each.split()[0] for each in seen}) == len(seen) == len(corpus.cases)
    assert seen[-1].endswith("7/7")
    assert not journal.exists(), "by the next run the harness may be another one"


def interrupted(corpus: Corpus, journal: Path, **more: Any) -> None:
    """Run all of it, and stop when the last result is there."""

    def stop(result: CaseResult, done: int, whole: int) -> None:
        if done == whole:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_corpus(corpus, journal=journal, progress=stop, **more)


def test_a_case_that_was_changed_meanwhile_is_run_again(tmp_path: Path) -> None:
    corpus, journal = Corpus((case("one"), case("two"))), tmp_path / "journal"
    interrupted(corpus, journal)
    changed = Corpus((case("one"), case("two", expect=Expectation(output="other"))))
    seen: list[str] = []
    report = run_corpus(
        changed, journal=journal, progress=lambda each, *_: seen.append(each.case_id)
    )
    assert seen == ["two"]
    assert outcomes(report) == {"one": P, "two": F}


def test_a_torn_journal_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    corpus, journal = mixed(tmp_path / "cases"), tmp_path / "journal"
    whole = run_corpus(corpus)
    interrupted(corpus, journal)
    data = journal.read_bytes()
    for cut in (1, len(data) // 2, len(data) - 1):
        journal.write_bytes(data[:cut])
        assert run_corpus(corpus, journal=journal).to_json() == whole.to_json()


def test_another_harness_takes_no_result_from_the_journal(tmp_path: Path) -> None:
    corpus, journal = Corpus((case("one"),)), tmp_path / "journal"
    interrupted(corpus, journal)
    assert outcomes(run_corpus(corpus, journal=journal, harness=broken)) == {"one": E}
    interrupted(corpus, journal)
    assert outcomes(run_corpus(corpus, journal=journal, harness="tests.cases:broken"))["one"] is E


def test_each_case_has_a_folder_a_clock_and_a_harness_of_its_own() -> None:
    worlds: list[World] = []

    def build(world: World) -> Harness:
        assert list(world.cwd.iterdir()) == []
        (world.cwd / "left.txt").write_text("x", encoding="utf-8")
        worlds.append(world)
        return plain(world)

    report = run_corpus(Corpus((case("a"), case("b"))), repeats=2, harness=build)
    assert set(outcomes(report).values()) == {P}
    assert len({each.cwd for each in worlds}) == len({id(each.clock) for each in worlds}) == 4
    assert not any(each.cwd.exists() for each in worlds)


def test_a_recorded_run_is_a_case_too() -> None:
    """A27: the model's recorded answers instead of a script"""
    recorder = Recorder(ScriptedModel([READ, DONE]))
    Harness(recorder, TOOLS).run_sync("Do it.")
    lines = tuple(recorder.cassette.to_list())
    kept = case(goal="Do it.", script=(), cassette=lines, expect=Expectation(output="done"))
    assert run_case(kept).outcome is P
    asked_else = case(goal="Do that.", script=(), cassette=lines, expect=kept.expect)
    result = run_case(asked_else)
    assert (result.outcome, result.status) == (F, "failed")


def test_a_result_says_what_the_run_did() -> None:
    spent = {"input_tokens": 5, "output_tokens": 7}
    result = run_case(case(script=({**READ, "usage": spent}, READ_LOG, DONE)))
    assert (result.steps, result.calls) == (3, ("read_build", "read_log"))
    assert (result.input_tokens, result.output_tokens) == (5, 7)
    assert (result.status, result.stop_reason, result.standing) == ("completed", None, None)


def test_a_case_whose_process_is_always_cut_isnt_run_for_ever() -> None:
    cuts = [{"kind": "cut", "tool": "read_build", "attempt": n} for n in range(1, 40)]
    result = run_case(case(faults=tuple(map(Fault.from_dict, cuts))))
    assert result.outcome is E
    assert "was cut 20 times" in result.reasons[0]


@pytest.mark.parametrize("repeats", [0, -1, True, 1.5, "2"])
def test_less_than_one_repeat_is_refused(repeats: Any) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        run_corpus(Corpus((case(),)), repeats=repeats)


def test_no_cases_make_an_empty_report_that_says_where_it_looked(tmp_path: Path) -> None:
    """report G01"""
    report = run_corpus(Corpus.load(tmp_path / "casez"))
    assert (report.results, report.selected) == ((), ())
    assert "casez (there is no such folder)" in report.source


def test_a_report_comes_back_from_its_file(tmp_path: Path) -> None:
    report = run_corpus(mixed(tmp_path), repeats=2)
    assert Report.from_json(report.to_json()) == report
    text = report.to_json()
    bads = [
        ('"selected": [', '"selected": "x", "y": ['),
        ('"passed"', '"fine"'),
        ('"steps": 2', '"steps": "2"'),
    ]
    for bad in ("", "[]", "{}", *(text.replace(*each) for each in bads)):
        assert bad != text
        with pytest.raises(ValueError, match="no report"):
            Report.from_json(bad)
