"""Our answers in TraceLens's definitions equal its own to 1e-6, on every trace that both can read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.peers import tracelens
from tests.analysis.imported import imported
from tests.traces import all_traces, oracle

TYPES = (
    "computation",
    "exposed_comm",
    "exposed_memcpy",
    "busy",
    "idle",
    "total",
    "total_comm",
    "total_memcpy",
)


def has(name: str, key: str) -> bool:
    table = oracle("tracelens", name).get(key)
    return bool(table and table.get("records"))


NAMES = [n for n in all_traces("tracelens") if not n.startswith(("xplane", "generic", "odd", "ascend"))]
pytestmark = pytest.mark.skipif(not NAMES, reason="no real traces: set NE_TRACES to their folder")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("key", "unlinked"), [("gpu_timeline", False), ("gpu_timeline_including_unlinked", True)]
)
def test_gpu_timeline(name: str, key: str, unlinked: bool) -> None:
    rows = tracelens.breakdown(imported(name), include_unlinked=unlinked).rows()
    if not has(name, key):
        assert rows == []
        return
    theirs = [record["time ms"] for record in oracle("tracelens", name)[key]["records"]]
    (row,) = rows
    assert [row[f"{kind}_time_ms"] for kind in TYPES] == pytest.approx(theirs, abs=1e-6, rel=0)


@pytest.mark.parametrize("name", [n for n in NAMES if has(n, "kernel_summary")])
def test_kernel_summary(name: str) -> None:
    expected = oracle("tracelens", name)["kernel_summary"]
    rows = {row["name"]: row for row in tracelens.kernels(imported(name)).rows()}
    assert sum(row["count"] for row in rows.values()) == expected["kernel_events"]
    assert len(rows) == expected["rows"]
    for record in expected["records"]:
        row = rows[record["name"]]
        assert row["count"] == record["count"]
        for column in ("sum_us", "mean_us", "min_us", "max_us"):
            assert row[column] == pytest.approx(record[column], abs=1e-6, rel=1e-12)


INTERVALS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=8)


@given(INTERVALS, INTERVALS)
def test_union_and_difference_against_a_count(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    def spans(pairs: list[tuple[int, int]]) -> tracelens.Spans:
        data = np.array(pairs, float).reshape(-1, 2)
        return tracelens.union(data[:, 0], data[:, 0] + data[:, 1])

    def covered(pairs: list[tuple[int, int]]) -> set[int]:
        return {at for start, duration in pairs for at in range(start, start + duration)}

    a, b = spans(first), spans(second)
    assert tracelens.length(a) == len(covered(first))
    assert tracelens.length(tracelens.without(a, b)) == len(covered(first) - covered(second))
