"""HTA's launch statistics and queue lengths (hta/analyzers/cuda_kernel_analysis.py, trace_counters.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from explorer.analysis.peers.hta_rows import HtaRows, hta_rows
from explorer.analysis.result import Result

if TYPE_CHECKING:
    import pandas as pd

    from explorer.analysis.run import Run

MTIA_LAUNCH = "runFunction - job_prep_and_submit_for_execution"
LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync", MTIA_LAUNCH)
"""Calls whose delays HTA reports; driver launches (Triton), HIP and graph launches are not among them."""

QUEUE_LAUNCHES = (
    *LAUNCHES,
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "hipLaunchKernel",
    "hipExtModuleLaunchKernel",
    "hipMemcpyAsync",
    "hipMemsetAsync",
    "hipMemcpyWithStream",
)
"""Calls that count for the queue length."""


def launches(run: Run, *, include_last_step: bool = False) -> Result:
    """One row per launch: durations of the call and of the device row, and the delay from the call's end, never below 0."""
    import pandas as pd

    frames = []
    for rows in hta_rows(run, include_last_step=include_last_step):
        calls = _calls(rows, LAUNCHES)
        pairs = calls.merge(rows.device, on="correlation", suffixes=("_host", "_device"))
        frames.append(
            pd.DataFrame(
                {
                    "rank": rows.rank,
                    "launch_id": pairs["event_id_host"],
                    "event_id": pairs["event_id_device"],
                    "name": pairs["name_device"],
                    "cpu_duration_us": pairs["duration_host"],
                    "gpu_duration_us": pairs["duration_device"],
                    "launch_delay_us": (pairs["start_device"] - pairs["end_host"]).clip(lower=0),
                }
            )
        )
    schema = pa.schema(
        [("rank", pa.int32()), ("launch_id", pa.int64()), ("event_id", pa.int64()), ("name", pa.string())]
        + [(f"{name}_us", pa.float64()) for name in ("cpu_duration", "gpu_duration", "launch_delay")]
    )
    frame = pd.concat(frames)
    return Result(pa.Table.from_pandas(frame, schema, preserve_index=False), "neuron-explorer/launches-hta/1")


def queue_lengths(run: Run, *, include_last_step: bool = False) -> Result:
    """One row per rank and stream: changes of the queue length, its mean, median and maximum over them.

    +1 at each launch, -1 at each start on the device. The order of changes at the same microsecond is that of an unstable
    sort of launches before starts, as HTA's.
    """
    import pandas as pd

    found: list[dict[str, Any]] = []
    for rows in hta_rows(run, include_last_step=include_last_step):
        calls = _calls(rows, QUEUE_LAUNCHES)
        pairs = calls.merge(
            rows.device[["correlation", "stream"]].rename(columns={"stream": "to"}), on="correlation"
        )
        starts = rows.device[rows.device["correlation"].isin(calls["correlation"])]
        changes = pd.concat(
            [
                pd.DataFrame({"at": pairs["start"], "change": 1, "stream": pairs["to"]}),
                pd.DataFrame({"at": starts["start"], "change": -1, "stream": starts["stream"]}),
            ]
        ).sort_values("at")
        for stream, group in changes.groupby("stream"):
            length = group["change"].cumsum().to_numpy()
            found.append(
                {
                    "rank": rows.rank,
                    "stream": int(str(stream)),
                    "changes": len(length),
                    "mean": float(length.mean()),
                    "median": float(np.median(length)),
                    "max": float(length.max()),
                }
            )
    schema = pa.schema(
        [("rank", pa.int32()), ("stream", pa.int64()), ("changes", pa.int64())]
        + [(name, pa.float64()) for name in ("mean", "median", "max")]
    )
    return Result(pa.Table.from_pylist(found, schema), "neuron-explorer/queue-hta/1")


def _calls(rows: HtaRows, names: tuple[str, ...]) -> pd.DataFrame:
    return rows.host[rows.host["name"].isin(names) & (rows.host["correlation"] > 0)]
