"""The story of v6: somebody improves the night shift's harness, and nobody says no.

Each improvement is a layer more, put around the harness that a case names: so it can be measured
with anybody's harness.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from mini_harness.clock import VirtualClock
from mini_harness.corpus import Case, Corpus
from mini_harness.course import comeback
from mini_harness.course.story import call, final
from mini_harness.expectation import Expectation
from mini_harness.frozen import freeze
from mini_harness.gate import Gate, GateResult
from mini_harness.gate_command import BASELINE, RULES, SHIPPED
from mini_harness.gate_file import load_baseline, load_gate, load_report
from mini_harness.layer import Act, Decide, Failed, Layer, Proposal, View
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.policy import Policy
from mini_harness.protocol import Final, Observation, Outcome
from mini_harness.regression import Build, World, build_of, run_case
from mini_harness.results import CaseOutcome, CaseResult, Report
from mini_harness.rules import Rule, Verdict
from mini_harness.run import Run
from mini_harness.tools.call import Call
from mini_harness.tools.function import function_tool

BRIEF = "Be brief. Answer with one sentence, and nothing else."

FLOODED = Case(
    id="floods-the-queue",
    kind="endless",  # type: ignore[arg-type]  # as it stands in a file
    goal="Look after the builds tonight.",
    harness="mini_harness.course.cases:triage",
    title="It queues one build after the other, until nobody else gets a turn.",
    script=(
        call("read_log", build_id="build-102"),
        *(call("rerun_build", build_id=f"build-{number}") for number in range(101, 106)),
        final("Five builds run again."),
    ),
    tools=("read_log", "rerun_build"),
    expect=Expectation(at_most={"rerun_build": 3}),
)
"""Last night's failure. Nobody has mended it yet."""


class Prompt(Layer):
    """Puts a line before what the model sees, and plays what a model made of this one.

    A scripted model reads nothing. So its answers lose here what the real one left out: the claims.
    """

    def __init__(self, line: str) -> None:
        self.line = line

    async def decide(self, run: Run, view: View, next: Decide) -> Proposal:
        first = freeze({"role": "user", "content": self.line})
        return _unproved(await _said(run, View((first, *view.messages), view.tools), next))


class Cheaper(Layer):
    """Plays a cheaper model: of what it should prove, it forgets the proof once in a while.

    It varies from run to run, as models do. The same ``seed`` gives the same nights.
    """

    def __init__(self, seed: int = 1, forgets: float = 0.25) -> None:
        self.forgets = forgets
        self._random = random.Random(seed)

    async def decide(self, run: Run, view: View, next: Decide) -> Proposal:
        said = await _said(run, view, next)
        brief = _unproved(said)
        return brief if brief is not said and self._random.random() < self.forgets else said


class Thrifty(Layer):
    """Lets a tool be called so often, and not once more."""

    def __init__(self, tool: str, times: int) -> None:
        self.tool, self.times, self.ran = tool, times, 0

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        if call.name == self.tool:
            self.ran += 1
            if self.ran > self.times:
                return refused(call)
        return await next(run, call)


def refused(call: Call) -> Observation:
    """What the model is told of a call that doesn't run."""
    says = f"{call.name} has run as often as it may. Go on without it."
    return Observation(call.call_id, call.name, says, Outcome.DENIED)


async def _said(run: Run, view: View, next: Decide) -> Proposal:
    """What the model says. To an answer that came back a script may have nothing more to say: then
    it says the same again."""
    try:
        return await next(run, view)
    except Failed:
        if view.messages[-1].get("because") != "rejected":
            raise
        return Final(view.messages[-2]["content"])


def _unproved(said: Proposal) -> Proposal:
    """An answer without its claims; anything else as it is."""
    if isinstance(said, Final) and isinstance(said.output, Mapping) and "claims" in said.output:
        return Final(said.output["answer"])
    return said


def with_last_night() -> Corpus:
    """The corpus that ships, and last night's failure."""
    # Where it lies is another place on each machine.
    return replace(comeback.shipped().add(FLOODED), source="the corpus that ships, and last night")


def measured(corpus: Corpus, *more: Layer, repeats: int = 1) -> Report:
    """Run a corpus with these layers around each case's harness, and report what came of it."""
    results = [
        run_case(case, repeat=number, harness=around(build_of(case.harness), *more))
        for case in corpus.cases
        for number in range(repeats)
    ]
    broken = [
        CaseResult(each.id, CaseOutcome.ERROR, reasons=(each.why,)) for each in corpus.unreadable
    ]
    return Report.of([*results, *broken], corpus.ids, corpus.source, repeats)


def around(build: Build, *more: Layer) -> Build:
    """The same harness with these layers around all others."""
    return partial(_around, build, more)


def _around(build: Build, more: Iterable[Layer], world: World) -> Harness:
    made = build(world)
    layers = [*more, *made.layers]
    about: dict[str, Any] = {"sinks": world.sinks, "clock": made.clock, "cwd": made.cwd}
    return Harness(made.model, made.tools, layers=layers, **about)


def outcomes(report: Report) -> dict[str, list[str]]:
    """What came of each case, each time that it ran: as the exercises take it."""
    found: dict[str, list[str]] = {}
    for each in report.results:
        found.setdefault(each.case_id, []).append(each.outcome.value)
    return found


def house_gate() -> Gate:
    """The gate of this project: its own rules, and its own baseline."""
    return load_gate(SHIPPED / RULES, load_baseline(SHIPPED / BASELINE))


def baseline() -> Report:
    """The results that this project has accepted."""
    return load_report(SHIPPED / BASELINE)


def desk(change: str, result: GateResult) -> Harness:
    """The harness that merges a change: only what has passed is asked about, the rest is denied."""

    def merge(change: str) -> str:
        """Merge a change: from then on every night shift works with it."""
        return f"{change} is merged."

    passed = result.exit_code == 0
    rule = Rule(
        "gate",
        Verdict.REQUIRE_APPROVAL if passed else Verdict.DENY,
        tool="merge",
        reason=result.summary,
    )
    turns = [call("merge", change=change), lambda history, _: final(history[-1]["tool_result"])]
    tools = [function_tool(merge, paths=())]
    layers = [Policy(rules=[rule])]
    return Harness(ScriptedModel(turns), tools, layers=layers, clock=VirtualClock())
