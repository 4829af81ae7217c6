"""speedscope files: evented and sampled profiles, units, damage."""

from __future__ import annotations

import json

import pytest

from explorer.collectors.import_trace import import_trace
from explorer.model.errors import InputError
from tests.collectors.imported import Imported

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
FRAMES = [
    {"name": "main", "file": "train.py", "line": 1},
    {"name": "step", "file": "train.py", "line": 9},
    {"name": "mul"},
]


def imported(tmp_path, *profiles, text=None) -> Imported:
    path = tmp_path / "x.speedscope.json"
    document = {
        "$schema": SCHEMA,
        "shared": {"frames": FRAMES},
        "profiles": list(profiles),
        "name": "a run",
        "exporter": "t",
    }
    path.write_text(text or json.dumps(document))
    run = Imported(path, tmp_path)
    run.check_counts()
    return run


def shown(run):
    events = sorted(run.rows("events"), key=lambda row: (row["start_ns"], -row["duration_ns"]))
    return [(row["name"], row["start_ns"], row["duration_ns"], row["self_ns"]) for row in events]


def test_evented_profiles_with_exact_times(tmp_path):
    events = [("O", 0, 0.1), ("O", 1, 0.2), ("O", 2, 0.25), ("C", 2, 0.3), ("C", 1, 1.000001), ("C", 0, 1.5)]
    run = imported(
        tmp_path,
        {
            "type": "evented",
            "name": "thread 1",
            "unit": "milliseconds",
            "startValue": 0,
            "endValue": 2,
            "events": [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events],
        },
    )
    assert shown(run) == [
        ("main", 100_000, 1_400_000, 599_999),
        ("step", 200_000, 800_001, 750_001),
        ("mul", 250_000, 50_000, 50_000),
    ]
    rows = {row["name"]: row for row in run.rows("events")}
    sites = {row["site_id"]: row for row in run.rows("sites")}
    assert sites[rows["step"]["site_id"]]["line"] == 9
    assert rows["mul"]["site_id"] == rows["step"]["site_id"]
    assert rows["main"]["category"] == "python"
    assert run.rows("tracks")[0]["label"] == "thread 1"
    assert run.report.exit_code == 0


def test_sampled_profiles_join_equal_frames(tmp_path):
    run = imported(
        tmp_path,
        {
            "type": "sampled",
            "name": "t",
            "unit": "microseconds",
            "startValue": 10,
            "endValue": 20,
            "samples": [[0], [0, 1], [0, 1, 2], [0, 2], []],
            "weights": [1, 2, 0.5, 3, 4],
        },
    )
    assert shown(run) == [
        ("main", 10_000, 6500, 1000),
        ("step", 11_000, 2500, 2000),
        ("mul", 13_000, 500, 500),
        ("mul", 13_500, 3000, 3000),
    ]


def test_unmatched_unfinished_and_odd_rows(tmp_path):
    run = imported(
        tmp_path,
        {
            "type": "evented",
            "name": "t",
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": 50,
            "events": [
                {"type": "C", "frame": 1, "at": 1},
                {"type": "O", "frame": 0, "at": 2},
                {"type": "O", "frame": 77, "at": "x"},
                {"type": "O", "frame": 99, "at": 3},
                "rubbish",
                {"type": "C", "frame": 99, "at": 2},
            ],
        },
        {"type": "sampled", "name": "u", "unit": "bytes", "samples": [[0], [1]], "weights": [5]},
        "rubbish",
    )
    assert ("main", 2, 48, 48) in shown(run)
    reasons = sorted(row["reason"] for row in run.rows("quarantine"))
    assert reasons == [
        "end_without_begin",
        "negative_duration",
        "no_event",
        "no_profile",
        "no_time",
        "no_weight",
    ]
    assert run.health()["no_time_unit"] == 1
    assert run.report.exit_code == 4


def test_a_cut_file_keeps_its_beginning(tmp_path):
    document = {
        "shared": {"frames": FRAMES},
        "$schema": SCHEMA,
        "profiles": [
            {
                "unit": "nanoseconds",
                "name": "t",
                "type": "evented",
                "events": [{"type": "OC"[n % 2], "frame": 0, "at": n} for n in range(200)],
            }
        ],
    }
    text = json.dumps(document)
    run = imported(tmp_path, text=text[: len(text) * 3 // 4])
    assert 60 < len(run.rows("events")) < 80
    assert run.manifest.losses[0]["reason"] == "it ends early"


def test_no_profiles_is_an_error(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"$schema": SCHEMA, "shared": {"frames": []}, "profiles": []}))
    with pytest.raises(InputError, match="no speedscope profiles"):
        import_trace(path, tmp_path / "run")
