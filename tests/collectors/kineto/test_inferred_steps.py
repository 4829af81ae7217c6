"""Steps of traces that mark none: found by the optimizer's own ranges, and said to be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.collectors.imported import Imported
from tests.traces import trace


def row(name: str, start: int, dur: int, cat: str = "cpu_op", **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": dur, **more}


def iteration(start: int, *optimizers: str) -> list[dict[str, Any]]:
    """A forward, a backward and steps of optimizers, in 100 us."""
    rows = [
        row("aten::mm", start, 10),
        row("autograd::engine::evaluate_function: MmBackward0", start + 20, 10, tid=2),
    ]
    for place, name in enumerate(optimizers):
        begin = start + 40 + 20 * place
        rows.append(row(f"Optimizer.step#{name}.step", begin, 10, "user_annotation"))
    return rows


def run_of(folder: Path, rows: list[dict[str, Any]]) -> Imported:
    path = folder / "t.json"
    path.write_text(json.dumps({"traceEvents": rows}))
    return Imported(path, folder)


def steps(run: Imported) -> list[tuple[int, int, int, bool]]:
    found = sorted(run.rows("steps"), key=lambda each: each["start_ns"])
    return [(s["step"], s["start_ns"] // 1000, s["duration_ns"] // 1000, s["complete"]) for s in found]


def test_steps_end_where_the_optimizer_has_stepped(tmp_path: Path) -> None:
    rows = [*iteration(0, "SGD"), *iteration(100, "SGD"), *iteration(200, "SGD"), row("aten::add", 260, 5)]
    launch = row("cudaLaunchKernel", 105, 1, "cuda_runtime", args={"correlation": 9})
    kernel = row("gemm", 290, 5, "kernel", tid=7, args={"device": 0, "stream": 7, "correlation": 9})
    run = run_of(tmp_path, [*rows, launch, kernel])
    assert steps(run) == [(0, 0, 50, False), (1, 50, 100, True), (2, 150, 100, True), (3, 250, 15, False)]
    assert run.health()["steps_inferred"] == 4
    by_name = {(e["name"], e["start_ns"] // 1000): e["step"] for e in run.rows("events")}
    assert by_name["aten::mm", 0] == 0
    assert by_name["Optimizer.step#SGD.step", 140] == 1
    assert by_name["aten::mm", 200] == 2
    assert by_name["gemm", 290] == 1
    assert by_name["aten::add", 260] == 3


def test_several_optimizers_end_one_step(tmp_path: Path) -> None:
    run = run_of(tmp_path, [*iteration(0, "Muon", "AdamW"), *iteration(100, "Muon", "AdamW")])
    assert steps(run) == [(0, 0, 70, False), (1, 70, 100, True)]


def test_an_optimizer_that_wraps_another_steps_once(tmp_path: Path) -> None:
    rows = [
        *iteration(0),
        row("Optimizer.step#Outer.step", 40, 20, "user_annotation"),
        row("Optimizer.step#Inner.step", 45, 10, "user_annotation"),
        *iteration(100, "Outer"),
    ]
    assert steps(run_of(tmp_path, rows)) == [(0, 0, 60, False), (1, 60, 90, True)]


def test_marked_steps_come_first(tmp_path: Path) -> None:
    rows = [row("ProfilerStep#7", 0, 90, "user_annotation"), *iteration(0, "SGD"), *iteration(100, "SGD")]
    run = run_of(tmp_path, rows)
    assert [each[0] for each in steps(run)] == [7]
    assert "steps_inferred" not in run.health()


def test_no_optimizer_no_steps(tmp_path: Path) -> None:
    run = run_of(tmp_path, iteration(0))
    assert steps(run) == []
    assert "steps_inferred" not in run.health()


def test_real_traces_without_marks(tmp_path: Path) -> None:
    run = Imported(trace("nvidia/param_linear_rtx2080ti.json.gz"), tmp_path)
    found = steps(run)
    assert sum(each[3] for each in found) == 39
    begins = [each["start_ns"] for each in sorted(run.rows("steps"), key=lambda each: each["start_ns"])]
    assert begins == sorted(set(begins))
