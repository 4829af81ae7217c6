"""Small runs written by hand, so that every expected number can be worked out on paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from explorer.analysis.run import Run, open_run
from explorer.model.ids import site_id, stack_id
from explorer.store.writer import RunWriter

MAIN = 0
STREAM = 10
"""Track of the first stream of cuda:0; 11 and 12 are further ones, 20 is a stream of cuda:1."""

TRACKS = [
    {"track_id": 0, "kind": "thread", "device_type": "cpu", "label": "main"},
    {"track_id": 1, "kind": "thread", "device_type": "cpu", "label": "autograd"},
    {"track_id": 10, "kind": "stream", "device_type": "cuda", "device_index": 0, "label": "stream 7"},
    {"track_id": 11, "kind": "stream", "device_type": "cuda", "device_index": 0, "label": "stream 13"},
    {"track_id": 12, "kind": "stream", "device_type": "cuda", "device_index": 0, "label": "stream 20"},
    {"track_id": 20, "kind": "stream", "device_type": "cuda", "device_index": 1, "label": "stream 7"},
]


def event(
    event_id: int, category: str, name: str, start_ns: int, end_ns: int, track_id: int = MAIN, **columns: Any
) -> dict[str, Any]:
    """One event row; self_ns is worked out by `write_run` from parent_id."""
    return {
        "event_id": event_id,
        "category": category,
        "name": name,
        "start_ns": start_ns,
        "duration_ns": end_ns - start_ns,
        "track_id": track_id,
        **columns,
    }


def site(line: int, file: str = "train.py", function: str = "main", **columns: Any) -> dict[str, Any]:
    """One site row with its hashed id."""
    return {
        "site_id": site_id(file, line, function),
        "file": file,
        "line": line,
        "function": function,
        "code": f"line {line}",
        "is_user": True,
        **columns,
    }


def line_id(line: int, file: str = "train.py", function: str = "main") -> int:
    """The id of `site(line)`."""
    return site_id(file, line, function)


def state(line: int | None, start_ns: int, end_ns: int, track_id: int = MAIN) -> dict[str, Any]:
    """One host_states row; None: no user frame."""
    here = None if line is None else line_id(line)
    return {
        "track_id": track_id,
        "start_ns": start_ns,
        "duration_ns": end_ns - start_ns,
        "site_id": here,
        "stack_id": None if here is None else stack_id([here]),
    }


def step(number: int, start_ns: int, end_ns: int, complete: bool = True, **columns: Any) -> dict[str, Any]:
    """One steps row."""
    return {
        "step": number,
        "start_ns": start_ns,
        "duration_ns": end_ns - start_ns,
        "complete": complete,
        **columns,
    }


def write_rank(
    directory: str | Path,
    events: Iterable[Mapping[str, Any]] = (),
    *,
    rank: int = 0,
    cost: Mapping[str, Any] | None = None,
    capture: Mapping[str, Any] | None = None,
    **tables: Iterable[Mapping[str, Any]],
) -> str:
    """Write one rank of a run; tables besides events by keyword. Tracks default to TRACKS."""
    rows = [dict(row) for row in events]
    enclosed: dict[int, int] = {}
    for row in rows:
        if row.get("parent_id") is not None:
            enclosed[row["parent_id"]] = enclosed.get(row["parent_id"], 0) + row["duration_ns"]
    for row in rows:
        row.setdefault("self_ns", row["duration_ns"] - enclosed.get(row["event_id"], 0))
    with RunWriter(directory, rank=rank, made_by="test") as writer:
        writer.manifest.cost = dict(cost or {})
        writer.manifest.capture = dict(capture or {})
        writer.write("tracks", list(tables.pop("tracks", TRACKS)))
        if rows:
            writer.write("events", rows)
        for name, content in tables.items():
            writer.write(name, list(content))
        return writer.directory


def make_run(directory: str | Path, events: Iterable[Mapping[str, Any]] = (), **parts: Any) -> Run:
    """A run of one rank, opened."""
    return open_run(write_rank(Path(directory) / "run", events, **parts))
