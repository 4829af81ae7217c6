"""TraceLens's GPU timeline (AMD-AGI/TraceLens, gpu_event_analyser.py): one row per rank, in milliseconds.

Device rows are those of category kernel, gpu_memcpy and gpu_memset (not the capitalised names of 2021, nor MTIA's). By
default only rows linked into its tree count: those whose launch starts an ac2g flow, and those of a graph launch. All
devices of a trace lie on one timeline, from the first start to the last end. Communication and copies are told by name,
memsets are computation. Sums are float64 of absolute times.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from explorer.analysis.peers.microseconds import Floats, clock_base_ns, microseconds
from explorer.analysis.result import Result

if TYPE_CHECKING:
    from explorer.analysis.run import Run

_COMMUNICATION = re.compile(r"(?i)nccl|rccl|cross_device_reduce")
_COPY = re.compile(r"(?i)^__amd_rocclr_copy|^memcpy")
COLUMNS = (
    "computation",
    "exposed_comm",
    "exposed_memcpy",
    "busy",
    "idle",
    "total",
    "total_comm",
    "total_memcpy",
)

Spans = tuple[Floats, Floats]


def breakdown(run: Run, *, include_unlinked: bool = False) -> Result:
    """One row per rank with device rows: the eight times of TraceLens's gpu_timeline, in milliseconds."""
    found: list[dict[str, Any]] = []
    for rank in run.ranks:
        if row := _timeline(run, rank, include_unlinked):
            found.append({"rank": rank, **row})
    schema = pa.schema([("rank", pa.int32())] + [(f"{name}_time_ms", pa.float64()) for name in COLUMNS])
    return Result(pa.Table.from_pylist(found, schema), "neuron-explorer/breakdown-tracelens/1")


def kernels(run: Run) -> Result:
    """Kernels by name: count, sum, mean, min and max in microseconds, largest sum first."""
    return run.engine.sql(
        """
        SELECT rank, name, count(*) AS count, sum(duration_ns) / 1000 AS sum_us, avg(duration_ns) / 1000 AS mean_us,
               min(duration_ns) / 1000 AS min_us, max(duration_ns) / 1000 AS max_us
        FROM events WHERE json_extract_string(attributes, '$.cat') = 'kernel'
        GROUP BY rank, name ORDER BY rank, sum_us DESC, name
        """,
        schema="neuron-explorer/kernels-tracelens/1",
    )


def _timeline(run: Run, rank: int, include_unlinked: bool) -> dict[str, float] | None:
    frame = run.engine.sql(
        """
        SELECT e.name, json_extract_string(e.attributes, '$.cat') AS category, e.start_ns, e.duration_ns,
               coalesce(l.name ILIKE '%GraphLaunch%', false) OR e.correlation_id::VARCHAR IN (
                   SELECT key FROM source_rows WHERE rank = $rank AND kind = 'flow_start' AND category = 'ac2g') AS linked
        FROM events AS e
        LEFT JOIN events AS l ON l.rank = e.rank AND l.event_id = e.launch_id
        WHERE e.rank = $rank AND json_extract_string(e.attributes, '$.cat') IN ('kernel', 'gpu_memcpy', 'gpu_memset')
        ORDER BY e.event_id
        """,
        {"rank": rank},
    ).df()
    if not include_unlinked:
        frame = frame[frame["linked"].fillna(False).astype(bool)]
    if frame.empty:
        return None
    start = microseconds(frame["start_ns"].to_numpy() - clock_base_ns(run, rank))
    end = start + microseconds(frame["duration_ns"].to_numpy())
    copies = ((frame["category"] == "gpu_memcpy") | frame["name"].str.contains(_COPY)).to_numpy(bool)
    communicates = frame["name"].str.contains(_COMMUNICATION).to_numpy(bool) & ~copies
    compute = union(start[~copies & ~communicates], end[~copies & ~communicates])
    communication, copy = union(start[communicates], end[communicates]), union(start[copies], end[copies])
    busy, total = length(union(start, end)), float(end.max() - start.min())
    values = (
        length(compute),
        length(without(communication, compute)),
        length(without(without(copy, compute), communication)),
        busy,
        total - busy,
        total,
        length(communication),
        length(copy),
    )
    return {f"{name}_time_ms": value / 1e3 for name, value in zip(COLUMNS, values)}


def union(start: Floats, end: Floats) -> Spans:
    """Merged intervals; touching ones join."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    if not len(start):
        return start, end
    reached = np.maximum.accumulate(end)
    first = np.flatnonzero(np.r_[True, start[1:] > reached[:-1]])
    return start[first], reached[np.r_[first[1:] - 1, len(end) - 1]]


def without(spans: Spans, taken: Spans) -> Spans:
    """The parts of merged intervals outside others."""
    at = np.concatenate([*spans, *taken])
    change = np.repeat([1, -1, 2, -2], [len(spans[0]), len(spans[1]), len(taken[0]), len(taken[1])])
    order = np.argsort(at, kind="stable")
    at, state = at[order], np.cumsum(change[order])
    inside = np.flatnonzero((state[:-1] == 1) & (np.diff(at) > 0)) if len(at) else np.zeros(0, int)
    return at[inside], at[inside + 1]


def length(spans: Spans) -> float:
    """Total length in the unit of the spans."""
    return float((spans[1] - spans[0]).sum())
