"""What checks play with: a scripted model, some tools, and both told in words for people."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from mini_harness.course.conformance import Subject, Wrong
from mini_harness.course.trouble import own_frames, place, unknown_name
from mini_harness.frozen import shown
from mini_harness.tools.base import Tool

GOAL = "What is the status of build-102?"
READ = {"type": "tool", "name": "read_build", "arguments": {"build_id": "build-102"}}
MISSPELT = {**READ, "name": "read_biuld"}
DONE = {"type": "final", "output": "build-102 failed."}
LONGEST = 300
"""Characters of what came back that a message shows."""


class AskedTooOften(BaseException):
    """The model has said all it had to say. No `except Exception` hides this."""


class LogServerError(Exception):
    """An error that no list of usual errors names."""


class Script:
    """Plays its turns, and keeps what it was shown each time."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.shown: list[list[dict[str, Any]]] = []
        self.tools: list[Any] = []

    def decide(self, history: Sequence[Mapping[str, Any]], tools: object) -> Any:
        if len(self.shown) == len(self.turns):
            raise AskedTooOften
        for entry in history:
            if not isinstance(entry, Mapping):
                likely = 'An entry is a dictionary, as in {"role": "user", "content": goal}.'
                wrong(
                    "model.decide(history, tools)", f"the entry {entry!r}", "a dictionary", likely
                )
        self.shown.append([dict(entry) for entry in history])
        self.tools.append(tools)
        return copy.deepcopy(self.turns[len(self.shown) - 1])

    def view(self, turn: int) -> list[dict[str, Any]]:
        """The history as the model saw it at its ``turn``, counted from 0; [] if it had none."""
        return self.shown[turn] if turn < len(self.shown) else []

    def results(self, turn: int) -> list[tuple[Any, Any]]:
        """What the model was told of tools before its ``turn``."""
        told = [entry for entry in self.view(turn) if entry.get("role") == "tool"]
        return [(entry.get("tool"), entry.get("tool_result")) for entry in told]


def tools(ran: list[str]) -> dict[str, Tool]:
    """The tools of a check. ``ran`` gets what ``read_build`` was called with, and "ask_server"."""

    def read_build(build_id: str) -> str:
        ran.append(build_id)
        return {"build-101": "passed", "build-102": "failed"}.get(str(build_id), "not found")

    def count_builds() -> int:
        return 2

    def ask_server() -> str:
        ran.append("ask_server")
        raise LogServerError("the log server is away")

    def silent() -> str:
        raise ValueError

    def stop() -> str:
        raise KeyboardInterrupt

    handlers = (read_build, count_builds, ask_server, silent, stop)
    return {each.__name__: Tool(each.__name__, "For a check.", each) for each in handlers}


def names_of(given: Any) -> list[str]:
    """The names of the tools that a model was given, in whatever form: names, tools, schemas."""
    found = []
    for each in given if isinstance(given, Iterable) else ():
        name = each.get("name") if isinstance(each, Mapping) else getattr(each, "name", each)
        found.append(str(name))
    return found


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool", "name": name, "arguments": arguments}


def short(turn: Any) -> str:
    """A model's turn, for people."""
    match turn:
        case {"type": "tool", "name": name, "arguments": dict(arguments)}:
            given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
            return f"call {name}({given})"
        case {"type": "final", "output": output}:
            return f"answer {output!r}"
        case list():
            return f"[{', '.join(map(short, turn))}]"
        case _:
            return repr(turn)


def says(script: Script) -> str:
    """How a check called ``pursue``."""
    turns = list(map(short, script.turns))
    if len(turns) > 5:
        turns[3:-1] = ["so on"]
    return f"pursue(model, tools, goal), where the model says: {', then '.join(turns)}"


def proposes(decision: Any) -> str:
    """How a check called ``act``."""
    return f"act(tools, decision), where the decision is to {short(decision)}"


def wrong(called: str, got: str, expected: str, likely: str) -> NoReturn:
    got = got if len(got) <= LONGEST else f"{got[: LONGEST - 2]} …"
    raise Wrong(called=called, got=got, expected=expected, likely=likely)


def act(subject: Subject, decision: Mapping[str, Any], ran: list[str] | None = None) -> Any:
    """Call the subject's ``act``. Whatever it raises is a finding."""
    here = tools([] if ran is None else ran)
    called = proposes(decision)
    try:
        return plain(called, subject.act, here, copy.deepcopy(decision))
    except (NotImplementedError, Wrong):
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it becomes the finding
        likely = unknown_name(error) or (
            "The error leaves `act`, and the whole run with it. A mistake is an observation too: "
            "return it as a text."
        )
        wrong(called, raised(error), "a text, whatever happens", likely)


def pursue(subject: Subject, script: Script, ran: list[str] | None = None) -> Any:
    """Call the subject's ``pursue``. Whatever it raises is a finding."""
    here = tools([] if ran is None else ran)
    called = says(script)
    try:
        return plain(called, subject.pursue, script, here, GOAL)
    except (NotImplementedError, Wrong):
        raise
    except AskedTooOften:
        got, expected = "the model was asked again after its last turn", "the run ends with it"
        wrong(called, got, expected, "The loop doesn't return when there is a final answer.")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it becomes the finding
        likely = unknown_name(error) or _cause(error, script)
        wrong(called, raised(error), "the run goes on to the final answer", likely)


def plain(called: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that has to be an ordinary one."""
    result = function(*arguments)
    if inspect.iscoroutine(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        if inspect.iscoroutine(result):
            result.close()
        likely = "Write it with a plain `def`, and neither `async` nor `yield` in it."
        wrong(called, f"a {type(result).__name__}", "the result itself", likely)
    return result


def raised(error: BaseException) -> str:
    """An error, and where in the learner's own code it was raised."""
    frames = own_frames(error)
    if not frames:
        return f"{shown(error)} was raised"
    return f"{shown(error)} was raised in {place(frames[-1])}: {frames[-1].line}"


def _cause(error: BaseException, script: Script) -> str:
    """A likely cause where one is known, else nothing: the line says more than a guess."""
    if not script.shown:
        takes = "Does `pursue` take (model, tools, goal), and `model.decide` (history, tools)?"
        return takes if isinstance(error, TypeError) else ""
    if any(frame.name == "act" for frame in own_frames(error)):
        return "`act` raised it. Check v0-act first."
    if isinstance(error, LogServerError) or error.args == ("read_biuld",):
        return "The loop doesn't hand the call to `act`, which never raises."
    if isinstance(error, KeyError | TypeError | AttributeError):
        return _misread(script.turns[len(script.shown) - 1], error)
    return ""


def _misread(turn: Any, error: BaseException) -> str:
    """What a loop takes a turn for, if it stumbles over just this one."""
    if isinstance(turn, list) and "list" in str(error):
        return "A turn can be a list of decisions. This loop takes every turn for one decision."
    if isinstance(turn, str):
        return "A turn can be anything, even a plain text. Ask isinstance(decision, dict) first."
    if isinstance(turn, dict) and turn.get("type") not in ("tool", "final"):
        return "The loop looks into a decision before it knows that it is one."
    return ""
