"""Time series of a profile as counters: DMA and HBM throughput, pending DMAs, SBUF and PSUM use, host and HBM memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from explorer.collectors.neuron.bulk import BulkWriter, batches, integers
from explorer.collectors.neuron.clock import DeviceClock
from explorer.collectors.neuron.tables import ProfileTables
from explorer.collectors.track_table import TrackTable


@dataclass(frozen=True, slots=True)
class Series:
    """One value column of one table; `core` names the column that tells cores (or CPUs, devices) apart."""

    table: str
    column: str
    unit: str
    core: str | None = "pcore_idx"
    where: str = ""


_DEVICE = [
    Series("DmaUsage", "current_throughput", "bytes/s"),
    Series("DmaUsage", "total_transfer_bytes", "bytes"),
    Series("HbmUsage", "current_throughput", "bytes/s"),
    Series("HbmUsage", "total_transfer_bytes", "bytes"),
    Series("PendingDma", "value", "count"),
    Series("SbufUsage", "avg_util_percent", "percent"),
    Series("PsumUsage", "avg_util_percent", "percent"),
]
_SYSTEM = [
    Series("CpuUsage", "util_percent", "percent", "cpu_id"),
    Series("HostMemUsage", "used_bytes", "bytes", None),
    Series("HostMemUsage", "used_percent", "percent", None),
]


def write_device_counters(
    tables: ProfileTables,
    bulk: BulkWriter,
    tracks: TrackTable,
    clock: DeviceClock,
    device_index: int,
    fractions: bool,
) -> int:
    """Write a device profile's series; returns the rows. `fractions`: its percent columns hold 0 to 1 (see `percent`)."""
    return sum(
        _write(tables, bulk, tracks, clock, series, "neuron", device_index, fractions) for series in _DEVICE
    )


def write_system_counters(tables: ProfileTables, bulk: BulkWriter, tracks: TrackTable, instance: str) -> int:
    """Write one instance's series of a system profile; returns the rows."""
    where = f"instance_id = '{instance.replace(chr(39), chr(39) * 2)}' OR instance_id IS NULL"
    rows = 0
    for series in _SYSTEM:
        chosen = Series(series.table, series.column, series.unit, series.core, where)
        rows += _write(tables, bulk, tracks, DeviceClock(), chosen, "cpu", None, False)
    return rows + _hbm(tables, bulk, tracks, where)


def _hbm(tables: ProfileTables, bulk: BulkWriter, tracks: TrackTable, where: str) -> int:
    if not tables.has("SystemProfileHbmUsage"):
        return 0
    columns = [name for name in tables.sources["SystemProfileHbmUsage"].official if name.endswith("_bytes")]
    rows = 0
    for column in columns:
        series = Series("SystemProfileHbmUsage", column, "bytes", "device_idx", where)
        rows += _write(tables, bulk, tracks, DeviceClock(), series, "neuron", None, False)
    return rows


def _write(
    tables: ProfileTables,
    bulk: BulkWriter,
    tracks: TrackTable,
    clock: DeviceClock,
    series: Series,
    device_type: str,
    device_index: int | None,
    fractions: bool,
) -> int:
    if not tables.has(series.table, series.column):
        return 0
    core = f"CAST({series.core} AS VARCHAR)" if series.core else "CAST(NULL AS VARCHAR)"
    scale = 100.0 if fractions and series.unit == "percent" else 1.0
    name = f"{series.table}.{series.column}"
    condition = f"timestamp IS NOT NULL AND {series.column} IS NOT NULL"
    if series.where:
        condition += f" AND ({series.where})"
    found = tables.connection.execute(
        f"SELECT DISTINCT {core} FROM {series.table} WHERE {condition}"
    ).fetchall()
    labels = sorted((row[0] for row in found), key=lambda text: (text is None, len(text or ""), text or ""))
    numbers = {}
    for label in labels:
        shown = (
            name if label is None or (len(labels) == 1 and series.core == "pcore_idx") else f"{name} {label}"
        )
        numbers[label] = tracks.counter(shown, device_type, device_index)
    sql = f"SELECT timestamp, CAST({series.column} AS DOUBLE) AS value, {core} AS core FROM {series.table} WHERE {condition}"

    def work(batch: pa.RecordBatch) -> None:
        cores = batch.column("core").to_pylist()
        bulk.write(
            "counters",
            {
                "track_id": np.array([numbers[label] for label in cores], np.int32),
                "timestamp_ns": clock.to_host(integers(batch, "timestamp")),
                "name": pa.array([name] * batch.num_rows),
                "value": np.asarray(batch.column("value")) * scale,
                "unit": pa.array([series.unit] * batch.num_rows),
            },
        )

    return batches(tables.connection, sql, work)
