"""Chrome JSON export: every event, exact times, lanes that nest, arrows that bind, and the same run when read back."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.analysis.run import open_run
from explorer.analysis.sub_lanes import sub_lanes
from explorer.analysis.trace_rows import Window, begin_ns, step_window
from explorer.model.errors import UsageError
from explorer.report.perfetto import write_perfetto
from tests.collectors.imported import Imported
from tests.traces import trace

SAMPLE = Path(__file__).resolve().parents[2] / "sample_traces" / "transformer"


def exported(run, path, window=None):
    written = write_perfetto(run, path, *([window] if window else []))
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return written, json.loads(data, parse_float=Decimal)


def slices(document):
    return [row for row in document["traceEvents"] if row["ph"] == "X" and row["cat"] != "source_line"]


def check_rules(document):
    """Slices of one thread nest or follow each other; every arrow's end lies in a slice of its thread."""
    by_thread = defaultdict(list)
    for row in document["traceEvents"]:
        if row["ph"] == "X":
            assert row["dur"] >= 0
            by_thread[row["pid"], row["tid"]].append((row["ts"], -row["dur"]))
    for rows in by_thread.values():
        ends: list[Decimal] = []
        for start, minus in sorted(rows):
            while ends and ends[-1] <= start:
                ends.pop()
            assert not ends or start - minus <= ends[-1]
            ends.append(start - minus)
    starts = {key: {start for start, _ in rows} for key, rows in by_thread.items()}
    halves = Counter()
    for row in document["traceEvents"]:
        if row["ph"] in "sf":
            assert row["ts"] in starts[row["pid"], row["tid"]]
            halves[row["id"], row["ph"]] += 1
    assert set(halves.values()) <= {1}
    assert {number for number, _ in halves} == {number for number, phase in halves if phase == "f"}
    names = {(row["pid"], row["tid"]) for row in document["traceEvents"] if row["name"] == "thread_name"}
    assert set(by_thread) <= names
    processes = {row["pid"] for row in document["traceEvents"] if row["name"] == "process_name"}
    assert {row["pid"] for row in document["traceEvents"]} <= processes


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    """Two processes on two GPUs, with launches."""
    folder = tmp_path_factory.mktemp("gpu")
    return Imported(trace("nsys/nsysai_h100_2gpu_1s.sqlite"), folder)


def test_a_captured_run_keeps_every_event_line_and_arrow(tmp_path):
    with open_run(SAMPLE) as run:
        written, document = exported(run, tmp_path / "x.json.gz")
        check_rules(document)
        events = run.engine.sql("SELECT count(*) AS n, sum(duration_ns)::BIGINT AS ns FROM events").rows()[0]
        found = slices(document)
        assert written.events == len(found) == events["n"]
        assert sum(row["dur"] for row in found) * 1000 == events["ns"]
        lines = run.engine.sql("SELECT count(*) AS n FROM event_lines").rows()[0]["n"]
        assert sum("source line" in row["args"] for row in found) == lines
        states = run.engine.sql("SELECT count(*) AS n FROM host_states WHERE site_id IS NOT NULL").rows()[0][
            "n"
        ]
        assert (
            sum(row.get("cat") == "source_line" for row in document["traceEvents"]) == written.lines == states
        )
        assert written.arrows == run.engine.sql("SELECT count(*) AS n FROM edges").rows()[0]["n"]


def test_a_run_read_back_is_the_same(gpu, tmp_path):
    path = tmp_path / "x.json"
    with open_run(gpu.report.directory) as run:
        written, document = exported(run, path)
    check_rules(document)
    assert written.events == gpu.manifest.counts["events"]
    back = Imported(path, tmp_path)
    wanted, found = gpu.rows("events"), back.rows("events")
    device = ("kernel", "copy", "fill", "op", "runtime", "overhead", "annotation")
    for category in device:
        first = sorted(
            (row["start_ns"], row["duration_ns"], row["name"])
            for row in wanted
            if row["category"] == category
        )
        second = sorted(
            (row["start_ns"], row["duration_ns"], row["name"]) for row in found if row["category"] == category
        )
        assert first == second, category
    assert launches(wanted).items() <= launches(found).items()
    assert len(launches(wanted)) == 1632 + 438 + 22


def launches(rows):
    """Device event to its launch, both by start and name."""
    by_id = {row["event_id"]: (row["start_ns"], row["name"]) for row in rows}
    return {
        (row["start_ns"], row["name"]): by_id[row["launch_id"]]
        for row in rows
        if row["launch_id"] is not None and row["category"] in ("kernel", "copy", "fill")
    }


def test_windows(gpu, tmp_path):
    with open_run(gpu.report.directory) as run:
        begin = begin_ns(run)
        window = Window(begin + 100_000_000, begin + 150_000_000)
        written, document = exported(run, tmp_path / "x.json", window)
        check_rules(document)
        inside = [
            row
            for row in gpu.rows("events")
            if row["start_ns"] < window.end_ns and row["start_ns"] + row["duration_ns"] > window.start_ns
        ]
        assert 0 < written.events < gpu.manifest.counts["events"]
        assert {row["args"]["event"] for row in slices(document)} >= {
            f"0:{row['event_id']}" for row in inside
        }
        empty, document = exported(run, tmp_path / "y.json", Window(begin - 10, begin - 5))
        assert (empty.events, slices(document)) == (0, [])


def test_a_step(tmp_path):
    with open_run(SAMPLE) as run:
        step = run.engine.sql("SELECT * FROM steps WHERE step = 3").rows()[0]
        window = step_window(run, 3)
        assert (window.start_ns, window.end_ns) == (step["start_ns"], step["start_ns"] + step["duration_ns"])
        _, document = exported(run, tmp_path / "x.json", window)
        assert Counter(row["args"].get("step") for row in slices(document)).most_common(1)[0][0] == 3
        with pytest.raises(UsageError, match="no step 99"):
            step_window(run, 99)


def test_overlapping_slices_get_lanes_of_their_own(tmp_path):
    def kernel(start, duration, name):
        return {
            "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": duration,
            "args": {"device": 0, "stream": 7, "correlation": start},
        }  # fmt: skip

    events = [
        kernel(10, 20, "a"),
        kernel(20, 20, "b"),
        kernel(25, 3, "c"),
        kernel(40, 5, "d"),
        kernel(28, 30, "<script>"),
    ]
    path = tmp_path / "in.json"
    path.write_text(json.dumps({"traceEvents": events}))
    source = Imported(path, tmp_path)
    with open_run(source.report.directory) as run:
        written, document = exported(run, tmp_path / "out.json")
    check_rules(document)
    assert (written.events, written.moved) == (5, 2)
    threads = {row["name"]: row["tid"] for row in slices(document)}
    assert threads["a"] == threads["c"]
    assert len({threads["a"], threads["b"], threads["<script>"]}) == 3
    labels = [row["args"]["name"] for row in document["traceEvents"] if row["name"] == "thread_name"]
    assert sum("overlap" in label for label in labels) == 2


def test_a_failed_write_leaves_nothing(tmp_path):
    with open_run(SAMPLE) as run, pytest.raises(FileNotFoundError):
        write_perfetto(run, tmp_path / "missing" / "x.json")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), max_size=40))
def test_lanes_always_nest_and_use_the_first_that_fits(rows):
    rows.sort(key=lambda row: (row[0], -row[1]))
    start, duration = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    lanes = sub_lanes(start, duration).tolist()
    for lane in set(lanes):
        ends: list[int] = []
        for (first, length), number in zip(rows, lanes):
            if number != lane:
                continue
            while ends and ends[-1] <= first:
                ends.pop()
            assert not ends or first + length <= ends[-1]
            ends.append(first + length)
    crossing = any(
        a[0] < b[0] < a[0] + a[1] < b[0] + b[1] or b[0] < a[0] < b[0] + b[1] < a[0] + a[1]
        for a in rows
        for b in rows
    )
    assert (max(lanes, default=0) > 0) == crossing
