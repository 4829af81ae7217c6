"""Paths through small hand-built runs whose answer can be read off the drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from explorer.analysis.critical_path.path_table import path_table
from explorer.analysis.critical_path.rank_events import load
from explorer.analysis.critical_path.walk import walk
from explorer.analysis.engine import Engine
from explorer.store.reader import RunReader
from explorer.store.writer import RunWriter

TRACKS = [
    {"track_id": 1, "kind": "thread", "device_type": "cpu", "label": "main"},
    {"track_id": 7, "kind": "stream", "device_type": "cuda", "device_index": 0, "label": "stream 7"},
    {"track_id": 8, "kind": "stream", "device_type": "cuda", "device_index": 0, "label": "stream 8"},
    {"track_id": 2, "kind": "thread", "device_type": "cpu", "label": "autograd"},
]


def event(number: int, track: int, category: str, start: int, end: int, **more: Any) -> dict[str, Any]:
    return {
        "event_id": number,
        "track_id": track,
        "category": category,
        "name": f"{category}{number}",
        "start_ns": start,
        "duration_ns": end - start,
        "self_ns": end - start,
        **more,
    }


def path_of(
    directory: Path,
    events: list[dict[str, Any]],
    steps: list[tuple[int, int]],
    states: list[tuple[int, int, int]] = (),  # type: ignore[assignment]
    edges: list[dict[str, Any]] = (),  # type: ignore[assignment]
) -> list[tuple[int, int, str, int | None, int | None]]:
    with RunWriter(directory / "run") as writer:
        writer.write("tracks", TRACKS)
        writer.write("events", events)
        writer.write(
            "steps",
            [
                {"step": i, "start_ns": s, "duration_ns": e - s, "complete": True}
                for i, (s, e) in enumerate(steps)
            ],
        )
        if states:
            writer.write(
                "host_states",
                [
                    {"track_id": 1, "start_ns": s, "duration_ns": e - s, "site_id": site}
                    for s, e, site in states
                ],
            )
        if edges:
            writer.write("edges", edges)
    loaded = load(Engine(RunReader(directory / "run")), 0)
    assert loaded is not None
    table = path_table(loaded, walk(loaded))
    rows = table.to_pylist()
    assert sum(row["duration_ns"] for row in rows) == steps[-1][1] - steps[0][0]
    return [
        (row["start_ns"], row["start_ns"] + row["duration_ns"], row["kind"], row["event_id"], row["site_id"])
        for row in rows
    ]


def test_cpu_run_is_its_host_lane(tmp_path: Path) -> None:
    rows = path_of(
        tmp_path,
        [event(1, 1, "op", 10, 40, site_id=5), event(2, 1, "op", 15, 20, parent_id=1, site_id=5)],
        [(0, 50), (50, 60)],
        states=[(0, 40, 5), (40, 50, 6)],
    )
    assert rows == [
        (0, 10, "python", None, 5),
        (10, 15, "op", 1, 5),
        (15, 20, "op", 2, 5),
        (20, 40, "op", 1, 5),
        (40, 50, "python", None, 6),
        (50, 60, "idle", None, None),
    ]


def test_a_rest_between_two_windows_belongs_to_no_step(tmp_path: Path) -> None:
    """Recording rests from 50 to 90, between the windows of steps 0 and 1; nothing is known on either side of the edge."""
    rows = path_of(tmp_path, [event(1, 1, "op", 0, 40), event(2, 1, "op", 95, 99)], [(0, 50), (90, 100)])
    assert rows == [
        (0, 40, "op", 1, None),
        (40, 50, "idle", None, None),
        (50, 90, "idle", None, None),
        (90, 95, "idle", None, None),
        (95, 99, "op", 2, None),
        (99, 100, "idle", None, None),
    ]


def test_a_hook_inside_an_op_is_python_of_its_own_line(tmp_path: Path) -> None:
    """A backward op (of line 5, run by `loss.backward()` at line 7) calls a hook whose only line is 9."""
    rows = path_of(
        tmp_path,
        [event(1, 1, "op", 10, 40, site_id=5)],
        [(0, 50)],
        states=[(0, 20, 7), (20, 30, 9), (30, 50, 7)],
    )
    assert rows == [
        (0, 10, "python", None, 7),
        (10, 20, "op", 1, 5),
        (20, 30, "python", 1, 9),
        (30, 40, "op", 1, 5),
        (40, 50, "python", None, 7),
    ]


def test_a_fetch_belongs_to_the_line_that_ran_in_it(tmp_path: Path) -> None:
    rows = path_of(tmp_path, [event(1, 1, "data", 0, 40, site_id=5)], [(0, 50)], states=[(10, 30, 6)])
    assert rows == [
        (0, 10, "data", 1, 5),
        (10, 30, "data", 1, 6),
        (30, 40, "data", 1, 5),
        (40, 50, "idle", None, None),
    ]


def test_sync_leads_to_the_device_and_back_to_the_launch(tmp_path: Path) -> None:
    rows = path_of(
        tmp_path,
        [
            event(1, 1, "op", 0, 10),
            event(2, 1, "runtime", 4, 6, parent_id=1),
            event(3, 7, "kernel", 9, 80, launch_id=2, site_id=3),
            event(4, 1, "sync", 20, 85),
        ],
        [(0, 100)],
    )
    assert rows == [
        (0, 4, "op", 1, None),
        (4, 6, "runtime", 2, None),
        (6, 9, "launch_latency", 3, 3),
        (9, 80, "kernel", 3, 3),
        (80, 85, "sync", 4, None),
        (85, 100, "idle", None, None),
    ]


def test_a_full_queue_keeps_the_path_on_the_stream(tmp_path: Path) -> None:
    rows = path_of(
        tmp_path,
        [
            event(1, 1, "runtime", 0, 2),
            event(2, 1, "runtime", 2, 4),
            event(3, 7, "kernel", 5, 50, launch_id=1),
            event(4, 7, "kernel", 52, 90, launch_id=2),
            event(5, 1, "sync", 10, 91),
        ],
        [(0, 91)],
    )
    assert [(s, e, kind, number) for s, e, kind, number, _ in rows] == [
        (0, 2, "runtime", 1),
        (2, 5, "launch_latency", 3),
        (5, 50, "kernel", 3),
        (50, 52, "device_gap", 4),
        (52, 90, "kernel", 4),
        (90, 91, "sync", 5),
    ]


def test_a_stream_wait_crosses_streams(tmp_path: Path) -> None:
    rows = path_of(
        tmp_path,
        [
            event(1, 1, "runtime", 0, 1),
            event(2, 1, "runtime", 1, 2),
            event(3, 8, "copy", 3, 60, launch_id=1),
            event(4, 7, "kernel", 61, 70, launch_id=2),
            event(5, 1, "sync", 5, 71),
        ],
        [(0, 71)],
        edges=[{"source_id": 3, "target_rank": 0, "target_id": 4, "kind": "stream_wait"}],
    )
    assert [(kind, number) for _, _, kind, number, _ in rows] == [
        ("runtime", 1),
        ("launch_latency", 3),
        ("copy", 3),
        ("device_gap", 4),
        ("kernel", 4),
        ("sync", 5),
    ]


def test_a_sync_that_did_not_wait_stays_on_the_host(tmp_path: Path) -> None:
    rows = path_of(
        tmp_path,
        [
            event(1, 1, "runtime", 0, 2),
            event(2, 7, "kernel", 4, 10, launch_id=1),
            event(3, 1, "sync", 30, 33),
        ],
        [(0, 40)],
    )
    assert [(s, e, kind) for s, e, kind, _, _ in rows] == [
        (0, 2, "runtime"),
        (2, 30, "idle"),
        (30, 33, "sync"),
        (33, 40, "idle"),
    ]


def test_a_blocking_copy_waits_for_its_own_transfer(tmp_path: Path) -> None:
    rows = path_of(
        tmp_path,
        [event(1, 1, "runtime", 10, 90), event(2, 7, "copy", 30, 80, launch_id=1)],
        [(0, 100)],
    )
    assert [(s, e, kind) for s, e, kind, _, _ in rows] == [
        (0, 10, "idle"),
        (10, 30, "runtime"),
        (30, 80, "copy"),
        (80, 90, "runtime"),
        (90, 100, "idle"),
    ]


def test_the_autograd_thread_works_for_the_waiting_main_thread(tmp_path: Path) -> None:
    rows = path_of(
        tmp_path,
        [
            event(1, 1, "op", 0, 10),
            event(2, 1, "annotation", 12, 60),
            event(3, 2, "op", 20, 30, site_id=9),
            event(4, 2, "op", 30, 55, site_id=8),
        ],
        [(0, 60)],
        states=[(0, 60, 4)],
    )
    assert rows == [
        (0, 10, "op", 1, 4),
        (10, 12, "python", None, 4),
        (12, 20, "python", 2, 4),
        (20, 30, "op", 3, 9),
        (30, 55, "op", 4, 8),
        (55, 60, "python", 2, 4),
    ]


def test_empty_device_events_do_not_lead_in_a_circle(tmp_path: Path) -> None:
    rows = path_of(
        tmp_path,
        [
            event(1, 1, "sync", 10, 20),
            event(2, 7, "fill", 20, 20, launch_id=1),
            event(3, 7, "kernel", 20, 20),
        ],
        [(0, 30)],
    )
    assert sum(e - s for s, e, *_ in rows) == 30
