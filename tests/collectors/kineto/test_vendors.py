"""The same synthetic program in every vendor's shape gives the same answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.collectors.import_trace import import_trace
from explorer.store.reader import RunReader
from tests.synthetic_traces import COMMUNICATION_NS, COMPUTE_NS, COPY_NS, FOLDER, MAKERS

DEVICE_TYPES = {
    "cuda": "cuda",
    "cuda_2021": "cuda",
    "rocm": "hip",
    "mtia": "mtia",
    "xpu": "xpu",
    "privateuse1": "privateuseone",
    "ascend": "npu",
}


def union(spans: list[tuple[int, int]]) -> int:
    total, reached = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


@pytest.mark.parametrize("vendor", MAKERS)
def test_every_shape_means_the_same(vendor: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(MAKERS[vendor]()))
    report = import_trace(path, tmp_path / "run")
    assert (report.exit_code, report.lost) == (0, 0)
    reader = RunReader(report.directory)
    tracks = {t["track_id"]: t for t in reader.read("tracks").to_pylist()}
    events = reader.read("events").to_pylist()
    by_id = {e["event_id"]: e for e in events}
    busy = ("kernel", "copy", "fill", "collective")
    device = [e for e in events if tracks[e["track_id"]]["kind"] == "stream" and e["category"] in busy]
    assert {tracks[e["track_id"]]["device_type"] for e in device} == {DEVICE_TYPES[vendor]}
    assert len(device) == 10
    for step in (0, 1):
        mine = [e for e in device if e["step"] == step]
        spans = {
            kind: union(
                [(e["start_ns"], e["start_ns"] + e["duration_ns"]) for e in mine if e["category"] == kind]
            )
            for kind in ("kernel", "collective", "copy")
        }
        assert spans == {"kernel": COMPUTE_NS, "collective": COMMUNICATION_NS, "copy": COPY_NS}
    for e in device:
        launch, op = by_id[e["launch_id"]], by_id[e["op_id"]] if e["op_id"] is not None else None
        assert launch["category"] == "runtime"
        assert launch["start_ns"] < e["start_ns"]
        if vendor != "ascend":  # Its runtime calls lie on tracks of their own, which tell no op.
            assert op is not None
            assert op["name"].startswith("aten::")
            assert launch["parent_id"] == op["event_id"]
    assert [s["step"] for s in reader.read("steps").to_pylist()] == [0, 1]
    assert min(e["start_ns"] for e in events) == 1_700_000_000_000_000_000 + 1_000_000


@pytest.mark.parametrize("vendor", MAKERS)
def test_the_committed_samples_are_what_the_generator_makes(vendor: str) -> None:
    assert json.loads((FOLDER / f"{vendor}.json").read_text()) == MAKERS[vendor]()
