"""Launches, ops, forward ops, steps, lines and modules of small hand-written traces, and of real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from explorer.collectors.import_trace import import_trace
from explorer.store.reader import RunReader
from tests.traces import all_traces, oracle, trace


def slice_(
    cat: str, name: str, ts: float, dur: float, tid: Any = 1, pid: Any = 1, **args: Any
) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def flow(ph: str, cat: str, ident: Any, ts: float, tid: Any = 1, pid: Any = 1) -> dict[str, Any]:
    return {"ph": ph, "cat": cat, "name": cat, "id": ident, "pid": pid, "tid": tid, "ts": ts, "bp": "e"}


def run_of(events: list[dict[str, Any]], tmp_path: Path, **top: Any) -> RunReader:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events, **top}))
    return RunReader(import_trace(path, tmp_path / "run").directory)


def test_training_step(tmp_path: Path) -> None:
    events = [
        slice_("user_annotation", "ProfilerStep#3", 0, 100),
        slice_("python_function", "train.py(10): step", 1, 98),
        slice_("python_function", "nn.Module: Linear_0", 5, 20),
        slice_("python_function", "torch/nn/functional.py(3): linear", 6, 18),
        slice_("cpu_op", "aten::linear", 7, 10, **{"External id": 1, "Sequence number": 4}),
        slice_("cuda_runtime", "cudaLaunchKernel", 9, 2, correlation=50, **{"External id": 1}),
        flow("s", "fwdbwd", 1, 7),
        flow("f", "fwdbwd", 1, 40, tid=2),
        slice_("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 40, 20, tid=2, **{"External id": 2}),
        slice_("cpu_op", "aten::mm", 42, 10, tid=2, **{"External id": 3}),
        slice_("cuda_runtime", "cudaLaunchKernel", 43, 1, tid=2, correlation=51),
        slice_("kernel", "gemm", 60, 10, pid=0, tid=7, correlation=50, device=0, stream=7, **{"External id": 1}),
        slice_("kernel", "gemm_back", 75, 10, pid=0, tid=7, correlation=51, device=0, stream=7),
        {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 8, "args": {"Bytes": 512, "Device Type": 1, "Device Id": 0, "Addr": 99, "Total Allocated": 600}},
    ]  # fmt: skip
    reader = run_of(events, tmp_path, baseTimeNanoseconds=1_700_000_000_000_000_000)
    rows = {r["event_id"]: r for r in reader.read("events").to_pylist()}
    sites = {s["site_id"]: s for s in reader.read("sites").to_pylist()}
    modules = {m["module_id"]: m["path"] for m in reader.read("modules").to_pylist()}

    assert rows[0]["start_ns"] == 1_700_000_000_000_000_000
    assert {i: r["parent_id"] for i, r in rows.items()} == {
        0: None, 1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 8: None, 9: 8, 10: 9, 11: None, 12: None,
    }  # fmt: skip
    assert rows[1]["self_ns"] == 78_000
    assert {r["step"] for r in rows.values()} == {3}
    assert (rows[11]["launch_id"], rows[12]["launch_id"]) == (5, 10)
    assert (rows[11]["op_id"], rows[12]["op_id"], rows[5]["op_id"]) == (4, 9, 4)
    assert {i: rows[i]["forward_id"] for i in (4, 8, 9, 10)} == {4: None, 8: 4, 9: 4, 10: 4}
    assert {i: rows[i]["phase"] for i in (4, 9, 11, 12)} == {
        4: "forward", 9: "backward", 11: "forward", 12: "backward",
    }  # fmt: skip
    # Everything goes back to the user's function; the backward by its forward op.
    for i, (method, precision) in {4: ("stack", "coarse"), 9: ("forward", "coarse"), 11: ("flow", "coarse"), 12: ("flow", "coarse")}.items():  # fmt: skip
        assert (sites[rows[i]["site_id"]]["file"], sites[rows[i]["site_id"]]["line"]) == ("train.py", 10)
        assert (rows[i]["attribution"], rows[i]["precision"]) == (method, precision)
    assert {modules[rows[i]["module_id"]] for i in (4, 9, 11, 12)} == {"Linear_0"}
    (memory,) = reader.read("memory_events").to_pylist()
    assert (memory["op_id"], memory["size_bytes"], memory["device"], memory["allocated_bytes"]) == (
        4,
        512,
        "cuda:0",
        600,
    )
    assert {(e["source_id"], e["target_id"], e["kind"]) for e in reader.read("edges").to_pylist()} == {
        (5, 11, "launch"), (10, 12, "launch"), (4, 8, "forward_backward"),
    }  # fmt: skip
    (step,) = reader.read("steps").to_pylist()
    assert (step["step"], step["duration_ns"], step["complete"]) == (3, 100_000, True)
    device = next(t for t in reader.read("tracks").to_pylist() if t["kind"] == "stream")
    assert (device["device_type"], device["device_index"], device["thread_id"]) == ("cuda", 0, 7)


def test_one_thread_written_as_text_and_as_number_is_one_track(tmp_path: Path) -> None:
    events = [
        slice_("Operator", "aten::add", 10, 5, tid="25738", pid=25738),
        slice_("Runtime", "cudaLaunchKernel", 11, 2, tid=25738, pid="25738", correlation=1),
        slice_("Kernel", "k", 20, 5, tid="stream 7", pid=0, correlation=1, stream=7, device=0),
    ]
    reader = run_of(events, tmp_path)
    rows = reader.read("events").to_pylist()
    assert len(reader.read("tracks")) == 2
    assert (rows[1]["parent_id"], rows[2]["op_id"], rows[2]["launch_id"]) == (0, 0, 1)


def test_a_number_used_twice_means_the_launch_before(tmp_path: Path) -> None:
    events = [
        slice_("cuda_runtime", "cudaLaunchKernel", 10, 2, correlation=5),
        slice_("kernel", "a", 15, 5, tid=7, pid=0, correlation=5),
        slice_("cuda_runtime", "cudaLaunchKernel", 100, 2, correlation=5),
        slice_("kernel", "b", 110, 5, tid=7, pid=0, correlation=5),
    ]
    rows = run_of(events, tmp_path).read("events").to_pylist()
    assert (rows[1]["launch_id"], rows[3]["launch_id"]) == (0, 2)


@pytest.mark.parametrize("cat", ["ac2g", "async_npu", "async_cpu_to_gpu"])
@pytest.mark.parametrize("ident", [9, "9", "a-9"])
def test_launch_by_arrow_where_there_is_no_number(cat: str, ident: Any, tmp_path: Path) -> None:
    events = [
        slice_("cpu_op", "aten::add", 10, 5),
        slice_("privateuse1_runtime", "launch", 11, 2),
        flow("s", cat, ident, 11),
        slice_("kernel", "k", 20, 5, tid=3, pid=0),
        flow("f", cat, ident, 20, tid=3, pid=0),
    ]
    rows = {r["event_id"]: r for r in run_of(events, tmp_path).read("events").to_pylist()}
    assert (rows[3]["launch_id"], rows[3]["op_id"]) == (1, 0)


def test_call_stack_texts_give_exact_lines(tmp_path: Path) -> None:
    stack = "/opt/lib/python3.9/site-packages/torch/nn/functional.py(5): relu;/home/me/train.py(42): step;/home/me/train.py(60): <module>"
    events = [
        slice_("Operator", "aten::relu", 10, 5, **{"Call stack": stack}),
        slice_("Operator", "aten::clamp", 11, 2),
    ]
    reader = run_of(events, tmp_path)
    rows = reader.read("events").to_pylist()
    sites = {s["site_id"]: (s["file"], s["line"], s["is_user"]) for s in reader.read("sites").to_pylist()}
    for row in rows:
        assert sites[row["site_id"]] == ("/home/me/train.py", 42, True)
        assert (row["attribution"], row["precision"]) == ("stack", "exact")
    chain = sorted(reader.read("stacks").to_pylist(), key=lambda r: r["depth"])
    assert [sites[r["site_id"]][1] for r in chain if r["stack_id"] == rows[0]["stack_id"]] == [42, 60]


def test_stack_frames_table(tmp_path: Path) -> None:
    events = [{**slice_("cat", "work", 10, 5), "sf": 7}, {**slice_("cat", "other", 20, 5), "sf": "9"}]
    table = {
        "1": {"name": "main.py(3): main", "category": "app"},
        "7": {"name": "load", "category": "app", "parent": "1"},
        "9": {"name": "loop", "category": "app", "parent": "9"},
    }
    reader = run_of(events, tmp_path, stackFrames=table)
    rows = reader.read("events").to_pylist()
    sites = {s["site_id"]: (s["file"], s["line"], s["function"]) for s in reader.read("sites").to_pylist()}
    assert [sites[r["site_id"]] for r in rows] == [("app", 0, "load"), ("app", 0, "loop")]
    assert {r["precision"] for r in rows} == {"coarse"}
    chain = sorted(reader.read("stacks").to_pylist(), key=lambda r: r["depth"])
    assert [sites[r["site_id"]] for r in chain if r["stack_id"] == rows[0]["stack_id"]] == [
        ("app", 0, "load"),
        ("main.py", 3, "main"),
    ]


@pytest.mark.parametrize(
    "name", [n for n in all_traces("basic") if n.startswith(("nvidia", "amd", "mtia"))] or [pytest.param("", marks=pytest.mark.skip(reason="no real traces"))]
)  # fmt: skip
def test_every_launch_that_the_file_knows_is_linked(name: str, tmp_path: Path) -> None:
    expected = oracle("basic", name)["correlation"]
    reader = RunReader(import_trace(trace(name), tmp_path / "run").directory)
    tracks = {t["track_id"] for t in reader.read("tracks").to_pylist() if t["kind"] == "stream"}
    events = reader.read("events").to_pylist()
    known = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "mtia_ccp_events")
    device = [
        e
        for e in events
        if e["track_id"] in tracks and str(json.loads(e["attributes"] or "{}").get("cat")).lower() in known
    ]
    assert len(device) == expected["device_events"]
    assert sum(e["launch_id"] is not None for e in device) == expected["device_events_linked"]
    by_id = {e["event_id"]: e for e in events}
    for e in device:
        if e["launch_id"] is not None and e["op_id"] is not None:
            # The op recorded by number and the op around the launch agree where both are known.
            op = by_id[e["op_id"]]
            assert op["category"] in ("op", "collective", "data")
