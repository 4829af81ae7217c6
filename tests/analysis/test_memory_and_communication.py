"""What is alive at the peak, growth per step, and what communication cost, on hand-built runs and a real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from explorer.model.ids import module_id
from tests.analysis.hand_built import STREAM, event, line_id, make_run, site, step
from tests.analysis.imported import imported
from tests.traces import all_traces


def memory(number: int, at: int, address: int, size: int, **columns: Any) -> dict[str, Any]:
    action = "alloc" if size > 0 else "free"
    row = {"event_id": number, "timestamp_ns": at, "action": action, "address": address, "size_bytes": size}
    return row | {"device": "cuda:0"} | columns


def test_what_is_alive_at_the_peak(tmp_path: Path) -> None:
    model = module_id("layer", "Linear")
    run = make_run(
        tmp_path,
        [event(1, "op", "aten::empty", 0, 100, module_id=model)],
        memory_events=[
            memory(10, 10, 1, 100, op_id=1, site_id=line_id(1), category="activation", allocated_bytes=1100),
            memory(11, 20, 2, 50, op_id=1, site_id=line_id(2), category="temporary", allocated_bytes=1150),
            memory(12, 30, 2, -50, allocated_bytes=1100),
            memory(13, 40, 2, 200, op_id=1, site_id=line_id(1), category="activation", allocated_bytes=1300),
            memory(14, 50, 1, -100, allocated_bytes=1200),
            memory(15, 60, 3, 10, allocated_bytes=1210),
        ],
        modules=[{"module_id": model, "path": "layer", "class_name": "Linear"}],
        sites=[site(1), site(2)],
    )
    rows = run.view("memory_peak").rows()
    assert [(r["line"], r["op"], r["module"], r["category"], r["blocks"], r["size_bytes"]) for r in rows] == [
        (None, None, None, "before_recording", None, 1000),
        (1, "aten::empty", "layer", "activation", 2, 300),
    ]
    assert sum(r["share"] for r in rows) == pytest.approx(1)
    blocks = {r["event_id"]: r["freed_ns"] for r in run.view("memory_blocks").rows()}
    assert blocks == {10: 50, 11: 30, 13: None, 15: None}


def test_growth_per_step(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [event(1, "op", "a", 0, 300)],
        memory_events=[
            memory(10, 10, 1, 100, reserved_bytes=400),
            memory(11, 20, 2, 100, reserved_bytes=400),
            memory(12, 30, 2, -100, reserved_bytes=400),
            memory(13, 110, 3, 30, reserved_bytes=400),
            memory(14, 210, 4, 30, reserved_bytes=400),
        ],
        steps=[step(0, 0, 100), step(1, 100, 200), step(2, 200, 300)],
    )
    rows = run.view("memory_steps").rows()
    assert [
        (r["step"], r["peak_bytes"], r["end_bytes"], r["growth_bytes"], r["churn_bytes"]) for r in rows
    ] == [
        (0, 200, 100, None, 200),
        (1, 130, 130, 30, 30),
        (2, 160, 160, 30, 30),
    ]
    assert rows[0]["unused_share"] == pytest.approx(0.5)


def test_communication_bandwidth_and_overlap(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "collective", "nccl:all_reduce", 0, 10, site_id=line_id(1)),
            event(2, "kernel", "gemm", 100, 300, STREAM),
            event(3, "kernel", "gelu", 200, 320, 11),
            event(4, "kernel", "gemm", 900, 950, STREAM),
            event(5, "collective", "ncclDevKernel_AllReduce", 250, 1250, 12, site_id=line_id(1)),
            event(6, "collective", "ncclDevKernel_AllGather", 2000, 2100, 12),
        ],
        collectives=[
            {"event_id": 1, "side": "host", "operation": "all_reduce"},
            {"event_id": 5, "side": "device", "operation": "all_reduce", "size_bytes": 4000, "group_size": 4},
            {"event_id": 6, "side": "device", "operation": "all_gather", "size_bytes": 1000, "group_size": 4},
        ],
        sites=[site(1)],
    )
    rows = run.collectives().rows()
    assert [(r["event_id"], r["overlap_ns"], r["exposed_ns"], r["line"]) for r in rows] == [
        (5, 70 + 50, 880, 1),
        (6, 0, 100, None),
    ]
    assert rows[0]["algorithm_bandwidth"] == pytest.approx(4e9)
    assert rows[0]["bus_bandwidth"] == pytest.approx(6e9)
    assert rows[1]["bus_bandwidth"] == pytest.approx(7.5e9)


def test_exposed_communication_adds_up_to_the_breakdown_on_a_real_trace() -> None:
    name = "nvidia/hta_nccl_parser_config.json.gz"
    if name not in all_traces():
        pytest.skip("no real traces")
    run = imported(name)
    exposed = run.engine.sql("SELECT sum(exposed_ns)::BIGINT AS ns FROM collective_costs").rows()[0]["ns"]
    assert exposed == sum(row["exposed_communication_ns"] for row in run.breakdown().rows())
    assert exposed > 0
