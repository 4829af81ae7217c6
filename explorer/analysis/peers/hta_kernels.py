"""HTA's kernel sums by name (hta/analyzers/breakdown_analysis.py), without folding small ones into "others"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from explorer.analysis.peers.hta_rows import hta_rows
from explorer.analysis.result import Result

if TYPE_CHECKING:
    from explorer.analysis.run import Run


def kernels(run: Run, *, include_last_step: bool = False) -> Result:
    """One row per rank, kernel type and name: calls, total, mean, min, max in whole microseconds, largest total first."""
    import pandas as pd

    frames = []
    for rows in hta_rows(run, include_last_step=include_last_step):
        named = rows.device[rows.device["kernel_type"] != "OTHER"]
        if named.empty:
            continue
        grouped = named.groupby(["kernel_type", "name"], sort=False)["duration"]
        sums = grouped.agg(calls="count", total_us="sum", mean_us="mean", min_us="min", max_us="max")
        frames.append(pd.DataFrame(sums).reset_index().assign(rank=rows.rank))
    columns = ["rank", "name", "kernel_type", "calls", "total_us", "mean_us", "min_us", "max_us"]
    every = pd.concat(frames) if frames else pd.DataFrame({name: [] for name in columns})
    frame = every.reindex(columns=columns).sort_values(
        ["rank", "total_us", "name"], ascending=[True, False, True]
    )
    schema = pa.schema(
        [("rank", pa.int32()), ("name", pa.string()), ("kernel_type", pa.string()), ("calls", pa.int64())]
        + [(name, pa.float64()) for name in columns[4:]]
    )
    return Result(pa.Table.from_pandas(frame, schema, preserve_index=False), "neuron-explorer/kernels-hta/1")
