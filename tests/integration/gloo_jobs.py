"""Real jobs of several gloo processes, recorded: `python gloo_jobs.py DIRECTORY RANKS JOB...`; each job is one run there.

Rank SLOW loses 30 ms per step, on purpose, at the line marked with the job's name.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from explorer import neuron_profile

SLOW = 1
STEPS = 10
MICROBATCHES = 4


class Rows(Dataset):
    def __init__(self, job: str, rank: int) -> None:
        self.slow = rank == SLOW and job == "data"

    def __len__(self) -> int:
        return 4 * STEPS

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.slow and index % 4 == 0:
            time.sleep(0.03)  # data
        return torch.full((64,), float(index))


def slow_hook(gradient: torch.Tensor) -> torch.Tensor:
    time.sleep(0.03)  # backward
    return gradient


def model(width: int = 64) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))


def ddp(job: str, rank: int, directory: str) -> None:
    inner = model()
    wrapped = DistributedDataParallel(inner, bucket_cap_mb=0.02)
    if rank == SLOW and job == "backward":
        inner[2].weight.register_hook(slow_hook)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01)
    batches = iter(DataLoader(Rows(job, rank), batch_size=4))
    with neuron_profile(directory) as prof:
        for _ in range(STEPS):
            batch = next(batches)
            if rank == SLOW and job == "line":
                sorted(range(400_000), key=float)  # line
            loss = wrapped(batch).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()


def lengths(job: str, rank: int, directory: str) -> None:
    """Sequences of other lengths on each rank, a new one each step."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Embedding(100, 256), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    wrapped = DistributedDataParallel(net)
    ranks = dist.get_world_size()
    with neuron_profile(directory, record_shapes=True) as prof:
        for step in range(STEPS):
            length = 16 if (step + rank) % ranks else 2048
            tokens = torch.zeros(4, length, dtype=torch.int64)
            wrapped(tokens).square().mean().backward()
            prof.step()


def experts(job: str, rank: int, directory: str) -> None:
    """One expert a rank; the router sends most tokens to the last one, whose work no busy machine hides."""
    torch.manual_seed(0)
    ranks, width = dist.get_world_size(), 256
    expert = nn.Sequential(nn.Linear(width, 16 * width), nn.ReLU(), nn.Linear(16 * width, width))
    sent = [64] * (ranks - 1) + [1024]
    received = [sent[rank]] * ranks
    tokens = torch.randn(sum(sent), width)
    with neuron_profile(directory) as prof, torch.no_grad():
        for _ in range(STEPS):
            mine = torch.empty(sum(received), width)
            dist.all_to_all_single(mine, tokens, received, sent)
            done = expert(mine)
            back = torch.empty_like(tokens)
            dist.all_to_all_single(back, done, sent, received)
            prof.step()


def fsdp(job: str, rank: int, directory: str) -> None:
    net = model()
    fully_shard(net)
    batch = torch.ones(4, 64)
    with neuron_profile(directory) as prof:
        for _ in range(4):
            net(batch).sum().backward()
            prof.step()


def tensor(job: str, rank: int, directory: str) -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    net = parallelize_module(model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    batch = torch.ones(4, 64)
    with neuron_profile(directory) as prof:
        for _ in range(4):
            net(batch).sum().backward()
            prof.step()


def mesh(job: str, rank: int, directory: str) -> None:
    """Data and tensor parallel groups of a 2 x 2 mesh."""
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    value = torch.ones(8)
    with neuron_profile(directory) as prof:
        for _ in range(3):
            dist.all_reduce(value, group=grid.get_group("tp"))
            dist.all_reduce(value, group=grid.get_group("dp"))
            prof.step()


def pipeline(job: str, rank: int, directory: str) -> None:
    ranks = dist.get_world_size()
    count = 2 if job == "interleaved" else 1
    modules = [model() for _ in range(count)]
    stages = [
        PipelineStage(module, rank + ranks * number, ranks * count, torch.device("cpu"))
        for number, module in enumerate(modules)
    ]

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (output - target).square().mean()

    if job == "interleaved":
        schedule = ScheduleInterleaved1F1B(stages, n_microbatches=MICROBATCHES, loss_fn=loss)
    else:
        kind = ScheduleGPipe if job == "gpipe" else Schedule1F1B
        schedule = kind(stages[0], n_microbatches=MICROBATCHES, loss_fn=loss)
    batch, target = torch.randn(16, 64), torch.randn(16, 64)

    def step() -> None:
        if rank == 0:
            schedule.step(batch)
        elif rank == ranks - 1:
            schedule.step(target=target, losses=[])
        else:
            schedule.step()

    step()
    with neuron_profile(directory) as prof:
        for _ in range(4):
            step()
            prof.step()


JOBS = {
    "data": ddp,
    "line": ddp,
    "backward": ddp,
    "lengths": lengths,
    "experts": experts,
    "fsdp": fsdp,
    "tensor": tensor,
    "mesh": mesh,
    "gpipe": pipeline,
    "1f1b": pipeline,
    "interleaved": pipeline,
}


def run(rank: int, ranks: int, directory: str, port: int, jobs: list[str]) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(ranks))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    for job in jobs:
        JOBS[job](job, rank, os.path.join(directory, job))
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    folder, size, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=run, args=(rank, size, folder, free, names)) for rank in range(size)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(max(process.exitcode or 0 for process in processes))
