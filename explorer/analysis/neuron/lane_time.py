"""How long each lane of each core was busy in all."""

from __future__ import annotations

import pyarrow as pa

from explorer.analysis.engine import Engine
from explorer.analysis.neuron.lanes import core_lanes

_KINDS = {
    "rank": pa.int32(),
    "profile": pa.string(),
    "device": pa.string(),
    "core": pa.int32(),
    "lane": pa.string(),
    "busy_ns": pa.int64(),
    "intervals": pa.int64(),
    "start_ns": pa.int64(),
    "end_ns": pa.int64(),
}


def compute(engine: Engine) -> pa.Table:
    """The computed table neuron_lane_time."""
    rows = [
        (
            core.rank,
            core.profile,
            f"neuron:{core.device_index}",
            core.core,
            name,
            busy.total_ns,
            len(busy.start_ns),
            int(busy.start_ns[0]),
            int(busy.end_ns[-1]),
        )
        for core in core_lanes(engine)
        for name, busy in core.lanes.items()
        if len(busy.start_ns)
    ]
    return pa.Table.from_pylist(
        [dict(zip(_KINDS, row)) for row in rows], schema=pa.schema(list(_KINDS.items()))
    )
