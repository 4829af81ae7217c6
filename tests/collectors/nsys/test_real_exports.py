"""Real Nsight Systems exports against the numbers counted from the files by other means."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from tests.collectors.imported import Imported, union_ns
from tests.traces import oracle, trace

H100 = "nsys/nsysai_h100_2gpu_1s.sqlite"
NAMES = (H100, "nsys/nsysai_mock.sqlite", "nsys/lighttransport_runtime_only.sqlite")
CATEGORIES = {"KERNEL": ("kernel", "collective"), "MEMCPY": ("copy",), "MEMSET": ("fill",)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    made: dict[str, Imported] = {}

    def run_of(name: str) -> Imported:
        if name not in made:
            made[name] = Imported(trace(name), tmp_path_factory.mktemp("nsys"))
        return made[name]

    return run_of


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_kept(runs, name):
    run, expected = runs(name), oracle("other", name)
    run.check_counts()
    tables = {table: count for table, count in expected["tables"].items() if not table.startswith("ENUM_")}
    enums = run.manifest.counts["source_total"] - sum(tables.values())
    assert enums == run.manifest.counts["merged"] - sum(
        tables.get(table, 0) for table in ("StringIds", "ThreadNames", "PROCESSES")
    )
    assert run.report.formats == ["nsys"]
    assert run.report.exit_code == 0


@pytest.mark.parametrize("name", NAMES)
def test_device_work_by_stream(runs, name):
    run, expected = runs(name), oracle("other", name)
    tracks = {row["track_id"]: row for row in run.rows("tracks")}
    for table, categories in CATEGORIES.items():
        wanted = expected.get(f"CUPTI_ACTIVITY_KIND_{table}")
        rows = [row for row in run.rows("events") if row["category"] in categories]
        if wanted is None:
            assert rows == []
            continue
        assert len(rows) == wanted["count"]
        assert sum(row["duration_ns"] for row in rows) == wanted["sum_ns"]
        by_stream = defaultdict(list)
        for row in rows:
            track = tracks[row["track_id"]]
            by_stream[f"{track['device_index']}/{track['thread_id']}"].append(row)
        for stream, values in wanted["by_device_stream"].items():
            found = by_stream[stream]
            assert len(found) == values["count"]
            assert sum(row["duration_ns"] for row in found) == values["sum_ns"]
            assert union_ns(found) == values["union_ns"]


@pytest.mark.parametrize("name", NAMES)
def test_busy_time_of_each_device(runs, name):
    run, expected = runs(name), oracle("other", name)["gpu_busy_union_ns_by_device"]
    tracks = {row["track_id"]: row for row in run.rows("tracks")}
    base = run.manifest.clock[0]["time_ns"]
    for device, values in expected.items():
        rows = [
            row
            for row in run.rows("events")
            if row["category"] in ("kernel", "copy", "fill", "collective")
            and tracks[row["track_id"]]["device_index"] == int(device)
        ]
        assert union_ns(rows) == values["union_ns"]
        assert min(row["start_ns"] for row in rows) - base == values["first"]
        assert max(row["start_ns"] + row["duration_ns"] for row in rows) - base == values["last"]


@pytest.mark.parametrize("name", NAMES)
def test_runtime_calls_and_kernel_names(runs, name):
    run, expected = runs(name), oracle("other", name)
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in run.rows("events"):
        if row["category"] in ("runtime", "sync") and row["correlation_id"] is not None:
            sums[row["name"]][0] += 1
            sums[row["name"]][1] += row["duration_ns"]
    for top in expected["runtime"]["top"]:
        assert sums[top["name"]] == [top["count"], top["sum_ns"]]
    short: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in run.rows("events", category="kernel"):
        name = json.loads(row["attributes"])["shortName"]
        short[name][0] += 1
        short[name][1] += row["duration_ns"]
    for top in expected.get("top_kernels", ()):
        assert short[top["name"]] == [top["count"], top["sum_ns"]]


def test_torch_ranges_become_ops_and_kernels_find_theirs(runs):
    run = runs(H100)
    events = {row["event_id"]: row for row in run.rows("events")}
    ops = [row for row in events.values() if row["category"] == "op"]
    assert len(ops) + len(run.rows("events", category="annotation")) == 16782
    assert {row["name"] for row in ops} >= {"aten::mm", "aten::linear", "aten::view"}
    kernels = [row for row in events.values() if row["category"] == "kernel" and row["launch_id"] is not None]
    assert len(kernels) == 1632
    for kernel in kernels:
        launch, op = events[kernel["launch_id"]], events[kernel["op_id"]]
        assert launch["correlation_id"] == kernel["correlation_id"]
        assert launch["category"] == "runtime"
        assert op["track_id"] == launch["track_id"]
        assert op["start_ns"] <= launch["start_ns"] < op["start_ns"] + op["duration_ns"]
    assert run.health()["unlinked_kernels"] == 4368 - (1632 + 438 + 22)


def test_two_devices_and_a_named_one(runs):
    assert [row["device"] for row in runs(H100).rows("devices")] == ["cuda:0", "cuda:1"]
    (device,) = runs("nsys/lighttransport_runtime_only.sqlite").rows("devices")
    assert device["name"] == "NVIDIA GeForce RTX 5060 Ti"
    assert device["memory_bytes"] == 16660430848
    assert device["unit_count"] == 36
    assert device["memory_bandwidth"] == 448032000000.0


def test_nothing_is_written_beside_the_input(tmp_path):
    copy = tmp_path / "in" / "export.sqlite"
    copy.parent.mkdir()
    copy.write_bytes(Path(trace("nsys/nsysai_mock.sqlite")).read_bytes())
    Imported(copy, tmp_path)
    assert [entry.name for entry in copy.parent.iterdir()] == ["export.sqlite"]


def test_exports_named_by_rank_become_ranks(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("profile_rank5.sqlite", "profile_rank12.sqlite"):
        (folder / name).write_bytes(Path(trace("nsys/nsysai_mock.sqlite")).read_bytes())
    run = Imported(folder, tmp_path)
    assert run.reader.ranks == [5, 12]
    assert "rank_by_order" not in run.health()
