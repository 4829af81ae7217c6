"""Traces of viztracer: its functions are Python calls with the line of their definition."""

from __future__ import annotations

import json

from tests.collectors.imported import Imported


def test_functions_become_python_calls_with_lines(tmp_path):
    def call(name, start, duration):
        return {"ph": "X", "cat": "fee", "pid": 1, "tid": 1, "ts": start, "dur": duration, "name": name}

    events = [
        call("<module> (/home/u/train.py:1)", 0.5, 100.25),
        call("step (/home/u/train.py:7)", 10.125, 50),
        call("forward (/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py:120)", 20, 30),
        call("builtins.sum", 25.001, 5),
    ]
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"traceEvents": events, "viztracer_metadata": {"version": "1.1.1"}}))
    run = Imported(path, tmp_path)
    sites = {row["site_id"]: (row["file"], row["line"], row["function"]) for row in run.rows("sites")}
    rows = {row["name"].split(" ")[0]: row for row in run.rows("events")}
    assert {row["category"] for row in rows.values()} == {"python"}
    assert sites[rows["step"]["site_id"]] == ("/home/u/train.py", 7, "step")
    assert sites[rows["builtins.sum"]["site_id"]] == ("/home/u/train.py", 7, "step")
    assert rows["step"]["precision"] == "coarse"
    assert (
        rows["builtins.sum"]["start_ns"] - rows["<module>"]["start_ns"],
        rows["builtins.sum"]["duration_ns"],
    ) == (24501, 5000)
