"""Train one model in several processes with DistributedDataParallel: gloo on CPUs, the device's own backend elsewhere.

    python examples/train_ddp.py --ranks 2               starts its own processes
    torchrun --nproc-per-node 2 examples/train_ddp.py    the processes of torchrun

Rank 1 is given a slower input on purpose, so that the others wait for it in the gradient exchange.
"""

from __future__ import annotations

import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank: int, ranks: int, steps: int) -> None:
    """One process: its share of every batch, gradients averaged by DDP."""
    kind = torch.accelerator.current_accelerator(check_available=True)
    device = (
        torch.device("cpu")
        if kind is None
        else torch.device(kind.type, rank % torch.accelerator.device_count())
    )
    if kind is not None:
        torch.accelerator.set_device_index(device.index)
    dist.init_process_group(dist.get_default_backend_for_device(device), rank=rank, world_size=ranks)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    wrapped = DistributedDataParallel(model.to(device), device_ids=None if kind is None else [device.index])
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01)
    start = time.perf_counter()
    for _ in range(steps):
        inputs = make_batch(rank).to(device)
        loss = wrapped(inputs).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    seconds = time.perf_counter() - start
    # One write with its line break, so that the lines of two processes do not mix.
    print(f"rank {rank} on {device}: {1000 * seconds / steps:.1f} ms a step\n", end="", flush=True)
    dist.destroy_process_group()


def make_batch(rank: int) -> torch.Tensor:
    """64 random rows; rank 1 makes them one by one, which is slow."""
    if rank == 1:
        return torch.stack([torch.randn(256) for _ in range(64)])
    return torch.randn(64, 256)


def _start(rank: int, ranks: int, steps: int, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(ranks))
    train(rank, ranks, steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--ranks", type=int, default=2, help="processes to start (not under torchrun)")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), options.steps)
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(_start, (options.ranks, options.steps, port), nprocs=options.ranks)


if __name__ == "__main__":
    main()
