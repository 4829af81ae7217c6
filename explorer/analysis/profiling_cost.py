"""What recording itself cost, so that findings speak of the program and not of the profiler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.analysis.engine import Engine
from explorer.analysis.intervals import Intervals, Times
from explorer.analysis.step_scope import StepScope


@dataclass(frozen=True)
class ProfilingCost:
    """Calibrated cost per recorded op and per line state, and when they happened on the main thread.

    The cost of an op is taken where the op starts, the cost of a line where its state starts.
    """

    op_ns: float
    line_ns: float
    op_starts_ns: Times
    state_starts_ns: Times

    def inside_ns(self, time: Intervals) -> float:
        """Recording cost that lies inside these intervals; never more than 90 % of them."""
        cost = self.op_ns * time.count_of(self.op_starts_ns)
        cost += self.line_ns * time.count_of(self.state_starts_ns)
        return min(cost, 0.9 * time.total_ns)


def profiling_cost(engine: Engine, scope: StepScope, track_id: int) -> ProfilingCost:
    """Read the calibration from the rank's manifest (zero for imported traces, which do not know it)."""
    cost = engine.reader.manifests[scope.rank].cost
    op_ns, line_ns = (_number(cost.get(name)) for name in ("op_ns", "line_ns"))
    ops = states = np.zeros(0, dtype=np.int64)
    if op_ns:
        ops = _starts(
            engine,
            f"SELECT e.start_ns FROM events e WHERE {scope.where('e')} AND e.category = 'op' AND e.track_id = {track_id}",
        )
    if line_ns:
        states = _starts(
            engine,
            f"""SELECT h.start_ns FROM host_states h WHERE h.rank = {scope.rank} AND h.track_id = {track_id}
            AND h.start_ns BETWEEN {scope.start_ns} AND {scope.end_ns}""",
        )
    return ProfilingCost(op_ns, line_ns, ops, states)


def _starts(engine: Engine, sql: str) -> Times:
    table = engine.sql(sql).arrow()
    return np.sort(table.column(0).to_numpy().astype(np.int64))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0
