"""The rows of a trace as Meta's HolisticTraceAnalysis (HTA 0.6.1) keeps them.

From its trace parser and filters (hta/common/trace.py, trace_parser.py): rows without duration or category are dropped;
start times are rounded up and end times down to whole microseconds; whatever carries a stream argument counts as device
work; with two profiler steps or more, device rows stay only where a host row of the same correlation does, host rows only
before the last step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from explorer.analysis.peers.microseconds import clock_base_ns, microseconds

if TYPE_CHECKING:
    import pandas as pd

    from explorer.analysis.run import Run

_COMMUNICATION = re.compile(r"^nccl.*|^hip|^hccl|.*ncclKernel.*")
_MEMORY = re.compile(r"^(hip)?Memcpy|^(hip)?Memset|^dma")
_NOT_COMPUTE = re.compile(
    r"^nccl|.*Memcpy|.*Memset|.*dma|.*Sync|^Stream Wait Event|^cu(da)?LaunchKernel|^runFunction|^pe_exe|^hip|^hccl"
)

KERNEL_TYPES = ("COMPUTATION", "COMMUNICATION", "MEMORY", "OTHER")


def kernel_type(name: str) -> str:
    """HTA's class of a device row, by name (hta/utils/utils.py)."""
    if _COMMUNICATION.match(name):
        return "COMMUNICATION"
    if _MEMORY.match(name):
        return "MEMORY"
    return "OTHER" if _NOT_COMPUTE.match(name) else "COMPUTATION"


@dataclass
class HtaRows:
    """One rank's rows. Frames hold event_id, name, category, stream, correlation, start, end, duration (us).

    `device` also has kernel_type; `first_start` is the start of the trace's first row where that was kept, else nan.
    """

    rank: int
    host: pd.DataFrame
    device: pd.DataFrame
    first_start: float


def hta_rows(run: Run, *, include_last_step: bool = False, rounding: bool = True) -> Iterator[HtaRows]:
    """The rows of every rank, one after the other. `rounding=False` is HTA_DISABLE_NS_ROUNDING=1."""
    step_names = run.engine.sql("SELECT DISTINCT name FROM events WHERE name LIKE '%ProfilerStep%'").arrow()
    names = set(step_names.column("name").to_pylist())
    for rank in run.ranks:
        yield _rank_rows(run, rank, names, include_last_step, rounding)


def _rank_rows(run: Run, rank: int, step_names: set[str], include_last_step: bool, rounding: bool) -> HtaRows:
    import pandas as pd

    frame = run.engine.sql(
        """
        SELECT event_id, name, start_ns, duration_ns, json_extract_string(attributes, '$.cat') AS category,
               CASE WHEN json_exists(attributes, '$.connection_id') OR json_exists(attributes, '$.correlation_id') THEN -1
                    ELSE coalesce(correlation_id, -1) END AS correlation,
               coalesce(TRY_CAST(regexp_extract(json_extract_string(attributes, '$.stream'), '^-?[0-9]+$') AS BIGINT), -1) AS stream
        FROM events
        WHERE rank = $rank AND json_extract_string(attributes, '$.cat') <> 'Trace'
          AND json_extract_string(attributes, '$.ph') IS NULL
        ORDER BY event_id
        """,
        {"rank": rank},
    ).df()
    start = microseconds(frame.pop("start_ns").to_numpy() - clock_base_ns(run, rank))
    duration = microseconds(frame.pop("duration_ns").to_numpy())
    end = start + duration
    if rounding:
        start, end = np.ceil(start), np.floor(end)
        duration = end - start
    frame["start"], frame["end"], frame["duration"] = start, start + duration, duration
    host, device = frame[frame["stream"] == -1], frame[frame["stream"] != -1]
    if len(step_names) >= 2:
        if not include_last_step:
            last = host.loc[host["name"].isin(step_names), "start"].max()
            host = host[host["start"] < last]
        device = device.merge(host[["correlation"]], on="correlation", how="inner")
    types = pd.Series({name: kernel_type(name) for name in device["name"].unique()}, dtype=object)
    device = device.assign(kernel_type=device["name"].map(types) if len(device) else None)
    first = frame.loc[frame["event_id"] == 0, "start"]
    return HtaRows(rank, host, device, float(first.iloc[0]) if len(first) else float("nan"))


def launch_starts(rows: HtaRows) -> pd.Series:
    """Start of the host row that each device row points to, in the device rows' order; nan where it points to none.

    A device row whose correlation no host row has points to the trace's first row (its link index is 0).
    """
    linked = rows.host[rows.host["correlation"] > 0].drop_duplicates("correlation")
    starts = rows.device["correlation"].map(linked.set_index("correlation")["start"])
    unlinked = starts.isna() & (rows.device["correlation"] > 0)
    return starts.mask(unlinked, rows.first_start).astype(float)
