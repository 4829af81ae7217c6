"""A real Ascend database against counted values and its vendor's own overlap table; a made one for the rest."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter, defaultdict

import pytest

from explorer.collectors.ascend.importer import find_rank
from explorer.collectors.source import open_source
from tests.collectors.imported import Imported, union_ns
from tests.traces import oracle, trace

NAME = "ascend/multirank_level1/rank0_ascend_pytorch_profiler.db"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Imported(trace(NAME), tmp_path_factory.mktemp("ascend"))


@pytest.fixture(scope="module")
def expected():
    return oracle("other", NAME)


def test_every_row_is_kept(run, expected):
    run.check_counts()
    with sqlite3.connect(f"file:{trace(NAME)}?mode=ro&immutable=1", uri=True) as file:
        enums = [row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE name LIKE 'ENUM_%'")]
        enum_rows = sum(file.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in enums)
    assert run.manifest.counts["source_total"] == sum(expected["tables"].values()) + enum_rows


def test_nothing_is_written_beside_the_input(run):
    assert not [
        name for name in os.listdir(trace(NAME).parent) if name.endswith(("-wal", "-shm", "-journal"))
    ]


def test_tasks_and_calls(run, expected):
    tracks = {row["track_id"]: row for row in run.rows("tracks")}
    tasks = [
        row
        for row in run.rows("events")
        if tracks[row["track_id"]]["kind"] == "stream" and tracks[row["track_id"]]["device_type"] == "npu"
    ]
    assert len(tasks) == expected["TASK"]["count"]
    assert sum(row["duration_ns"] for row in tasks) == expected["TASK"]["sum_ns"]
    assert union_ns(tasks) == expected["TASK"]["union_ns"]
    kernels: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in run.rows("events", category="kernel"):
        kernels[row["name"]][0] += 1
        kernels[row["name"]][1] += row["duration_ns"]
    for top in expected["top_compute"]:
        assert kernels[top["name"]] == [top["count"], top["sum_ns"]]
    calls = [row for row in run.rows("events") if tracks[row["track_id"]]["kind"] == "thread"]
    assert len(calls) == expected["PYTORCH_API"]["count"] + expected["tables"]["CANN_API"]
    torch = [row for row in calls if "level" not in json.loads(row["attributes"] or "{}")]
    assert sum(row["duration_ns"] for row in torch) == expected["PYTORCH_API"]["sum_ns"]


def test_compute_and_communication_equal_the_vendors_overlap_table(run):
    kept = [json.loads(row["attributes"]) for row in run.rows("source_rows", name="OVERLAP_ANALYSIS")]
    sums = Counter()
    for row in kept:
        sums[row["type"]] += row["endNs"] - row["startNs"]
    compute, communication = run.rows("events", category="kernel"), run.rows("events", category="collective")
    assert union_ns(compute) == sums[0]
    assert union_ns(communication) == sums[1]
    assert union_ns(compute + communication) - union_ns(compute) == sums[2]


def test_collectives(run):
    rows = run.rows("collectives")
    assert [(row["operation"], row["dtype"], row["element_count"], row["size_bytes"]) for row in rows] == [
        ("all_reduce", "FP32", count, 4 * count) for count in (4097000, 16781312, 37752832, 2469696)
    ]


def test_kernels_find_their_op_and_line_across_the_task_queue(run):
    events = {row["event_id"]: row for row in run.rows("events")}
    kernels = run.rows("events", category="kernel")
    assert all(row["launch_id"] is not None and row["op_id"] is not None for row in kernels)
    for row in kernels:
        assert events[row["launch_id"]]["correlation_id"] == row["correlation_id"]
        assert events[row["op_id"]]["category"] == "op"
    assert Counter(row["attribution"] for row in kernels) == {"flow": 72, "forward": 89, "none": 26}
    sites = {row["site_id"]: row for row in run.rows("sites")}
    by_line = Counter()
    for row in kernels:
        if row["site_id"] is not None:
            site = sites[row["site_id"]]
            by_line[os.path.basename(site["file"]), site["line"], site["function"]] += row["duration_ns"]
    assert by_line["main.py", 354, "train"] == 5646227
    assert by_line["main.py", 366, "train"] == 2251484


def test_backward_ops_name_their_forward_op(run):
    events = {row["event_id"]: row for row in run.rows("events")}
    backward = [row for row in events.values() if row["forward_id"] is not None]
    assert len(backward) == 27
    assert all(events[row["forward_id"]]["start_ns"] < row["start_ns"] for row in backward)
    assert all("Backward" in row["name"] for row in backward)


def test_step_device_rank_memory_and_counters(run, expected):
    (step,) = run.rows("steps")
    assert (step["step"], step["duration_ns"]) == (50, 151888750)
    assert [(row["device"], row["name"], row["vendor"]) for row in run.rows("devices")] == [
        ("npu:0", "Ascend910B", "huawei")
    ]
    (source,) = open_source(trace(NAME))
    assert find_rank(source) == (0, "RANK_DEVICE_MAP")
    memory = [row for row in run.rows("memory_events") if row["address"] is not None]
    assert Counter(row["action"] for row in memory) == {"alloc": 57, "free": 57}
    assert sum(row["size_bytes"] for row in memory) == 0
    sizes = Counter(row["name"].split()[0] for row in run.rows("counters"))
    tables = expected["tables"]
    assert sizes["HBM"] == tables["HBM"]
    assert sizes["LLC"] == 2 * tables["LLC"]
    assert sizes["MEMORY_RECORD"] == 3 * tables["MEMORY_RECORD"]
    assert sizes["ACC_PMU"] == 4 * tables["ACC_PMU"]


def test_a_small_database_with_odd_rows(tmp_path):
    path = tmp_path / "msprof.db"
    with sqlite3.connect(path) as file:
        file.executescript(
            "CREATE TABLE STRING_IDS (id INTEGER, value TEXT);"
            "INSERT INTO STRING_IDS VALUES (1, 'aclrtSynchronizeStream'), (2, 'KERNEL_AICORE'), (3, 'MatMul'), (4, '2,3;4');"
            "CREATE TABLE CANN_API (startNs, endNs, type, globalTid, connectionId, name);"
            "INSERT INTO CANN_API VALUES (10, 20, 20000, 4294967298, 7, 1), ('abc', 20, 20000, 4294967298, 8, 1);"
            "CREATE TABLE TASK (startNs, endNs, deviceId, connectionId, globalTaskId, taskType, streamId);"
            "INSERT INTO TASK VALUES (30, 40, 1, 7, 5, 2, 3), (50, 45, 1, 4294967295, 6, 2, 3);"
            "CREATE TABLE COMPUTE_TASK_INFO (globalTaskId, name, inputShapes);"
            "INSERT INTO COMPUTE_TASK_INFO VALUES (5, 3, 4), (99, 3, 4);"
            "CREATE TABLE OP_MEMORY (name, size, allocationTime, releaseTime, deviceId);"
            "INSERT INTO OP_MEMORY VALUES (3, 64, 100, 200, 1), (3, NULL, 1, 2, 1), (3, 8, NULL, 300, 1);"
        )
    run = Imported(path, tmp_path)
    run.check_counts()
    (kernel,) = run.rows("events", category="kernel")
    assert (kernel["name"], kernel["shapes"], kernel["duration_ns"]) == ("MatMul", "[[2, 3], [4]]", 10)
    assert run.rows("events", name="aclrtSynchronizeStream")[0]["category"] == "sync"
    assert kernel["launch_id"] == run.rows("events", name="aclrtSynchronizeStream")[0]["event_id"]
    assert [(row["action"], row["size_bytes"]) for row in run.rows("memory_events")] == [
        ("alloc", 64),
        ("free", -64),
        ("free", -8),
    ]
    assert Counter(row["reason"] for row in run.rows("quarantine")) == {
        "no_time": 1,
        "negative_duration": 1,
        "no_memory_event": 1,
    }
    assert json.loads(run.rows("source_rows")[0]["attributes"])["globalTaskId"] == 99


def test_a_directory_takes_each_recording_once(tmp_path):
    """Rank 0 has a database and a JSON form of it; rank 1 has the JSON form only."""
    run = Imported(trace(NAME).parent, tmp_path)
    assert run.reader.ranks == [0, 1]
    formats = {rank: manifest.inputs[0]["format"] for rank, manifest in run.reader.manifests.items()}
    assert formats == {0: "ascend_db", 1: "kineto"}
    assert [row["rank"] for row in run.rows("health", kind="other_form")] == [0]
    assert run.report.exit_code == 0
