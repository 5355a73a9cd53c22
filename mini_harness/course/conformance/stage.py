"""What checks play with: a scripted model, some tools, and both told in words for people."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from mini_harness.course.conformance import Subject, Wrong
from mini_harness.frozen import shown
from mini_harness.tools.base import Tool

GOAL = "What is the status of build-102?"
READ = {"type": "tool", "name": "read_build", "arguments": {"build_id": "build-102"}}
MISSPELT = {**READ, "name": "read_biuld"}
DONE = {"type": "final", "output": "build-102 failed."}


class AskedTooOften(BaseException):
    """The model has said all it had to say. No `except Exception` hides this."""


class Script:
    """Plays its turns, and keeps what it was shown each time."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.shown: list[list[dict[str, Any]]] = []

    def decide(self, history: Sequence[Mapping[str, Any]], tools: object) -> Any:
        if len(self.shown) == len(self.turns):
            raise AskedTooOften
        self.shown.append([dict(message) for message in history])
        return copy.deepcopy(self.turns[len(self.shown) - 1])

    def results(self, turn: int) -> list[tuple[Any, Any]]:
        """What the model was told of tools before its ``turn``, counted from 0."""
        told = [message for message in self.shown[turn] if message.get("role") == "tool"]
        return [(message.get("tool"), message.get("tool_result")) for message in told]


def tools(ran: list[str]) -> dict[str, Tool]:
    def read_build(build_id: str) -> str:
        ran.append(build_id)
        return {"build-101": "passed", "build-102": "failed"}.get(build_id, "not found")

    def count_builds() -> int:
        return 2

    def ask_server() -> str:
        raise ConnectionError("the log server is away")

    def silent() -> str:
        raise ValueError

    def stop() -> str:
        raise KeyboardInterrupt

    handlers = (read_build, count_builds, ask_server, silent, stop)
    return {each.__name__: Tool(each.__name__, "For a check.", each) for each in handlers}


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


def wrong(called: str, got: str, expected: str, likely: str) -> NoReturn:
    raise Wrong(called=called, got=f"{got:.300}", expected=expected, likely=likely)


def act(subject: Subject, decision: Mapping[str, Any], ran: list[str] | None = None) -> Any:
    called = f"act(tools, decision), where the decision is to {short(decision)}"
    try:
        return subject.act(tools([] if ran is None else ran), copy.deepcopy(decision))
    except NotImplementedError:
        raise
    except Exception as error:  # noqa: BLE001 - it becomes the finding
        wrong(
            called,
            f"{shown(error)} was raised",
            "a text, whatever happens",
            "The error leaves `act`, and the whole run with it. A mistake is an observation too: "
            "return it as a text.",
        )


def pursue(subject: Subject, script: Script, ran: list[str] | None = None) -> Any:
    """Run the subject. What it raises is a finding."""
    try:
        return subject.pursue(script, tools([] if ran is None else ran), GOAL)
    except NotImplementedError:
        raise
    except AskedTooOften:
        wrong(
            says(script),
            "the model was asked again after its last turn",
            "the run ends with the final answer",
            "The loop doesn't return when the model gives a final answer.",
        )
    except Exception as error:  # noqa: BLE001 - it becomes the finding
        wrong(
            says(script),
            f"{shown(error)} was raised",
            "the run goes on to the final answer",
            _why_raised(script),
        )


def says(script: Script) -> str:
    turns = ", then ".join(map(short, script.turns))
    return f"pursue(model, tools, goal), where the model says: {turns}"


def _why_raised(script: Script) -> str:
    if not script.shown:
        return "It fails before the model is asked. Does it take (model, tools, goal)?"
    last = script.turns[len(script.shown) - 1]
    if isinstance(last, list):
        return "A turn can be a list of decisions. This loop takes every turn for one decision."
    if not isinstance(last, dict) or last.get("type") not in ("tool", "final"):
        return "The loop looks into a decision before it knows that it is one."
    return "The loop doesn't hand the call to `act`, which never raises."
