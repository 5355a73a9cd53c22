"""Run cases: each in a world of its own, offline, on a virtual clock, and in any order.

    report = run_corpus(Corpus.load("cases"))

What one case does can't reach another: its folder, its clock, its tools and its harness are made
for it alone. So a report is the same whichever way it was made, in this process or in many.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from mini_harness.clock import Clock, VirtualClock
from mini_harness.corpus import Case, Corpus
from mini_harness.events import Event, EventType, Sink
from mini_harness.evidence import standing_of
from mini_harness.faults import FaultKind, Faults, ProcessCut
from mini_harness.frozen import parse_object, shown
from mini_harness.loop import Harness
from mini_harness.models.base import Model
from mini_harness.models.scripted import ScriptedModel
from mini_harness.replay import ReplayModel
from mini_harness.results import CaseOutcome, CaseResult, Report
from mini_harness.run import Run, Status
from mini_harness.session import Session
from mini_harness.sync import run_sync

MOST_CUTS = 20
"""How often the process of one case may be cut, before that is a fault of the case."""


@dataclass(frozen=True)
class World:
    """What a case gives to the function that makes its harness.

    ``cwd`` is an empty folder. Put ``faults`` innermost: it stands for the world. ``sinks`` must be
    among the harness's, in this order.
    """

    model: Model
    clock: Clock
    cwd: Path
    faults: Faults
    sinks: tuple[Sink, ...]


Build = Callable[[World], Harness]
"""Makes the harness under test. It is called once for each process that a case has."""

Progress = Callable[[CaseResult, int, int], None]
"""Is told each result, how many there are by then, and how many there will be."""


def build_of(name: str) -> Build:
    """The function that "module:function" names. Raises LookupError that says what is wrong."""
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise LookupError(f"There is no harness {name}: {error}.") from error
    if not callable(found):
        raise LookupError(f"{name} is no function that makes a harness.")
    build: Build = found
    return build


def run_case(case: Case, *, repeat: int = 0, harness: str | Build | None = None) -> CaseResult:
    """Run one case once, and say what came of it. It raises nothing that a case can cause.

    ``harness`` is put in the place of the one that the case names. What fails without being an
    expectation is an ERROR: a missing tool, a fault that never came, a bug in a layer.
    """
    about: dict[str, Any] = {"case_id": case.id, "kind": case.kind, "repeat": repeat}
    try:
        build = build_of(harness or case.harness) if not callable(harness) else harness
        with tempfile.TemporaryDirectory(prefix="case-", ignore_cleanup_errors=True) as folder:
            return _Life(case, build, Path(folder)).result(about)
    except Exception as error:  # noqa: BLE001 - it is told as what it is, and fails the case
        reason = f"It couldn't be judged: {type(error).__name__}: {shown(error, str):.500}"
        return CaseResult(**about, outcome=CaseOutcome.ERROR, reasons=(reason,))


def run_corpus(
    corpus: Corpus,
    *,
    repeats: int = 1,
    harness: str | Build | None = None,
    executor: Executor | None = None,
    journal: Path | str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run all cases, each ``repeats`` times, and report what came of them.

    ``executor`` may be any of concurrent.futures, or Dask's ``client.get_executor()``; for
    processes, name the harness by text. A ``journal`` is a file that keeps what is done until all
    is. A run that was interrupted goes on there, but for cases that have changed since. Nobody can
    tell whether the harness has: then remove the file.

    Raises ValueError for less than one repeat, and what ``executor`` or the journal's file raises.
    """
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise ValueError(f"repeats must be an integer of at least 1, but it is {repeats!r}.")
    done = Journal(None if journal is None else Path(journal), _named(harness))
    tasks = [(case, n) for case in corpus.cases for n in range(repeats)]
    results = [kept for task in tasks if (kept := done.get(*task)) is not None]
    todo = [task for task in tasks if done.get(*task) is None]
    whole = len(tasks) + len(corpus.unreadable)
    for each in corpus.unreadable:
        results.append(CaseResult(each.id, CaseOutcome.ERROR, reasons=(each.why,)))
    for case, result in _results(todo, harness, executor):
        done.keep(case, result)
        results.append(result)
        if progress is not None:
            progress(result, len(results), whole)
    done.end()
    return Report.of(results, corpus.ids, corpus.source, repeats)


def _results(
    todo: list[tuple[Case, int]], harness: str | Build | None, executor: Executor | None
) -> Iterator[tuple[Case, CaseResult]]:
    if executor is None:
        for case, repeat in todo:
            yield case, run_case(case, repeat=repeat, harness=harness)
        return
    futures = {
        executor.submit(run_case, case, repeat=repeat, harness=harness): (case, repeat)
        for case, repeat in todo
    }
    for future in as_completed(futures):
        yield futures[future][0], future.result()


def _named(harness: str | Build | None) -> str:
    if harness is None or isinstance(harness, str):
        return harness or ""
    return f"{harness.__module__}:{harness.__qualname__}"


class Journal:
    """What is done already, a line for each result. One process writes, as each result comes."""

    def __init__(self, path: Path | None, harness: str) -> None:
        """Raises OSError. A line that is torn, or of another harness, is left out."""
        self._path, self._harness = path, harness
        self._done: dict[tuple[str, int], CaseResult] = {}
        self._ends_well = True
        if path is None or not path.exists():
            return
        text = path.read_text(encoding="utf-8")
        self._ends_well = not text or text.endswith("\n")
        for line in text.split("\n"):
            try:
                found = parse_object(line)
                if found["harness"] == harness:
                    result = CaseResult.from_dict(found["result"])
                    self._done[found["case"], result.repeat] = result
            except (ValueError, KeyError, TypeError, ArithmeticError):
                continue  # The case is run again, and its line is written anew.

    def get(self, case: Case, repeat: int) -> CaseResult | None:
        return self._done.get((case.digest, repeat))

    def keep(self, case: Case, result: CaseResult) -> None:
        if self._path is None:
            return
        line = {"case": case.digest, "harness": self._harness, "result": result.to_dict()}
        with self._path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(("" if self._ends_well else "\n") + json.dumps(line) + "\n")
        self._ends_well = True

    def end(self) -> None:
        """All is done: the next run begins anew, since the harness may be another one by then."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


class _Life:
    """One case: made, run, cut and taken up again as its faults say, and judged."""

    def __init__(self, case: Case, build: Build, folder: Path) -> None:
        self.case, self.build, self.folder = case, build, folder
        self.faults = Faults(case.faults)
        self.events: list[Event] = []
        self.keeps_session = any(each.kind is FaultKind.CUT for each in case.faults)
        self.cwd = folder
        if self.keeps_session:
            # Beside the session, not in one folder with it.
            self.cwd = folder / "cwd"
            self.cwd.mkdir()

    def result(self, about: dict[str, Any]) -> CaseResult:
        run = self._run()
        reasons = self.case.expect.objections(run, self.events)
        outcome = CaseOutcome.FAILED if reasons else CaseOutcome.PASSED
        if not reasons and self.faults.left:
            left = ", ".join(map(str, self.faults.left))
            reasons = [f"It shows nothing: this never happened: {left}."]
            outcome = CaseOutcome.ERROR
        started = [e.data["tool"] for e in self.events if e.type is EventType.TOOL_START]
        return CaseResult(
            **about,
            outcome=outcome,
            reasons=tuple(reasons),
            status=run.status.value,
            stop_reason=None if run.stop is None else run.stop["reason"],
            steps=run.step,
            input_tokens=run.usage.input_tokens,
            output_tokens=run.usage.output_tokens,
            calls=tuple(started),
            standing=self._standing(run),
        )

    def _standing(self, run: Run) -> str | None:
        verified = any(each.type is EventType.VERIFICATION for each in self.events)
        return standing_of(run).value if verified else None

    def _run(self) -> Run:
        session = (
            Session.create(self.folder / "home", session_id="case") if self.keeps_session else None
        )
        try:
            return self._alive(session)
        finally:
            if session is not None:
                session.close()

    def _alive(self, session: Session | None) -> Run:
        harness, run = self._made(session, None), None
        for _ in range(MOST_CUTS):
            try:
                run = run_sync(harness.run(self.case.goal) if run is None else harness.resume(run))
                return self._answered(harness, run)
            except ProcessCut:
                if session is None:
                    raise RuntimeError("The process was cut, and no session was kept.") from None
                run = session.run() if session.runs else None
                self.events = list(session.events())
                harness = self._made(session, run)
        raise RuntimeError(f"The process was cut {MOST_CUTS} times.")

    def _answered(self, harness: Harness, run: Run) -> Run:
        for answer in self.case.answers:
            if run.status is not Status.PAUSED:
                raise RuntimeError(f"Nobody asked for the answer {answer}.")
            run.approve() if answer == "approve" else run.deny("No.")
            run = run_sync(harness.resume(run))
        return run

    def _made(self, session: Session | None, run: Run | None) -> Harness:
        clock = VirtualClock() if session is None else session.clock()
        sinks = (self.events.append,) if session is None else (session, self.events.append)
        harness = self.build(World(self._model(run), clock, self.cwd, self.faults, sinks))
        if not isinstance(harness, Harness):
            raise TypeError(f"{self.case.harness} returned {shown(harness):.100}, not a Harness.")
        if missing := [name for name in self.case.tools if harness.tools.get(name) is None]:
            raise LookupError(f"The harness has no tool {', '.join(missing)}.")
        return harness

    def _model(self, run: Run | None) -> Model:
        if self.case.cassette:
            return ReplayModel.from_list(self.case.cassette)
        return ScriptedModel(self.case.script, asked=0 if run is None else run.step)
