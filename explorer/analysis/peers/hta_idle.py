"""HTA's idle categories per stream (hta/analyzers/breakdown_analysis.py, idle time).

A gap is the start of a row minus the end of the row before it on the stream (negative where they overlap). host_wait: the
launch began after that end; else kernel_wait under a threshold of 30, which the code compares with microseconds although
the documentation says nanoseconds; else other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from explorer.analysis.peers.hta_rows import hta_rows, launch_starts
from explorer.analysis.result import Result

if TYPE_CHECKING:
    from explorer.analysis.run import Run

KERNEL_WAIT_US = 30
_NOT_WORK = ("cuda_sync", "cpu_op", "cuda_runtime", "hip_runtime")
IDLE_CATEGORIES = ("host_wait", "kernel_wait", "other")


def idle(run: Run, *, include_last_step: bool = False) -> Result:
    """One row per rank, stream and category: number and sum of the gaps in whole microseconds."""
    found: list[dict[str, Any]] = []
    for rows in hta_rows(run, include_last_step=include_last_step):
        device = rows.device.assign(launch=launch_starts(rows))
        device = device[~device["category"].isin(_NOT_WORK)]
        for stream, group in device.groupby("stream"):
            ordered = group.sort_values("start", kind="stable")
            before = ordered["end"].shift(1).to_numpy()[1:]
            gap = ordered["start"].to_numpy()[1:] - before
            late = ordered["launch"].to_numpy()[1:] > before
            kind = np.where(late, 0, np.where(gap < KERNEL_WAIT_US, 1, 2))
            for number, name in enumerate(IDLE_CATEGORIES):
                chosen = gap[kind == number]
                found.append(
                    {
                        "rank": rows.rank,
                        "stream": int(str(stream)),
                        "idle_category": name,
                        "gaps": len(chosen),
                        "idle_time_us": float(chosen.sum()),
                    }
                )
    schema = pa.schema(
        [
            ("rank", pa.int32()),
            ("stream", pa.int64()),
            ("idle_category", pa.string()),
            ("gaps", pa.int64()),
            ("idle_time_us", pa.float64()),
        ]
    )
    return Result(pa.Table.from_pylist(found, schema), "neuron-explorer/gaps-hta/1")
