"""What the lesson asks. The answers come from runs of the package."""

from mini_harness import Harness, ScriptedModel
from mini_harness.course.questions import Question
from mini_harness.course.story import call, final
from mini_harness.events import Event
from mini_harness.tools.builds import TOOLS

READ = call("read_build", build_id="build-102")


class Unreachable:
    def decide(self, history: object, tools: object) -> object:
        raise ConnectionError("no answer")


def entries_of_two_calls() -> int:
    model = ScriptedModel([[READ, call("add", a=1, b=2)], final("Done.")])
    run = Harness(model, TOOLS).run_sync("Two at once.")
    return sum(message["role"] == "tool" for message in run.history.messages)


def starts_of_an_unknown_tool() -> int:
    events: list[Event] = []
    model = ScriptedModel([call("read_biuld"), final("Done.")])
    Harness(model, TOOLS, sinks=[events.append]).run_sync("Misspelt.")
    return sum(event.type == "tool_start" for event in events)


def status_after_a_tool_failed() -> str:
    # The log is looked for in a folder that isn't a farm.
    model = ScriptedModel([call("read_log", build_id="build-101"), final("There is no log.")])
    return Harness(model, TOOLS, cwd="no farm here").run_sync("Failing tool.").status


def status_after_the_model_failed() -> str:
    return Harness(Unreachable(), TOOLS).run_sync("Nobody there.").status


QUESTIONS = (
    Question(
        "The model calls two tools in one turn. How many entries with the role `tool` does the "
        "history get for that turn?",
        {
            "0": "No. A call without an observation would leave the model in the dark, and real "
            "APIs refuse such a history.",
            "1": "No. Two results in one entry could no longer be told apart. Each call has its "
            "own id, and its own entry.",
            "2": "Yes. Every call gets exactly one observation, in the order of the calls, and "
            "only then is the model asked again.",
        },
        entries_of_two_calls,
    ),
    Question(
        "The model calls `read_biuld`, which isn't there, and then gives a final answer. How many "
        "`tool_start` events does the record hold?",
        {
            "0": "Yes. The harness looks the tool up before anything starts. The model is told, "
            "and nothing ran.",
            "1": "No. `tool_start` means that a tool is about to run. Here there is none that "
            "could.",
            "2": "No. One proposal never starts two tools, and this one starts none.",
        },
        starts_of_an_unknown_tool,
    ),
    Question(
        "A tool fails. The model sees the error and gives a final answer. What is `run.status`?",
        {
            "completed": "Yes. An error in a tool is an observation like any other. The run is "
            "over because the model gave a final answer. Whether that answer is any good is "
            "another question, and v4 asks it.",
            "failed": "No. A failed tool is no failed run: the model may know another way.",
            "stopped": "No. The harness stops a run at a limit, and this one reached none.",
        },
        status_after_a_tool_failed,
    ),
    Question(
        "The *model* can't be reached, and `decide` raises an error. What is `run.status`?",
        {
            "completed": "No. There is no answer, and a run is never completed without one.",
            "failed": "Yes. A tool's error is told to the model. Here the model itself is away, "
            "so nobody is left to be told. The error is kept, and `run.unwrap()` raises it.",
            "running": "No. A run that nobody drives any more must not look as if it went on.",
        },
        status_after_the_model_failed,
    ),
)
