"""Sampled values of an Nsight Systems export: GPU and network metrics, device memory use."""

from __future__ import annotations

from typing import Any

from explorer.collectors.import_session import ImportSession
from explorer.collectors.nsys.clock import Clock, process_of
from explorer.collectors.nsys.names import Names
from explorer.collectors.sqlite_file import SqliteFile

GPU = "GPU_METRICS"
GPU_NAMES = "TARGET_INFO_GPU_METRICS"
NETWORK = "NET_NIC_METRIC"
MEMORY = "CUDA_GPU_MEMORY_USAGE_EVENTS"
TABLES = (GPU, GPU_NAMES, MEMORY)
_HOST_KINDS = (0, 1)


def read_metrics(file: SqliteFile, session: ImportSession, clock: Clock) -> None:
    """GPU metric samples as counters of their device. The device's number is the low byte of typeId."""
    labels: dict[tuple[Any, Any], str] = {}
    count = 0
    for type_id, metric, name in file.rows(GPU_NAMES, ("typeId", "metricId", "metricName")):
        labels[type_id, metric] = str(name)
        count += 1
    session.merged_rows(count)
    for type_id, metric, time, value in file.rows(GPU, ("typeId", "metricId", "timestamp", "value")):
        device = type_id & 0xFF if isinstance(type_id, int) else 0
        name = labels.get((type_id, metric), f"metric {metric}")
        track = session.tracks.counter(name, "cuda", device)
        unit = "percent" if "%" in name or "Throughput" in name else None
        session.counter(track, _epoch(time, clock), name, value, unit)


def read_memory(file: SqliteFile, session: ImportSession, names: Names, clock: Clock) -> None:
    """Device memory allocations and frees (memoryOperationType 0 and 1)."""
    for row in file.records(MEMORY):
        time, size, operation = (
            row.pop("start", None),
            row.pop("bytes", None),
            row.pop("memoryOperationType", None),
        )
        if not isinstance(time, int) or not isinstance(size, int) or operation not in (0, 1):
            session.quarantine(
                {"start": time, "bytes": size, "memoryOperationType": operation, **row}, "no_memory_event"
            )
            continue
        kind = row.get("memKind")
        device = "cpu" if kind in _HOST_KINDS else f"cuda:{row.pop('deviceId', 0)}"
        address = row.pop("address", None)
        row["memKind"] = names.enum("ENUM_CUDA_MEM_KIND", kind)
        row["process"] = process_of(row.pop("globalPid", None))
        session.memory_event(
            time + clock.base_ns,
            "free" if operation else "alloc",
            address if isinstance(address, int) else None,
            -size if operation else size,
            device,
            attributes=row,
        )


def _epoch(time: Any, clock: Clock) -> Any:
    return time + clock.base_ns if isinstance(time, int) else time
