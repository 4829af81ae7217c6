"""What recording itself cost, so that findings speak of the program and not of the profiler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from explorer.analysis.critical_path.host_lane import distinct
from explorer.analysis.engine import Engine
from explorer.analysis.intervals import Intervals, Times
from explorer.analysis.step_scope import StepScope

MOST = 0.9
"""Recording is never taken for more than this part of any time: the rest surely is the program's."""

Costs = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ProfilingCost:
    """Calibrated cost per recorded op, line state and traced call, and when they happened on the main thread.

    The cost of an op is taken where the op starts. Lines, calls of library code and calls of modules are counted per state:
    their cost lies evenly in its time outside ops; `traced_before_ns` is that cost up to each of `edges_ns`.
    """

    op_ns: float
    op_starts_ns: Times
    edges_ns: Times
    traced_before_ns: Costs

    def inside_ns(self, time: Intervals) -> float:
        """Recording cost that lies inside these intervals; never more than MOST of them."""
        cost = self.op_ns * time.count_of(self.op_starts_ns)
        if len(self.edges_ns) > 1:
            cost += float((self._traced_before(time.end_ns) - self._traced_before(time.start_ns)).sum())
        return min(cost, MOST * time.total_ns)

    def _traced_before(self, times: Times) -> Costs:
        """As numpy's interp, which would read all edges for each of many short questions."""
        edges, cost = self.edges_ns, self.traced_before_ns
        slot = np.clip(np.searchsorted(edges, times, "right") - 1, 0, len(edges) - 2)
        part = (times - edges[slot]) / (edges[slot + 1] - edges[slot])
        return np.asarray(cost[slot] + np.clip(part, 0.0, 1.0) * (cost[slot + 1] - cost[slot]), np.float64)


def profiling_cost(engine: Engine, scope: StepScope, track_id: int) -> ProfilingCost:
    """Read the calibration from the rank's manifest (zero for imported traces, which do not know it)."""
    cost = engine.reader.manifests[scope.rank].cost
    op_ns, line_ns = _number(cost.get("op_ns")), _number(cost.get("line_ns"))
    op_starts = op_lengths = edges = np.zeros(0, dtype=np.int64)
    before = np.zeros(0)
    if op_ns:
        found = engine.sql(
            f"""SELECT e.start_ns, e.duration_ns FROM events e
            WHERE {scope.where("e")} AND e.category = 'op' AND e.track_id = {track_id} ORDER BY e.start_ns"""
        ).arrow()
        op_starts, op_lengths = (column.to_numpy().astype(np.int64) for column in found.columns)
    if line_ns:
        found = engine.sql(
            f"""SELECT h.start_ns, h.duration_ns, {traced_ns(engine, scope.rank)} AS traced_ns
            FROM host_states h WHERE h.rank = {scope.rank} AND h.track_id = {track_id}
            AND h.start_ns BETWEEN {scope.start_ns} AND {scope.end_ns} ORDER BY h.start_ns"""
        ).arrow()
        state_starts, lengths = (found.column(at).to_numpy().astype(np.int64) for at in (0, 1))
        ops = Intervals.of(op_starts, op_starts + op_lengths)
        edges, before = _traced(state_starts, lengths, found.column(2).to_numpy().astype(float), ops)
    return ProfilingCost(op_ns, op_starts, edges, before)


def traced_ns(engine: Engine, rank: int) -> str:
    """SQL for what recording a row `h` of host_states cost the program, in ns."""
    cost = engine.reader.manifests[rank].cost
    line_ns, call_ns, module_ns = (_number(cost.get(name)) for name in ("line_ns", "call_ns", "module_ns"))
    # A run that does not count the records of a state has one line in each.
    return (
        f"({line_ns} * coalesce(h.line_records, 1) + {call_ns} * coalesce(h.skipped_calls, 0)"
        f" + {module_ns} * coalesce(h.module_calls, 0))"
    )


def _traced(start: Times, length: Times, cost: Costs, ops: Intervals) -> tuple[Times, Costs]:
    """Cumulative cost of what was traced in states, which lies evenly in each state's time outside ops."""
    if not cost.any():
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    end = start + length
    outside = length - (ops.covered_before(end) - ops.covered_before(start))
    rate = np.minimum(cost, MOST * outside) / np.maximum(1, outside)
    edges = distinct(start, end, ops.start_ns, ops.end_ns)
    at = np.searchsorted(start, edges[:-1], "right") - 1
    inside = (at >= 0) & (edges[:-1] < end[at])
    free = np.diff(edges) - np.diff(ops.covered_before(edges))
    return edges, np.r_[0.0, np.cumsum(np.where(inside, rate[at], 0.0) * free)]


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0
