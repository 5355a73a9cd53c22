"""What the lesson asks. The answers come from the package (SEEDS B32, B33)."""

from unittest.mock import patch

from mini_harness import Harness, Policy, ScriptedModel, create_default_tool_registry, tool
from mini_harness.course.questions import Question
from mini_harness.course.story import call, final
from mini_harness.tools import default
from mini_harness.tools.base import BaseTool


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


def places_to_change() -> int:
    changed = {"BUILT_IN": (*default.BUILT_IN, lambda: read_clock)}
    with patch.dict(vars(default), changed):
        shown = create_default_tool_registry().to_api_schema()
    assert read_clock.to_api_schema() in shown
    return len(changed)


def what_belongs_to_a_tool() -> str:
    parts = {
        "the schema": "to_api_schema",
        "the permission": "has_permission",
        "the drawing": "render",
    }
    return ", ".join(words for words, name in parts.items() if hasattr(BaseTool, name))


QUESTIONS = (
    Question(
        "What is the least that a model must be shown of a tool, and all that it is shown here?",
        {
            "name, description": "No. Then it has to guess the arguments, and it guesses "
            "well enough to be wrong unnoticed.",
            "name, description, input_schema": "Yes. That is the whole contract, so it must "
            "be true. It is generated from the code that runs: what is written by hand drifts, "
            "and nothing turns red when it does.",
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
            "`default` a person is asked for nothing and learns to click yes, and beside other "
            "reads it runs alone. The other way round, a tool that changes something and says "
            "it reads, runs unasked.",
        },
        reading_that_does_not_say_so,
    ),
    Question(
        "You add a built-in tool to the package: its class is written. In how many other places "
        "must something change until the model sees its schema?",
        {
            "1": "Yes. `BUILT_IN` in `tools/default.py`, and that's it: the registry hands out the "
            "schemas, and everything else asks the registry.",
            "2": "No. That would be so if the schema had a file of its own. It is made from the "
            "input model.",
            "4": "No. Schema, validation, permission and display each in a place of its own: so it "
            "grows where no registry is in the middle.",
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
        "Which of these does a `BaseTool` have itself?",
        {
            "the schema": "Yes. It is the tool's own matter what it takes. Who may call it, and "
            "what it looks like, are others': one place to read when you ask what is allowed, "
            "and a tool that works without any screen.",
            "the schema, the permission": "No. A tool declares what a call does. If each decided "
            "for itself, the one that was written last, or came from a server, would decide too.",
            "the schema, the permission, the drawing": "No. Then nobody could use the tool without "
            "a screen, and forty tools would be forty places that say what is allowed.",
        },
        what_belongs_to_a_tool,
    ),
)
