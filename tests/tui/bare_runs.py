"""Runs that hold little or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from explorer.store.writer import RunWriter

THREAD = {
    "track_id": 1,
    "kind": "thread",
    "device_type": "cpu",
    "thread_name": "main",
    "label": "python main",
}
STREAM = {
    "track_id": 2,
    "kind": "stream",
    "device_type": "cuda",
    "device_index": 0,
    "thread_id": 7,
    "label": "stream 7",
}


def _events(track: int, category: str, name: str) -> list[dict[str, Any]]:
    return [
        {
            "event_id": number,
            "track_id": track,
            "category": category,
            "name": name,
            "start_ns": 1_000 * number,
            "duration_ns": 400,
            "self_ns": 400,
        }
        for number in range(1, 6)
    ]


def _counters() -> list[dict[str, Any]]:
    return [
        {"track_id": 3, "timestamp_ns": 1_000 * tick, "name": "power", "value": 300.0 + tick, "unit": "watt"}
        for tick in range(5)
    ]


TABLES: dict[str, dict[str, list[dict[str, Any]]]] = {
    "nothing": {},
    "counters": {"tracks": [{"track_id": 3, "kind": "counter", "label": "power"}], "counters": _counters()},
    "device": {"tracks": [STREAM], "events": _events(2, "kernel", "gemm")},
    "host": {"tracks": [THREAD], "events": _events(1, "op", "aten::add")},
}
"""Rows by table of each run: none at all; telemetry alone; a device's work alone; ops without steps."""


def write_bare_run(directory: Path, name: str) -> str:
    """Write one of TABLES and return its directory."""
    with RunWriter(directory, made_by="generator") as writer:
        for table, rows in TABLES[name].items():
            writer.write(table, rows)
    return str(directory)
