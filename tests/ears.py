"""Hooks that keep what they heard, and something for them to hear of."""

from collections.abc import Iterable
from typing import Any

from mini_harness.events import Event, EventType
from mini_harness.hooks import Hook, HookEvent, HookInput, Hooks
from mini_harness.policy import Rule, Verdict
from mini_harness.run import Run
from mini_harness.tools.function import tool
from tests.loops import call, tool_messages

PRE, POST, PROMPT, NOTICE, STOP = HookEvent
SOON = 15.0
"""Seconds: a bound for what takes far less."""


class Farm:
    """Two tools, and what was done with them."""

    def __init__(self) -> None:
        self.done: list[str] = []

        @tool(paths=[])
        def deploy(build: str) -> str:
            """Deploy a build."""
            self.done.append(build)
            if build == "broken":
                raise ValueError("it is broken")
            return f"{build} is live"

        @tool(read_only=True, paths=[])
        def look() -> str:
            """Look."""
            return ""

        self.tools = [deploy, look]


class Ear:
    """A hook that keeps what it heard, and answers what it was told to."""

    def __init__(self, *answers: Any) -> None:
        self.heard: list[HookInput] = []
        self.answers = list(answers)

    def __call__(self, given: HookInput) -> Any:
        self.heard.append(given)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @property
    def events(self) -> list[str]:
        return [given.event.value for given in self.heard]


DEPLOY = call("deploy", "c1", build="b1")
BROKEN = call("deploy", "c1", build="broken")
ASK = Rule("ask", Verdict.REQUIRE_APPROVAL, "deploy")
NO = Rule("no", Verdict.DENY, "deploy")


def on(ear: Any, *events: HookEvent, **settings: Any) -> Hooks:
    return Hooks([Hook(event, ear, **settings) for event in events or HookEvent])


def noted(events: Iterable[Event]) -> list[dict[str, Any]]:
    return [dict(event.data) for event in events if event.type is EventType.HOOK]


def told(run: Run) -> str:
    text: str = tool_messages(run)[-1]["tool_result"]
    return text


def odd(value: Any) -> Any:
    """Something that a type checker wouldn't let through."""
    return value
