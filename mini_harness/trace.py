"""The trace: the sink that keeps what happened in memory, and shows it.

trace = Trace()
run = await Harness(model, tools, sinks=[trace]).run(goal)
trace.table()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mini_harness.clock import Clock, RealClock
from mini_harness.events import Event, EventType
from mini_harness.frozen import FrozenDict, freeze
from mini_harness.redact import Redactor
from mini_harness.run import Run
from mini_harness.spans import by_run
from mini_harness.visible import counted, visible

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from mini_harness.table import Table
    from mini_harness.views.timeline import Timeline

BY_HAND = "by-hand"
"""The run to which the events belong that ``record`` writes."""


class Trace:
    """All events of one or more runs, in the order in which they came.

    An event's data was frozen when it was recorded: a tool that changes its arguments later
    changes nothing here. Runs are told apart by their ids: of two runs with the same id, the
    second is refused before it can do anything.
    """

    def __init__(self, events: Iterable[Event] = (), *, clock: Clock | None = None) -> None:
        """``clock`` is for ``record`` only: a harness puts the time of its own into its events.

        Raises ValueError for events of two runs that have the same id.
        """
        self.events: list[Event] = []
        self.clock = RealClock() if clock is None else clock
        self._origin: float | None = None
        self._ids: set[str] = set()
        self._looked = 0
        for event in events:
            self(event)

    def __call__(self, event: Event) -> None:
        """Keep an event. Every step of every run comes by here, so hardly anything is done.

        Raises ValueError for the beginning of a run whose id another one has: each virtual clock
        counts its names from one.
        """
        if event.sequence == 1:
            self._begins(event.run_id)
        self.events.append(event)

    def _begins(self, run_id: str) -> None:
        self._ids.update(each.run_id for each in self.events[self._looked :])
        self._looked = len(self.events)
        if run_id in self._ids:
            raise ValueError(
                f"This trace has a run called {visible(run_id)} already. Harnesses that share a "
                "trace need one clock, or each a trace of its own."
            )

    def __repr__(self) -> str:
        events, runs = counted(len(self.events), "event"), counted(len(self.runs), "run")
        return f"<Trace: {events} of {runs}>"

    @property
    def runs(self) -> tuple[str, ...]:
        """The ids of the runs, in the order in which they began."""
        return tuple(by_run(self.events))

    def of(self, run: Run | str) -> Trace:
        """The trace of one run alone. Raises ValueError that lists the runs there are."""
        name, runs = run if isinstance(run, str) else run.id, by_run(self.events)
        if name not in runs:
            known = visible(", ".join(runs)) or "none yet"
            raise ValueError(f"This trace has no run {name!r}. Its runs: {known}.")
        return Trace(runs[name], clock=self.clock)

    def last(self) -> Trace:
        """The trace of the run that began last. Raises ValueError if nothing was recorded."""
        if not self.events:
            raise ValueError("This trace is empty: run something that has it among its sinks.")
        return self.of(self.runs[-1])

    def record(self, event_type: str, /, *, step: int | None = None, **data: Any) -> None:
        """Keep an event of a loop that is written by hand and has no harness (SEEDS A09).

        Without ``step``, the last step goes on. SEEDS A10 calls ``error`` what is ``tool_error``
        here. Raises ValueError that lists the types, and NotJson for data that isn't JSON.
        """
        if event_type not in set(EventType):
            known = ", ".join(EventType)
            raise ValueError(f"There is no event type {event_type!r}. The types are: {known}.")
        before = next((each for each in reversed(self.events) if each.run_id == BY_HAND), None)
        if step is None:
            step = before.step if before else 0
        now = self.clock.monotonic()
        if self._origin is None:
            # What was read back goes on from its last event: time since then isn't counted.
            self._origin = now - (before.offset if before else 0.0)
        when = now - self._origin, self.clock.time()
        sequence = before.sequence + 1 if before else 1
        # A harness takes secrets out before its sinks see them; here nobody else does.
        self._secrets.look_around()
        kept: FrozenDict = self._secrets.hidden(freeze(data))
        self.events.append(Event(BY_HAND, sequence, step, EventType(event_type), *when, kept))

    @cached_property
    def _secrets(self) -> Redactor:
        return Redactor()

    def to_dicts(self) -> list[dict[str, Any]]:
        """Each event as ``{"type": ..., "step": ..., **data}`` (SEEDS A09 to A11)."""
        return [
            {"type": event.type.value, "step": event.step, **event.data} for event in self.events
        ]

    def table(
        self, run: Run | str | None = None, *, step: int | None = None, type: str | None = None
    ) -> Table:
        """What happened, a line for each event: of all runs, or of one; of all steps and types, or
        of one.

        Each run has lines of its own. Raises ValueError for a run or a type that doesn't exist.
        """
        from mini_harness.table import Table

        events = self.events if run is None else self.of(run).events
        return Table(events, step=step, type=None if type is None else EventType(type))

    def timeline(
        self, run: Run | str | None = None, *, by: Literal["time", "order"] | None = None
    ) -> Timeline:
        """A drawing of one run, of the last one unless told otherwise.

        ``by`` says what lies along the x axis: the time, or the order of the events. Without it,
        the time is taken if one sees something by it.
        """
        from mini_harness.views.timeline import Timeline

        return Timeline((self.last() if run is None else self.of(run)).events, by=by)

    def to_jsonl(self) -> str:
        """Each event as one line of strict JSON."""
        from mini_harness.export import jsonl

        return jsonl(self.events)

    def save(self, path: Path | str) -> None:
        """Write ``to_jsonl`` to a file: all of it, or the old file stays.

        Who may read an old file may read the new one, and a link still leads to the file.
        """
        from mini_harness.export import save

        save(self.events, Path(path))

    @classmethod
    def load(cls, path: Path | str) -> Trace:
        """Read what ``save`` wrote. Raises DamagedTrace, a ValueError, that names the line, and
        ValueError for two runs that have the same id."""
        from mini_harness.export import load

        return cls(load(Path(path)))

    def to_perfetto(self) -> str:
        """JSON in Chrome's trace event format. Write it to a file and open it in ui.perfetto.dev.

        Times are in microseconds. Where no time passed, as with a model that plays a script
        without latency, Perfetto has no lengths to show; ``timeline()`` does better there.
        """
        from mini_harness.export import perfetto

        return perfetto(self.events)

    def to_otel(
        self,
        provider: TracerProvider,
        *,
        content: bool = False,
        model: Mapping[str, str] | None = None,
    ) -> None:
        """Hand each run to OpenTelemetry, in the conventions for generative AI.

        What was said stays here unless ``content`` is asked for: it may be private. ``model`` adds
        attributes of your own to the turns of the model, such as ``gen_ai.request.model``. Raises
        ImportError that says how to install what is missing.
        """
        from mini_harness.otel import export

        export(self.events, provider, content=content, model=model or {})
