"""world.faults stands for the world: it belongs among the layers, as the innermost one."""

from mini_harness import (
    Budget,
    Compaction,
    DropOldOutputs,
    Harness,
    MaxSteps,
    Policy,
    RepeatedCalls,
    Retry,
    Timeout,
    Verify,
)
from mini_harness.course.cases import NIGHT, TOOLS


def around(world, layers):
    about = {"sinks": world.sinks, "clock": world.clock, "cwd": world.cwd}
    return Harness(world.model, TOOLS, layers=layers, **about)


def layers():
    return [
        MaxSteps(8),
        RepeatedCalls(2),
        Policy(rules=NIGHT),
        Compaction(2_000, [DropOldOutputs()]),
        Retry(),
        Budget(tokens=5_000, tool_calls=20, seconds=600),
        Timeout(30),
    ]


def triage(world):
    return around(world, layers())


def verified(world):
    return around(world, [Verify(checks=["run_tests"]), *layers()])
