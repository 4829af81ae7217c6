"""Ascend trace views against the tables that the vendor's own profiler wrote for the same recordings."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from tests.collectors.imported import Imported, union_ns
from tests.traces import trace

VIEWS = {0: "rank0_trace_view.json", 1: "rank1_trace_view.json.gz"}


def ns(text: str) -> int:
    whole, _, rest = text.strip().partition(".")
    return int(whole) * 1000 + int((rest + "000")[:3])


@pytest.fixture(scope="module", params=VIEWS)
def view(request, tmp_path_factory):
    path = trace(f"ascend/multirank_level1/{VIEWS[request.param]}")
    folder = path.parents[2] / "oracles" / "vendor_msprof"
    return Imported(path, tmp_path_factory.mktemp("view")), folder, request.param


def table(folder: Path, rank: int, name: str) -> list[dict[str, str]]:
    path = folder / f"level1_rank{rank}_{name}.csv"
    if not path.is_file():
        pytest.skip(f"no {path.name}")
    with path.open(encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def test_every_kernel_is_the_vendors(view):
    run, folder, rank = view
    rows = table(folder, rank, "kernel_details")
    ours = run.rows("events", category="kernel") + run.rows("events", category="collective")
    by_name: dict[str, list[dict]] = {}
    for row in ours:
        by_name.setdefault(row["name"], []).append(row)
    for row in rows:
        # The vendor rounds the table and the trace each for itself.
        found = [
            each
            for each in by_name[row["Name"]]
            if abs(each["start_ns"] - ns(row["Start Time(us)"])) <= 1
            and abs(each["duration_ns"] - ns(row["Duration(us)"])) <= 1
        ]
        assert len(found) == 1, row["Name"]
        by_name[row["Name"]].remove(found[0])
    assert Counter(name for name, left in by_name.items() for _ in left).keys() <= {
        "PROFILING_ENABLE",
        "PROFILING_DISABLE",
    }


def test_the_steps_times_are_the_vendors(view):
    run, folder, rank = view
    (row,) = table(folder, rank, "step_trace_time")
    compute = [
        e
        for e in run.rows("events", category="kernel")
        if e["duration_ns"] and not e["name"].startswith("PROFILING")
    ]
    communication = run.rows("events", category="collective")
    together = union_ns(compute + communication)
    assert abs(union_ns(compute) - ns(row["Computing"])) <= len(compute)
    assert abs(union_ns(communication) - ns(row["Communication"])) <= len(communication)
    exposed = together - union_ns(compute)
    assert abs(exposed - ns(row["Communication(Not Overlapped)"])) <= len(compute)
