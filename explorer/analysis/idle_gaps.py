"""Each interval in which a device did nothing: the computed table `idle_gaps`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from explorer.analysis.host_segments import column
from explorer.analysis.intervals import Times
from explorer.model.schema import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

IDLE_GAPS = Table(
    "idle_gaps",
    "Each interval in which a device did nothing, with the work around it: the rows under `idle_intervals`.",
    (
        Column("rank", "int32", "Process rank"),
        Column("device", "string", "Device as text"),
        Column("number", "int64", "1 for the first one of the device"),
        Column("start_ns", "int64", "When the device went idle", unit="ns"),
        Column("end_ns", "int64", "When it worked again", unit="ns"),
        Column(
            "previous_id",
            "int64",
            "Work that ended last before; null at the edge of the recording",
            nullable=True,
        ),
        Column("next_id", "int64", "Work that began after; null at the edge of the recording", nullable=True),
        Column("launch_id", "int64", "Host event that enqueued the next work", nullable=True),
        Column("next_site_id", "int64", "Line responsible for the next work", nullable=True),
    ),
    sort_by=("start_ns",),
)

NOTHING = np.iinfo(np.int64).min
"""Stands for null in the arrays."""

# The edges of the recording and capture pauses bound gaps like work that takes no time.
_RECORDED = f"""
SELECT place, event_id, start_ns, end_ns, coalesce(launch_id, {NOTHING}) AS launch_id, coalesce(site_id, {NOTHING}) AS site_id
FROM work_intervals JOIN rank_devices USING (rank, device)
UNION ALL
SELECT place, {NOTHING}, unnest([start_ns, end_ns]), unnest([start_ns, end_ns]), {NOTHING}, {NOTHING}
FROM rank_extent JOIN rank_devices USING (rank)
UNION ALL
SELECT place, {NOTHING}, start_ns, end_ns, {NOTHING}, {NOTHING} FROM capture_pauses JOIN rank_devices USING (rank)
"""


def compute(engine: Engine) -> pa.Table:
    """The gaps of every device."""
    import pyarrow as pa

    devices = engine.sql("SELECT rank, device, place FROM rank_devices ORDER BY place").rows()
    rows = engine.sql(_RECORDED).arrow()
    place = column(rows, "place")
    names = ("event_id", "start_ns", "end_ns", "launch_id", "site_id")
    recorded = {name: column(rows, name) for name in names}
    tables = []
    for device in devices:
        mine = recorded
        if len(devices) > 1:
            chosen = np.flatnonzero(place == device["place"])
            mine = {name: values[chosen] for name, values in recorded.items()}
        gaps = _gaps(**mine)
        count = len(gaps["start_ns"])
        tables.append(
            pa.table(
                {
                    "rank": np.full(count, device["rank"], np.int32),
                    "device": pa.array([device["device"]] * count, pa.string()),
                    "number": np.arange(1, count + 1),
                    "start_ns": gaps["start_ns"],
                    "end_ns": gaps["end_ns"],
                    **{
                        name: pa.array(gaps[name], mask=gaps[name] == NOTHING)
                        for name in ("previous_id", "next_id", "launch_id", "next_site_id")
                    },
                }
            )
        )
    return pa.concat_tables(tables) if tables else IDLE_GAPS.arrow_schema().empty_table()


def _gaps(
    event_id: Times, start_ns: Times, end_ns: Times, launch_id: Times, site_id: Times
) -> dict[str, Any]:
    """Where nothing earlier reaches the next start."""
    order = np.argsort(start_ns, kind="stable")
    start = start_ns[order]
    # Rows with one start go by their ends, so that the next work of a gap is the shortest.
    if (start[1:] == start[:-1]).any():
        order = np.lexsort((end_ns, start_ns))
    reached = np.maximum.accumulate(end_ns[order])
    first = np.flatnonzero(start[1:] > reached[:-1]) + 1
    following, gap_start = order[first], reached[first - 1]
    # What ended at the moment the gap began; of several the last recorded.
    previous = np.full(len(gap_start), NOTHING, np.int64)
    if len(gap_start):
        slot = np.minimum(np.searchsorted(gap_start, end_ns), len(gap_start) - 1)
        ends = np.flatnonzero(gap_start[slot] == end_ns)
        np.maximum.at(previous, slot[ends], event_id[ends])
    return {
        "start_ns": gap_start,
        "end_ns": start[first],
        "previous_id": previous,
        "next_id": event_id[following],
        "launch_id": launch_id[following],
        "next_site_id": site_id[following],
    }
