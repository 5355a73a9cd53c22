"""A budget: how much a run may spend, looked at before anything is spent.

Nothing begins once a limit is reached. A model call that begins just below a limit may end above
it, by what it costs itself: that is known only afterwards. Model calls that are under way side by
side each keep aside what such a call has cost at most so far, so together they go no further.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from weakref import WeakKeyDictionary

from mini_harness.layer import Act, Decide, Failed, Layer, Proposal, Stop, View
from mini_harness.protocol import Observation, Usage, usage_of
from mini_harness.run import Run, StopReason
from mini_harness.tools.call import Call

UNKNOWN_SHARE = 10
"""Before anybody knows what a model call costs, each keeps aside this part of a limit: a tenth."""

_OF_MODEL = ("input_tokens", "output_tokens", "tokens", "cost")

Price = Callable[[Usage], float]
"""What a usage costs, in the currency of the limit."""


class BudgetExceeded(RuntimeError):
    """A run has spent what it may. ``used`` and ``limit`` are in the unit of ``kind``."""

    def __init__(self, kind: str, used: float, limit: float) -> None:
        what = kind.replace("_", " ")
        super().__init__(f"budget exceeded: {used:g} of {limit:g} {what} used")
        self.kind, self.used, self.limit = kind, used, limit


class Budget(Layer):
    """Stop a run that has spent what it may. None is no limit, and 0 allows nothing.

    ``input_tokens``, ``output_tokens`` and ``tokens`` (both together) count what the model reports,
    also of turns that failed. ``cost`` is the ``price`` of that. ``tool_calls`` counts every
    attempt, whatever becomes of it. ``seconds`` pass on the harness's monotonic clock while the
    run isn't paused.

    A harness that runs inside a tool spends this budget too, beside its own if it has one; a
    resumed run goes on with what its record says, without what such harnesses had spent. Put it
    inside the layers that repeat, so that each attempt counts. The stop carries ``kind``, ``used``
    and ``limit``, and ``unwrap()`` raises BudgetExceeded.
    """

    def __init__(
        self,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        tokens: int | None = None,
        cost: float | None = None,
        price: Price | None = None,
        tool_calls: int | None = None,
        seconds: float | None = None,
    ) -> None:
        """Raises TypeError for what isn't a number, and ValueError for one that is no limit
        (negative, NaN, infinite) and for a cost without a price."""
        given = {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "tokens": tokens,
            "cost": cost,
            "tool_calls": tool_calls,
            "seconds": seconds,
        }
        self.limits: Mapping[str, float] = {
            kind: _checked(kind, limit) for kind, limit in given.items() if limit is not None
        }
        if cost is not None and price is None:
            raise ValueError("To limit the cost, say what a usage costs: price=lambda usage: ...")
        self.price = price
        self._accounts: WeakKeyDictionary[Run, _Account] = WeakKeyDictionary()

    def seconds_left(self, run: Run) -> float | None:
        """How long the run may still take, or None if nobody limits that."""
        left = [account.seconds_left for account in self._all(run)]
        return min((each for each in left if each is not None), default=None)

    async def decide(self, run: Run, view: View, next: Decide) -> Proposal:
        accounts = self._all(run)
        with _kept_aside(accounts):
            usage = None
            try:
                proposal = await next(run, view)
                usage = usage_of(proposal)
            except Failed as failed:
                usage = usage_of(failed.error)
                raise
            finally:
                for account in accounts:
                    account.learn(usage or Usage(), own=account.run is run)
        return proposal

    async def act(self, run: Run, call: Call, next: Act) -> Observation:
        accounts = self._all(run)
        with _LOCK:
            for account in accounts:
                account.check_tool_call()
            for account in accounts:
                account.tool_calls += 1
        token = _spending.set(accounts)
        try:
            return await next(run, call)
        finally:
            _spending.reset(token)

    def _all(self, run: Run) -> tuple[_Account, ...]:
        """The account of this run, and those of the runs inside whose tools it runs."""
        with _LOCK:
            own = self._accounts.get(run)
            if own is None:
                own = self._accounts[run] = _Account(self, run)
        around = tuple(each for each in _spending.get() if each.run is not run)
        return (own, *around)


class _Account:
    """What one run spends of one budget, as far as the run itself doesn't know it."""

    def __init__(self, budget: Budget, run: Run) -> None:
        self.budget, self.run = budget, run
        self.tool_calls = run.begun
        self._below = Usage()
        """What the models of other runs cost, inside this one's tools."""
        self._largest: dict[str, float] = {}
        self._aside: dict[str, float] = {}

    def check_model_call(self) -> None:
        """Raises Stop."""
        for kind in _OF_MODEL:
            self._check(kind, self._aside.get(kind, 0.0))
        self._check("seconds")

    def check_tool_call(self) -> None:
        """Raises Stop."""
        self._check("tool_calls")
        self._check("seconds")

    def _check(self, kind: str, aside: float = 0.0) -> None:
        limit = self.budget.limits.get(kind)
        if limit is None:
            return
        used = self._used(kind)
        if used + aside >= limit:
            error = BudgetExceeded(kind, used, limit)
            raise Stop(StopReason.BUDGET, error, kind=kind, used=used, limit=limit)

    @property
    def seconds_left(self) -> float | None:
        limit = self.budget.limits.get("seconds")
        return None if limit is None else max(0.0, limit - self._used("seconds"))

    def _used(self, kind: str) -> float:
        match kind:
            case "tool_calls":
                return self.tool_calls
            case "seconds":
                return self.run.driver.clock.monotonic() - self.run.origin
            case _:
                return self._measured(self.run.usage + self._below, kind)

    def _measured(self, usage: Usage, kind: str) -> float:
        match kind:
            case "tokens":
                return usage.input_tokens + usage.output_tokens
            case "cost" if self.budget.price is not None:
                return _checked("price", self.budget.price(usage))
            case _:
                tokens: int = getattr(usage, kind)
                return tokens

    def keep_aside(self) -> dict[str, float]:
        """What a model call that begins now may cost."""
        kept = {
            kind: self._largest.get(kind, limit / UNKNOWN_SHARE)
            for kind, limit in self.budget.limits.items()
            if kind in _OF_MODEL
        }
        self._move(kept, 1)
        return kept

    def give_back(self, kept: Mapping[str, float]) -> None:
        self._move(kept, -1)

    def _move(self, kept: Mapping[str, float], sign: int) -> None:
        for kind, size in kept.items():
            self._aside[kind] = self._aside.get(kind, 0.0) + sign * size

    def learn(self, usage: Usage, *, own: bool) -> None:
        """A model call has ended. What this run's own cost is in its usage as soon as recorded."""
        with _LOCK:
            if not own:
                self._below += usage
            for kind in self.budget.limits:
                if kind in _OF_MODEL:
                    size = self._measured(usage, kind)
                    self._largest[kind] = max(self._largest.get(kind, 0.0), size)


_LOCK = RLock()
"""A run inside a tool may have a thread of its own."""

_spending: ContextVar[tuple[_Account, ...]] = ContextVar("_spending", default=())
"""Who pays for what begins here: the runs whose tools are running, innermost first."""


@contextmanager
def _kept_aside(accounts: tuple[_Account, ...]) -> Iterator[None]:
    """Look at every limit, and keep aside what a model call may cost until it has ended."""
    with _LOCK:
        for account in accounts:
            account.check_model_call()
        kept = [account.keep_aside() for account in accounts]
    try:
        yield
    finally:
        with _LOCK:
            for account, each in zip(accounts, kept, strict=True):
                account.give_back(each)


def _checked(kind: str, limit: float) -> float:
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise TypeError(f"{kind} must be a number, but it is {limit!r}.")
    if not (limit >= 0 and math.isfinite(limit)):
        raise ValueError(f"{kind} is {limit}, but must be 0 or more, and finite.")
    return limit
