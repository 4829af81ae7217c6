"""HTA's temporal breakdown, overlap and kernel-type breakdown (hta/analyzers/breakdown_analysis.py,
communication_analysis.py): unions of intervals of whole microseconds over all device rows of a rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from explorer.analysis.peers.hta_rows import HtaRows, hta_rows
from explorer.analysis.result import Result

if TYPE_CHECKING:
    import pandas as pd

    from explorer.analysis.peers.microseconds import Floats
    from explorer.analysis.run import Run

_BITS = {"COMPUTATION": 1, "COMMUNICATION": 2, "MEMORY": 4}


def merged(rows: pd.DataFrame) -> tuple[Floats, Floats]:
    """Starts and ends of the merged intervals: a new one begins where a start is after every end before it."""
    order = np.argsort(rows["start"].to_numpy(), kind="stable")
    start, end = rows["start"].to_numpy()[order], rows["end"].to_numpy()[order]
    if not len(start):
        return start, end
    reached = np.maximum.accumulate(end)
    first = np.flatnonzero(np.r_[True, start[1:] > reached[:-1]])
    return start[first], reached[np.r_[first[1:] - 1, len(end) - 1]]


def union_us(rows: pd.DataFrame) -> float:
    """Total length of the merged intervals."""
    start, end = merged(rows)
    return float((end - start).sum())


def type_times(rows: HtaRows) -> dict[int, float]:
    """Time in which each combination of kernel types ran, by the sum of their bits."""
    times: list[Floats] = []
    changes: list[Floats] = []
    for name, bit in _BITS.items():
        start, end = merged(rows.device[rows.device["kernel_type"] == name])
        times += [start, end]
        changes += [np.full(len(start), bit), np.full(len(end), -bit)]
    at, change = np.concatenate(times), np.concatenate(changes)
    order = np.argsort(at, kind="stable")
    length, running = np.diff(at[order]), np.cumsum(change[order])[:-1].astype(int)
    return {int(bits): float(length[running == bits].sum()) for bits in np.unique(running) if bits > 0}


def breakdown(run: Run, *, include_last_step: bool = False, rounding: bool = True) -> Result:
    """One row per rank with device rows: compute, non-compute, idle and their sum in microseconds, and the overlap.

    `communication_overlap_percent` is the part of communication under compute, rounded to two digits as HTA does; null
    without communication.
    """
    found: list[dict[str, Any]] = []
    for rows in hta_rows(run, include_last_step=include_last_step, rounding=rounding):
        if rows.device.empty:
            continue
        start, end = merged(rows.device)
        window, busy = float(end[-1] - start[0]), float((end - start).sum())
        compute = union_us(rows.device[rows.device["kernel_type"] == "COMPUTATION"])
        communication = rows.device[rows.device["kernel_type"] == "COMMUNICATION"]
        both = sum(value for bits, value in type_times(rows).items() if bits & 3 == 3)
        found.append(
            {
                "rank": rows.rank,
                "kernel_time_us": window,
                "compute_time_us": compute,
                "non_compute_time_us": busy - compute,
                "idle_time_us": window - busy,
                "communication_overlap_percent": round(both / union_us(communication) * 100, 2)
                if len(communication)
                else None,
            }
        )
    schema = pa.schema(
        [("rank", pa.int32())]
        + [(f"{n}_time_us", pa.float64()) for n in ("kernel", "compute", "non_compute", "idle")]
        + [("communication_overlap_percent", pa.float64())]
    )
    return Result(pa.Table.from_pylist(found, schema), "neuron-explorer/breakdown-hta/1")


def kernel_types(run: Run, *, include_last_step: bool = False) -> Result:
    """Time of each combination of kernel types per rank, in microseconds."""
    found: list[dict[str, Any]] = []
    for rows in hta_rows(run, include_last_step=include_last_step):
        for bits, value in type_times(rows).items():
            name = " overlapping ".join(name for name, bit in _BITS.items() if bits & bit)
            found.append({"rank": rows.rank, "kernel_type": name, "total_us": value})
    schema = pa.schema([("rank", pa.int32()), ("kernel_type", pa.string()), ("total_us", pa.float64())])
    return Result(pa.Table.from_pylist(found, schema), "neuron-explorer/kernel-types-hta/1")
