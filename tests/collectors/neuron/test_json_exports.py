"""The two JSON forms of Neuron's tools: summary totals, and the old export in picoseconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.analysis.run import open_run
from explorer.collectors.import_trace import import_trace
from explorer.model.errors import InputError

SUMMARY = {
    "n_0a1b": {
        "total_time": 0.25,
        "tensor_engine_active_time": 0.1,
        "tensor_engine_active_time_percent": 0.4,
        "hardware_flops": 10**12,
        "transpose_flops": float("nan"),
        "hbm_read_bytes": 3 * 10**9,
        "hbm_write_bytes": 10**9,
        "throttle_avg_util_limit_nc0_percent": 0.875,
        "instance": "made-up",
    },
    "n_2c3d": {"total_time": 0.5, "hbm_read_bytes": 7},
}


def test_summary_json(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SUMMARY))
    report = import_trace(tmp_path / "s.json", tmp_path / "run")
    assert report.formats == ["neuron_summary_json"]
    run = open_run(report.directory)
    for ask in (run.engine.sql, run.sql):
        rows = ask(
            "SELECT profile, rank, total_time, hardware_flops, transpose_flops, hbm_read_bytes FROM neuron.Summary ORDER BY profile"
        ).rows()
        assert rows == [
            {"profile": "n_0a1b", "rank": 0, "total_time": 0.25, "hardware_flops": 10**12, "transpose_flops": None, "hbm_read_bytes": 3 * 10**9},
            {"profile": "n_2c3d", "rank": 0, "total_time": 0.5, "hardware_flops": None, "transpose_flops": None, "hbm_read_bytes": 7},
        ]  # fmt: skip
    assert run.sql("SELECT name, value FROM counters").rows() == [
        {"name": "throttle_avg_util_limit_nc0_percent", "value": 0.875}
    ]
    assert run.sql("SELECT name, attributes FROM source_rows").rows() == [
        {"name": "instance", "attributes": '"made-up"'}
    ]
    assert len(run.view("neuron_utilization")) == 0  # no peak is known: nothing is guessed


def test_legacy_json_in_picoseconds(tmp_path: Path) -> None:
    document = {
        "instruction": [
            {"timestamp": 5_000_500, "duration": 1_500_700, "label": "pe", "opcode": "MATMUL", "evt_wait_time": 3,
             "bir_debug_info_source_location": "model.py:14"},
            {"timestamp": 6_501_200, "duration": 2_000, "label": "Vector", "opcode": "COPY"},
            {"timestamp": 7, "duration": -5, "label": "Vector", "opcode": "BAD"},
        ],
        "dma": [{"timestamp": 4_000_000, "duration": 9_000, "queue_name": "q0", "transfer_bytes": 512}],
        "layer_summary": [{"layer": "a", "time": 5}],
        "profile_info": {"version": 1},
    }  # fmt: skip
    (tmp_path / "old.json").write_text(json.dumps(document))
    report = import_trace(tmp_path / "old.json", tmp_path / "run")
    assert report.formats == ["neuron_legacy_json"]
    run = open_run(report.directory)
    rows = run.sql(
        """SELECT e.name, e.start_ns, e.duration_ns, t.label, t.kind, s.line, e.size_bytes FROM events e JOIN tracks t USING (rank, track_id)
           LEFT JOIN sites s USING (site_id) ORDER BY e.start_ns"""
    ).rows()
    assert [tuple(row.values()) for row in rows] == [
        ("dma", 4000, 9, "q0", "queue", None, 512),
        # 5000.5 to 6501.2 ns: both ends are rounded down, so the next instruction still begins where this one ends.
        ("MATMUL", 5000, 1501, "Tensor", "engine", 14, None),
        ("COPY", 6501, 2, "Vector", "engine", None, None),
    ]
    assert [row["reason"] for row in run.sql("SELECT reason FROM quarantine").rows()] == ["negative_duration"]
    assert sorted(row["name"] for row in run.sql("SELECT name FROM source_rows").rows()) == [
        "layer_summary",
        "profile_info",
    ]


def test_other_json_is_left_to_others(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"instruction": "none", "timestamp": 1}')
    with pytest.raises(InputError):
        import_trace(tmp_path / "x.json", tmp_path / "run")
