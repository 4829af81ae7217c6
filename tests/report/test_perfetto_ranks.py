"""A merged export shows many ranks on one clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.analysis.run import open_run
from explorer.report.perfetto import write_perfetto
from tests.analysis.ranks.job import Job


def test_ends_of_a_call_coincide_on_the_reference_clock(tmp_path: Path) -> None:
    """Clocks 10 ms apart and drifting: calls that end within 1 us of each other do so in the export too."""
    job = Job(ranks=3, steps=30, jitter_ns=1_000, offset_ns=(0, 10**7, -(10**7)), drift=(0.0, 2e-5, -3e-5))
    write_perfetto(open_run(job.write(tmp_path / "run")), tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    ends: dict[int, list[float]] = {}
    for event in events:
        if event.get("ph") == "X" and event["name"] == "ncclDevKernel_AllReduce":
            ends.setdefault(event["args"]["step"], []).append(event["ts"] + event["dur"])
    assert len(ends) == 30
    assert all(len(one) == 3 and max(one) - min(one) < 3 for one in ends.values())


def test_one_rank_keeps_its_times(tmp_path: Path) -> None:
    run = open_run(Job(ranks=1, steps=2, jitter_ns=0).write(tmp_path / "run"))
    write_perfetto(run, tmp_path / "trace.json")
    document = json.loads((tmp_path / "trace.json").read_text())
    found = [event for event in document["traceEvents"] if event.get("name") == "aten::mm"]
    assert [(event["ts"], event["dur"]) for event in found] == [(0.0, 1000.0), (1200.0, 1000.0)]
    assert document["baseTimeNanoseconds"] == pytest.approx(10**15)
