"""Roofline and MFU on hand-built runs: which op counts, whose time, which peak, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from explorer.analysis.line_efficiency import with_efficiency
from explorer.analysis.source_view import line_rows
from explorer.model import cpu_peak_cache
from explorer.model.device_peaks import all_peaks, find_peak
from explorer.model.errors import UsageError
from tests.analysis.hand_built import STREAM, event, line_id, make_run, site, step

HALF = '["c10::BFloat16","c10::BFloat16"]'
PEAKS = {"bfloat16": 1e12, "vector": 1e11}


def device(**columns: object) -> dict[str, object]:
    row = {"device": "cuda:0", "name": "Toy", "peak_flops": json.dumps(PEAKS), "memory_bandwidth": 1e9}
    return row | columns


def test_the_innermost_modelled_op_counts_with_the_kernels_below_it(tmp_path: Path) -> None:
    shapes = {"shapes": "[[100,100],[100,100]]", "dtypes": HALF, "site_id": line_id(1), "step": 0}
    run = make_run(
        tmp_path,
        [
            event(1, "op", "aten::matmul", 0, 100, **shapes),
            event(2, "op", "aten::mm", 10, 90, parent_id=1, **shapes),
            event(3, "op", "aten::helper", 20, 80, parent_id=2),
            event(4, "kernel", "gemm", 100, 60_100, STREAM, op_id=3),
            event(5, "kernel", "epilogue", 60_100, 100_100, STREAM, op_id=2),
        ],
        devices=[device()],
        sites=[site(1)],
        steps=[step(0, 0, 200_000)],
    )
    (row,) = run.roofline().rows()
    assert (row["name"], row["calls"], row["time_ns"], row["flops"]) == ("aten::mm", 1, 100_000, 2_000_000)
    assert row["size_bytes"] == 60_000
    # Moving 60 kB takes 60 us at 1 GB/s, computing 2 us.
    assert (row["bound"], row["efficiency"], row["lost_ns"]) == ("memory", pytest.approx(0.6), 40_000)
    assert row["achieved_flops"] == pytest.approx(2e10)
    assert row["attainable_flops"] == pytest.approx(2_000_000 / 60_000 * 1e9)
    (line,) = run.roofline("line").rows()
    assert (line["line"], line["flops"], line["efficiency"]) == (1, 2_000_000, pytest.approx(0.6))
    (mfu,) = run.roofline("step").rows()
    assert (mfu["flops"], mfu["dtype"], mfu["mfu"]) == (2_000_000, "bfloat16", pytest.approx(1e10 / 1e12))


def test_above_one_hundred_percent_is_an_error_of_the_model(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "op", "aten::mm", 0, 10, shapes="[[100,100],[100,100]]", dtypes=HALF),
            event(2, "kernel", "gemm", 10, 30_010, STREAM, op_id=1),
        ],
        devices=[device()],
    )
    (row,) = run.roofline().rows()
    assert row["efficiency"] is None
    assert row["problem"].startswith("above 100 % (200 %)")
    assert run.roofline("line").rows()[0]["efficiency"] is None


def test_an_unknown_device_gives_rates_without_efficiency(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "op", "aten::mm", 0, 10, shapes="[[10,10],[10,10]]", dtypes=HALF),
            event(2, "kernel", "gemm", 10, 1010, STREAM, op_id=1),
        ],
        devices=[device(peak_flops=None, memory_bandwidth=None)],
    )
    (row,) = run.roofline().rows()
    assert (row["efficiency"], row["bound"], row["lost_ns"]) == (None, None, None)
    assert [line["lost_ns"] for line in run.roofline("line").rows()] == [None]
    assert row["achieved_flops"] == pytest.approx(2e9)
    assert "not known" in row["problem"]


def test_code_objects_of_one_line_are_one_line_that_computes(tmp_path: Path) -> None:
    shapes = {"shapes": "[[100,100],[100,100]]", "dtypes": HALF}
    inner = line_id(1, function="<lambda>")
    run = make_run(
        tmp_path,
        [
            event(1, "op", "aten::mm", 0, 100_000, site_id=line_id(1), **shapes),
            event(2, "op", "aten::mm", 100_000, 400_000, site_id=inner, **shapes),
        ],
        devices=[{**device(), "device": "cpu"}],
        sites=[site(1), site(1, function="<lambda>")],
    )
    (line,) = run.roofline("line").rows()
    assert (line["line"], line["calls"], line["time_ns"], line["flops"]) == (1, 2, 400_000, 4_000_000)
    (whole,) = with_efficiency(run, line_rows(run))
    assert (whole["function"], whole["work_ns"], whole["work_flops"]) == ("<lambda>, main", 400_000, 4e6)
    assert whole["achieved_flops"] == pytest.approx(1e10)


def test_tensor_float_by_the_name_of_the_kernel(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        [
            event(1, "op", "aten::mm", 0, 10, shapes="[[10,10],[10,10]]", dtypes='["float","float"]'),
            event(2, "kernel", "cutlass_tensorop_s1688gemm_tf32", 10, 1010, STREAM, op_id=1),
            event(3, "op", "aten::mm", 20, 30, shapes="[[10,10],[10,10]]", dtypes='["float","float"]'),
            event(4, "kernel", "volta_sgemm", 1010, 2010, STREAM, op_id=3),
        ],
        devices=[device(name="NVIDIA A100-SXM4-80GB", peak_flops=None, memory_bandwidth=None)],
    )
    rows = run.engine.sql("SELECT event_id, dtype, peak_flops FROM op_roofline ORDER BY 1").rows()
    assert [(r["dtype"], r["peak_flops"]) for r in rows] == [("tf32", 1.56e14), ("float32", 1.95e13)]


def test_a_cpu_rank_uses_host_time_and_measured_peaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURON_EXPLORER_CACHE", str(tmp_path / "cache"))
    cpu_peak_cache.write("Toy CPU", 2, {"flops": {"float32": 1e9, "vector": 1e9}, "memory_bandwidth": 1e9})
    run = make_run(
        tmp_path,
        [event(1, "op", "aten::mm", 0, 4_000, shapes="[[10,10],[10,10]]", dtypes='["float","float"]')],
        devices=[{"device": "cpu", "name": "Toy CPU", "unit_count": 2}],
    )
    (row,) = run.roofline().rows()
    assert (row["device"], row["time_ns"], row["efficiency"]) == ("cpu", 4_000, pytest.approx(0.5))
    assert cpu_peak_cache.read("Toy CPU", 4) is None


def test_a_broken_cache_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_EXPLORER_CACHE", str(tmp_path))
    (tmp_path / "cpu-peaks.json").write_text("{")
    assert cpu_peak_cache.read("x", 1) is None


def test_grouping_must_be_known(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="op, line, step"):
        make_run(tmp_path, [event(1, "op", "a", 0, 1)]).roofline("kernel")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM"),
        ("NVIDIA H100 PCIe", "NVIDIA H100 PCIe"),
        ("NVIDIA H200", "NVIDIA H200"),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100 40GB"),
        ("NVIDIA A100 80GB PCIe", "NVIDIA A100 80GB PCIe"),
        ("Tesla V100-SXM2-16GB", "NVIDIA V100 SXM2"),
        ("NVIDIA L4", "NVIDIA L4"),
        ("NVIDIA L40S", "NVIDIA L40S"),
        ("AMD Instinct MI300X", "AMD Instinct MI300X"),
        ("AMD Instinct MI250X/MI250", "AMD Instinct MI250X (one die)"),
        ("trn2", "AWS Trainium2 (one NeuronCore-v3)"),
        ("Quadro GP100", "NVIDIA P100"),
    ],
)
def test_devices_are_found_by_name(name: str, known: str) -> None:
    peak = find_peak(name)
    assert peak is not None
    assert peak.name == known


def test_every_peak_has_a_source_and_sensible_numbers() -> None:
    assert find_peak("Some New Chip") is None
    for pattern, peak in all_peaks():
        assert isinstance(pattern, re.Pattern)
        assert re.search(r"\d{4}|documentation", peak.source), peak.name
        assert 1e11 < peak.memory_bandwidth < 1e13
        assert all(1e11 < value < 1e17 for value in peak.flops.values())
        assert peak.flops.get("float8", 1e18) >= peak.flops.get("bfloat16", 0)
