"""How long each combination of lanes was busy at once: overlap of engines, hidden and exposed DMA and collectives, idle time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from explorer.analysis.engine import Engine
from explorer.analysis.neuron.lanes import COLLECTIVE, DMA, THROTTLE, CoreLanes, core_lanes, together
from explorer.model.neuron_engines import COMPUTE_ENGINES

BITS = (*COMPUTE_ENGINES, DMA, COLLECTIVE, THROTTLE)


def profile_window(cores: list[CoreLanes]) -> tuple[int, int]:
    """First start and last end of any engine, DMA or collective of a profile; (0, 0) where nothing ran."""
    lanes = [
        busy for core in cores for name, busy in core.lanes.items() if name != THROTTLE and len(busy.start_ns)
    ]
    if not lanes:
        return 0, 0
    return min(int(b.start_ns[0]) for b in lanes), max(int(b.end_ns[-1]) for b in lanes)


def combinations(core: CoreLanes, window: tuple[int, int]) -> dict[int, int]:
    """Nanoseconds by set of busy lanes (bit i: BITS[i]); the sum is the window's length."""
    times, deltas = [np.array([window[0], window[1]], np.int64)], [np.zeros(2, np.int64)]
    for bit, name in enumerate(BITS):
        busy = core.lane(name)
        start = np.clip(busy.start_ns, *window)
        end = np.clip(busy.end_ns, *window)
        times += [start, end]
        # Intervals of a lane are disjoint, so adding and subtracting its bit never carries.
        deltas += [np.full(len(start), 1 << bit, np.int64), np.full(len(end), -(1 << bit), np.int64)]
    time, delta = np.concatenate(times), np.concatenate(deltas)
    order = np.argsort(time, kind="stable")
    state = np.cumsum(delta[order])[:-1]
    length = np.diff(time[order])
    sums = np.bincount(state[length > 0], weights=length[length > 0].astype(np.float64), minlength=1)
    return {int(mask): int(sums[mask]) for mask in np.flatnonzero(sums)}


def compute(engine: Engine) -> pa.Table:
    """The computed table neuron_overlap."""
    rows: list[dict[str, Any]] = []
    profiles: dict[tuple[int, str], list[CoreLanes]] = {}
    for core in core_lanes(engine):
        profiles.setdefault((core.rank, core.profile), []).append(core)
    for cores in profiles.values():
        window = profile_window(cores)
        for core in [*cores, together(cores)]:
            for mask, duration in combinations(core, window).items():
                row: dict[str, Any] = {
                    "rank": core.rank,
                    "profile": core.profile,
                    "device": f"neuron:{core.device_index}",
                    "core": core.core,
                }
                row |= {name.lower(): bool(mask >> bit & 1) for bit, name in enumerate(BITS)}
                row["duration_ns"] = duration
                rows.append(row)
    kinds = {"rank": pa.int32(), "profile": pa.string(), "device": pa.string(), "core": pa.int32()}
    kinds |= {name.lower(): pa.bool_() for name in BITS} | {"duration_ns": pa.int64()}
    return pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items())))
