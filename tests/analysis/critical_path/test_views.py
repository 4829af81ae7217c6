"""The critical path as SQL tables."""

from __future__ import annotations

from pathlib import Path

from explorer.analysis.run import open_run
from explorer.store.writer import RunWriter
from tests.analysis.critical_path.test_walk import TRACKS, event


def test_kinds_and_lines_add_up_to_the_step(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as writer:
        writer.write("tracks", TRACKS)
        writer.write("sites", [{"site_id": 5, "file": "a.py", "line": 3, "function": "f", "is_user": True}])
        writer.write(
            "events",
            [
                event(1, 1, "op", 0, 10, site_id=5),
                event(2, 1, "runtime", 4, 6, parent_id=1),
                event(3, 7, "kernel", 9, 80, launch_id=2, site_id=5),
                event(4, 1, "sync", 20, 85),
                event(5, 1, "op", 105, 125),
            ],
        )
        writer.write(
            "steps",
            [
                {"step": 0, "start_ns": 0, "duration_ns": 100, "complete": True},
                {"step": 1, "start_ns": 100, "duration_ns": 60, "complete": False},
            ],
        )
    run = open_run(tmp_path / "run")
    kinds = {row["kind"]: (row["total_ns"], row["share"]) for row in run.view("critical_path_kinds")}
    assert kinds == {
        "kernel": (71, 0.71),
        "sync": (5, 0.05),
        "idle": (15, 0.15),
        "op": (4, 0.04),
        "runtime": (2, 0.02),
        "launch_latency": (3, 0.03),
    }
    lines = [(row["line"], row["host_ns"], row["device_ns"]) for row in run.view("critical_path_lines")]
    assert lines == [(3, 4, 74), (None, 22, 0)]
    assert run.engine.sql(
        "SELECT sum(duration_ns)::BIGINT AS n FROM critical_path WHERE step = 1"
    ).rows() == [{"n": 60}]
