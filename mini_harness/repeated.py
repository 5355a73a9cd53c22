"""A run that does the same thing again and again makes no progress."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from mini_harness.frozen import canonical
from mini_harness.layer import Act, Layer, Stop
from mini_harness.protocol import Observation
from mini_harness.run import Run, StopReason
from mini_harness.tools.call import Call


class NoProgress(RuntimeError):
    """A call was about to be made that had brought nothing new too often."""

    def __init__(self, tool: str, times: int) -> None:
        super().__init__(f"no progress: {tool} was called {times} times and brought nothing new")
        self.tool, self.times = tool, times


class RepeatedCalls(Layer):
    """Stop a run before it makes the same call again that was made ``limit`` times in vain.

    The same call is the same tool with the same arguments. It may go on as long as something new
    happens: a result that this run hasn't had from that call. So a job may be polled while its
    state changes, and a test may be run again after an edit; but a, b, a, b … ends.
    """

    def __init__(self, limit: int = 5) -> None:
        """Raises TypeError for what isn't an integer, and ValueError for less than 1."""
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise TypeError(f"The limit of repetitions must be an integer, but it is {limit!r}.")
        if limit < 1:
            raise ValueError(f"The limit of repetitions is {limit}, but must be at least 1.")
        self.limit = limit
        self._known: WeakKeyDictionary[Run, _Known] = WeakKeyDictionary()

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        """Raises Stop."""
        known = self._known.get(run)
        if known is None:
            known = self._known[run] = _Known(run)
        key = _digest(call.name, call.arguments)
        times = known.in_vain[key]
        if times >= self.limit:
            error = NoProgress(call.name, times)
            numbers = {"tool": call.name, "used": times, "limit": self.limit}
            raise Stop(StopReason.REPEATED_CALL, error, **numbers)
        seen = await next(run, call)
        known.add(key, seen.output)
        return seen


class _Known:
    """What the calls of one run have brought. It begins with what the history tells."""

    def __init__(self, run: Run) -> None:
        self.in_vain: Counter[bytes] = Counter()
        """How often each call was made since something new happened."""
        self._results: set[bytes] = set()
        proposed: dict[str, bytes] = {}
        for message in run.history.messages:
            for call in message.get("calls", ()):
                proposed[call["call_id"]] = _digest(call["name"], call["arguments"])
            if message["role"] == "tool":
                self.add(proposed[message["call_id"]], message["tool_result"])

    def add(self, key: bytes, output: str) -> None:
        result = _digest(key.hex(), output)
        if result not in self._results:
            self._results.add(result)
            self.in_vain.clear()
        self.in_vain[key] += 1


def _digest(name: str, value: Mapping[str, Any] | str) -> bytes:
    return hashlib.sha256(canonical((name, value)).encode()).digest()
