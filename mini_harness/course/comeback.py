"""The story of v5: what was mended in v2 comes back, since somebody has made a layer simpler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mini_harness.clock import Clock, VirtualClock
from mini_harness.corpus import Corpus
from mini_harness.course import cases
from mini_harness.course.night_shift import fresh
from mini_harness.course.story import call, final
from mini_harness.events import Event, Sink
from mini_harness.faults import Fault, Faults
from mini_harness.layer import Act
from mini_harness.loop import Harness
from mini_harness.models.base import Model
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Observation
from mini_harness.regression import Build, World
from mini_harness.results import CaseOutcome, Report
from mini_harness.retry import Retry
from mini_harness.run import Run
from mini_harness.tools.base import TransientError
from mini_harness.tools.call import Call

GOAL = "Look after build-102 tonight."
TURNS = [
    call("read_log", build_id="build-102"),
    call("read_build", build_id="build-101"),
    call("rerun_build", build_id="build-102"),
    call("read_log", build_id="build-101"),
    final("build-102 runs again."),
]
PAGES = [
    call("read_build", build_id="build-102"),
    call("page_oncall", text="build-102 fails."),
    final("build-102 fails. That is all I may say at night."),
]
LOST = {
    "kind": "transient",
    "tool": "rerun_build",
    "attempt": 1,
    "says": "the connection broke",
    "moment": "after",
}
"""The queue has taken the build, and its answer gets lost."""

SHIPPED = Path(cases.__file__).parent.parent / "cases"
"""The folder of the corpus that ships."""


class TryAgain(Retry):
    """Retry, made simple: what fails in a passing way is tried again."""

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        call.is_retried = True
        for _ in range(self.attempts):
            seen = await next(run, call)
            if not isinstance(seen.error, TransientError):
                break
        return seen


def simpler(world: World) -> Harness:
    """The night shift's harness, with TryAgain in the place of Retry."""
    layers = cases.house().by_name
    return replace(cases.house(), by_name={**layers, "Retry": TryAgain()}).around(world)


def night(
    build: Build,
    *sinks: Sink,
    model: Model | None = None,
    faults: Sequence[Fault] = (Fault.from_dict(LOST),),
    clock: Clock | None = None,
) -> Harness:
    """A harness for one night, in a world in which these faults happen."""
    said = ScriptedModel(TURNS) if model is None else model
    return build(World(said, clock or VirtualClock(), Path(), Faults(faults), sinks))


async def seen(case: Mapping[str, Any], build: Build) -> dict[str, Any]:
    """What comes of a case that is a plain dictionary: the calls that began, and the answer."""
    events: list[Event] = []
    faults = [Fault.from_dict(each) for each in case["faults"]]
    model = ScriptedModel(case["script"])
    run = await night(build, events.append, model=model, faults=faults).run(case["goal"])
    answer = {"output": run.output} if run.status == "completed" else {}
    return {"calls": begun(events), **answer}


def begun(events: Iterable[Event]) -> list[str]:
    """The tools of all attempts that began, in order."""
    return [each.data["tool"] for each in events if each.type == "tool_start"]


def queued(events: Iterable[Event]) -> int:
    """How often the queue has taken a build: each attempt that began had its effect."""
    return begun(events).count("rerun_build")


def folder(name: str = "cases") -> Path:
    """An empty folder for cases, which goes with this process."""
    return fresh(name)


def shipped(*tags: str) -> Corpus:
    """The corpus that ships, or the cases with one of these tags."""
    return Corpus.load(SHIPPED, tags=tags)


def moved(corpus: Corpus, module: str) -> Corpus:
    """The same cases, for the harnesses of the same names in another module."""
    own = [
        replace(case, harness=f"{module}:{case.harness.partition(':')[2]}") for case in corpus.cases
    ]
    return Corpus(tuple(own), f"the corpus that ships, for {module}", corpus.unreadable)


def told(report: Report) -> str:
    """How many cases passed, failed, and couldn't be judged; and why those that didn't pass."""
    found = [each.outcome for each in report.results]
    counts = ", ".join(f"{found.count(each)} {each}" for each in CaseOutcome if each in found)
    lines = [
        f"{each.outcome:7} {each.case_id}\n        {each.reasons[0]}"
        for each in report.results
        if each.outcome is not CaseOutcome.PASSED
    ]
    return "\n".join([counts or "no cases", *lines])
