"""One data set of a rocpd database: tables whose names end in its id, rows that refer to each other by number.

After rocpd_tables.sql of ROCprofiler-SDK, schema versions 3 and 4: times stand in the rows (start, end), or in a table of time
stamps that the rows point at (start_id, end_id); threads, agents and streams stand in the rows, or in a table of tracks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from explorer.collectors.sqlite_file import SqliteFile

_NAME = re.compile(
    r"^rocpd_(?P<table>metadata|string|info_node|info_process|info_thread|info_agent|info_queue|info_stream|info_pmc|"
    r"info_code_object|info_kernel_symbol|track|timestamp|event|arg|pmc_event|region|sample|kernel_dispatch|memory_copy|"
    r"memory_allocate)(?P<id>(?:_.*)?)$"
)
MERGED = (
    "string",
    "track",
    "timestamp",
    "event",
    "pmc_event",
    "info_kernel_symbol",
    "info_pmc",
    "info_thread",
)


def data_sets(tables: Any) -> dict[str, dict[str, str]]:
    """Data set to its tables: short name to full name."""
    found: dict[str, dict[str, str]] = {}
    for name in tables:
        if match := _NAME.match(name):
            found.setdefault(match["id"], {})[match["table"]] = name
    return found


class DataSet:
    """Rows of one data set, with names and times resolved. `merged` counts rows that live on inside others."""

    def __init__(self, file: SqliteFile, tables: dict[str, str]) -> None:
        self._file = file
        self.tables = tables
        self.merged = 0
        self.strings = {row["id"]: str(row.get("string", "")) for row in self._count("string")}
        self.tracks = {row["id"]: row for row in self._count("track")}
        self.kernels = {row["id"]: row for row in self._count("info_kernel_symbol")}
        self.threads = {row["id"]: row for row in self._count("info_thread")}
        self.metrics = {row["id"]: row for row in self._count("info_pmc")}
        self.processes = {row["id"]: row for row in self.rows("info_process")}
        self.agents = {row["id"]: row for row in self.rows("info_agent")}
        self._times: dict[Any, Any] = {}
        for row in self._count("timestamp"):
            self._times[row["id"]] = row.get("value")
        self.events: dict[Any, tuple[Any, Any]] = {}
        """Event number to (category, internal correlation id)"""
        for row in self._count("event"):
            self.events[row["id"]] = (self.strings.get(row.get("category_id")), row.get("stack_id"))
        self.counters: dict[Any, dict[str, Any]] = {}
        """Event number to its performance counters"""
        for row in self._count("pmc_event"):
            metric = self.metrics.get(row.get("pmc_id"), {})
            name = str(metric.get("symbol") or metric.get("name") or f"counter {row.get('pmc_id')}")
            self.counters.setdefault(row.get("event_id"), {})[name] = row.get("value")

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """Rows of a table by its short name, with what their track says; rows without an id get none."""
        if table in self.tables:
            for row in self._file.records(self.tables[table]):
                row.setdefault("id", None)
                row.pop("guid", None)
                yield row

    def _count(self, table: str) -> Iterator[dict[str, Any]]:
        for row in self.rows(table):
            self.merged += 1
            yield row

    def placed(self, table: str) -> Iterator[dict[str, Any]]:
        """Rows with `start`, `end` and the columns of their track filled in."""
        for row in self.rows(table):
            track = self.tracks.get(row.pop("track_id", None), {})
            for key in ("pid", "tid", "agent_id", "queue_id", "stream_id"):
                if key in track:
                    row.setdefault(key, track[key])
            for key in ("start", "end", "timestamp"):
                if f"{key}_id" in row:
                    row[key] = self._times.get(row.pop(f"{key}_id"))
            yield row
