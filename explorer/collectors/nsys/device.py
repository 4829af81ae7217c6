"""Device side of an Nsight Systems export: kernels, copies, fills, waits, graphs."""

from __future__ import annotations

from typing import Any

from explorer.collectors.device_work import collective_operation, work_category
from explorer.collectors.import_session import ImportSession
from explorer.collectors.nsys.clock import Clock, link_key, process_of
from explorer.collectors.nsys.names import Names
from explorer.collectors.row_buffer import attributes_json
from explorer.collectors.sqlite_file import SqliteFile

PREFIX = "CUPTI_ACTIVITY_KIND_"
TABLES = tuple(
    PREFIX + name
    for name in (
        "KERNEL",
        "CONCURRENT_KERNEL",
        "MEMCPY",
        "MEMCPY2",
        "MEMSET",
        "SYNCHRONIZATION",
        "GRAPH_TRACE",
        "CUDA_EVENT",
    )
)
_NO_STREAM = 0xFFFFFFFF
_COPY_NAMES = {
    1: "Memcpy HtoD",
    2: "Memcpy DtoH",
    8: "Memcpy DtoD",
    9: "Memcpy HtoH",
    10: "Memcpy PtoP",
    11: "Memcpy HtoD (managed)",
    12: "Memcpy DtoH (managed)",
    13: "Memcpy DtoD (managed)",
}
"""As torch.profiler names copies; numbers of CUpti_ActivityMemcpyKind."""


class DeviceRows:
    """Turns rows of the device tables into events on streams."""

    def __init__(self, session: ImportSession, names: Names, clock: Clock) -> None:
        self.session = session
        self.names = names
        self.clock = clock
        self.devices: set[int] = set()

    def read(self, file: SqliteFile) -> None:
        """Read every device table of the file."""
        for table in TABLES:
            if table in file.tables:
                kind = table.removeprefix(PREFIX)
                for row in file.records(table):
                    self._row(kind, row)

    def _row(self, kind: str, row: dict[str, Any]) -> None:
        start, end = row.pop("start", row.get("timestamp")), row.pop("end", row.pop("timestamp", None))
        process = process_of(row.get("globalPid"))
        correlation = row.pop("correlationId", None)
        device = row.pop("deviceId", 0)
        stream = row.pop("streamId", None)
        if not isinstance(device, int):
            row["deviceId"], device = device, 0
        self.devices.add(device)
        name, category, size = self._describe(kind, row)
        number = self.session.event(
            track_id=self._track(device, stream, process),
            category=category,
            name=name,
            start_ns=start + self.clock.base_ns if isinstance(start, int) else start,
            duration_ns=end - start if isinstance(start, int) and isinstance(end, int) else None,
            correlation_id=correlation if isinstance(correlation, int) else None,
            link=link_key(process, correlation),
            size_bytes=size if isinstance(size, int) else None,
            attributes=attributes_json(row),
        )
        if category == "collective" and number is not None:
            self.session.collectives.append(
                {"event_id": number, "side": "device", "operation": collective_operation(name)}
            )

    def _describe(self, kind: str, row: dict[str, Any]) -> tuple[str, str, Any]:
        if kind in ("KERNEL", "CONCURRENT_KERNEL"):
            for key in ("shortName", "mangledName", "demangledName", "name"):
                if isinstance(row.get(key), int):
                    row[key] = self.names.text(row[key])
            row["grid"] = [row.pop(f"grid{axis}", None) for axis in "XYZ"]
            row["block"] = [row.pop(f"block{axis}", None) for axis in "XYZ"]
            name = str(row.pop("demangledName", None) or row.get("name") or row.get("shortName") or "kernel")
            if row.get("mangledName") == name:
                del row["mangledName"]
            return name, work_category(name), None
        if kind in ("MEMCPY", "MEMCPY2"):
            copy = row.pop("copyKind", None)
            source, target = (self._memory(row.pop(key, None)) for key in ("srcKind", "dstKind"))
            row["copyKind"] = self.names.enum("ENUM_CUDA_MEMCPY_OPER", copy)
            name = _COPY_NAMES.get(copy, "Memcpy")
            if source and target:
                name = f"{name} ({source} -> {target})"
            return name, "copy", row.pop("bytes", None)
        if kind == "MEMSET":
            memory = self._memory(row.pop("memKind", None))
            return f"Memset ({memory})" if memory else "Memset", "fill", row.pop("bytes", None)
        if kind == "SYNCHRONIZATION":
            label = self.names.enum("ENUM_CUPTI_SYNC_TYPE", row.pop("syncType", None))
            return label or "Synchronization", "sync", None
        if kind == "GRAPH_TRACE":
            return f"CUDA graph {row.get('graphId', '')}".strip(), "kernel", None
        return "CUDA event record", "sync", None

    def _memory(self, kind: Any) -> str | None:
        return self.names.enum("ENUM_CUDA_MEM_KIND", kind)

    def _track(self, device: int, stream: Any, process: int | None) -> int:
        if not isinstance(stream, int) or stream == _NO_STREAM:
            return self.session.tracks.stream("cuda", device, None, "context", process)
        return self.session.tracks.stream("cuda", device, stream, f"stream {stream}", process)
