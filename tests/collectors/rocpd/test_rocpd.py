"""rocpd databases of both schema generations, made here by their published table definitions."""

from __future__ import annotations

import json
import sqlite3

import pytest

from tests.collectors.imported import Imported

SET = "_00000abc"
COMMON = """
CREATE TABLE rocpd_metadata{u} (id INTEGER PRIMARY KEY, tag TEXT, value TEXT);
CREATE TABLE rocpd_string{u} (id INTEGER PRIMARY KEY, guid TEXT, string TEXT);
CREATE TABLE rocpd_info_node{u} (id INTEGER PRIMARY KEY, hostname TEXT);
CREATE TABLE rocpd_info_process{u} (id INTEGER PRIMARY KEY, pid INTEGER, command TEXT);
CREATE TABLE rocpd_info_thread{u} (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, name TEXT);
CREATE TABLE rocpd_info_agent{u} (id INTEGER PRIMARY KEY, type TEXT, type_index INTEGER, product_name TEXT, extdata TEXT);
CREATE TABLE rocpd_info_kernel_symbol{u} (id INTEGER PRIMARY KEY, display_name TEXT, kernel_name TEXT, sgpr_count INTEGER);
CREATE TABLE rocpd_info_pmc{u} (id INTEGER PRIMARY KEY, symbol TEXT);
CREATE TABLE rocpd_event{u} (id INTEGER PRIMARY KEY, category_id INTEGER, stack_id INTEGER, extdata TEXT);
CREATE TABLE rocpd_pmc_event{u} (id INTEGER PRIMARY KEY, event_id INTEGER, pmc_id INTEGER, value REAL);
CREATE TABLE rocpd_arg{u} (id INTEGER PRIMARY KEY, event_id INTEGER, name TEXT, value TEXT);
INSERT INTO rocpd_metadata{u} VALUES (1, 'schema_version', '{version}');
INSERT INTO rocpd_string{u} VALUES (1, 'g', 'HIP_RUNTIME_API'), (2, 'g', 'hipLaunchKernel'), (3, 'g', 'KERNEL_DISPATCH'),
  (4, 'g', 'MEMORY_COPY_HOST_TO_DEVICE'), (5, 'g', 'MARKER_CORE_API'), (6, 'g', 'roctxRangePushA'), (7, 'g', 'hipStreamSynchronize'),
  (8, 'g', 'RCCL_API'), (9, 'g', 'ncclAllReduce');
INSERT INTO rocpd_info_node{u} VALUES (1, 'node7');
INSERT INTO rocpd_info_process{u} VALUES (77, 4242, 'python train.py');
INSERT INTO rocpd_info_thread{u} VALUES (5, 77, 4243, 'main');
INSERT INTO rocpd_info_agent{u} VALUES (1, 'CPU', 0, 'EPYC', '{{}}'), (2, 'GPU', 3, 'MI350', '{{"cu_count": 256}}');
INSERT INTO rocpd_info_kernel_symbol{u} VALUES (11, 'gemm', 'gemm.kd', 96);
INSERT INTO rocpd_info_pmc{u} VALUES (1, 'SQ_WAVES');
INSERT INTO rocpd_event{u} VALUES (1, 1, 501, '{{}}'), (2, 3, 501, '{{}}'), (3, 1, 502, '{{}}'), (4, 5, 0, '{{}}'), (5, 3, 503, '{{}}'), (6, 8, 504, '{{}}');
INSERT INTO rocpd_pmc_event{u} VALUES (1, 2, 1, 64.0);
INSERT INTO rocpd_arg{u} VALUES (1, 1, 'stream', '0x0');
"""
INLINE = """
CREATE TABLE rocpd_region{u} (id INTEGER PRIMARY KEY, pid, tid, start, "end", name_id, event_id, extdata);
CREATE TABLE rocpd_kernel_dispatch{u} (id INTEGER PRIMARY KEY, pid, tid, agent_id, kernel_id, queue_id, stream_id, start, "end",
  workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, event_id);
CREATE TABLE rocpd_memory_copy{u} (id INTEGER PRIMARY KEY, pid, start, "end", name_id, dst_agent_id, src_agent_id, size, stream_id, event_id);
CREATE TABLE rocpd_memory_allocate{u} (id INTEGER PRIMARY KEY, pid, agent_id, type, start, "end", address, size);
INSERT INTO rocpd_region{u} VALUES (1, 77, 5, 100, 110, 2, 1, '{{}}'), (2, 77, 5, 120, 400, 7, 3, '{{}}'),
  (3, 77, 5, 90, 500, 6, 4, '{{"message": "step 2"}}'), (4, 77, 5, 300, 200, 2, NULL, '{{}}'), (5, 77, 5, 410, 420, 9, 6, '{{}}');
INSERT INTO rocpd_kernel_dispatch{u} VALUES (1, 77, 5, 2, 11, 1, 0, 150, 350, 64, 1, 1, 128, 2, 1, 2);
INSERT INTO rocpd_memory_copy{u} VALUES (1, 77, 360, 390, 4, 2, 1, 4096, 0, 5);
INSERT INTO rocpd_memory_allocate{u} VALUES (1, 77, 2, 'ALLOC', 95, 96, 8192, 512), (2, 77, 2, 'FREE', 450, 451, 8192, 512), (3, 77, 2, 'ALLOC', NULL, 1, 1, 1);
"""
POINTED = """
CREATE TABLE rocpd_track{u} (id INTEGER PRIMARY KEY, pid, tid, agent_id, queue_id, stream_id);
CREATE TABLE rocpd_timestamp{u} (id INTEGER PRIMARY KEY, value);
CREATE TABLE rocpd_region{u} (id INTEGER PRIMARY KEY, track_id, name_id, start_id, end_id, event_id, extdata);
CREATE TABLE rocpd_kernel_dispatch{u} (id INTEGER PRIMARY KEY, track_id, kernel_id, start_id, end_id,
  workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, event_id);
CREATE TABLE rocpd_memory_copy{u} (id INTEGER PRIMARY KEY, track_id, start_id, end_id, name_id, dst_agent_id, src_agent_id, size, event_id);
CREATE TABLE rocpd_memory_allocate{u} (id INTEGER PRIMARY KEY, track_id, type, start_id, end_id, address, size);
INSERT INTO rocpd_track{u} VALUES (1, 77, 5, NULL, NULL, NULL), (2, 77, 5, 2, 1, 0);
INSERT INTO rocpd_timestamp{u} VALUES (1, 100), (2, 110), (3, 120), (4, 400), (5, 90), (6, 500), (7, 300), (8, 200), (9, 410),
  (10, 420), (11, 150), (12, 350), (13, 360), (14, 390), (15, 95), (16, 96), (17, 450), (18, 451);
INSERT INTO rocpd_region{u} VALUES (1, 1, 2, 1, 2, 1, '{{}}'), (2, 1, 7, 3, 4, 3, '{{}}'), (3, 1, 6, 5, 6, 4, '{{"message": "step 2"}}'),
  (4, 1, 2, 7, 8, NULL, '{{}}'), (5, 1, 9, 9, 10, 6, '{{}}');
INSERT INTO rocpd_kernel_dispatch{u} VALUES (1, 2, 11, 11, 12, 64, 1, 1, 128, 2, 1, 2);
INSERT INTO rocpd_memory_copy{u} VALUES (1, 2, 13, 14, 4, 2, 1, 4096, 5);
INSERT INTO rocpd_memory_allocate{u} VALUES (1, 2, 'ALLOC', 15, 16, 8192, 512), (2, 2, 'FREE', 17, 18, 8192, 512), (3, 2, 'ALLOC', 99, 16, 1, 1);
"""


def make(path, *parts):
    with sqlite3.connect(path) as file:
        for script, suffix, version in parts:
            file.executescript(script.format(u=suffix, version=version))
    return path


@pytest.mark.parametrize(("body", "version"), [(INLINE, "3"), (POINTED, "4")])
def test_both_schema_generations_give_the_same_run(tmp_path, body, version):
    run = Imported(make(tmp_path / "x.db", (COMMON + body, SET, version)), tmp_path)
    run.check_counts()
    assert run.report.formats == ["rocpd"]
    events = {row["name"]: row for row in run.rows("events")}
    launch, kernel = events["hipLaunchKernel"], events["gemm"]
    assert (kernel["start_ns"], kernel["duration_ns"], kernel["category"]) == (150, 200, "kernel")
    assert kernel["launch_id"] == launch["event_id"]
    facts = json.loads(kernel["attributes"])
    assert (facts["grid_size"], facts["sgpr_count"], facts["counters"]) == (
        [128, 2, 1],
        96,
        {"SQ_WAVES": 64.0},
    )
    tracks = {row["track_id"]: row for row in run.rows("tracks")}
    stream, thread = tracks[kernel["track_id"]], tracks[launch["track_id"]]
    assert (stream["device_type"], stream["device_index"], stream["label"]) == ("hip", 3, "stream 0")
    assert (thread["process_id"], thread["thread_id"], thread["label"]) == (4242, 4243, "main")
    assert events["hipStreamSynchronize"]["category"] == "sync"
    assert (events["Memcpy HOST TO DEVICE"]["category"], events["Memcpy HOST TO DEVICE"]["size_bytes"]) == (
        "copy",
        4096,
    )
    assert events["step 2"]["category"] == "annotation"
    assert launch["parent_id"] == events["step 2"]["event_id"]
    (collective,) = run.rows("collectives")
    assert (collective["event_id"], collective["side"]) == (events["ncclAllReduce"]["event_id"], "host")
    assert [(row["action"], row["size_bytes"], row["device"]) for row in run.rows("memory_events")] == [
        ("alloc", 512, "hip:3"),
        ("free", -512, "hip:3"),
    ]
    assert [(row["device"], row["name"], row["unit_count"]) for row in run.rows("devices")] == [
        ("hip:3", "MI350", 256)
    ]
    assert sorted(row["reason"] for row in run.rows("quarantine")) == ["negative_duration", "no_memory_event"]
    assert (run.manifest.host["hostname"], run.manifest.command) == ("node7", ["python", "train.py"])
    assert json.loads(run.rows("source_rows", kind="argument")[0]["attributes"])["value"] == "0x0"


def test_data_sets_of_one_file_do_not_meet(tmp_path):
    """Two processes with the same correlation numbers: each kernel belongs to the launch of its own."""
    other = (COMMON + INLINE).replace("4242", "9999").replace("(1, 77, 5, 100, 110", "(1, 77, 5, 1100, 1110")
    run = Imported(make(tmp_path / "x.db", (COMMON + INLINE, SET, "3"), (other, "_00000def", "3")), tmp_path)
    run.check_counts()
    events = {row["event_id"]: row for row in run.rows("events")}
    tracks = {row["track_id"]: row for row in run.rows("tracks")}
    kernels = [row for row in events.values() if row["category"] == "kernel"]
    assert len(kernels) == 2
    for kernel in kernels:
        launch = events[kernel["launch_id"]]
        assert tracks[launch["track_id"]]["process_id"] == tracks[kernel["track_id"]]["process_id"]
