"""What the lesson asks. The answers come from the package (SEEDS B32, B33)."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from pydantic import create_model

from mini_harness import Harness, Policy, ScriptedModel, create_default_tool_registry, tool
from mini_harness.course.questions import Question
from mini_harness.course.story import call, final
from mini_harness.tools import default
from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult


@tool(paths=())
def read_clock() -> str:
    """Say what time it is."""
    return "noon"


def what_the_model_is_shown() -> str:
    return ", ".join(read_clock.to_api_schema())


def reading_that_does_not_say_so() -> str:
    model = ScriptedModel([call("read_clock"), final("Done.")])
    run = Harness(model, [read_clock], layers=[Policy(mode="plan")]).run_sync("What time is it?")
    return str(run.history.messages[2]["outcome"])


class Ring(BaseTool):
    name = "ring"
    description = "Ring the bell."
    input_model = create_model("RingInput")

    async def execute(self, arguments: Any, context: ToolExecutionContext) -> ToolResult:
        return ToolResult("It rang.")


def places_to_change() -> str:
    needed = ["its class"]
    if Ring.name not in create_default_tool_registry().names():
        needed.append("the list of built-in tools")
    with patch.dict(vars(default), {"BUILT_IN": (*default.BUILT_IN, Ring)}):
        tools = create_default_tool_registry()
    assert Ring().to_api_schema() in tools.to_api_schema()
    model = ScriptedModel([call("ring"), final("Done.")])
    run = Harness(model, tools, layers=[Policy(mode="plan")]).run_sync("Ring.")
    if run.history.messages[2]["outcome"] != "denied":
        needed.append("the policy")
    return ", ".join(needed)


def without_any_layer() -> str:
    model = ScriptedModel([call("write_file", path="a.txt", content="a"), final("Done.")])
    with TemporaryDirectory() as folder:
        harness = Harness(model, create_default_tool_registry(), cwd=Path(folder))
        run = harness.run_sync("Write.")
        if Path(folder, "a.txt").is_file():
            return "it runs"
    return "the run pauses" if run.status == "paused" else "it is denied"


QUESTIONS = (
    Question(
        "What is a model shown of a tool, and no more than that?",
        {
            "name, description": "No. Then it has to guess the arguments, and it guesses "
            "well enough to be wrong unnoticed.",
            "name, description, input_schema": "Yes. With less it can't call it, so that is the "
            "whole contract, and it must be true. It is generated from the code that runs: what is "
            "written by hand drifts, and nothing turns red when it does.",
            "name, description, input_schema, is_read_only": "No. What a call may do is "
            "between the tool and the policy. The model has no part in it, and can't talk "
            "anybody out of it.",
        },
        what_the_model_is_shown,
    ),
    Question(
        "A tool only reads, but its author forgot to say so. In the mode `plan` the model calls "
        "it. What is the outcome of that call?",
        {
            "ok": "No. Nobody guesses from a name, or from the code, what a tool does. It said "
            "nothing, so it counts as changing something.",
            "error": "No. An error is something that a tool ran into, and this one never ran.",
            "denied": "Yes. That is the harmless side: plan mode is useless with this tool, in "
            "`default` a person is asked needlessly and learns to click yes, and beside other "
            "reads it runs alone. The other way round, a tool that changes something and says "
            "it reads, runs unasked.",
        },
        reading_that_does_not_say_so,
    ),
    Question(
        "You add a built-in tool to the package. Where must you write something, until the model "
        "sees its schema, and plan mode denies it?",
        {
            "its class": "No. A class that nobody names isn't found, and that is meant: which "
            "tools there are is a decision, and it stands in one place.",
            "its class, the list of built-in tools": "Yes. The registry hands out the schemas, and "
            "everything else asks the registry. The policy asks the tool what a call changes, and "
            "one that says nothing counts as changing something.",
            "its class, the list of built-in tools, the policy": "No. A policy that had to know "
            "each tool would let by the one that somebody forgot, or would grow with every tool.",
        },
        places_to_change,
    ),
    Question(
        "Another harness is written in TypeScript. Compare:\n\n"
        "| | there | here |\n"
        "|---|---|---|\n"
        "| arguments | zod | pydantic |\n"
        "| permission | each tool's own `hasPermission` | one policy, outside |\n"
        "| display | each tool draws itself | the views look at events |\n"
        "| which tools there are | a list that others edit, too | an explicit registry |\n\n"
        "Somebody brings a harness from there, and writes `Harness(model, tools)`, with no layers. "
        "The model calls `write_file`. What happens?",
        {
            "it runs": "Yes. Permission is none of a tool's business here, and nobody has put a "
            "policy around it. That is the price of one place to read when you ask what is "
            "allowed: it has to be there. There, forty tools say it in forty places, and the one "
            "that was written last, or came from a server, decides, too.",
            "it is denied": "No. A tool can't say no: it only declares what a call changes. A "
            "policy in plan mode would deny it.",
            "the run pauses": "No. With `layers=[Policy()]` it would. The harness alone hands "
            "every call to its tool.",
        },
        without_any_layer,
    ),
)
