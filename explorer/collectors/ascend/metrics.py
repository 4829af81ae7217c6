"""Sampled values and memory records of an Ascend database."""

from __future__ import annotations

from typing import Any

from explorer.collectors.ascend.host import whole
from explorer.collectors.ascend.names import Names
from explorer.collectors.import_session import ImportSession
from explorer.collectors.sqlite_file import SqliteFile

_COUNTERS: dict[str, tuple[tuple[str, ...], dict[str, str | None]]] = {
    "AICORE_FREQ": ((), {"freq": "MHz"}),
    "HBM": (("hbmId", "type"), {"bandwidth": "bytes/s"}),
    "LLC": (("llcId", "mode"), {"hitRate": "percent", "throughput": "bytes/s"}),
    "NPU_MEM": (("type",), {"ddr": "bytes", "hbm": "bytes"}),
    "NPU_MODULE_MEM": (("moduleId",), {"totalReserved": "bytes"}),
    "SOC_BANDWIDTH_LEVEL": ((), {"l2BufferBwLevel": None, "mataBwLevel": None}),
    "ACC_PMU": (
        ("accId",),
        {"readBwLevel": None, "writeBwLevel": None, "readOstLevel": None, "writeOstLevel": None},
    ),
    "MEMORY_RECORD": (
        ("component",),
        {"totalAllocated": "bytes", "totalReserved": "bytes", "totalActive": "bytes"},
    ),
}
"""Table to (columns that tell its series apart, value columns with their unit)"""
_MEMORY = ("NPU_OP_MEM", "OP_MEMORY")
TABLES = (*_COUNTERS, *_MEMORY)


def read_metrics(file: SqliteFile, session: ImportSession, names: Names) -> None:
    """All sampled tables as counters of their device; a row with several values gives several."""
    for table, (labels, values) in _COUNTERS.items():
        for row in file.records(table):
            time = whole(row.get("timestampNs", row.get("timestamp")))
            device = row.get("deviceId", 0)
            parts = [_label(names, column, row.get(column)) for column in labels]
            for place, (column, unit) in enumerate(values.items()):
                name = " ".join(filter(None, [table, *parts, column]))
                track = session.tracks.counter(name, "npu", device if isinstance(device, int) else 0)
                session.counter(track, time, name, row.get(column), unit)
                if place:
                    session.derived_row()


def _label(names: Names, column: str, value: Any) -> str:
    if column == "moduleId":
        return names.enum("ENUM_MODULE", value) or ""
    if column in ("type", "mode", "component"):
        return names.text(value) or ""
    return f"{column.removesuffix('Id')} {value}"


def read_memory(file: SqliteFile, session: ImportSession, names: Names) -> None:
    """Memory of single operators: allocations and releases of the graph engine, lifetimes of PyTorch's."""
    for row in file.records("NPU_OP_MEM"):
        kind = names.text(row.pop("type", None))
        size, time = row.pop("size", None), whole(row.pop("timestampNs", None))
        if kind not in ("allocate", "release") or not isinstance(size, int) or not isinstance(time, int):
            session.quarantine({**row, "type": kind, "size": size, "timestampNs": time}, "no_memory_event")
            continue
        freed = kind == "release"
        address = row.pop("addr", None)
        session.memory_event(
            time,
            "free" if freed else "alloc",
            address if isinstance(address, int) else None,
            -abs(size) if freed else abs(size),
            f"npu:{row.pop('deviceId', 0)}",
            allocated_bytes=_number(row.pop("totalAllocate", None)),
            reserved_bytes=_number(row.pop("totalReserve", None)),
            attributes=row
            | {
                "operator": names.text(row.pop("operatorName", None)),
                "component": names.text(row.pop("component", None)),
            },
        )
    for row in file.records("OP_MEMORY"):
        _lifetime(row, session, names)


def _lifetime(row: dict[str, Any], session: ImportSession, names: Names) -> None:
    size, born, died = (
        row.pop("size", None),
        whole(row.pop("allocationTime", None)),
        whole(row.pop("releaseTime", None)),
    )
    device = f"npu:{row.pop('deviceId', 0)}"
    if not isinstance(size, int) or not (isinstance(born, int) or isinstance(died, int)):
        session.quarantine({**row, "size": size}, "no_memory_event")
        return
    totals = {key: _number(row.pop(key, None)) for key in list(row) if "Total" in key}
    attributes = {**row, "operator": names.text(row.pop("name", None)), "component": "PTA"}
    if isinstance(born, int):
        session.memory_event(
            born,
            "alloc",
            None,
            size,
            device,
            allocated_bytes=totals.get("allocationTotalAllocated"),
            reserved_bytes=totals.get("allocationTotalReserved"),
            attributes={**attributes, "active_bytes": totals.get("allocationTotalActive")},
        )
    if isinstance(died, int):
        session.memory_event(
            died,
            "free",
            None,
            -size,
            device,
            allocated_bytes=totals.get("releaseTotalAllocated"),
            reserved_bytes=totals.get("releaseTotalReserved"),
            attributes={**attributes, "active_bytes": totals.get("releaseTotalActive")},
        )
        if isinstance(born, int):
            session.derived_row()


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and abs(value) < 2**63 else None
