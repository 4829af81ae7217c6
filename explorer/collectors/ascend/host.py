"""Host side of an Ascend database: PyTorch ops, the task queue, Python calls, CANN calls."""

from __future__ import annotations

import json
from typing import Any

from explorer.collectors.ascend.names import Connections, Names
from explorer.collectors.device_work import call_category
from explorer.collectors.import_session import ImportSession
from explorer.collectors.python_frame import parse_frame
from explorer.collectors.row_buffer import attributes_json
from explorer.collectors.sqlite_file import SqliteFile
from explorer.collectors.step_name import step_of

TABLES = ("PYTORCH_API", "CANN_API", "MSTX_EVENTS")
_QUEUE, _PYTHON, _MARK = 50002, 50003, 50004
"""Numbers of ENUM_API_TYPE."""
_HCCL = 5500


def whole(value: Any) -> Any:
    """An integer that may be written as text; other values as they are."""
    if isinstance(value, str) and value.strip().removeprefix("-").isdecimal() and len(value) < 25:
        return int(value)
    return value


class HostRows:
    """Turns host rows into events on threads."""

    def __init__(self, session: ImportSession, names: Names, connections: Connections) -> None:
        self.session = session
        self.names = names
        self.connections = connections

    def read(self, file: SqliteFile) -> None:
        """Read every host table."""
        for row in file.records("PYTORCH_API"):
            self._pytorch(row)
        for row in file.records("CANN_API"):
            self._cann(row)
        for row in file.records("MSTX_EVENTS"):
            self._marker(row)
        self._link()

    def _track(self, global_tid: Any) -> int:
        if not isinstance(global_tid, int):
            return self.session.tracks.thread(None, None, "unknown thread")
        return self.session.tracks.thread(global_tid >> 32, global_tid & 0xFFFFFFFF)

    def _add(self, row: dict[str, Any], category: str, name: str, **more: Any) -> int | None:
        start, end = whole(row.pop("startNs", None)), whole(row.pop("endNs", None))
        return self.session.event(
            track_id=self._track(row.pop("globalTid", None)),
            category=category,
            name=name,
            start_ns=start,
            duration_ns=end - start if isinstance(start, int) and isinstance(end, int) else None,
            attributes=attributes_json(row),
            **more,
        )

    def _pytorch(self, row: dict[str, Any]) -> None:
        kind, name = row.pop("type", None), self.names.text(row.pop("name", None)) or ""
        connection = row.pop("connectionId", None)
        shapes, dtypes = (self.names.text(row.pop(key, None)) for key in ("inputShapes", "inputDtypes"))
        chain = self.names.chain(row.get("callchainId"))
        category = _pytorch_category(kind, name, shapes is not None)
        line: dict[str, Any] = {}
        if kind == _PYTHON and (frame := parse_frame(name)):
            # The tracer records the first line of the function, not the line being executed.
            line = {"site_id": self.session.stacks.site(frame), "attribution": "stack", "precision": "coarse"}
            if not self.session.stacks.is_user(line["site_id"]):
                line = {}
        if chain is not None and chain.has_user_code:
            line = {
                "site_id": chain.site_id,
                "stack_id": chain.stack_id,
                "attribution": "stack",
                "precision": "exact",
            }
        start, end = whole(row.get("startNs")), whole(row.get("endNs"))
        number = self._add(row, category, name, shapes=json_list(shapes), dtypes=json_list(dtypes), **line)
        if number is None:
            return
        if category == "step" and (step := step_of(name)) is not None:
            self.session.steps.append((step, start, end))
        for member in self.connections.members(connection):
            self.connections.calls.setdefault(member, []).append((start or 0, number))

    def _cann(self, row: dict[str, Any]) -> None:
        name = self.names.text(row.pop("name", None)) or ""
        kind, connection = row.pop("type", None), row.pop("connectionId", None)
        row["level"] = self.names.enum("ENUM_API_TYPE", kind)
        known = isinstance(connection, int)
        number = self._add(
            row,
            "runtime" if kind == _HCCL else call_category(name),
            name,
            correlation_id=connection if known else None,
            link=connection + 1 if known else 0,
        )
        if known and number is not None:
            self.connections.launches[connection] = number

    def _marker(self, row: dict[str, Any]) -> None:
        name = self.names.text(row.pop("message", None)) or "mark"
        step = step_of(name)
        start, end = row.get("startNs"), row.get("endNs")
        number = self._add(row, "annotation" if step is None else "step", name)
        if number is not None and step is not None and not self.session.steps:
            self.session.steps.append((step, whole(start), whole(end)))

    def _link(self) -> None:
        """Backward ops to forward ops, the two ends of the task queue, CANN launches to the op they work for."""
        events = self.session.events
        for connection, found in self.connections.calls.items():
            # The first in time causes the other, wherever they stand in the table.
            calls = [number for _, number in sorted(found)]
            kinds = self.connections.kinds.get(connection, set())
            if "fwdbwd" in kinds and len(calls) == 2:
                events.forward[calls[1]] = calls[0]
            elif "async_task_queue" in kinds and len(calls) == 2:
                self.session.edges.append((calls[0], calls[1], "flow"))
            launch = self.connections.launches.get(connection)
            if launch is not None and "async_npu" in kinds:
                events.responsible[launch] = calls[0]


def _pytorch_category(kind: Any, name: str, has_shapes: bool) -> str:
    if kind == _QUEUE:
        return "runtime"
    if kind == _PYTHON:
        return "python"
    if kind == _MARK:
        return "annotation"
    if step_of(name) is not None:
        return "step"
    if name.startswith("enumerate(DataLoader)"):
        return "data"
    if name.startswith(("Optimizer.", "ProfilerStep")):
        return "annotation"
    return "op" if has_shapes or "::" in name or "Backward" in name else "annotation"


def json_list(text: str | None) -> str | None:
    """Inputs are separated by semicolons, dimensions by commas: as JSON lists."""
    if not text:
        return None
    parts = [part.strip() for part in text.strip('"').split(";")]
    if all(not part or all(piece.strip().isdecimal() for piece in part.split(",")) for part in parts):
        return json.dumps([[int(piece) for piece in part.split(",")] if part else [] for part in parts])
    return json.dumps(parts)
