"""Real snapshots against counted values; made ones for the forms no real file here has."""

from __future__ import annotations

import json
import os
import pickle
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors.import_trace import import_trace
from explorer.model.errors import InputError
from tests.collectors.imported import Imported
from tests.traces import oracle, trace

CUDA, NPU = "memory/cuda_snapshot_magma27.pickle", "memory/npu_snapshot_expandable.pkl"
ACTIONS = {"free_completed": "free"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    made: dict[str, Imported] = {}

    def run_of(name: str) -> Imported:
        if name not in made:
            made[name] = Imported(trace(name), tmp_path_factory.mktemp("memory"))
        return made[name]

    return run_of


@pytest.mark.parametrize(("name", "kind"), [(CUDA, "cuda"), (NPU, "npu")])
def test_history_matches_the_reference(runs, name, kind):
    run, expected = runs(name), oracle("other", name)
    run.check_counts()
    for entry in expected["device_traces"]:
        device = f"{kind}:{entry['device']}"
        rows = run.rows("memory_events", device=device)
        assert len(rows) == entry["entries"]
        wanted = {ACTIONS.get(action, action): count for action, count in entry["actions"].items()}
        assert Counter(row["action"] for row in rows) == wanted
        allocated = sum(row["size_bytes"] for row in rows if row["action"] == "alloc")
        freed = -sum(row["size_bytes"] for row in rows if row["action"] == "free")
        assert allocated == entry["alloc_bytes"]
        outside = _freed_outside(rows)
        assert len(outside) == entry["free_completed_without_alloc_in_trace"]
        net = entry["net_live_bytes_at_end(allocs in trace - free_completed)"]
        assert allocated - (freed - sum(outside)) == net or allocated - freed == net
        assert _peak(rows) == entry["peak_live_bytes_of_traced_allocs"]
        assert sum(row["stack_id"] is not None for row in rows) == entry["with_frames"]


def _freed_outside(rows):
    live, outside = set(), []
    for row in rows:
        if row["action"] == "alloc":
            live.add(row["address"])
        elif row["action"] == "free":
            if row["address"] in live:
                live.discard(row["address"])
            else:
                outside.append(-row["size_bytes"])
    return outside


def _peak(rows):
    live: dict[int, int] = {}
    total = peak = 0
    for row in rows:
        if row["action"] == "alloc":
            live[row["address"]] = row["size_bytes"]
            total += row["size_bytes"]
        elif row["action"] == "free":
            total -= live.pop(row["address"], 0)
        peak = max(peak, total)
    return peak


@pytest.mark.parametrize("name", [CUDA, NPU])
def test_segments_and_blocks(runs, name):
    run, expected = runs(name), oracle("other", name)["segments"]
    segments = [json.loads(row["attributes"]) for row in run.rows("source_rows", kind="segment")]
    blocks = run.rows("source_rows", kind="block")
    assert len(segments) == expected["count"]
    for key in ("total_size", "allocated_size", "active_size"):
        assert sum(segment[key] for segment in segments) == expected[key]
    assert len(blocks) == expected["blocks"]
    assert Counter(row["name"] for row in blocks) == expected["block_states"]


def test_running_totals_end_at_what_the_segments_say(runs):
    for name, key in ((CUDA, "requested_size"), (NPU, "requested_size")):
        run = runs(name)
        segments = [json.loads(row["attributes"]) for row in run.rows("source_rows", kind="segment")]
        live = sum(segment[key] or segment["allocated_size"] for segment in segments)
        last = max(run.rows("memory_events"), key=lambda row: row["event_id"])
        assert last["allocated_bytes"] == live
        assert last["reserved_bytes"] == sum(segment["total_size"] for segment in segments)


def test_times_are_exact_and_their_absence_is_said(runs):
    run, expected = runs(CUDA), oracle("other", CUDA)["device_traces"][0]["time_us_first_last"]
    times = [row["timestamp_ns"] for row in run.rows("memory_events")]
    assert [min(times), max(times)] == [time * 1000 for time in expected]
    assert runs(NPU).health()["no_times"] == 8092
    assert [row["timestamp_ns"] for row in runs(NPU).rows("memory_events")][:3] == [0, 1, 2]


def test_lines_of_allocations(runs):
    run = runs(CUDA)
    sites = {row["site_id"]: row for row in run.rows("sites")}
    first = min(run.rows("memory_events"), key=lambda row: row["event_id"])
    site = sites[first["site_id"]]
    assert site["file"].endswith("cs336_basics/model.py")
    assert (site["line"], site["function"], site["is_user"]) == (54, "forward", True)
    stack = sorted(run.rows("stacks", stack_id=first["stack_id"]), key=lambda row: row["depth"])
    assert [sites[row["site_id"]]["function"] for row in stack][-1] == "<module>"
    assert sites[stack[1]["site_id"]]["file"] == "torch/nn/modules/module.py"
    assert not sites[stack[1]["site_id"]]["is_user"]


def test_raw_timeline(tmp_path):
    name = "memory/hta_memory_timeline.raw.json.gz"
    run, expected = Imported(trace(name), tmp_path), oracle("other", name)
    run.check_counts()
    rows = run.rows("memory_events")
    assert len(rows) == expected["rows"]
    sums, counts = Counter(), Counter()
    for row in rows:
        action = row["action"]
        if row["attributes"]:
            action = "preexisting"
        counts[action] += 1
        sums[action] += row["size_bytes"]
    wanted = {"preexisting": "1", "alloc": "2", "recategorized": "3", "free": "4"}
    for action, number in wanted.items():
        assert counts[action] == expected["action_counts"][number]
        assert sums[action] == expected["bytes_sum_by_action"][number]
    categories = Counter(row["category"] for row in rows)
    assert categories["parameter"] == expected["category_counts"]["0"]
    assert categories["gradient"] == expected["category_counts"]["5"]
    assert categories["unknown"] == expected["category_counts"]["7"]


def entry(action="alloc", addr=16, size=8, **more):
    return {"action": action, "addr": addr, "size": size, "stream": 0, "frames": [], **more}


def snapshot(traces, segments=()):
    return {"segments": list(segments), "device_traces": traces}


def imported(tmp_path, value, name="x.pickle"):
    path = tmp_path / name
    path.write_bytes(value if isinstance(value, bytes) else pickle.dumps(value))
    return Imported(path, tmp_path)


def test_several_devices_keep_their_numbers(tmp_path):
    for count in (1, 2, 5, 1200):
        folder = tmp_path / str(count)
        folder.mkdir()
        traces = [
            [entry(addr=device + 1), entry(addr=device + 2)] if device % 2 == 0 else []
            for device in range(count)
        ]
        run = imported(folder, snapshot(traces))
        run.check_counts()
        found = Counter(row["device"] for row in run.rows("memory_events"))
        assert found == {f"cuda:{device}": 2 for device in range(0, count, 2)}


def test_a_single_entry_list_and_tuples(tmp_path):
    run = imported(tmp_path, snapshot([[], [entry()], ([entry()])]))
    assert [row["device"] for row in run.rows("memory_events")] == ["cuda:1", "cuda:2"]


def test_segments_alone(tmp_path):
    run = imported(
        tmp_path,
        [{"device": 1, "total_size": 64, "allocated_size": 8, "blocks": [{"size": 8, "state": "x"}]}],
    )
    run.check_counts()
    assert Counter(row["kind"] for row in run.rows("source_rows")) == {"segment": 1, "block": 1}
    assert [row["device"] for row in run.rows("devices")] == ["cuda:1"]


def test_odd_entries_go_to_quarantine(tmp_path):
    good = [entry(), entry("free_requested"), entry("free_completed"), entry("oom", size=99, device_free=5)]
    bad = [entry("dance"), entry(size="8"), entry(size=-1), entry(size=2**80), {"action": 7}]
    run = imported(tmp_path, snapshot([good + bad, [1, "x"]]))
    run.check_counts()
    assert [row["action"] for row in run.rows("memory_events")] == ["alloc", "free_requested", "free", "oom"]
    assert [row["size_bytes"] for row in run.rows("memory_events")] == [8, 0, -8, 0]
    assert run.manifest.counts["quarantine"] == len(bad) + 2
    assert run.report.exit_code == 4


def test_code_is_refused_with_a_clear_error(tmp_path):
    class Runs:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "made"),))

    path = tmp_path / "evil.pickle"
    path.write_bytes(pickle.dumps(snapshot([[entry(), Runs()]])))
    with pytest.raises(InputError, match=r"would run code .*nothing was run"):
        import_trace(path, tmp_path / "run")
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / "run").exists()


def test_other_pickles_are_refused(tmp_path):
    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps({"weights": [1, 2]}))
    with pytest.raises(InputError, match="no memory snapshot"):
        import_trace(path, tmp_path / "run")


def test_shared_giants_and_deep_lists_stay_small(tmp_path):
    bomb = ["x"]
    for _ in range(60):
        bomb = [bomb, bomb]
    deep = []
    for _ in range(200):
        deep = [deep]
    run = imported(tmp_path, snapshot([[entry(user_metadata=bomb), entry(user_metadata=deep)]]))
    run.check_counts()
    assert sum(len(row["attributes"]) for row in run.rows("memory_events")) < 5_000_000


def test_truncation_keeps_the_entries_before_it(tmp_path):
    data = Path(trace(CUDA)).read_bytes()
    whole = Imported(trace(CUDA), tmp_path / "whole")
    wanted = {
        row["event_id"]: (row["address"], row["size_bytes"], row["action"])
        for row in whole.rows("memory_events")
    }
    counts = []
    for share in (0.3, 0.6, 0.99):
        folder = tmp_path / str(share)
        folder.mkdir()
        run = imported(folder, data[: int(len(data) * share)])
        run.check_counts()
        assert run.report.exit_code == 4
        rows = run.rows("memory_events")
        counts.append(len(rows))
        for row in rows:
            assert wanted[row["event_id"]] == (row["address"], row["size_bytes"], row["action"])
    assert 0 < counts[0] < counts[1] < counts[2]


@settings(max_examples=40)
@given(data=st.data())
def test_mutations_never_crash(tmp_path_factory, data):
    original = pickle.dumps(
        snapshot([[entry(addr=n, frames=[{"name": "f", "filename": "a.py", "line": n}]) for n in range(20)]])
    )
    broken = bytearray(original)
    for place in data.draw(st.lists(st.integers(2, len(original) - 1), min_size=1, max_size=5)):
        broken[place] ^= data.draw(st.integers(1, 255))
    folder = tmp_path_factory.mktemp("mutated")
    try:
        run = imported(folder, bytes(broken))
    except InputError:
        return
    run.check_counts()
    assert len(run.rows("memory_events")) <= 20
