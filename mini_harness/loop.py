"""The loop: the model proposes, the harness decides what happens, the record remembers.

It is written once, here, and no later version edits it. What they add are layers and sinks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mini_harness.clock import Clock, RealClock
from mini_harness.events import Sink
from mini_harness.layer import Failed, Feedback, Interrupt, Layer, Proposal, Stop, View, chain
from mini_harness.models.base import Model, checked
from mini_harness.protocol import Final, Observation, ToolCall, read_turn
from mini_harness.record import Record
from mini_harness.run import RUNNING, Run, StopReason
from mini_harness.sync import run_sync
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.call import Call, execute, in_doubt, let_cancellation_pass, prepare
from mini_harness.tools.registry import AnyTool, ToolRegistry

MAX_REJECTIONS = 3
"""How often a final answer may be sent back before the run stops."""


class Harness:
    """A model, its tools, the layers around the loop, and the sinks that remember.

    ``layers`` are given outermost first. ``cwd`` is the folder that tools work in.
    """

    def __init__(
        self,
        model: Model,
        tools: ToolRegistry | Iterable[AnyTool] | Mapping[str, AnyTool] = (),
        *,
        layers: Iterable[Layer] = (),
        sinks: Iterable[Sink] = (),
        clock: Clock | None = None,
        cwd: Path | str = ".",
    ) -> None:
        self.model = checked(model)
        self.tools = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
        self.layers = tuple(layers)
        self.clock = RealClock() if clock is None else clock
        self.cwd = Path(cwd).resolve()
        self.record = Record(sinks, self.clock)
        self._decide = chain(self.layers, "decide", self._ask)
        self._act = chain(self.layers, "act", self._execute)
        self._finish = chain(self.layers, "finish", self._accept)

    async def run(self, goal: str) -> Run:
        """Pursue a goal until there is an answer, a stop or a pause."""
        run = Run(f"run-{self.clock.fresh()}")
        self.record.message(run, goal)
        return await self.resume(run)

    def run_sync(self, goal: str) -> Run:
        """``run`` for a caller that can't await, also where an event loop is running already."""
        return run_sync(self.run(goal))

    async def resume(self, run: Run) -> Run:
        """Go on with a run: new, paused, stopped, or read back from its events."""
        with run.driven_by(self):
            await self._drive(run)
        return run

    async def _drive(self, run: Run) -> None:
        self.record.resume(run)
        try:
            while run.status is RUNNING:
                match run.pending:
                    case None:
                        view = View(run.history.messages, self.tools.to_api_schema())
                        self.record.decision(run, await self._decide(run, view))
                    case Final() as final:
                        await self._conclude(run, final)
                    case calls:
                        await self._act_all(run, calls)
        except Interrupt as interrupt:
            self.record.interrupt(run, interrupt)
        except asyncio.CancelledError:
            self.record.interrupt(run, Stop(StopReason.CANCELLED))
            raise

    async def _ask(self, run: Run, view: View) -> Proposal:
        try:
            reply = self.model.decide(view.messages, view.tools)
            if hasattr(reply, "__await__"):
                reply = await reply
        except (Exception, asyncio.CancelledError) as error:
            let_cancellation_pass(error)
            raise Failed(error) from error
        return read_turn(reply)

    async def _act_all(self, run: Run, calls: tuple[ToolCall, ...]) -> None:
        for call in calls:
            ready = prepare(self.tools, call, run.in_doubt)
            seen = await self._act(run, ready) if isinstance(ready, Call) else ready
            self.record.observation(run, call, seen)

    async def _execute(self, run: Run, call: Call) -> Observation:
        if run.in_doubt and run.doubts(call):
            return in_doubt(call)
        self.record.start(run, call)
        seen = await execute(call, ToolExecutionContext.of(self, run, call))
        self.record.end(run, call, seen)
        return seen

    async def _conclude(self, run: Run, final: Final) -> None:
        answer = await self._finish(run, final)
        if isinstance(answer, Feedback) and run.rejections >= MAX_REJECTIONS:
            raise Stop(StopReason.REJECTED, limit=MAX_REJECTIONS, because=answer.reason)
        self.record.answer(run, answer)

    async def _accept(self, run: Run, final: Final) -> Any:
        return final.output
