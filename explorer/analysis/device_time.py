"""How long each device computed, communicated and copied in each step: the computed table `device_time`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from explorer.analysis.host_segments import column
from explorer.analysis.intervals import Intervals
from explorer.analysis.time_windows import time_windows
from explorer.model.schema import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

DEVICE_TIME = Table(
    "device_time",
    "Unions of each device's work (`work_intervals`) in each step, and outside steps: the numbers under `breakdown`.",
    (
        Column("rank", "int32", "Process rank"),
        Column("device", "string", "Device as text"),
        Column("number", "int64", "Number of the step in step_windows; 0: the recorded time outside steps"),
        Column("start_ns", "int64", "Start of the window", unit="ns"),
        Column("length_ns", "int64", "Length of the window", unit="ns"),
        Column("compute_ns", "int64", "Time in which compute ran", unit="ns"),
        Column("communication_ns", "int64", "Time in which communication ran", unit="ns"),
        Column("copy_ns", "int64", "Time in which copies ran", unit="ns"),
        Column(
            "computing_or_communicating_ns", "int64", "Time in which compute or communication ran", unit="ns"
        ),
        Column("busy_ns", "int64", "Time in which anything ran", unit="ns"),
    ),
)

_WORK = """
SELECT place, (list_position(['compute', 'communication', 'copy'], class) - 1)::TINYINT AS code, start_ns, end_ns
FROM work_intervals JOIN rank_devices USING (rank, device)
"""


def compute(engine: Engine) -> pa.Table:
    """One row per rank, device and window."""
    import pyarrow as pa

    devices = engine.sql("SELECT rank, device, place FROM rank_devices ORDER BY place").rows()
    windows = time_windows(engine)
    work = engine.sql(_WORK).arrow()
    place, code, start, end = (column(work, name) for name in ("place", "code", "start_ns", "end_ns"))
    tables = []
    for device in devices:
        own = windows.get(device["rank"])
        if own is None:
            continue
        mine = place == device["place"] if len(devices) > 1 else np.ones(len(place), bool)
        unions = [Intervals.of(start[mine & (code == k)], end[mine & (code == k)]) for k in range(3)]
        first_two = unions[0].union(unions[1])
        count = len(own.numbers)
        columns = {
            "rank": np.full(count, device["rank"], np.int32),
            "device": pa.array([device["device"]] * count, pa.string()),
            "number": own.numbers,
            "start_ns": own.starts_ns,
            "length_ns": own.lengths_ns,
            "compute_ns": own.inside_ns(unions[0]),
            "communication_ns": own.inside_ns(unions[1]),
            "copy_ns": own.inside_ns(unions[2]),
            "computing_or_communicating_ns": own.inside_ns(first_two),
            "busy_ns": own.inside_ns(first_two.union(unions[2])),
        }
        tables.append(pa.table(columns))
    return pa.concat_tables(tables) if tables else DEVICE_TIME.arrow_schema().empty_table()
