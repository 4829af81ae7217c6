"""Device side of an Ascend database: tasks on streams, collectives."""

from __future__ import annotations

from typing import Any

from explorer.collectors.ascend.host import json_list, whole
from explorer.collectors.ascend.names import Names
from explorer.collectors.device_work import collective_operation
from explorer.collectors.import_session import ImportSession
from explorer.collectors.row_buffer import attributes_json
from explorer.collectors.sqlite_file import SqliteFile

TABLES = ("TASK", "COMMUNICATION_OP")
DETAILS = ("COMPUTE_TASK_INFO", "COMMUNICATION_TASK_INFO", "TASK_PMU_INFO")
_NAMED = {
    "name", "taskType", "opType", "inputFormats", "inputDataTypes", "inputShapes", "outputFormats", "outputDataTypes",
    "outputShapes", "attrInfo", "groupName",
}  # fmt: skip
_TASKS = {
    "EVENT_RECORD": "sync",
    "EVENT_WAIT": "sync",
    "MEMCPY_ASYNC": "copy",
    "PROFILING_ENABLE": "overhead",
    "PROFILING_DISABLE": "overhead",
}
_SUBTASKS = {"SDMA": "dma", "RDMA": "dma"}
_ITEM_BYTES = {
    "INT8": 1,
    "UINT8": 1,
    "INT16": 2,
    "UINT16": 2,
    "FP16": 2,
    "BFP16": 2,
    "INT32": 4,
    "UINT32": 4,
    "FP32": 4,
}
_ITEM_BYTES |= {"INT64": 8, "UINT64": 8, "FP64": 8, "INT128": 16}
_INT32 = range(2**31)


class DeviceRows:
    """Turns device rows into events on streams."""

    def __init__(self, session: ImportSession, names: Names) -> None:
        self.session = session
        self.names = names
        self.devices: set[int] = set()
        self._compute: dict[Any, dict[str, Any]] = {}
        self._communication: dict[Any, dict[str, Any]] = {}
        self._counters: dict[Any, dict[str, Any]] = {}

    def read(self, file: SqliteFile) -> None:
        """Read tasks with their details, and collectives."""
        merged = 0
        for row in file.records("COMPUTE_TASK_INFO"):
            merged += 1
            self._compute[row.pop("globalTaskId", None)] = self._named(row)
        for row in file.records("COMMUNICATION_TASK_INFO"):
            merged += 1
            self._communication[row.pop("globalTaskId", None)] = self._communication_details(row)
        for task, name, value in file.rows("TASK_PMU_INFO", ("globalTaskId", "name", "value")):
            merged += 1
            self._counters.setdefault(task, {})[self.names.text(name) or ""] = value
        self.session.merged_rows(merged)
        device = 0
        for row in file.records("TASK"):
            device = row.get("deviceId", device)
            self._task(row)
        for row in file.records("COMMUNICATION_OP"):
            self._collective(row, device if isinstance(device, int) else 0)
        for kind, rows in (("compute", self._compute), ("communication", self._communication)):
            for task, row in rows.items():
                # Details whose task is not in the file: already counted, kept as they are.
                self.session.source_row("metadata", f"{kind}_task_info", {**row, "globalTaskId": task})
                self.session.derived_row()

    def _named(self, row: dict[str, Any]) -> dict[str, Any]:
        return {key: self.names.text(value) if key in _NAMED else value for key, value in row.items()}

    def _communication_details(self, row: dict[str, Any]) -> dict[str, Any]:
        for key, table in (
            ("dataType", "ENUM_HCCL_DATA_TYPE"),
            ("linkType", "ENUM_HCCL_LINK_TYPE"),
            ("transportType", "ENUM_HCCL_TRANSPORT_TYPE"),
            ("rdmaType", "ENUM_HCCL_RDMA_TYPE"),
        ):
            row[key] = self.names.enum(table, row.get(key))
        return self._named(row)

    def _task(self, row: dict[str, Any]) -> None:
        task, kind = row.get("globalTaskId"), self.names.text(row.pop("taskType", None)) or "task"
        compute, communication = self._compute.pop(task, None), self._communication.pop(task, None)
        details = dict(compute or communication or {})
        name, category, size = kind, _TASKS.get(kind, "other"), None
        shapes = dtypes = None
        if compute is not None:
            name, category = str(details.pop("name", kind)), "kernel"
            shapes, dtypes = details.pop("inputShapes", None), details.pop("inputDataTypes", None)
        elif communication is not None:
            # Steps of a collective: the collective itself is an event of its own.
            category, size = _SUBTASKS.get(kind, "semaphore"), details.pop("size", None)
            details["operation"] = details.pop("name", None)
        details.pop("taskType", None)
        connection = row.pop("connectionId", None)
        known = isinstance(connection, int) and 0 <= connection < 2**32 - 1
        device, stream = row.pop("deviceId", 0), row.pop("streamId", None)
        device = device if isinstance(device, int) else 0
        self.devices.add(device)
        start, end = whole(row.pop("startNs", None)), whole(row.pop("endNs", None))
        stream = stream if isinstance(stream, int) else None
        self.session.event(
            track_id=self.session.tracks.stream("npu", device, stream, f"stream {stream}"),
            category=category,
            name=name,
            start_ns=start,
            duration_ns=end - start if isinstance(start, int) and isinstance(end, int) else None,
            correlation_id=connection if known else None,
            link=connection + 1 if known else 0,
            size_bytes=size if isinstance(size, int) else None,
            shapes=json_list(shapes),
            dtypes=json_list(dtypes),
            attributes=attributes_json(
                {**row, **details, "task_type": kind, "counters": self._counters.get(task)}
            ),
        )

    def _collective(self, row: dict[str, Any], device: int) -> None:
        name = self.names.text(row.pop("opName", None)) or "collective"
        group, operation = (self.names.text(row.pop(key, None)) for key in ("groupName", "opType"))
        dtype = self.names.enum("ENUM_HCCL_DATA_TYPE", row.pop("dataType", None))
        row["algorithm"] = self.names.text(row.pop("algType", None))
        count, connection = row.pop("count", None), row.pop("connectionId", None)
        known = isinstance(connection, int) and 0 <= connection < 2**32 - 1
        start, end = whole(row.pop("startNs", None)), whole(row.pop("endNs", None))
        device = row.pop("deviceId", device)
        item = _ITEM_BYTES.get(dtype or "")
        count = count if isinstance(count, int) else None
        size = count * item if count is not None and item else None
        number = self.session.event(
            track_id=self.session.tracks.stream("npu", device, None, f"group {group}", kind="queue"),
            category="collective",
            name=name,
            start_ns=start,
            duration_ns=end - start if isinstance(start, int) and isinstance(end, int) else None,
            correlation_id=connection if known else None,
            link=connection + 1 if known else 0,
            size_bytes=size,
            attributes=attributes_json({**row, "operation": operation}),
        )
        if number is not None:
            self.session.collectives.append(
                {
                    "event_id": number,
                    "side": "device",
                    "group": group,
                    "operation": collective_operation(operation or name),
                    "dtype": dtype,
                    "element_count": count,
                    "size_bytes": size,
                }
            )
