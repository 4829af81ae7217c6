"""When each rank was recorded, from its manifest: the computed table `capture_windows`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.model.schema import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

CAPTURE_WINDOWS = Table(
    "capture_windows",
    "When each rank was recorded, as the capture says; empty for imported traces.",
    (
        Column("rank", "int32", "Process rank"),
        Column("capture_window", "int32", "Number of the window", nullable=True),
        Column("start_ns", "int64", "Start", unit="ns"),
        Column("end_ns", "int64", "End", unit="ns"),
    ),
    sort_by=("start_ns",),
)


def compute(engine: Engine) -> pa.Table:
    """One row per window that a manifest lists with whole numbers."""
    import pyarrow as pa

    rows = [
        {
            "rank": manifest.rank,
            "capture_window": window.get("window"),
            "start_ns": window["start_ns"],
            "end_ns": window["start_ns"] + window["duration_ns"],
        }
        for manifest in engine.reader.manifests.values()
        for window in manifest.capture.get("windows") or ()
        if isinstance(window, dict)
        and isinstance(window.get("start_ns"), int)
        and isinstance(window.get("duration_ns"), int)
    ]
    return pa.Table.from_pylist(rows, CAPTURE_WINDOWS.arrow_schema())
