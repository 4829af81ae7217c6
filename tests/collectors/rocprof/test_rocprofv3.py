"""rocprofv3 JSON: a real file against counted values, made ones for API calls, copies, markers and memory."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

from explorer.collectors.import_trace import import_trace
from explorer.model.errors import InputError
from tests.collectors.imported import Imported, union_ns
from tests.traces import oracle, trace

NAME = "amd/tl_rocprofv3_908_results.json.gz"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Imported(trace(NAME), tmp_path_factory.mktemp("rocprof"))


def test_dispatches_match_the_reference(run):
    run.check_counts()
    expected = oracle("other", NAME)["kernel_dispatch"]
    rows = run.rows("events")
    assert len(rows) == expected["count"]
    assert sum(row["duration_ns"] for row in rows) == expected["sum_ns"]
    assert union_ns(rows) == expected["union_ns"]
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        sums[row["name"]][0] += 1
        sums[row["name"]][1] += row["duration_ns"]
    for top in expected["top"]:
        assert sums[top["name"]] == [top["count"], top["sum_ns"]]


def test_times_are_those_of_the_file(run):
    records = json.loads(gzip.decompress(Path(trace(NAME)).read_bytes()))["rocprofiler-sdk-tool"][0][
        "buffer_records"
    ]
    wanted = [(r["start_timestamp"], r["end_timestamp"]) for r in records["kernel_dispatch"]]
    found = sorted(run.rows("events"), key=lambda row: row["event_id"])
    assert [(row["start_ns"], row["start_ns"] + row["duration_ns"]) for row in found] == wanted


def test_devices_and_host(run):
    devices = run.rows("devices")
    assert [row["device"] for row in devices] == [f"hip:{number}" for number in range(8)]
    assert {(row["name"], row["unit_count"]) for row in devices} == {("AMD Instinct MI350X", 256)}
    assert run.manifest.host["hostname"] == "smci350-zts-gtu-c6-25"
    assert run.manifest.command[1:3] == ["-u", "/workspace/aorta/train.py"]
    assert len(run.rows("collectives")) == 1310


def document(**more):
    tool = {
        "metadata": {"pid": 5},
        "agents": [
            {"id": {"handle": 1}, "type": 1},
            {"id": {"handle": 2}, "type": 2, "gpu_index": 0, "product_name": "MI", "cu_count": 8},
        ],
        "strings": {
            "buffer_records": [
                {"kind": "NONE", "operations": []},
                {"kind": "HIP", "operations": ["hipLaunchKernel", "hipStreamSynchronize"]},
                {"kind": "COPY", "operations": ["MEMORY_COPY_HOST_TO_DEVICE"]},
                {"kind": "RCCL", "operations": ["ncclAllReduce"]},
                {"kind": "MARK", "operations": ["roctxRangePushA"]},
                {"kind": "ALLOC", "operations": ["ALLOCATE", "FREE"]},
            ],
            "marker_api": [{"key": 9, "value": "my range"}],
        },
        "kernel_symbols": [{"kernel_id": 3, "formatted_kernel_name": "gemm", "sgpr_count": 7}],
        "buffer_records": {
            "hip_api": [
                {"kind": 1, "operation": 0, "thread_id": 6, "correlation_id": {"internal": 4}, "start_timestamp": 10, "end_timestamp": 12},
                {"kind": 1, "operation": 1, "thread_id": 6, "correlation_id": {"internal": 5}, "start_timestamp": 13, "end_timestamp": 60},
                {"kind": 1, "operation": 99, "thread_id": 6, "start_timestamp": 70, "end_timestamp": 71},
                {"kind": 1, "operation": 0, "thread_id": 6, "start_timestamp": 90, "end_timestamp": 80},
            ],
            "kernel_dispatch": [
                {"correlation_id": {"internal": 4}, "start_timestamp": 20, "end_timestamp": 50, "stream_id": {"handle": 3}, "dispatch_info": {"agent_id": {"handle": 2}, "queue_id": {"handle": 8}, "kernel_id": 3, "grid_size": {"x": 1, "y": 2, "z": 3}}},
            ],
            "memory_copy": [
                {"kind": 2, "operation": 0, "bytes": 64, "dst_agent_id": {"handle": 2}, "src_agent_id": {"handle": 1}, "start_timestamp": 52, "end_timestamp": 55},
            ],
            "rccl_api": [{"kind": 3, "operation": 0, "thread_id": 6, "start_timestamp": 100, "end_timestamp": 110}],
            "marker_api": [{"kind": 4, "operation": 0, "thread_id": 6, "correlation_id": {"internal": 9}, "start_timestamp": 5, "end_timestamp": 120}],
            "memory_allocation": [
                {"kind": 5, "operation": 0, "agent_id": {"handle": 2}, "address": 4096, "allocation_size": 32, "start_timestamp": 1, "end_timestamp": 2},
                {"kind": 5, "operation": 1, "agent_id": {"handle": 2}, "address": 4096, "allocation_size": 32, "start_timestamp": 130, "end_timestamp": 131},
            ],
            "pc_sample_host_trap": [{"timestamp": 33, "pc": 1}],
            "scratch_memory": ["rubbish"],
        },
        **more,
    }  # fmt: skip
    return {"rocprofiler-sdk-tool": [tool]}


def imported(tmp_path, data) -> Imported:
    path = tmp_path / "x.json"
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    run = Imported(path, tmp_path)
    run.check_counts()
    return run


def test_calls_copies_markers_and_memory(tmp_path):
    run = imported(tmp_path, document())
    events = {row["name"]: row for row in run.rows("events")}
    launch, kernel = events["hipLaunchKernel"], events["gemm"]
    assert kernel["launch_id"] == launch["event_id"]
    assert json.loads(kernel["attributes"])["grid_size"] == [1, 2, 3]
    assert events["hipStreamSynchronize"]["category"] == "sync"
    assert events["my range"]["category"] == "annotation"
    assert launch["parent_id"] == events["my range"]["event_id"]
    assert events["ncclAllReduce"]["category"] == "collective"
    assert (events["Memcpy HOST TO DEVICE"]["size_bytes"], events["Memcpy HOST TO DEVICE"]["category"]) == (
        64,
        "copy",
    )
    assert json.loads(events["hip_api"]["attributes"])["operation"] == 99
    (collective,) = run.rows("collectives")
    assert (collective["side"], collective["operation"]) == ("host", "all_reduce")
    assert [(row["action"], row["size_bytes"], row["device"]) for row in run.rows("memory_events")] == [
        ("alloc", 32, "hip:0"),
        ("free", -32, "hip:0"),
    ]
    assert sorted(row["reason"] for row in run.rows("quarantine")) == ["negative_duration", "no_record"]
    assert run.rows("source_rows", name="pc_sample_host_trap")[0]["timestamp_ns"] == 33


def test_truncated_and_odd_json(tmp_path):
    text = json.dumps(document()).encode()
    counts = []
    for share in (0.75, 0.9):
        folder = tmp_path / str(share)
        folder.mkdir()
        run = imported(folder, text[: int(len(text) * share)])
        assert run.report.exit_code == 4
        counts.append(run.manifest.counts["source_total"])
    assert counts == sorted(counts)
    odd = text.replace(b'"pid": 5', b'"pid": 5, "note": "a\x01b\xff", "x": NaN')
    folder = tmp_path / "odd"
    folder.mkdir()
    assert imported(folder, odd).manifest.counts["events"] == 7


@pytest.mark.parametrize("value", ["[]", "{}", '{"rocprofiler-sdk-tool": 5}', '{"rocprofiler-sdk-tool": []}'])
def test_nothing_in_it_is_an_error(tmp_path, value):
    path = tmp_path / "x.json"
    path.write_text('{"rocprofiler-sdk-tool"' + value if not value.startswith("{") else value)
    if value == "{}":
        path.write_text('{"rocprofiler-sdk-tool": {}}')
        assert import_trace(path, tmp_path / "run").events == 0
        return
    with pytest.raises(InputError):
        import_trace(path, tmp_path / "run")
