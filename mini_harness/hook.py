"""One hook: when it is called, what it learns, what it may answer, and how long it has."""

from __future__ import annotations

import asyncio
import inspect
import math
import re
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from mini_harness.frozen import FrozenDict, canonical, shown
from mini_harness.hook_commands import HookFailed, run_hook_command, variable_in
from mini_harness.protocol import Outcome
from mini_harness.sync import in_own_thread
from mini_harness.tools.call import let_cancellation_pass
from mini_harness.tools.files import unusable

CLEAN_UP = 1.0
"""Seconds that an async hook has for its ``finally`` after it was cancelled."""

LONGEST_REASON = 10_000
"""How many characters of a reason are kept. The rest is cut off."""

_LONGEST_NAME = 60
_LONGEST_FAILURE = 1_000


class HookEvent(StrEnum):
    """When a hook is called (SEEDS B29). Later steps bring the moments that only they have."""

    PRE_TOOL_USE = "pre_tool_use"
    POST_TOOL_USE = "post_tool_use"
    USER_PROMPT_SUBMIT = "user_prompt_submit"
    NOTIFICATION = "notification"
    STOP = "stop"


OF_A_TOOL = frozenset((HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE))
GUARDS = frozenset((HookEvent.PRE_TOOL_USE, HookEvent.USER_PROMPT_SUBMIT, HookEvent.STOP))
"""The moments at which something can be kept from happening."""

_PATTERN = re.compile(r"[\w*?\[\]!-]+", re.ASCII)
"""What a pattern of a tool's name can be made of."""

_CALL = ("call_id", "tool", "arguments")
_TOLD: dict[HookEvent, tuple[str, ...]] = {
    HookEvent.PRE_TOOL_USE: _CALL,
    HookEvent.POST_TOOL_USE: (*_CALL, "output", "outcome"),
    HookEvent.USER_PROMPT_SUBMIT: ("prompt",),
    HookEvent.NOTIFICATION: ("call_id", "tool", "message"),
    HookEvent.STOP: ("answer",),
}


class HookResult(StrEnum):
    """How a hook ended."""

    PASSED = "passed"
    BLOCKED = "blocked"
    FAILED = "failed"


@dataclass(frozen=True)
class Block:
    """What a hook returns to say no. Whoever is kept from going on is told the reason."""

    reason: str

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise TypeError(f"The reason must be text, but it is {shown(self.reason):.100}.")


@dataclass(frozen=True)
class HookInput:
    """What a hook learns. Nothing in it can be changed."""

    event: HookEvent
    run_id: str
    cwd: Path
    """The folder that tools work in."""
    _: KW_ONLY
    call_id: str = ""
    tool: str = ""
    """Before and after a call, and in a notification about one."""
    arguments: FrozenDict = field(default_factory=FrozenDict)
    """Before a call as they were proposed; after it, those with which it ran."""
    output: str = ""
    """After a call: what the model is told, from a layer that shortens it the short form."""
    outcome: Outcome | None = None
    prompt: str = ""
    """What the user said."""
    message: str = ""
    """In a notification: what a person is needed for."""
    answer: Any = None
    """At the stop: the answer that would be accepted, as frozen JSON."""

    def to_json(self) -> str:
        """What there is to know at this event: one line of strict JSON, for a command."""
        about = {name: getattr(self, name) for name in _TOLD[self.event]}
        where = {"event": self.event, "run_id": self.run_id, "cwd": str(self.cwd)}
        return canonical({**where, **about})


@dataclass(frozen=True, eq=False)
class Hook:
    """Something to call when ``on`` happens: one of the words in HookEvent.

    ``do`` is a function of a HookInput. It gives None to let things go on, or ``Block("why")``. One
    that isn't async gets a thread, so that it may wait; an async one must not block.

    Or ``do`` is a shell line. Exit code 0 lets things go on, whatever it prints; 2 blocks, and what
    it wrote to standard error is the reason. What it is about is one JSON object on standard input,
    and in ``"$ARGUMENTS"`` (see ``hook_commands``). More than 100,000 bytes are too many for that
    variable: then the hook fails. ``stdin_only=True`` says that the command reads standard input;
    it never gets the variable, and the object may be as long as it likes.

    ``matcher`` is a pattern on the tool's name, in which ``*`` stands for any text, or several
    with ``|`` between them: ``write_file|edit_file``. Large and small letters differ.

    After ``seconds`` of real time the hook has failed. A command is ended with all that it started,
    an async function is cancelled. A thread can't be ended: it goes on, and nobody listens any
    more. Nor can an async function that swallows its cancellation; ``asyncio.run`` waits for it at
    the end, and if it never returns, neither does the program. ``block_on_failure=False`` lets
    things go on when the hook fails.
    """

    on: HookEvent | str
    do: Callable[[HookInput], Any] | str
    _: KW_ONLY
    matcher: str = "*"
    seconds: float = 30
    block_on_failure: bool = True
    stdin_only: bool = False

    def __post_init__(self) -> None:
        """Raises TypeError and ValueError for what can't be meant."""
        if self.on not in list(HookEvent):
            raise ValueError(f"There is no event {self.on!r}. The events are: {_listed()}.")
        object.__setattr__(self, "on", HookEvent(self.on))
        _check_do(self.do)
        self._check_matcher()
        for name in ("block_on_failure", "stdin_only"):
            if not isinstance(said := getattr(self, name), bool):
                raise TypeError(f"{name} is {said!r:.100}: give True or False.")
        if self.stdin_only and not isinstance(self.do, str):
            raise ValueError("stdin_only is about a command: a function has no standard input.")
        if self.stdin_only and (name := variable_in(str(self.do))):
            raise ValueError(f"With stdin_only there is no {name}. Let the command read its input.")
        number = isinstance(self.seconds, int | float) and not isinstance(self.seconds, bool)
        if not number or not 0 < self.seconds < math.inf:
            raise ValueError(f"A hook must have more than 0 seconds, not {self.seconds!r:.100}.")

    def _check_matcher(self) -> None:
        if not isinstance(self.matcher, str) or not self.matcher:
            raise TypeError(f"The matcher must be a pattern of names, not {self.matcher!r:.100}.")
        for pattern in self.patterns:
            if not _PATTERN.fullmatch(pattern):
                raise ValueError(
                    f"{pattern!r:.100} in the matcher {self.matcher!r:.100} can be no tool's name. "
                    "Write names, * for any text, and | between several: write_file|edit_file."
                )
        if self.matcher != "*" and self.on not in OF_A_TOOL:
            raise ValueError(f"At {self.on} there is no tool that {self.matcher!r} could match.")

    @property
    def patterns(self) -> list[str]:
        """The matcher, taken apart."""
        return self.matcher.split("|")

    @property
    def name(self) -> str:
        """How the record calls it: the function's name, or the beginning of the line."""
        if isinstance(self.do, str):
            line = " ".join(self.do.split())
            return line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 2]} …"
        return str(getattr(self.do, "__name__", type(self.do).__name__))

    def is_for(self, tool: str) -> bool:
        return any(fnmatchcase(tool, pattern) for pattern in self.patterns)


def _listed() -> str:
    return ", ".join(HookEvent)


def _check_do(do: object) -> None:
    if isinstance(do, str):
        if not do.strip():
            raise ValueError("The command of the hook is empty.")
        if reason := unusable(do):
            raise ValueError(f"No shell takes the command {do!r:.100}. {reason}.")
    elif not callable(do):
        raise TypeError(f"A hook does a function or a shell line, not {shown(do):.100}.")


_under_way: ContextVar[frozenset[Hook]] = ContextVar("_under_way", default=frozenset())


async def ask(hook: Hook, given: HookInput) -> tuple[HookResult, str]:
    """Call a hook, and say how it ended and why. Only a cancellation goes on up."""
    # A hook may start a run. One that is asked again there would never come to an end.
    if hook in _under_way.get():
        return HookResult.FAILED, "It started a run in which it would be called again."
    token = _under_way.set(_under_way.get() | {hook})
    try:
        said = await _answer(hook, given)
    except HookFailed as failure:
        return HookResult.FAILED, str(failure)
    # Nothing is hidden: the reason says what was raised.
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001
        let_cancellation_pass(error)
        text = f"{type(error).__name__}: {shown(error, str)}"
        return HookResult.FAILED, text[:_LONGEST_FAILURE]
    finally:
        _under_way.reset(token)
    return _read(said, given.event)


def _read(said: object, event: HookEvent) -> tuple[HookResult, str]:
    match said:
        case None:
            return HookResult.PASSED, ""
        case Block(reason) if event is HookEvent.NOTIFICATION:
            return HookResult.FAILED, f"A notification can't block. It said: {_bounded(reason)}"
        case Block(reason):
            return HookResult.BLOCKED, _bounded(reason) or "It gave no reason."
        case _:
            # Truth is not enough: False could mean either.
            text = f'It gave {shown(said):.200}. It must give None or Block("why").'
            return HookResult.FAILED, text


def _bounded(reason: str) -> str:
    missing = len(reason) - LONGEST_REASON
    if missing <= 0:
        return reason
    return f"{reason[:LONGEST_REASON]} [... {missing:,} characters left out here]"


async def _answer(hook: Hook, given: HookInput) -> Block | Any:
    if not isinstance(hook.do, str):
        return await _in_time(_called(hook.do, given), hook.seconds)
    limits: Any = {"seconds": hook.seconds, "stdin_only": hook.stdin_only}
    reason = await run_hook_command(hook.do, given.event, given.to_json(), cwd=given.cwd, **limits)
    return None if reason is None else Block(reason)


async def _called(do: Callable[[HookInput], Any], given: HookInput) -> Any:
    try:
        if inspect.iscoroutinefunction(do):
            return await do(given)
        said = await in_own_thread(partial(do, given))
        return await said if inspect.isawaitable(said) else said
    except SystemExit as error:
        # A hook's exit isn't the program's.
        raise HookFailed(f"SystemExit: {error}") from error


async def _in_time(work: Coroutine[Any, Any, Any], seconds: float) -> Any:
    """Hooks live on real time, whatever the clock of the harness is."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
        raise HookFailed(f"It gave no answer within {seconds:g} seconds.")
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=CLEAN_UP)
        # Looked at, so that asyncio doesn't report an error that nobody waits for any more.
        if task.done() and not task.cancelled():
            task.exception()
