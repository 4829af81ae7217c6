"""speedscope, folded stacks, CSV, Parquet and OpenMetrics of real runs."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from explorer.analysis.run import open_run
from explorer.model.errors import UsageError
from explorer.report.openmetrics import openmetrics_text
from explorer.report.speedscope import folded_lines, frame_label, speedscope_document, speedscope_json
from explorer.report.table_file import table_names, write_table
from tests.collectors.imported import Imported
from tests.traces import trace

SAMPLE = Path(__file__).resolve().parents[2] / "sample_traces" / "transformer"


@pytest.fixture(scope="module")
def sample():
    with open_run(SAMPLE) as run:
        yield run


@pytest.fixture(scope="module")
def ascend(tmp_path_factory):
    made = Imported(
        trace("ascend/multirank_level1/rank0_ascend_pytorch_profiler.db"), tmp_path_factory.mktemp("npu")
    )
    with open_run(made.report.directory) as run:
        yield run


def test_speedscope_holds_all_time_of_user_chains(sample):
    document = speedscope_document(sample)
    total = sample.engine.sql("SELECT sum(duration_ns)::BIGINT AS ns FROM stack_times").rows()[0]["ns"]
    assert sum(sum(profile["weights"]) for profile in document["profiles"]) == total
    frames = document["shared"]["frames"]
    for profile in document["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"])
        assert all(0 <= number < len(frames) for chain in profile["samples"] for number in chain)
        assert frames[profile["samples"][0][0]]["name"].startswith("<module>")


def test_speedscope_reads_back(sample, tmp_path):
    path = tmp_path / "x.speedscope.json"
    path.write_bytes(speedscope_json(sample))
    back = Imported(path, tmp_path)
    back.check_counts()
    total = sample.engine.sql("SELECT sum(duration_ns)::BIGINT AS ns FROM stack_times").rows()[0]["ns"]
    assert sum(row["self_ns"] for row in back.rows("events")) == total


def test_folded_lines_agree_with_speedscope(sample):
    lines = list(folded_lines(sample))
    total = sample.engine.sql("SELECT sum(duration_ns)::BIGINT AS ns FROM stack_times").rows()[0]["ns"]
    times = [int(line.rsplit(" ", 1)[1]) for line in lines]
    assert sum(times) == total
    assert times == sorted(times, reverse=True)
    assert len({line.rsplit(" ", 1)[0] for line in lines}) == len(lines)
    assert all(re.fullmatch(r"[^\n]+ \d+", line) for line in lines)


def test_device_time_by_the_line_that_enqueued_it(ascend):
    expected = ascend.engine.sql(
        "SELECT sum(duration_ns)::BIGINT AS ns FROM events JOIN device_tracks USING (rank, track_id) WHERE stack_id IS NOT NULL "
        "AND category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')"
    ).rows()[0]["ns"]
    lines = list(folded_lines(ascend, device=True))
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == expected > 0
    assert any("main.py:354" in line for line in lines)


def test_labels():
    frame = {"function": "f", "file": "a/b;c.py", "line": 3}
    assert frame_label(frame) == "f (b;c.py:3)"
    assert frame_label({"function": "", "file": "x.py", "line": 0}) == "x.py"


def test_tables_as_csv_and_parquet(sample, tmp_path):
    lines = sample.lines("site").rows()
    assert write_table(sample, "lines", tmp_path / "x.csv", "csv") == len(lines)
    with open(tmp_path / "x.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["file"], int(row["line"]), int(row["cost_ns"]), row["code"]) for row in rows] == [
        (row["file"], row["line"], row["cost_ns"], row["code"] or "") for row in lines
    ]
    write_table(sample, "events", tmp_path / "x.parquet", "parquet")
    assert pq.read_table(tmp_path / "x.parquet").num_rows == sample.view("events").arrow().num_rows
    assert {"events", "lines", "breakdown", "sites"} <= set(table_names(sample))
    with pytest.raises(UsageError, match=r"no table or view 'lynes'.*lines"):
        write_table(sample, "lynes", tmp_path / "y.csv", "csv")
    with pytest.raises(UsageError):
        write_table(sample, "events; DROP TABLE x", tmp_path / "y.csv", "csv")
    assert not (tmp_path / "y.csv").exists()


def parsed(text):
    """Samples by (name, labels); checks the text against the format's rules."""
    lines = text.splitlines()
    assert lines[-1] == "# EOF"
    assert text.endswith("\n")
    families, found, current = set(), {}, None
    for line in lines[:-1]:
        if line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert kind == "gauge"
            assert current not in families
            families.add(current)
        elif line.startswith("# UNIT "):
            _, _, name, unit = line.split(" ")
            assert name == current
            assert name.endswith("_" + unit)
        elif line.startswith("# HELP "):
            assert line.split(" ")[2] == current
        else:
            match = re.fullmatch(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\} (-?\d+(?:\.\d+)?)', line)
            assert match, line
            assert match[1] == current
            assert (match[1], match[2]) not in found
            found[match[1], match[2]] = float(match[3])
    return found


def test_openmetrics(sample):
    found = parsed(openmetrics_text(sample))
    (row,) = sample.summary().rows()
    assert found["neuron_explorer_step_seconds", 'rank="0"'] == row["step_ns"] / 1e9
    assert found["neuron_explorer_events_recorded", 'rank="0"'] == row["events"]
    parts = [value for (name, _), value in found.items() if name == "neuron_explorer_device_time_ratio"]
    assert sum(parts) == pytest.approx(1, abs=3e-6)
    savings = [
        value for (name, _), value in found.items() if name == "neuron_explorer_finding_saving_seconds"
    ]
    assert sorted(savings) == sorted(f.saving.expected / 1e9 for f in sample.bottlenecks())


def test_openmetrics_of_device_runs_and_hostile_names(ascend):
    found = parsed(openmetrics_text(ascend, findings=False))
    assert found["neuron_explorer_memory_peak_bytes", 'rank="0",device="npu:0"'] > 0
    from explorer.report.openmetrics import _escaped, _seconds

    assert _escaped('a"b\\c\nd') == 'a\\"b\\\\c\\nd'
    assert [_seconds(value) for value in (0, 1, -1_500_000_000)] == [
        "0.000000000",
        "0.000000001",
        "-1.500000000",
    ]


def test_a_document_is_json(sample):
    assert json.loads(speedscope_json(sample))["exporter"] == "neuron-explorer"
