"""Host side of an Nsight Systems export: runtime calls, library calls, OS runtime, profiling overhead."""

from __future__ import annotations

import re
from typing import Any

from explorer.collectors.device_work import call_category
from explorer.collectors.import_session import ImportSession
from explorer.collectors.nsys.clock import Clock, link_key, process_of, thread_of
from explorer.collectors.nsys.names import Names
from explorer.collectors.row_buffer import attributes_json
from explorer.collectors.sqlite_file import SqliteFile

_CATEGORIES = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "runtime",
    "CUPTI_ACTIVITY_KIND_DRIVER": "runtime",
    "CUDNN_EVENTS": "runtime",
    "CUBLAS_EVENTS": "runtime",
    "OSRT_API": "other",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "overhead",
    "PROFILER_OVERHEAD": "overhead",
}
_IO = re.compile(
    r"^(?:p?readv?2?(?:64)?|p?writev?2?(?:64)?|f(?:read|write|open|close|flush|puts|gets|getc|putc|sync|datasync)(?:64)?|"
    r"open(?:at)?(?:64)?|close|sendfile(?:64)?|send(?:to|msg)?|recv(?:from|msg)?|mmap(?:64)?|sync|syncfs|io_\w+|getdents(?:64)?)$"
)
_VERSION = re.compile(r"_v\d+$")


def host_tables(file: SqliteFile) -> list[str]:
    """Tables whose rows are calls on a thread: the known ones and any other with start, end and globalTid."""
    return [
        name
        for name in file.tables
        if name in _CATEGORIES or (name != "NVTX_EVENTS" and file.has(name, "start", "end", "globalTid"))
    ]


class HostRows:
    """Turns rows of the host tables into events on threads."""

    def __init__(self, session: ImportSession, names: Names, clock: Clock) -> None:
        self.session = session
        self.names = names
        self.clock = clock
        self._tracks: dict[Any, int] = {}

    def track(self, global_tid: Any) -> int:
        """The track of a globalTid."""
        known = self._tracks.get(global_tid)
        if known is None:
            known = self._tracks[global_tid] = self._new_track(global_tid)
        return known

    def _new_track(self, global_tid: Any) -> int:
        process, thread = process_of(global_tid), thread_of(global_tid)
        return self.session.tracks.thread(
            process, thread, self.names.threads.get(global_tid), self.names.processes.get(process)
        )

    def read(self, file: SqliteFile, stop_ns: int | None) -> None:
        """Read every host table. `stop_ns`: end of the session, for calls that never returned."""
        for table in host_tables(file):
            category = _CATEGORIES.get(table, "other")
            for row in file.records(table):
                self._row(table, category, row, stop_ns)

    def _row(self, table: str, category: str, row: dict[str, Any], stop_ns: int | None) -> None:
        start, end, thread = row.pop("start", None), row.pop("end", None), row.pop("globalTid", None)
        correlation = row.pop("correlationId", None)
        name_id = row.pop("nameId", None)
        name = (
            self.names.text(name_id)
            if name_id is not None
            else str(row.get("name") or row.get("text") or table)
        )
        if category == "runtime":
            category = call_category(_VERSION.sub("", name))
        elif table == "OSRT_API" and _IO.match(name):
            category = "io"
        if category == "overhead" and "overheadType" in row:
            row["overheadType"] = self.names.enum("ENUM_CUPTI_OVERHEAD_TYPE", row["overheadType"])
        if table not in ("CUPTI_ACTIVITY_KIND_RUNTIME", "OSRT_API"):
            row["table"] = table
        if end is None and isinstance(start, int) and stop_ns is not None and stop_ns >= start:
            end, row["unfinished"] = stop_ns, True
        linked = category in ("runtime", "sync")
        self.session.event(
            track_id=self.track(thread),
            category=category,
            name=name,
            start_ns=start + self.clock.base_ns if isinstance(start, int) else start,
            duration_ns=end - start if isinstance(start, int) and isinstance(end, int) else None,
            correlation_id=correlation if isinstance(correlation, int) else None,
            link=link_key(process_of(thread), correlation) if linked else 0,
            attributes=attributes_json(row),
        )
