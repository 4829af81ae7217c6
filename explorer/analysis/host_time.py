"""How long the host of each rank was in each class, step by step: the computed table `host_time`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from explorer.analysis.host_segments import CLASSES, host_segments
from explorer.analysis.time_windows import time_windows
from explorer.model.schema import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

HOST_TIME = Table(
    "host_time",
    "How long the host of each rank was in each class of `host_segments` in each step, and outside steps.",
    (
        Column("rank", "int32", "Process rank"),
        Column("number", "int64", "Number of the step in step_windows; 0: the recorded time outside steps"),
        Column("length_ns", "int64", "Length of the window", unit="ns"),
        *(Column(f"{name}_ns", "int64", f"Time in class {name}", unit="ns") for name in CLASSES),
    ),
)


def compute(engine: Engine) -> pa.Table:
    """One row per rank and window."""
    import pyarrow as pa

    tables = []
    for rank, windows in time_windows(engine).items():
        segments = host_segments(engine, rank)
        columns = {
            "rank": np.full(len(windows.numbers), rank, np.int32),
            "number": windows.numbers,
            "length_ns": windows.lengths_ns,
        }
        for code, name in enumerate(CLASSES):
            columns[f"{name}_ns"] = windows.inside_ns(segments.of_class(code))
        tables.append(pa.table(columns))
    return pa.concat_tables(tables) if tables else HOST_TIME.arrow_schema().empty_table()
