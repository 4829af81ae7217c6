"""DataLoader workers: their lines are in the run, their batches are joined to the waits, and the finding names the line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.analysis.run import open_run
from explorer.store.reader import RunReader

pytest.importorskip("torch")
pytestmark = pytest.mark.capture

PROGRAM = """\
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset
from explorer import neuron_profile

def decode(index):
    data = bytes([index])
    time.sleep(0.01)
    return torch.full((8,), float(data[0]))

class Pictures(Dataset):
    def __len__(self):
        return 48
    def __getitem__(self, index):
        return decode(index) + 1

def seed(worker):
    torch.manual_seed(worker)

if __name__ == "__main__":
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    loader = DataLoader(
        Pictures(), batch_size=4, num_workers=2, worker_init_fn=seed, multiprocessing_context=sys.argv[2],
        persistent_workers=True,
    )
    with neuron_profile(sys.argv[1], telemetry=False) as prof:
        for epoch in range(2):
            total = 0.0
            for batch in loader:
                total += float(batch.sum())
                loss = model(batch).sum()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                prof.step()
            print(total)
        assert loader.worker_init_fn is seed
"""
SLEEP = PROGRAM.splitlines().index("    time.sleep(0.01)") + 1


@pytest.fixture(scope="module", params=["fork", "spawn"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "program.py").write_text(PROGRAM)
    (folder / "scratch").mkdir()
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(folder / "scratch"),
        "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
    }
    done = subprocess.run(
        [sys.executable, str(folder / "program.py"), str(folder / "run"), request.param],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    # The program computes what it computes without us.
    assert done.stdout.split() == [str(float(8 * (sum(range(48)) + 48)))] * 2
    assert not [name for name in os.listdir(folder / "scratch") if name.startswith("neuron-explorer")]
    return RunReader(str(folder / "run"))


def test_workers_are_tracks_of_the_same_rank(run: RunReader) -> None:
    workers = [t for t in run.read("tracks").to_pylist() if t["label"].startswith("DataLoader worker")]
    assert [t["label"] for t in workers] == ["DataLoader worker 0", "DataLoader worker 1"]
    assert {t["rank"] for t in workers} == {0}
    assert len({t["process_id"] for t in workers}) == 2
    assert run.manifests[0].capture["loader_workers"] == 2
    assert run.ranks == [0]


def test_lines_inside_workers(run: RunReader) -> None:
    tracks = {t["track_id"]: t["label"] for t in run.read("tracks").to_pylist()}
    sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
    stacks: dict[int, list[tuple[str, int]]] = {}
    for row in sorted(run.read("stacks").to_pylist(), key=lambda row: row["depth"]):
        site = sites[row["site_id"]]
        stacks.setdefault(row["stack_id"], []).append((site["function"], site["line"]))
    time: dict[str, int] = {}
    for state in run.read("host_states").to_pylist():
        site = sites.get(state["site_id"])
        if tracks[state["track_id"]].startswith("DataLoader worker") and site and site["line"] == SLEEP:
            label = tracks[state["track_id"]]
            time[label] = time.get(label, 0) + state["duration_ns"]
            assert stacks[state["stack_id"]] == [("decode", SLEEP), ("Pictures.__getitem__", SLEEP + 7)]
    # Two epochs of 48 pictures, half of them each; the last moments before the end may be missing.
    assert set(time) == {"DataLoader worker 0", "DataLoader worker 1"}
    assert all(total >= 36 * 10_000_000 for total in time.values())


def test_every_batch_is_joined_to_the_wait_for_it(run: RunReader) -> None:
    events = {e["event_id"]: e for e in run.read("events").to_pylist()}
    edges = [row for row in run.read("edges").to_pylist() if row["kind"] == "data"]
    assert len(edges) == 24
    edges.sort(key=lambda row: events[row["target_id"]]["start_ns"])
    for number, edge in enumerate(edges):
        fetch, wait = events[edge["source_id"]], events[edge["target_id"]]
        assert fetch["name"] == "DataLoader worker fetch"
        assert wait["category"] == "data"
        # The batch was ready before the wait for it ended, and both are the same batch.
        assert fetch["start_ns"] + fetch["duration_ns"] <= wait["start_ns"] + wait["duration_ns"]
        assert json.loads(fetch["attributes"]) == {"batch": number % 12, "worker": number % 12 % 2}


def test_the_finding_names_the_line_in_the_worker(run: RunReader) -> None:
    found = [f for f in open_run(run.directory).bottlenecks() if f.rule == "data_loader_stall"]
    assert len(found) == 1
    assert f"program.py:{SLEEP}" in found[0].advice
    assert "time.sleep(0.01)" in found[0].advice
