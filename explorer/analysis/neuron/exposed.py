"""When a core computes nothing, and what goes on meanwhile: collectives, DMA, or nothing at all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from explorer.analysis.engine import Engine
from explorer.analysis.intervals import Intervals
from explorer.analysis.neuron.interval_sets import subtract
from explorer.analysis.neuron.lanes import COLLECTIVE, DMA, CoreLanes, constant, core_lanes, together
from explorer.analysis.neuron.overlap import profile_window

KINDS = (COLLECTIVE, DMA, "idle")


def exposed(core: CoreLanes, window: tuple[int, int]) -> dict[str, Intervals]:
    """Disjoint intervals in which no compute engine works: collectives first, then DMA, then nothing."""
    known: dict[str, Intervals] | None = core.known.get(("exposed", window))
    if known is not None:
        return known
    left = subtract(Intervals.of([window[0]], [window[1]]), core.compute)
    found: dict[str, Intervals] = {}
    for kind in (COLLECTIVE, DMA):
        rest = subtract(left, core.lane(kind))
        found[kind] = subtract(left, rest)
        left = rest
    found["idle"] = left
    core.known["exposed", window] = found
    return found


def compute(engine: Engine) -> pa.Table:
    """The computed table neuron_exposed."""
    profiles: dict[tuple[int, str], list[CoreLanes]] = {}
    for core in core_lanes(engine):
        profiles.setdefault((core.rank, core.profile), []).append(core)
    parts = []
    for cores in profiles.values():
        window = profile_window(cores)
        for core in [*cores, together(cores)]:
            for kind, found in exposed(core, window).items():
                count = len(found.start_ns)
                columns = {
                    "rank": pa.array(np.full(count, core.rank, np.int32)),
                    "profile": constant(core.profile, count),
                    "device": constant(f"neuron:{core.device_index}", count),
                    "core": pa.array(np.full(count, core.core, np.int32)),
                    "kind": constant(kind, count),
                    "start_ns": found.start_ns,
                    "duration_ns": found.end_ns - found.start_ns,
                }
                parts.append(pa.table(columns))
    if parts:
        return pa.concat_tables(parts).unify_dictionaries()
    kinds = [
        ("rank", pa.int32()),
        ("profile", pa.string()),
        ("device", pa.string()),
        ("core", pa.int32()),
        ("kind", pa.string()),
    ]
    return pa.schema([*kinds, ("start_ns", pa.int64()), ("duration_ns", pa.int64())]).empty_table()
