"""Rows of memory_events from the profiler's instants about allocations and frees."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.collectors.capture.host_states import HostStates
from explorer.collectors.capture.kineto_window import RawWindow
from explorer.collectors.capture.steps import Step, step_of

I64 = npt.NDArray[np.int64]

MEMORY_NAME = "[memory]"


def memory_rows(
    raw: RawWindow,
    rows: npt.NDArray[np.intp],
    attributes: list[str | None],
    states: HostStates,
    lookup: tuple[I64, I64],
    steps: list[Step],
    first_event_id: int,
) -> list[dict[str, Any]]:
    """Rows of memory_events; the profiler writes them as instants with Bytes, Addr and totals."""
    result = []
    stacks, sites = lookup
    numbers = step_of(raw.starts[rows], steps)
    for offset, (row, number) in enumerate(zip(rows.tolist(), numbers.tolist())):
        values = json.loads(attributes[row] or "{}")
        node = int(states.node_at(int(raw.resource_ids[row]), raw.starts[row : row + 1])[0])
        size = int(values.get("Bytes", 0))
        device = {0: "cpu", 1: "cuda"}.get(values.get("Device Type"), str(values.get("Device Type", "cpu")))
        index = values.get("Device Id", -1)
        result.append(
            {
                "event_id": first_event_id + offset,
                "timestamp_ns": int(raw.starts[row]),
                "action": "alloc" if size >= 0 else "free",
                "address": values.get("Addr"),
                "size_bytes": size,
                "allocated_bytes": values.get("Total Allocated"),
                "reserved_bytes": values.get("Total Reserved"),
                "device": device if device == "cpu" or index is None or index < 0 else f"{device}:{index}",
                "site_id": int(sites[node]) or None,
                "stack_id": int(stacks[node]) or None,
                "step": number if number >= 0 else None,
            }
        )
    return result
