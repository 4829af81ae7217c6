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
