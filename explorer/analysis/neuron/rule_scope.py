"""What the Neuron rules share: the slowest core in scope, its lanes clipped to the steps, sums per step, lines of waits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from explorer.analysis.engine import literal
from explorer.analysis.intervals import Intervals
from explorer.analysis.neuron.exposed import exposed
from explorer.analysis.neuron.interval_sets import clip, subtract
from explorer.analysis.neuron.lanes import CoreLanes, core_lanes, together
from explorer.analysis.neuron.line_sums import LineSums
from explorer.analysis.neuron.overlap import profile_window
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


@dataclass
class NeuronScope:
    """The device profiles of the rank in scope."""

    context: RuleContext

    @classmethod
    def of(cls, context: RuleContext) -> NeuronScope:
        """The one that all Neuron rules of a context share."""
        known = context.shared.setdefault("neuron", cls(context))
        assert isinstance(known, cls)
        return known

    @cached_property
    def cores(self) -> list[CoreLanes]:
        """Physical cores of the rank in scope, of profiles whose engines are known to have worked: where no instruction has a
        time, nothing can be said of waits."""
        own = [core for core in core_lanes(self.context.engine) if core.rank == self.context.scope.rank]
        working = {core.profile for core in own if len(core.compute.start_ns)}
        return [core for core in own if core.profile in working]

    @cached_property
    def logical(self) -> list[CoreLanes]:
        """Logical cores: the physical ones of each profile together."""
        profiles: dict[str, list[CoreLanes]] = {}
        for core in self.cores:
            profiles.setdefault(core.profile, []).append(core)
        return [together(cores) for cores in profiles.values()]

    def window(self, core: CoreLanes) -> tuple[int, int]:
        """First start and last end of the core's profile, inside the steps in scope."""
        start, end = profile_window([each for each in self.cores if each.profile == core.profile])
        scope = self.context.scope
        return max(start, scope.start_ns), max(min(end, scope.end_ns), max(start, scope.start_ns))

    def exposed(self, core: CoreLanes) -> dict[str, Intervals]:
        """When the core computes nothing, by what goes on meanwhile."""
        return exposed(core, self.window(core))

    def without_compute(self, core: CoreLanes, intervals: Intervals) -> Intervals:
        """The part of intervals in which no compute engine of the core works."""
        return subtract(clip(intervals, *self.window(core)), core.compute)

    @cached_property
    def steps(self) -> int:
        """Steps in scope that a profile shows: what sums are divided by; 1 where none is known."""
        if not self.context.scope.numbers:
            return 1
        row = self.context.row(
            f"""SELECT count(DISTINCT e.step) AS n FROM events e
            WHERE {self.context.where()} AND e.category IN ('instruction', 'dma', 'collective')"""
        )
        return max(1, int(row.get("n") or 1))

    def per_step(self, total_ns: float) -> int:
        """A sum over the profiles as time per step."""
        return round(total_ns / self.steps)

    def place(self, core: CoreLanes, alias: str = "") -> str:
        """SQL condition for rows of a core in the neuron_* tables, inside the window."""
        dot = f"{alias}." if alias else ""
        start, end = self.window(core)
        return (
            f"{dot}rank = {core.rank} AND {dot}profile = {literal(core.profile)} AND {dot}core = {core.core}"
            f" AND {dot}start_ns >= {start} AND {dot}start_ns < {end}"
        )

    def on_engine(self, core: CoreLanes, engine: str, alias: str = "t") -> str:
        """SQL condition for rows of `tracks` that are this engine of this physical core."""
        return (
            f"{alias}.rank = {core.rank} AND {alias}.kind = 'engine' AND {alias}.device_index = {core.device_index}"
            f" AND coalesce({alias}.thread_id, 0) = {core.core} AND {alias}.thread_name LIKE '{engine}%'"
        )

    def profile(self, core: CoreLanes, alias: str = "") -> str:
        """SQL condition for rows of a core's profile in the official tables."""
        dot = f"{alias}." if alias else ""
        return f"{dot}rank = {core.rank} AND {dot}profile = {literal(core.profile)}"

    def gaps(self, core: CoreLanes, condition: str) -> Intervals:
        """Gaps of the core (neuron_idle) that meet a condition."""
        table = self.context.engine.sql(
            f"SELECT start_ns, start_ns + duration_ns AS end_ns FROM neuron_idle WHERE {self.place(core)} AND ({condition})"
        ).arrow()
        return Intervals.of(table.column("start_ns").to_numpy(), table.column("end_ns").to_numpy())

    def gap_lines(self, core: CoreLanes, condition: str) -> dict[int, int]:
        """Lines of the instructions that waited in these gaps, with the waiting time per step, worst first."""
        return self.lines(
            f"""SELECT event_id, duration_ns AS ns FROM neuron_idle
            WHERE {self.place(core)} AND event_id IS NOT NULL AND ({condition})"""
        )

    def engine_lines(self, core: CoreLanes, engine: str) -> dict[int, int]:
        """Lines of the instructions of one engine of a core, with their time per step, worst first."""
        return self.lines(
            f"""SELECT e.event_id, e.duration_ns AS ns FROM events e JOIN tracks t USING (rank, track_id)
            WHERE {self.context.where()} AND e.category = 'instruction' AND {self.on_engine(core, engine)}"""
        )

    def lines(self, rows: str) -> dict[int, int]:
        """Sum rows of (event_id, ns) into time per step and line, worst first, five at most."""
        table = self.context.engine.sql(
            f"SELECT event_id, CAST(ns AS DOUBLE) AS ns FROM ({rows}) WHERE ns IS NOT NULL"
        ).arrow()
        found = self._line_sums.by_site(table.column("event_id").to_numpy(), table.column("ns").to_numpy())
        worst_first = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return {site: self.per_step(ns) for site, ns in worst_first[:5]}

    @cached_property
    def _line_sums(self) -> LineSums:
        return LineSums(self.context.engine, self.context.scope.rank)

    def summary(self, core: CoreLanes) -> dict[str, Any]:
        """The profile's Summary row; {} without one."""
        return self.context.row(f"SELECT * FROM neuron.Summary WHERE {self.profile(core)} LIMIT 1")

    def metadata(self, core: CoreLanes) -> dict[str, Any]:
        """The profile's Metadata row; {} without one."""
        return self.context.row(f"SELECT * FROM neuron.Metadata WHERE {self.profile(core)} LIMIT 1")


def bound(time_ns: int, expected: float, low: float = 0.3) -> Saving:
    """A saving bounded by exposed time: `expected` and `low` are the parts of it that the advice usually gets."""
    return Saving(round(low * time_ns), round(expected * time_ns), time_ns)


def share(part: float, whole: float) -> float:
    """part of whole; 0 for an empty whole."""
    return part / whole if whole else 0.0


def name_of(core: CoreLanes) -> str:
    """neuron:0, or neuron:0 core 1."""
    return f"neuron:{core.device_index}" + (f" core {core.core}" if core.core >= 0 else "")


def worst(found: list[tuple[int, CoreLanes]]) -> tuple[int, CoreLanes] | None:
    """The core with the largest number, where any is positive: the logical core waits for its slowest part."""
    positive = [item for item in found if item[0] > 0]
    return max(positive, key=lambda item: (item[0], -item[1].core)) if positive else None
