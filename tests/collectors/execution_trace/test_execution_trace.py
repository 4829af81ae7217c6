"""Execution traces: alone, joined to the Kineto trace of the same run, of both schema generations, damaged."""

from __future__ import annotations

import json

import pytest

from explorer.collectors.execution_trace.nodes import parse_node
from explorer.collectors.import_trace import import_trace
from explorer.model.errors import InputError
from tests.collectors.imported import Imported
from tests.traces import oracle, trace

NODES = "nvidia/hta_execution_trace/benchmark_simple_add_et.json.gz"
KINETO = "nvidia/hta_execution_trace/benchmark_simple_add_trace.json.gz"


def test_alone_its_nodes_are_kept(tmp_path):
    run, expected = Imported(trace(NODES), tmp_path), oracle("other", NODES)
    run.check_counts()
    rows = run.rows("source_rows", kind="execution_node")
    assert len(rows) == expected["nodes"]
    keys = set().union(*(json.loads(row["attributes"]) for row in rows))
    assert keys >= set(expected["node_keys"]) - {"id", "name"}
    assert run.manifest.attributes["execution_trace"]["schema"] == expected["schema"]
    assert run.health()["no_times"] == 38


@pytest.mark.parametrize("order", [(NODES, KINETO), (KINETO, NODES)])
def test_joined_every_operator_meets_its_event(tmp_path, order):
    run = Imported([trace(name) for name in order], tmp_path)
    assert run.reader.ranks == [0]
    assert sorted(run.report.formats) == ["execution_trace", "kineto"]
    events = {row["event_id"]: row for row in run.rows("events")}
    rows = run.rows("source_rows", kind="execution_node")
    joined = [row for row in rows if "event_id" in json.loads(row["attributes"])]
    assert (len(rows), len(joined)) == (38, 36)
    assert {row["name"] for row in rows} - {row["name"] for row in joined} == {
        "[pytorch|profiler|execution_trace|thread]",
        "[pytorch|profiler|execution_trace|process]",
    }
    for row in joined:
        assert events[json.loads(row["attributes"])["event_id"]]["name"] == row["name"]
    edges = run.rows("edges", kind="data")
    assert len(edges) == 16
    for edge in edges:
        assert events[edge["source_id"]]["start_ns"] <= events[edge["target_id"]]["start_ns"]
    pairs = [(events[edge["source_id"]]["name"], events[edge["target_id"]]["name"]) for edge in edges]
    # Both inputs of both additions were filled by aten::uniform_.
    assert pairs.count(("aten::uniform_", "aten::add")) == 4
    assert run.health()["unjoined_nodes"] == 2


def test_a_directory_with_both_is_one_rank(tmp_path):
    run = Imported(trace(NODES).parent, tmp_path)
    assert run.reader.ranks == [0]
    assert len(run.rows("edges", kind="data")) == 16


def test_both_schema_generations_read_alike():
    old = {
        "id": 4,
        "name": "aten::mm",
        "rf_id": 2,
        "parent": 3,
        "inputs": [[6, 7, 0, 4, 4, "cpu"], 2],
        "outputs": [[[8, 9, 0, 4, 4, "cpu"]]],
    }
    new = {
        "id": 4,
        "name": "aten::mm",
        "ctrl_deps": 3,
        "inputs": {"values": old["inputs"], "shapes": [], "types": []},
        "outputs": {"values": old["outputs"], "shapes": [], "types": []},
        "attrs": [
            {"name": "rf_id", "type": "uint64", "value": 2},
            {"name": "tid", "type": "uint64", "value": 1},
        ],
    }
    first, second = parse_node(old), parse_node(new)
    for node in (first, second):
        assert (node.id, node.record_function_id, node.parent) == (4, 2, 3)
        assert (node.inputs, node.outputs) == ([(7, 6)], [(9, 8)])
    assert second.rest["tid"] == 1
    assert parse_node({"name": "x"}) is None


def test_odd_nodes_and_cut_files(tmp_path):
    document = {
        "schema": "1.1.1-chakra.0.0.4",
        "nodes": [{"id": n, "name": f"op{n}"} for n in range(50)] + [{"name": "no id"}, 7],
    }
    text = json.dumps(document)
    path = tmp_path / "et.json"
    path.write_text(text)
    run = Imported(path, tmp_path / "whole")
    run.check_counts()
    assert run.manifest.counts["quarantine"] == 2
    path.write_text(text[: len(text) // 2])
    run = Imported(path, tmp_path / "cut")
    run.check_counts()
    assert 20 < len(run.rows("source_rows")) < 30
    assert run.report.exit_code == 4


def test_no_nodes_is_an_error(tmp_path):
    path = tmp_path / "et.json"
    path.write_text('{"schema": "1", "nodes": 5}')
    with pytest.raises(InputError, match="holds no nodes"):
        import_trace(path, tmp_path / "run")
