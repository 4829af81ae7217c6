"""Our answers in HTA's definitions equal HTA's own, to the microsecond, on every trace that both can read."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.analysis.peers import hta_breakdown, hta_idle, hta_kernels, hta_launches
from explorer.analysis.peers.hta_rows import hta_rows, kernel_type
from explorer.analysis.run import Run
from explorer.model.errors import UsageError
from tests.analysis.imported import imported
from tests.traces import all_traces, oracle

MODES = {"include_last_step=False": False, "include_last_step=True": True}
KERNEL_ROWS_KEPT = 60
"""The reference values hold at most this many kernels."""


def readable(name: str) -> bool:
    """Whether HTA could load the trace at all."""
    return "load_error" not in oracle("hta", name)["modes"]["include_last_step=False"]


TRACES = [
    (name, mode)
    for name in all_traces("hta")
    for mode in MODES
    if not name.startswith(("generic", "odd", "ascend")) and readable(name)
]
pytestmark = pytest.mark.skipif(not TRACES, reason="no real traces: set NE_TRACES to their folder")


@pytest.fixture(params=TRACES, ids=lambda pair: f"{pair[0]}-{pair[1][-5:]}")
def case(request: pytest.FixtureRequest) -> tuple[Run, bool, dict[str, Any]]:
    name, mode = request.param
    return imported(name), MODES[mode], oracle("hta", name)["modes"][mode]


def only(values: dict[str, Any]) -> Any:
    (value,) = values.values()
    return value


def test_rows(case: tuple[Run, bool, dict[str, Any]]) -> None:
    run, last, expected = case
    (rows,) = hta_rows(run, include_last_step=last)
    shape = only(expected["shape"])
    assert len(rows.device) == shape["gpu_rows"]
    assert len(rows.host) == shape["cpu_rows"]
    assert rows.device["duration"].sum() == shape["gpu_dur_sum"]


def test_temporal_breakdown(case: tuple[Run, bool, dict[str, Any]]) -> None:
    run, last, expected = case
    records = expected.get("temporal_breakdown", {}).get("records")
    if not records:
        pytest.skip("HTA gives none for this trace")
    (row,) = hta_breakdown.breakdown(run, include_last_step=last).rows()
    (theirs,) = records
    for name in ("idle", "compute", "non_compute", "kernel"):
        assert row[f"{name}_time_us"] == theirs[f"{name}_time(us)"], name
    overlap = expected["comm_comp_overlap"]["records"][0]["comp_comm_overlap_pctg"]
    assert row["communication_overlap_percent"] == overlap


def test_kernel_types(case: tuple[Run, bool, dict[str, Any]]) -> None:
    run, last, expected = case
    table = expected["gpu_kernel_breakdown_all"].get("kernel_type")
    if table is None or "temporal_breakdown" not in expected:
        pytest.skip("HTA gives none for this trace")
    rows = hta_breakdown.kernel_types(run, include_last_step=last).rows()
    assert {r["kernel_type"]: r["total_us"] for r in rows if r["total_us"]} == {
        r["kernel_type"]: r["sum"] for r in table["records"] if r["sum"]
    }


def test_kernel_sums(case: tuple[Run, bool, dict[str, Any]]) -> None:
    run, last, expected = case
    table = expected["gpu_kernel_breakdown_all"].get("kernel_metrics")
    if table is None:
        pytest.skip("HTA gives none for this trace")
    rows = hta_kernels.kernels(run, include_last_step=last).rows()
    ours = {(r["kernel_type"], r["name"]): (r["total_us"], r["max_us"], r["min_us"]) for r in rows}
    theirs = {
        (r["kernel_type"], r["name"]): (r["sum (us)"], r["max (us)"], r["min (us)"]) for r in table["records"]
    }
    assert {key: ours.get(key) for key in theirs} == theirs
    assert len(ours) == table["rows"]
    if table["rows"] <= KERNEL_ROWS_KEPT:
        assert set(ours) == set(theirs)


def test_idle_categories(case: tuple[Run, bool, dict[str, Any]]) -> None:
    run, last, expected = case
    tables = expected.get("idle_time_breakdown") or {}
    records = [record for table in tables.values() for record in table["idle"].get("records") or ()]
    if not records:
        pytest.skip("HTA gives none for this trace")
    rows = hta_idle.idle(run, include_last_step=last).rows()
    ours = {(r["stream"], r["idle_category"]): r["idle_time_us"] for r in rows}
    assert {(r["stream"], r["idle_category"]): r["idle_time"] for r in records} == {
        key: ours[key] for key in ((r["stream"], r["idle_category"]) for r in records)
    }


def test_launch_statistics(case: tuple[Run, bool, dict[str, Any]]) -> None:
    run, last, expected = case
    table = only(expected["launch_stats"]) if expected.get("launch_stats") else None
    if not table or table.get("rows") is None:
        pytest.skip("HTA gives none for this trace")
    frame = hta_launches.launches(run, include_last_step=last).df()
    assert len(frame) == table["rows"]
    if len(frame):
        for name in ("cpu_duration", "gpu_duration", "launch_delay"):
            column = frame[f"{name}_us"]
            ours = {"sum": column.sum(), "min": column.min(), "max": column.max(), "median": column.median()}
            assert ours == table[name], name


def test_queue_length(case: tuple[Run, bool, dict[str, Any]]) -> None:
    run, last, expected = case
    records = (expected.get("queue_length_summary") or {}).get("records")
    if not records:
        pytest.skip("HTA gives none for this trace")
    ours = {r["stream"]: r for r in hta_launches.queue_lengths(run, include_last_step=last).rows()}
    assert set(ours) == {r["stream."] for r in records}
    for record in records:
        row = ours[record["stream."]]
        assert row["changes"] == record["queue_length.count"]
        assert row["max"] == record["queue_length.max"]
        assert row["median"] == record["queue_length.50%"]
        assert row["mean"] == pytest.approx(record["queue_length.mean"], rel=1e-12)


def test_ranks_together(tmp_path_factory: pytest.TempPathFactory) -> None:
    names = [name for name in all_traces("hta") if "multirank_dlrm" in name]
    if not names:
        pytest.skip("no real traces")
    rows = imported(*names).breakdown(mode="hta").rows()
    assert len(rows) == len(names)
    for row, name in zip(rows, names):
        (theirs,) = oracle("hta", name)["modes"]["include_last_step=False"]["temporal_breakdown"]["records"]
        assert row["idle_time_us"] == theirs["idle_time(us)"]


def test_classes_by_name() -> None:
    assert [
        kernel_type(name) for name in ("ncclKernel_X", "hipFoo", "Memcpy HtoD", "gemm", "my_Sync_kernel")
    ] == [
        "COMMUNICATION",
        "COMMUNICATION",
        "MEMORY",
        "COMPUTATION",
        "OTHER",
    ]


def test_an_unknown_mode_is_a_usage_error() -> None:
    names = all_traces("hta")
    if not names:
        pytest.skip("no real traces")
    with pytest.raises(UsageError, match="native, hta, tracelens"):
        imported(names[0]).breakdown(mode="nsight")
