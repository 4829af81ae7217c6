"""How much time has a line: every kind of knowledge once, in exact numbers."""

from __future__ import annotations

from pathlib import Path

from explorer.analysis.line_coverage import line_coverage
from explorer.analysis.run import open_run
from explorer.model import ids
from explorer.store.writer import RunWriter

SITE = ids.site_id("train.py", 3, "train", None)


def _event(number: int, track: int, category: str, duration: int, **more: object) -> dict[str, object]:
    return {
        "event_id": number,
        "track_id": track,
        "category": category,
        "name": f"event {number}",
        "start_ns": 1000 * number,
        "duration_ns": duration,
        "self_ns": duration,
        **more,
    }


def test_every_kind_of_knowledge(tmp_path: Path) -> None:
    known = {"site_id": SITE, "attribution": "traced"}
    with RunWriter(tmp_path / "run", made_by="capture") as writer:
        writer.write(
            "tracks",
            [
                {"track_id": 1, "kind": "thread", "device_type": "cpu", "label": "main"},
                {"track_id": 2, "kind": "thread", "device_type": "cpu", "label": "C++"},
                {
                    "track_id": 3,
                    "kind": "stream",
                    "device_type": "cuda",
                    "device_index": 0,
                    "label": "stream 7",
                },
            ],
        )
        writer.write(
            "sites",
            [{"site_id": SITE, "file": "train.py", "line": 3, "function": "train", "is_user": True}],
        )
        writer.write(
            "events",
            [
                _event(1, 1, "op", 400, phase="forward", precision="exact", **known),
                _event(2, 1, "op", 100, phase="forward", precision="coarse", **known),
                _event(3, 1, "op", 50, phase="backward", precision="shared", **known),
                _event(4, 1, "op", 30, phase="backward", precision="inferred", **known),
                _event(5, 1, "op", 15),
                _event(6, 2, "op", 5, phase="backward"),
                _event(7, 1, "annotation", 900, phase="forward"),
                _event(8, 3, "kernel", 60, phase="forward", precision="exact", launch_id=1, op_id=1, **known),
                _event(9, 3, "kernel", 30, phase="forward"),
                _event(10, 3, "copy", 10, phase="forward", launch_id=5),
            ],
        )
    run = open_run(str(tmp_path / "run"))
    rows = {(row["work"], row["phase"]): row for row in run.coverage().rows()}
    parts = ("exact_ns", "shared_ns", "coarse_ns", "inferred_ns", "none_ns", "unseen_ns", "outside_ns")
    assert {key: tuple(row[part] for part in parts) for key, row in rows.items()} == {
        ("host", None): (400, 50, 100, 30, 20, 5, 15),
        ("host", "forward"): (400, 0, 100, 0, 0, 0, 0),
        ("host", "backward"): (0, 50, 0, 30, 5, 5, 0),
        ("host", "other"): (0, 0, 0, 0, 15, 0, 15),
        ("device", None): (60, 0, 0, 0, 40, 30, 10),
        ("device", "forward"): (60, 0, 0, 0, 40, 30, 10),
    }
    assert rows["host", None]["exact_share"] == 450 / 600
    assert [known.sentence for known in line_coverage(run)] == [
        "op time: 66.7 % to one exact line; 8.3 % shared by several known lines; 16.7 % to a function only; "
        "5.0 % to a line by order or time; 0.8 % to none, on threads without recorded lines; "
        "2.5 % to none, outside your code.",
        "device time: 60.0 % to one exact line; 30.0 % to none, with no known launching call; "
        "10.0 % to none, outside your code.",
    ]
    phases = [part for known in line_coverage(run) for part in known.phases]
    assert [(known.work, known.phase, known.time_ns) for known in phases] == [
        ("host", "forward", 500),
        ("host", "backward", 85),
        ("host", "other", 15),
    ]
    assert phases[1].sentence == (
        "op time of backward: 58.8 % shared by several known lines; 35.3 % to a line by order or time; "
        "5.9 % to none, on threads without recorded lines."
    )
