"""Small Kineto traces of several ranks that meet in all-reduces, one rank late; made here, so labelled synthetic."""

from __future__ import annotations

import json
from pathlib import Path

BASE_US = 1_700_000_000_000_000
LATE = 1


def write_ranks(folder: Path, ranks: int = 4, steps: int = 6, kernels: int = 20) -> list[Path]:
    """rank0.json, rank1.json ...: each step runs kernels, then an all-reduce that ends on all ranks together."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_write(folder, rank, ranks, steps, kernels) for rank in range(ranks)]


def _write(folder: Path, rank: int, ranks: int, steps: int, kernels: int) -> Path:
    events: list[dict] = []
    for step in range(steps):
        begin = BASE_US + step * 10_000
        events.append(_event("user_annotation", f"ProfilerStep#{step}", 1, 1, begin, 10_000))
        length = 200 if rank == LATE else 100
        for number in range(kernels):
            correlation = step * 100 + number
            start = begin + 100 + number * (length + 10)
            events.append(_event("cpu_op", "aten::mm", 1, 1, begin + 10 + number * 20, 15))
            events.append(
                _event(
                    "cuda_runtime",
                    "cudaLaunchKernel",
                    1,
                    1,
                    begin + 12 + number * 20,
                    5,
                    correlation=correlation,
                )
            )
            events.append(
                _event(
                    "kernel", "sgemm_128x64", 0, 7, start, length, correlation=correlation, device=0, stream=7
                )
            )
        arrival = begin + 100 + kernels * (length + 10)
        facts = {
            "Collective name": "allreduce",
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
            "Process Group Ranks": str(list(range(ranks))),
            "Group size": ranks,
            "In msg nelems": 1 << 18,
            "Out msg nelems": 1 << 18,
            "dtype": "Float",
            "Seq": step,
        }
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        events.append(
            _event("kernel", name, 0, 8, arrival, begin + 5_000 - arrival, device=0, stream=8, **facts)
        )
    document = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
        "deviceProperties": [{"id": 0, "name": "synthetic device"}],
        "traceEvents": events,
    }
    path = folder / f"rank{rank}.json"
    path.write_text(json.dumps(document))
    return path


def _event(category: str, name: str, pid: int, tid: int, ts: int, dur: int, **args: object) -> dict:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": args,
    }
