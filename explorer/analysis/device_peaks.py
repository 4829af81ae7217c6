"""What each device of a run can do at most: the computed table `device_peaks`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from explorer.model import cpu_peak_cache
from explorer.model.device_peaks import find_peak
from explorer.model.schema import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

DEVICE_PEAKS = Table(
    "device_peaks",
    "Peak rates of each device of the run by dtype: as the run says (measured or reported), else as its vendor publishes.",
    (
        Column("rank", "int32", "Process rank"),
        Column("device", "string", "cpu, cuda:0, neuron:0 ..."),
        Column("name", "string", "Model name as reported"),
        Column("dtype", "string", "float32, bfloat16, tf32 ...; vector: float32 outside matrix units"),
        Column("peak_flops", "float64", "Dense operations per second at most", unit="flop/s"),
        Column("memory_bandwidth", "float64", "Bytes per second at most", nullable=True, unit="bytes/s"),
        Column("source", "string", "Where the numbers are from"),
    ),
)


def compute(engine: Engine) -> pa.Table:
    """One row per rank, device and dtype; none for devices whose peaks are not known."""
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    for device in engine.sql("SELECT * FROM devices ORDER BY rank, device").rows():
        flops, bandwidth, source = {}, device["memory_bandwidth"], "the run"
        if device["peak_flops"]:
            flops = json.loads(device["peak_flops"])
        elif device["device"] == "cpu":
            measured = cpu_peak_cache.read(device["name"], device["unit_count"] or 0) or {"flops": {}}
            flops, bandwidth = measured["flops"], bandwidth or measured.get("memory_bandwidth")
            source = "measured on such a machine"
        elif (peak := find_peak(device["name"])) is not None:
            flops, bandwidth, source = peak.flops, bandwidth or peak.memory_bandwidth, peak.source
        rows += [
            {
                "rank": device["rank"],
                "device": device["device"],
                "name": device["name"],
                "dtype": dtype,
                "peak_flops": float(value),
                "memory_bandwidth": bandwidth,
                "source": source,
            }
            for dtype, value in flops.items()
        ]
    return pa.Table.from_pylist(rows, DEVICE_PEAKS.arrow_schema())


def any_known(engine: Engine) -> bool:
    """Whether any device of the run has a peak: without one no efficiency can be told."""
    return bool(engine.sql("SELECT 1 FROM device_peaks WHERE peak_flops IS NOT NULL LIMIT 1").rows())
