"""Cases and harnesses for the tests of the corpus."""

from typing import Any

from mini_harness.corpus import Case
from mini_harness.course.cases import TOOLS
from mini_harness.course.story import call, final
from mini_harness.expectation import Expectation
from mini_harness.loop import Harness
from mini_harness.regression import World
from mini_harness.results import FailureKind

DONE = final("done")
PLAIN = "tests.cases:plain"
READ = call("read_build", build_id="build-102")
READ_LOG = call("read_log", build_id="build-102")


def plain(world: World) -> Harness:
    """No layer but the world's faults."""
    return Harness(
        world.model,
        TOOLS,
        layers=[world.faults],
        sinks=world.sinks,
        clock=world.clock,
        cwd=world.cwd,
    )


def broken(world: World) -> Harness:
    """Can't be made."""
    raise ValueError("no such layer")


def case(name: str = "a-case", **more: Any) -> Case:
    about: dict[str, Any] = {
        "kind": FailureKind.NONE,
        "goal": f"Do {name}.",
        "harness": PLAIN,
        "script": (READ, DONE),
        "expect": Expectation(status="completed"),
    }
    return Case(id=name, **about | more)
