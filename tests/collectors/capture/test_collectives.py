"""Two gloo processes: every collective has its line, its group and its sizes, in each rank's own partition."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.store.reader import RunReader

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.capture,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="this torch has no gloo"),
]

PROGRAM = """\
import os, socket, sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from explorer import neuron_profile

def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))

def run(rank, size, directory, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(size))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    ddp = nn.parallel.DistributedDataParallel(make())
    fsdp = make()
    fully_shard(fsdp)
    mesh = init_device_mesh("cpu", (size,))
    tensor_parallel = parallelize_module(make(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    zero = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.SGD, lr=0.1)
    x = torch.ones(4, 8)
    with neuron_profile(directory, record_shapes=False) as prof:
        for _ in range(2):
            a = ddp(x).sum()
            a.backward()  # ddp backward
            zero.step()  # zero step
            prof.step()
        for _ in range(2):
            b = fsdp(x).sum()  # fsdp forward
            b.backward()  # fsdp backward
            prof.step()
        c = tensor_parallel(x)  # tensor parallel forward
        c.sum().backward()
        prof.step()
        t = torch.ones(5)
        dist.all_reduce(t)  # all reduce
        gathered = [torch.zeros(5) for _ in range(size)]
        dist.all_gather(gathered, t)  # all gather
        if rank == 0:
            dist.send(t, 1)  # send
        else:
            dist.recv(t, 0)  # receive
        dist.barrier()  # barrier
        prof.step()
    dist.destroy_process_group()

if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(run, (2, sys.argv[1], port), nprocs=2)
"""
LINES = PROGRAM.splitlines()


def marked(line: int) -> str:
    return LINES[line - 1].rpartition("# ")[2] if "# " in LINES[line - 1] else LINES[line - 1].strip()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    folder = tmp_path_factory.mktemp("collectives")
    (folder / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(folder / "program.py"), str(folder / "run")],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )
    assert done.returncode == 0, done.stderr
    return RunReader(str(folder / "run"))


def collectives(run: RunReader, rank: int, side: str = "host") -> list[dict]:
    """Collectives of one rank in order, with their event and the mark of their line."""
    sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
    events = {e["event_id"]: e for e in run.read("events", ranks=[rank]).to_pylist()}
    rows = []
    for row in run.read("collectives", ranks=[rank]).to_pylist():
        event = events[row["event_id"]]
        if row["side"] == side:
            site = sites.get(event["site_id"])
            rows.append({**row, "event": event, "mark": marked(site["line"]) if site else None})
    return sorted(rows, key=lambda row: row["event"]["start_ns"])


def test_each_rank_has_its_own_partition(run: RunReader) -> None:
    assert run.ranks == [0, 1]
    assert [run.manifests[rank].world_size for rank in run.ranks] == [2, 2]


@pytest.mark.parametrize("rank", [0, 1])
def test_every_collective_has_a_line(run: RunReader, rank: int) -> None:
    for side in ("host", "device"):
        rows = collectives(run, rank, side)
        assert rows
        assert all(row["mark"] for row in rows)


def test_calls_of_the_program_say_what_they_move(run: RunReader) -> None:
    found = {row["mark"]: row for row in collectives(run, 0) if row["sequence"] is not None}
    facts = {
        mark: (
            row["operation"],
            row["dtype"],
            row["element_count"],
            row["size_bytes"],
            row["group_size"],
            row["peer"],
        )
        for mark, row in found.items()
    }
    assert facts["all reduce"] == ("all_reduce", "float32", 5, 20, 2, None)
    assert facts["all gather"] == ("all_gather", "float32", 5, 40, 2, None)
    assert facts["send"] == ("send", "float32", 5, 20, 2, 1)
    assert facts["barrier"][0] == "barrier"
    assert found["all reduce"]["group_ranks"] == "[0, 1]"


@pytest.mark.parametrize("rank", [0, 1])
def test_every_collective_says_what_it_moves(run: RunReader, rank: int) -> None:
    rows = collectives(run, rank)
    for row in rows:
        wanted = ("group", "group_size", "group_ranks", "sequence") if row["peer"] is None else ("group",)
        if row["operation"] != "barrier":
            wanted += ("dtype", "element_count", "size_bytes")
        assert not [name for name in wanted if row[name] is None], (row["operation"], row["mark"])
    parameters = 2 * (8 * 8 + 8)
    facts = {(r["operation"], r["mark"]): (r["dtype"], r["element_count"], r["size_bytes"]) for r in rows}
    # DDP's reducer asks from C++, FSDP and DTensor by functional collectives: none of them passes an entry point.
    ddp = {
        value
        for (operation, mark), value in facts.items()
        if operation == "all_reduce" and "ddp" in str(mark)
    }
    assert ddp == {("float32", parameters, 4 * parameters)}
    assert facts["all_gather", "fsdp forward"] == ("float32", parameters // 2, 4 * parameters)
    reduced = {value for (operation, _), value in facts.items() if operation == "reduce_scatter"}
    assert reduced == {("float32", parameters, 4 * parameters)}
    assert facts["all_reduce", "tensor parallel forward"] == ("float32", 4 * 8, 4 * 4 * 8)
    numbers = [row["sequence"] for row in rows if row["peer"] is None]
    assert numbers == sorted(set(numbers))


def test_frameworks_collectives_have_the_programs_lines(run: RunReader) -> None:
    pairs = {(row["operation"], row["mark"]) for row in collectives(run, 0)}
    assert ("all_gather", "fsdp forward") in pairs
    assert ("reduce_scatter", "fsdp forward") in pairs or ("reduce_scatter", "fsdp backward") in pairs
    assert ("all_reduce", "tensor parallel forward") in pairs
    assert ("broadcast", "zero step") in pairs
    # DDP reduces gradients from C++ inside the backward pass.
    assert any(op == "all_reduce" and "ddp" in str(mark) for op, mark in pairs)


def test_both_ranks_agree_on_sequence_numbers(run: RunReader) -> None:
    first, second = (
        [
            (r["operation"], r["sequence"])
            for r in collectives(run, rank)
            if r["sequence"] and r["peer"] is None
        ]
        for rank in (0, 1)
    )
    assert first == second


def test_the_backends_work_belongs_to_its_call(run: RunReader) -> None:
    calls = {row["event_id"]: row for row in collectives(run, 0)}
    works = collectives(run, 0, "device")
    assert len(works) == len(calls)
    for work in works:
        launch = work["event"]["launch_id"] or work["event"]["op_id"]
        assert launch in calls
        assert calls[launch]["mark"] == work["mark"]
        assert calls[launch]["event"]["start_ns"] <= work["event"]["start_ns"]
