"""Exports made here: NVTX backward links, steps, metrics, memory, older schemas, unfinished calls."""

from __future__ import annotations

import json
import sqlite3

import pytest

from tests.collectors.imported import Imported

TID = (7 << 24) | 9
PID = 7 << 24


def make(path, script: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
        "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT);"
        "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1000000);" + script
    )
    connection.commit()
    connection.close()


@pytest.fixture
def imported(tmp_path):
    def run(script: str) -> Imported:
        make(tmp_path / "made.sqlite", script)
        made = Imported(tmp_path / "made.sqlite", tmp_path)
        made.check_counts()
        return made

    return run


NVTX = "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT, domainId INT);"


def test_backward_ranges_find_their_forward_op_and_steps_are_steps(imported):
    run = imported(
        NVTX
        + "INSERT INTO StringIds VALUES (5, 'step 3');"
        + f"INSERT INTO NVTX_EVENTS VALUES (0, 100, 59, NULL, 5, {TID}, 0);"
        + f"INSERT INTO NVTX_EVENTS VALUES (10, 20, 59, 'aten::linear, seq = 4, op_id = 1, sizes = [[2, 3]]', NULL, {TID}, 0);"
        + f"INSERT INTO NVTX_EVENTS VALUES (50, 60, 59, 'AddmmBackward0, seq = 4, op_id = 9', NULL, {TID}, 0);"
        + f"INSERT INTO NVTX_EVENTS VALUES (70, NULL, 34, 'a mark', NULL, {TID}, 0);"
        + f"INSERT INTO NVTX_EVENTS VALUES (80, 75, 59, 'impossible', NULL, {TID}, 0);"
    )
    forward = run.rows("events", name="aten::linear")[0]
    backward = run.rows("events", name="AddmmBackward0")[0]
    assert backward["forward_id"] == forward["event_id"]
    assert forward["shapes"] == "[[2, 3]]"
    assert forward["start_ns"] == 1000010
    assert (forward["step"], backward["step"]) == (3, 3)
    assert run.rows("events", name="step 3")[0]["category"] == "step"
    assert run.rows("events", name="a mark")[0]["duration_ns"] == 0
    (step,) = run.rows("steps")
    assert (step["step"], step["start_ns"], step["duration_ns"]) == (3, 1000000, 100)
    (edge,) = run.rows("edges")
    assert (edge["kind"], edge["source_id"]) == ("forward_backward", forward["event_id"])
    (refused,) = run.rows("quarantine")
    assert refused["reason"] == "negative_duration"
    assert run.report.exit_code == 4


def test_metrics_are_counters_and_memory_is_memory(imported):
    run = imported(
        "CREATE TABLE GPU_METRICS (timestamp INT, typeId INT, metricId INT, value INT);"
        "CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INT, sourceId INT, typeName TEXT, metricId INT, metricName TEXT);"
        "INSERT INTO TARGET_INFO_GPU_METRICS VALUES (256 + 1, 0, 'GPU', 4, 'SMs Active [Throughput %]');"
        "INSERT INTO GPU_METRICS VALUES (5, 257, 4, 42), (6, 257, 4, 43), (6, 258, 9, 1);"
        "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, globalPid INT, deviceId INT, address INT, bytes INT, memKind INT, memoryOperationType INT);"
        f"INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (7, {PID}, 1, 64, 512, 2, 0), (9, {PID}, 1, 64, 512, 2, 1), (9, {PID}, 1, 64, NULL, 2, 1);"
    )
    tracks = {row["track_id"]: row for row in run.rows("tracks")}
    found = [
        (tracks[row["track_id"]]["device_index"], row["timestamp_ns"], row["name"], row["value"], row["unit"])
        for row in run.rows("counters")
    ]
    assert sorted(found) == [
        (1, 1000005, "SMs Active [Throughput %]", 42.0, "percent"),
        (1, 1000006, "SMs Active [Throughput %]", 43.0, "percent"),
        (2, 1000006, "metric 9", 1.0, None),
    ]
    assert [
        (row["action"], row["size_bytes"], row["device"], row["address"]) for row in run.rows("memory_events")
    ] == [
        ("alloc", 512, "cuda:1", 64),
        ("free", -512, "cuda:1", 64),
    ]
    assert run.rows("quarantine")[0]["reason"] == "no_memory_event"


def test_graph_launches_os_calls_and_calls_that_never_returned(imported):
    run = imported(
        "INSERT INTO StringIds VALUES (1, 'cudaGraphLaunch_v10000'), (2, 'read'), (3, 'pthread_cond_wait'), (4, 'k');"
        "CREATE TABLE ANALYSIS_DETAILS (stopTime INT); INSERT INTO ANALYSIS_DETAILS VALUES (500);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);"
        f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, {TID}, 3, 1);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT, demangledName INT, graphNodeId INT);"
        f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (30, 40, 0, 7, 3, {PID}, 4, 1), (40, 60, 0, 7, 3, {PID}, 4, 2), (70, 80, 0, 7, 3, {PID + (1 << 24)}, 4, 2);"
        "CREATE TABLE OSRT_API (start INT, end INT, globalTid INT, nameId INT);"
        f"INSERT INTO OSRT_API VALUES (100, 110, {TID}, 2), (120, NULL, {TID}, 3);"
    )
    launch = run.rows("events", name="cudaGraphLaunch_v10000")[0]
    kernels = run.rows("events", category="kernel")
    # The third kernel belongs to another process with the same correlation number.
    assert [row["launch_id"] for row in kernels] == [launch["event_id"], launch["event_id"], None]
    assert run.rows("events", name="read")[0]["category"] == "io"
    waiting = run.rows("events", name="pthread_cond_wait")[0]
    assert waiting["duration_ns"] == 380
    assert json.loads(waiting["attributes"])["unfinished"] is True


def test_nccl_calls_are_collectives_of_the_host(imported):
    run = imported(
        NVTX
        + f"INSERT INTO NVTX_EVENTS VALUES (0, 0, 75, 'NCCL', NULL, {TID}, 3);"
        + f"INSERT INTO NVTX_EVENTS VALUES (10, 20, 59, 'ncclReduceScatter', NULL, {TID}, 3);"
        + f"INSERT INTO NVTX_EVENTS VALUES (30, 40, 59, 'nccl setup', NULL, {TID}, 3);"
    )
    (call,) = run.rows("events", category="collective")
    assert json.loads(call["attributes"])["domain"] == "NCCL"
    (row,) = run.rows("collectives")
    assert (row["event_id"], row["side"], row["operation"]) == (call["event_id"], "host", "reduce_scatter")
    assert run.rows("events", name="nccl setup")[0]["category"] == "annotation"


def test_unknown_tables_are_kept_whole(imported):
    run = imported(
        "CREATE TABLE SOMETHING_NEW (start INT, payload BLOB, note TEXT);"
        "INSERT INTO SOMETHING_NEW VALUES (5, x'00ff', 'hello'), (NULL, NULL, NULL);"
    )
    rows = run.rows("source_rows", name="SOMETHING_NEW")
    assert json.loads(rows[0]["attributes"]) == {"start": 5, "payload": "00ff", "note": "hello"}
    assert [row["timestamp_ns"] for row in rows] == [1000005, None]
