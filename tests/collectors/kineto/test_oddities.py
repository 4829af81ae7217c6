"""Oddities of real files that need no repair: units, long and empty names, device lists, overlaid critical paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.collectors.imported import Imported

KERNEL = {
    "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 12.345, "dur": 1.5,
    "args": {"device": 0, "stream": 7, "correlation": 41},
}  # fmt: skip


def run_of(folder: Path, rows: list[dict[str, Any]], **top: Any) -> Imported:
    path = folder / "t.json"
    path.write_text(json.dumps({**top, "traceEvents": rows}))
    run = Imported(path, folder)
    assert run.manifest.counts["source_total"] == len(rows)
    return run


@pytest.mark.parametrize("unit", [None, "ms", "ns", "us"])
def test_the_display_unit_changes_no_time(tmp_path: Path, unit: str | None) -> None:
    run = run_of(tmp_path, [KERNEL], **({"displayTimeUnit": unit} if unit else {}))
    (row,) = run.rows("events")
    assert (row["start_ns"], row["duration_ns"]) == (12_345, 1_500)


def test_base_time_is_added_to_the_nanosecond(tmp_path: Path) -> None:
    run = run_of(tmp_path, [KERNEL], baseTimeNanoseconds=1735632360000000001)
    assert run.rows("events")[0]["start_ns"] == 1735632360000012346
    assert "no_absolute_time" not in run.health()


def test_names_of_any_length(tmp_path: Path) -> None:
    names = ["void (anonymous namespace)::k<" + "x" * 5_130 + ">", "", "\u00e9\u4e2d", '"quoted": {"x":1}']
    run = run_of(tmp_path, [{**KERNEL, "name": name, "ts": i} for i, name in enumerate(names)])
    assert [row["name"] for row in sorted(run.rows("events"), key=lambda row: row["start_ns"])] == names


@pytest.mark.parametrize("listed", [None, [], [{"id": 0, "name": "", "totalGlobalMem": 5}]])
def test_device_lists_that_say_nothing(tmp_path: Path, listed: list[dict[str, Any]] | None) -> None:
    run = run_of(tmp_path, [KERNEL], **({} if listed is None else {"deviceProperties": listed}))
    (track,) = run.rows("tracks", kind="stream")
    assert (track["device_index"], track["thread_id"]) == (0, 7)


def test_listed_devices_are_not_used_devices(tmp_path: Path) -> None:
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    run = run_of(tmp_path, [op], deviceProperties=[{"id": n, "name": "NVIDIA A100"} for n in range(8)])
    assert not run.rows("tracks", kind="stream")


def test_a_large_process_group_config_is_kept(tmp_path: Path) -> None:
    groups = [{"pg_name": str(n), "ranks": list(range(300))} for n in range(20)]
    world = {"backend": "gloo", "rank": 5, "world_size": 300, "pg_config": groups}
    run = run_of(tmp_path, [KERNEL], distributedInfo=world)
    assert (run.reader.ranks, run.manifest.world_size) == ([5], 300)
    assert run.manifest.attributes["top_level"]["distributedInfo"]["pg_config"] == groups


def test_an_overlaid_critical_path_keeps_its_marks_and_arrows(tmp_path: Path) -> None:
    critical = {**KERNEL, "args": {**KERNEL["args"], "critical": 1}}
    arrows = [
        {"ph": ph, "id": 9, "pid": 0, "tid": 7, "ts": 12.345, "cat": "critical_path", "name": "critical_path",
         "args": {"weight": 3}, **({"bp": "e"} if ph == "f" else {})}
        for ph in "sf"
    ]  # fmt: skip
    run = run_of(tmp_path, [critical, *arrows])
    (row,) = run.rows("events")
    assert json.loads(row["attributes"])["critical"] == 1
    kept = [json.loads(each["attributes"]) for each in run.rows("source_rows")]
    assert len(kept) == 2
    assert all("weight" in json.dumps(each) for each in kept)


def memory_row(ts: int, size: Any, cat: str | None = None, **args: Any) -> dict[str, Any]:
    named = {"cat": cat} if cat else {}
    return {
        "ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts, "args": {"Bytes": size, **args}, **named
    }  # fmt: skip


def test_memory_events_with_and_without_what_versions_add(tmp_path: Path) -> None:
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 0, "dur": 100}
    full = {"Addr": 4096, "Total Allocated": 64, "Total Reserved": 128}
    rows = [
        op,
        memory_row(10, 64, "cpu_instant_event", **{"Device Type": 0, "Device Id": -1}, **full),
        memory_row(20, -64, **{"Device Type": 0, "Device Id": -1}),
        memory_row(30, 512, **{"Device Type": 1, "Device Id": 3}, **full),
        memory_row(40, 256, "Trace", **{"Device Type": 6, "Device Id": 2, "Total Allocated": 5}),
        memory_row(50, "9", **{"Device Type": "1", "Device Id": "0", "Addr": "0x10"}),
        memory_row(60, 7),
        # Without a size it is a mark like any other.
        {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 70},
    ]
    run = run_of(tmp_path, rows)
    columns = ("action", "size_bytes", "device", "address", "allocated_bytes", "reserved_bytes", "op_id")
    found = sorted(run.rows("memory_events"), key=lambda row: row["timestamp_ns"])
    assert [tuple(row[name] for name in columns) for row in found] == [
        ("alloc", 64, "cpu", 4096, 64, 128, 0),
        ("free", -64, "cpu", None, None, None, 0),
        ("alloc", 512, "cuda:3", 4096, 64, 128, 0),
        ("alloc", 256, "hip:2", None, 5, None, 0),
        ("alloc", 9, "cuda:0", 16, None, None, 0),
        ("alloc", 7, "cpu", None, None, None, 0),
    ]
    assert [row["name"] for row in run.rows("events", category="other")] == ["[memory]"]


def test_split_traces_without_metadata_rows(tmp_path: Path) -> None:
    """Tools cut traces into parts that have no rows of phase M: what an event is, its own fields tell."""
    rows = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 0, "dur": 9,
         "args": {"External id": 1}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 1, "dur": 2,
         "args": {"correlation": 41, "External id": 1}},
        {**KERNEL, "args": {**KERNEL["args"], "External id": 1}},
    ]  # fmt: skip
    path = tmp_path / "part.json"
    path.write_text(json.dumps(rows))
    run = Imported(path, tmp_path)
    by_name = {row["name"]: row for row in run.rows("events")}
    assert by_name["gemm"]["launch_id"] == by_name["cudaLaunchKernel"]["event_id"]
    assert by_name["gemm"]["op_id"] == by_name["aten::mm"]["event_id"]
    tracks = {
        (row["kind"], row["process_id"], row["thread_id"], row["device_index"]) for row in run.rows("tracks")
    }
    assert tracks == {("thread", 9, 9, None), ("stream", 0, 7, 0)}
    assert run.manifest.counts["source_total"] == 3
