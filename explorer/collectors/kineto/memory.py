"""`[memory]` events: allocations and frees, with the op and line during which they happened."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from explorer.collectors.kineto.collecting import Collected, numbers
from explorer.collectors.kineto.flows import bind
from explorer.collectors.kineto.launches import NONE
from explorer.collectors.kineto.lines import Lines
from explorer.collectors.kineto.linking import Links
from explorer.collectors.kineto.nesting import nearest

DEVICE_TYPES = {
    0: "cpu",
    1: "cuda",
    6: "hip",
    7: "fpga",
    9: "xla",
    12: "xpu",
    13: "mps",
    18: "hpu",
    20: "privateuseone",
    21: "mtia",
}
"""c10::DeviceType (c10/core/DeviceType.h)."""


def memory_rows(rows: pa.Table, found: Collected, links: Links, lines: Lines) -> dict[str, Any]:
    """Rows of `memory_events`."""
    events, which = found.events, found.memory_rows
    end = events.start + events.duration
    time = found.row_time[which]
    host = links.order[~(events.asynchronous | events.on_device)[links.order]]
    holder = bind(found.row_track[which].astype(np.int64), time, events.track, events.start, end, host)
    is_op = ~events.on_device & events.category_in("op", "collective", "data")
    if len(events.start):
        op_at = nearest(links.parent, is_op, itself=True)
        op = np.where(holder >= 0, op_at[np.maximum(holder, 0)], -1)
        site = np.where(holder >= 0, lines.site[np.maximum(holder, 0)], 0)
        stack = np.where(holder >= 0, lines.stack[np.maximum(holder, 0)], 0)
        step = np.where(holder >= 0, links.step[np.maximum(holder, 0)], -1)
    else:
        op = step = np.full(len(which), -1)
        site = stack = np.zeros(len(which), np.int64)
    size = numbers(rows, "size_bytes")[which]
    kind, device = numbers(rows, "device_type")[which], numbers(rows, "memory_device")[which]
    names = [
        DEVICE_TYPES.get(k, "cpu" if k == NONE else f"device_type_{k}")
        + (f":{d}" if d != NONE and d >= 0 and k != 0 else "")
        for k, d in zip(kind.tolist(), device.tolist())
    ]
    take = pa.array(which)

    def absent(values: Any, flag: Any) -> pa.Array:
        return pa.array(np.where(flag, 0, values), pa.int64(), mask=flag)

    return {
        "event_id": which,
        "timestamp_ns": time,
        "action": pa.array(np.where(size < 0, "free", "alloc").tolist(), pa.string()),
        "address": rows.column("address").take(take),
        "size_bytes": size,
        "allocated_bytes": rows.column("allocated_bytes").take(take),
        "reserved_bytes": rows.column("reserved_bytes").take(take),
        "device": pa.array(names, pa.string()),
        "op_id": absent(events.row[np.maximum(op, 0)] if len(events.row) else op, op < 0),
        "site_id": absent(site, site == 0),
        "stack_id": absent(stack, stack == 0),
        "attributes": rows.column("attributes").take(take),
        "step": absent(step, step < 0).cast(pa.int32()),
    }
