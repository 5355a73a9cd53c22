"""The harnesses that the shipped corpus tests: the story's tools, and all layers in their order.

A case names one of these functions. Each takes the case's world, and makes the harness anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from mini_harness.budget import Budget
from mini_harness.compaction import Compaction, DropOldOutputs
from mini_harness.evidence import Verify
from mini_harness.layer import Layer
from mini_harness.limits import MaxSteps
from mini_harness.loop import Harness
from mini_harness.policy import Policy
from mini_harness.regression import World
from mini_harness.repeated import RepeatedCalls
from mini_harness.retry import Retry
from mini_harness.rules import Rule, Verdict
from mini_harness.timeout import Timeout
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.builds import add, read_build
from mini_harness.tools.function import tool

LOGS = {
    "build-101": "12 passed",
    "build-102": "1 failed: test_an_order_of_exactly_50_euros_is_free, shop/shipping.py line 9",
}
NIGHT = [
    Rule("reruns", Verdict.ALLOW, tool="rerun_*", reason="The night shift may."),
    Rule("mends", Verdict.ALLOW, tool="mend", reason="The night shift may."),
    Rule("tests", Verdict.ALLOW, tool="run_tests", reason="The night shift may."),
    Rule("no-deployments", Verdict.DENY, tool="deploy_prod", reason="Not at night."),
]


@tool(read_only=True, paths=())
def read_log(build_id: str) -> str:
    """Read the end of a build's log."""
    return LOGS.get(build_id, "There is no such log.")


@tool(read_only=True, paths=())
async def search_logs(text: str, context: ToolExecutionContext) -> str:
    """Search all logs there have ever been. This takes an hour."""
    await context.clock.sleep(3600)
    return f"{text!r} was found 3,122 times."


@tool(paths=())
def rerun_build(build_id: str) -> str:
    """Queue a build again."""
    return f"{build_id} is queued."


@tool(idempotent=True, paths=())
def rerun_once(build_id: str) -> str:
    """Queue a build again. Under the same key the queue takes it once."""
    return f"{build_id} is queued."


@tool(paths=())
def page_oncall(text: str) -> str:
    """Ring whoever is on call."""
    return "It rang."


@tool(paths=())
def deploy_prod(build_id: str) -> str:
    """Deploy a build to production. Customers see it at once."""
    return f"{build_id} is live."


@tool(paths=())
def mend(file: str) -> str:
    """Mend a file of the shop."""
    return f"{file} is changed."


@tool(paths=())
def run_tests(suite: str) -> str:
    """Run the tests of the shop."""
    return {"shop": "12 passed", "slow": "0 passed, 5 failed"}.get(suite, "no tests ran")


TOOLS = (
    add,
    read_build,
    read_log,
    search_logs,
    rerun_build,
    rerun_once,
    page_oncall,
    deploy_prod,
    mend,
    run_tests,
)


@dataclass(frozen=True)
class Layers:
    """The layers of the house, outermost first, each by its name, so that one can be left out."""

    by_name: dict[str, Layer] = field(default_factory=dict)

    def without(self, *names: str) -> Layers:
        """Raises KeyError for a layer that isn't there."""
        kept = dict(self.by_name)
        for name in names:
            del kept[name]
        return replace(self, by_name=kept)

    def around(self, world: World) -> Harness:
        """The harness with these layers, in this world."""
        layers: Iterable[Layer] = (*self.by_name.values(), world.faults)
        return Harness(
            world.model, TOOLS, layers=layers, sinks=world.sinks, clock=world.clock, cwd=world.cwd
        )


def house() -> Layers:
    """What v1 to v3 put around the loop. Who watches is outside of who acts, and repeats."""
    return Layers(
        {
            "MaxSteps": MaxSteps(8),
            "RepeatedCalls": RepeatedCalls(2),
            "Policy": Policy(rules=NIGHT),
            "Compaction": Compaction(2_000, [DropOldOutputs()]),
            "Retry": Retry(seed=1),
            "Budget": Budget(tokens=5_000, tool_calls=20, seconds=600),
            "Timeout": Timeout(30),
        }
    )


def proving() -> Layers:
    """The same, and v4's: an answer is accepted only if the record bears it out."""
    return Layers({"Verify": Verify(checks=["run_tests"]), **house().by_name})


def triage(world: World) -> Harness:
    """The night shift's harness, as v3 leaves it."""
    return house().around(world)


def verified(world: World) -> Harness:
    """The night shift's harness with v4's verification."""
    return proving().around(world)
