"""Every real trace: counts and sums equal to values computed from the file itself by an independent program."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from explorer.collectors.import_trace import import_trace
from explorer.collectors.options import ImportOptions
from explorer.store.reader import RunReader
from explorer.store.verify import verify
from tests.traces import all_traces, oracle, trace

TRACES = all_traces("basic")
WHOLE = ImportOptions(rank=0)
"""A file of merged ranks stays whole, as the independent program read it."""
REPAIRED = {"odd/kineto_issue_105_inf.json"}
"""The reference reader, being strict, saw no events in these."""


@pytest.mark.parametrize(
    "name", TRACES or [pytest.param("", marks=pytest.mark.skip(reason="no real traces"))]
)
def test_counts_and_sums(name: str, tmp_path: Path) -> None:
    expected = oracle("basic", name)
    report = import_trace(trace(name), tmp_path / "run", options=WHOLE)
    reader = RunReader(report.directory)
    (manifest,) = reader.manifests.values()
    counts = manifest.counts

    if name in REPAIRED:
        assert (report.events, report.repaired, report.exit_code) == (1, 1, 4)
        return
    # Every row of the file is in a table.
    assert counts["source_total"] == expected["events"]
    events = reader.read("events")
    attributes = [json.loads(text) if text else {} for text in events["attributes"].to_pylist()]
    whole = [i for i, a in enumerate(attributes) if "ph" not in a]
    quarantine = [
        json.loads(row) for row in reader.read("quarantine")["row"].to_pylist() if row.endswith("}")
    ]
    refused_x = sum(row.get("ph") == "X" for row in quarantine)
    assert len(whole) + refused_x == expected["x_count"]

    # Counts and exact sums by the source's own category. Digits below the nanosecond are rounded, so a sum of n
    # durations may differ by n/2 ns where the file has them.
    durations = events["duration_ns"].to_pylist()
    number, total = Counter[str](), Counter[str]()
    for i in whole:
        category = str(attributes[i].get("cat"))
        number[category] += 1
        total[category] += durations[i]
    wanted = expected["x_by_cat"]
    assert number == {category: values["count"] for category, values in wanted.items()}
    for category, values in wanted.items():
        exact = Decimal(values["total_dur"]) * 1000
        if exact == exact.to_integral_value():
            assert total[category] == exact, category
        else:
            assert abs(total[category] - exact) <= Decimal(values["count"]) / 2, category

    # The span of the file, to the nanosecond, on an epoch clock where the file has a base.
    if whole and expected["min_ts"] not in (None, "None"):
        starts = events["start_ns"].to_pylist()
        base = int(manifest.attributes["top_level"].get("baseTimeNanoseconds") or 0)
        if manifest.attributes["clock"] != "base":
            base = 0
        first = min(starts[i] for i in whole)
        last = max(starts[i] + durations[i] for i in whole)
        assert abs(first - base - Decimal(expected["min_ts"]) * 1000) < 1
        assert abs(last - base - Decimal(expected["max_end"]) * 1000) <= 1


@pytest.mark.parametrize(
    "name", TRACES or [pytest.param("", marks=pytest.mark.skip(reason="no real traces"))]
)
def test_the_run_is_whole(name: str, tmp_path: Path) -> None:
    report = import_trace(trace(name), tmp_path / "run", options=WHOLE)
    assert [p for p in verify(report.directory) if p.severity == "error"] == []
    events = RunReader(report.directory).read("events")
    if not events.num_rows:
        return
    by_id = dict(
        zip(
            events["event_id"].to_pylist(),
            zip(*(events[c].to_pylist() for c in ("track_id", "start_ns", "duration_ns"))),
        )
    )
    own = 0
    for identity, parent, self_ns in zip(
        *(events[c].to_pylist() for c in ("event_id", "parent_id", "self_ns"))
    ):
        track, start, duration = by_id[identity]
        assert 0 <= self_ns <= duration
        own += self_ns
        if parent is not None:
            other, begin, length = by_id[parent]
            assert other == track
            assert begin <= start
            assert start + duration <= begin + length
    assert pa.types.is_int64(events["start_ns"].type)


def test_device_busy_time_equals_the_files(tmp_path: Path) -> None:
    """Union of device work per device, for a trace whose kernels overlap inside one stream."""
    name = "nvidia/tl_h100_Falconsai_nsfw_image_detection__1016002.json.gz"
    expected = oracle("basic", name)["gpu_busy_by_pid"]
    report = import_trace(trace(name), tmp_path / "run", options=WHOLE)
    reader = RunReader(report.directory)
    tracks = {t["track_id"]: t for t in reader.read("tracks").to_pylist()}
    intervals: dict[str, list[tuple[int, int]]] = {}
    for event in reader.read("events").to_pylist():
        if (
            event["category"] in ("kernel", "copy", "fill", "collective")
            and tracks[event["track_id"]]["kind"] == "stream"
        ):
            key = str(tracks[event["track_id"]]["process_id"])
            intervals.setdefault(key, []).append(
                (event["start_ns"], event["start_ns"] + event["duration_ns"])
            )
    assert set(intervals) == set(expected)
    for key, spans in intervals.items():
        union, reached = 0, 0
        for start, end in sorted(spans):
            union += max(0, end - max(start, reached))
            reached = max(reached, end)
        assert union == Decimal(expected[key]["union"]) * 1000
