"""Deferred tools: found first, schema loaded then (SEEDS C26).

Every schema that the model is shown costs tokens in every turn, and a hundred tools to choose from
make the choice worse. A deferred tool is registered like any other, but the model sees it only
after ``tool_search`` has found it in this run.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from weakref import WeakKeyDictionary

from mini_harness.layer import Act, Decide, Layer, Proposal, View
from mini_harness.protocol import Observation, Outcome
from mini_harness.run import Run
from mini_harness.tools.call import Call

SEARCH = "tool_search"
"""The tool that finds the others. It can't be deferred itself."""


class DeferredTools(Layer):
    """Hides the tools whose names match one of the patterns, until ``tool_search`` finds them.

    A pattern is a name in which ``*`` stands for any text: ``DeferredTools(["mcp__*"])``. What
    was found is read from the run's own history, so a resumed run still knows it.

    It saves tokens and keeps no secret. A call that can't be prepared never comes here: one of a
    deferred tool with wrong arguments is told of them, and one of an unknown tool gets the names
    of all. Who may call what is for a policy.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        """Raises TypeError for a lone text: the patterns are a list."""
        if isinstance(patterns, str):
            raise TypeError(f"Give the patterns as a list: [{patterns!r}].")
        self.patterns = tuple(patterns)
        self._found: WeakKeyDictionary[Run, tuple[int, set[str]]] = WeakKeyDictionary()

    def defers(self, name: str) -> bool:
        """Whether a tool of this name has to be found first."""
        return name != SEARCH and any(fnmatchcase(name, each) for each in self.patterns)

    async def decide(self, run: Run, view: View, next: Decide) -> Proposal:
        """Raises LookupError if there is something to be found and nothing to find it with."""
        hidden = {tool["name"] for tool in view.tools if self.defers(tool["name"])}
        if hidden and run.driver.tools.get(SEARCH) is None:
            raise LookupError(
                f"{min(hidden)} is deferred, and without the tool {SEARCH} nobody can find it. "
                "Register ToolSearch()."
            )
        hidden -= self._loaded(run)
        shown = [tool for tool in view.tools if tool["name"] not in hidden]
        return await next(run, View(view.messages, shown))

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        if not self.defers(call.name) or call.name in self._loaded(run):
            return await next(run, call)
        text = f"Not run: {call.name} isn't loaded. Find it with {SEARCH}, then call it."
        return Observation(call.call_id, call.name, text, Outcome.NOT_RUN)

    def _loaded(self, run: Run) -> set[str]:
        """All that was found in this run. Only what is new is looked through."""
        seen, known = self._found.get(run, (0, set()))
        names = set(known)
        messages = run.history.messages
        for message in messages[seen:]:
            if message["role"] == "tool" and message["tool"] == SEARCH:
                names.update(message.get("metadata", {}).get("found", ()))
        if not run.history.open:  # Until then a message may still change its place.
            self._found[run] = len(messages), names
        return names
