"""`[memory]` events: allocations and frees, with the op and line during which they happened."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from explorer.collectors.kineto.collecting import Collected
from explorer.collectors.kineto.flows import bind
from explorer.collectors.kineto.light import NONE, LightRows
from explorer.collectors.kineto.lines import Lines
from explorer.collectors.kineto.linking import Links
from explorer.collectors.kineto.nesting import nearest

Ints = npt.NDArray[np.int64]

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
MEMORY_COLUMNS = (
    "ts", "size_bytes", "device_type", "memory_device", "address", "allocated_bytes", "reserved_bytes", "attributes",
)  # fmt: skip
"""Columns of a chunk that `memory_rows` takes."""


def link_memory(light: LightRows, found: Collected, links: Links, lines: Lines) -> dict[str, Ints]:
    """By memory row: the op it happened in (row of it, -1: none), site and stack (0: none), step (-1: none)."""
    events, rows = found.events, found.memory_rows
    if not len(rows) or not len(events.row):
        return {
            "row": rows,
            "op": np.full(len(rows), -1),
            "site": np.zeros(len(rows), np.int64),
            "stack": np.zeros(len(rows), np.int64),
            "step": np.full(len(rows), -1),
        }
    host = links.order[~(events.asynchronous | events.on_device)[links.order]]
    holder = bind(
        light.track[rows].astype(np.int64),
        found.memory_time,
        events.track,
        events.start,
        events.duration,
        host,
    )
    is_op = ~events.on_device & events.category_in("op", "collective", "data")
    op_at = nearest(links.parent, is_op, itself=True)
    inside, place = holder >= 0, np.maximum(holder, 0)
    op = np.where(inside, op_at[place], -1)
    return {
        "row": rows,
        "op": np.where(op >= 0, events.row[np.maximum(op, 0)], -1),
        "site": np.where(inside, lines.site_of(place), 0),
        "stack": np.where(inside, lines.stack_of(place), 0),
        "step": np.where(inside, links.step[place], -1),
    }


def memory_rows(rows: pa.Table, memory: dict[str, Ints], first: int, base_ns: int) -> dict[str, Any]:
    """Rows of `memory_events` of one group of chunks that begins at row `first`."""
    take = pa.array(memory["row"])

    def numbers(name: str) -> Ints:
        return np.asarray(pc.fill_null(rows.column(name).take(take), NONE).to_numpy())

    size, kind, device = numbers("size_bytes"), numbers("device_type"), numbers("memory_device")
    names = [
        DEVICE_TYPES.get(k, "cpu" if k == NONE else f"device_type_{k}")
        + (f":{d}" if d != NONE and d >= 0 and k != 0 else "")
        for k, d in zip(kind.tolist(), device.tolist())
    ]

    def absent(name: str, nothing: int, kind: pa.DataType) -> pa.Array:
        flag = memory[name] == nothing
        return pa.array(np.where(flag, 0, memory[name]), kind, mask=flag)

    return {
        "event_id": memory["row"] + first,
        "timestamp_ns": numbers("ts") + base_ns,
        "action": pa.array(np.where(size < 0, "free", "alloc").tolist(), pa.string()),
        "address": rows.column("address").take(take),
        "size_bytes": size,
        "allocated_bytes": rows.column("allocated_bytes").take(take),
        "reserved_bytes": rows.column("reserved_bytes").take(take),
        "device": pa.array(names, pa.string()),
        "op_id": absent("op", -1, pa.int64()),
        "site_id": absent("site", 0, pa.int64()),
        "stack_id": absent("stack", 0, pa.int64()),
        "step": absent("step", -1, pa.int32()),
        "attributes": rows.column("attributes").take(take),
    }
