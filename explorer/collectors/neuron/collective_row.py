"""A row of table CcOp as a row of `collectives`."""

from __future__ import annotations

import json
from typing import Any

COLLECTIVE_NAMES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "permute": "send_recv",
    "collectivepermute": "send_recv",
    "sendrecv": "send_recv",
    "broadcast": "broadcast",
}
_DTYPE_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}


def collective_row(event_id: int, row: dict[str, Any]) -> dict[str, Any]:
    """One row of `collectives` for a row of CcOp; the size is the input, for an all-gather the output."""
    operation = (row["operation"] or "").replace("_", "").replace("-", "").lower()
    kind = COLLECTIVE_NAMES.get(operation, row["operation"] or "collective")
    group = replica_group(row["replica_group"])
    size = row["output_size"] if kind == "all_gather" else row["input_size"]
    count = row["num_elements"]
    if size is None and count:
        width = next((b for bits, b in _DTYPE_BYTES.items() if (row["dtype"] or "").endswith(bits)), None)
        size = count * width if width else None
    return {
        "event_id": event_id,
        "side": "device",
        "group": None if row["replica_group_id"] is None else str(row["replica_group_id"]),
        "operation": kind,
        "dtype": row["dtype"],
        "element_count": count,
        "size_bytes": size,
        "group_size": len(group) if group else None,
        "group_ranks": json.dumps(group) if group else None,
    }


def replica_group(text: str | None) -> list[int]:
    """Ranks of the first replica group of '[[0,1],[2,3]]'."""
    try:
        value = json.loads(text or "")
    except ValueError:
        return []
    if isinstance(value, list) and value and isinstance(value[0], list):
        value = value[0]
    return [item for item in value if isinstance(item, int)] if isinstance(value, list) else []
