"""Nobody asked whether it may. Policy does, with the rules of the night."""

from mini_harness import (
    Budget,
    Compaction,
    DropOldOutputs,
    Harness,
    MaxSteps,
    RepeatedCalls,
    Retry,
    Timeout,
    Verify,
)
from mini_harness.course.cases import TOOLS


def around(world, layers):
    tools = [each for each in TOOLS if each.name != "deploy_prod"]
    about = {"sinks": world.sinks, "clock": world.clock, "cwd": world.cwd}
    return Harness(world.model, tools, layers=[*layers, world.faults], **about)


def layers():
    return [
        MaxSteps(8),
        RepeatedCalls(2),
        Compaction(2_000, [DropOldOutputs()]),
        Retry(),
        Budget(tokens=5_000, tool_calls=20, seconds=600),
        Timeout(30),
    ]


def triage(world):
    return around(world, layers())


def verified(world):
    return around(world, [Verify(checks=["run_tests"]), *layers()])
