"""A small run made by hand, whose every number is known: two steps of 10 ms on one GPU, one slow line.

Each step: ops on the main thread from 0 to 6 ms (train.py:5 linear 4 ms, train.py:6 item 2 ms), 4 ms of Python on
train.py:7; on the device a kernel from 1 to 4 ms and a copy from 5 to 6 ms.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from explorer.model import ids
from explorer.store.writer import RunWriter

MS = 1_000_000
T0 = 1_700_000_000_000_000_000
SOURCE = """import torch


def step(model, x):
    y = model(x)
    loss = y.item()
    slow(loss)
    return loss
"""

LINEAR = ids.site_id("train.py", 5, "step")
ITEM = ids.site_id("train.py", 6, "step")
PYTHON = ids.site_id("train.py", 7, "step")
LIBRARY = ids.site_id("torch/nn/functional.py", 100, "linear")
MODULE = ids.module_id("encoder.linear", "Linear")
CODES = {
    LINEAR: ("y = model(x)", 5),
    ITEM: ("loss = y.item()", 6),
    PYTHON: ("slow(loss)", 7),
}


def write_small_run(directory: Path, *, rank: int = 0, steps: int = 2) -> Path:
    """Write the run for one rank; call again with another rank to add it."""
    with RunWriter(directory, rank=rank, made_by="generator") as writer:
        _dimensions(writer)
        events, states = [], []
        for number in range(steps):
            events += _events(number, T0 + number * 10 * MS)
            states += _states(T0 + number * 10 * MS)
        writer.write("events", events)
        writer.write("host_states", states)
        writer.write(
            "steps",
            [
                {
                    "step": n,
                    "start_ns": T0 + n * 10 * MS,
                    "duration_ns": 10 * MS,
                    "complete": True,
                    "phase": "train",
                    "window": 0,
                }
                for n in range(steps)
            ],
        )
        writer.write("memory_events", [_memory(n, T0 + n * MS) for n in range(4)])
        writer.health("no_shapes", "info", 6, "Shapes were not recorded.", "Record with record_shapes=True.")
        writer.health("unlinked_kernels", "warning", 1, "1 kernel has no launch.", affects="lines")
    return directory


def _dimensions(writer: RunWriter) -> None:
    writer.write(
        "tracks",
        [
            {"track_id": 1, "kind": "thread", "device_type": "cpu", "label": "main", "thread_name": "main"},
            {
                "track_id": 2,
                "kind": "stream",
                "device_type": "cuda",
                "device_index": 0,
                "thread_id": 7,
                "label": "stream 7",
            },
        ],
    )
    sites = [
        {
            "site_id": site,
            "file": "train.py",
            "line": line,
            "function": "step",
            "code": code,
            "is_user": True,
        }
        for site, (code, line) in CODES.items()
    ]
    sites.append(
        {
            "site_id": LIBRARY,
            "file": "torch/nn/functional.py",
            "line": 100,
            "function": "linear",
            "code": "return torch._C._nn.linear(x)",
            "is_user": False,
        }
    )
    writer.write("sites", sites)
    writer.write(
        "stacks", [{"stack_id": ids.stack_id([site]), "depth": 0, "site_id": site} for site in CODES]
    )
    writer.write("sources", [{"file": "train.py", "sha256": "0" * 64, "text": SOURCE}])
    writer.write("modules", [{"module_id": MODULE, "path": "encoder.linear", "class_name": "Linear"}])
    writer.write(
        "devices",
        [
            {
                "device": "cuda:0",
                "name": "NVIDIA Test",
                "vendor": "nvidia",
                "peak_flops": None,
                "attributes": None,
            }
        ],
    )


def _events(step: int, start: int) -> list[dict[str, Any]]:
    base = 10 * step

    def event(
        number: int, track: int, category: str, name: str, at: float, length: float, **more: Any
    ) -> dict[str, Any]:
        return {
            "event_id": base + number,
            "track_id": track,
            "category": category,
            "name": name,
            "start_ns": start + int(at * MS),
            "duration_ns": int(length * MS),
            "self_ns": int(length * MS),
            "step": step,
            "phase": "forward",
            **more,
        }

    linear = {
        "site_id": LINEAR,
        "stack_id": ids.stack_id([LINEAR]),
        "attribution": "traced",
        "precision": "exact",
    }
    item = {"site_id": ITEM, "stack_id": ids.stack_id([ITEM]), "attribution": "traced", "precision": "exact"}
    return [
        event(1, 1, "op", "aten::linear", 0, 4, **linear, module_id=MODULE) | {"self_ns": 3 * MS},
        event(2, 1, "runtime", "cudaLaunchKernel", 0, 1, parent_id=base + 1, op_id=base + 1, **linear),
        event(3, 1, "op", "aten::item", 4, 2, **item) | {"self_ns": 0},
        event(4, 1, "runtime", "cudaMemcpyAsync", 4, 2, parent_id=base + 3, op_id=base + 3, **item),
        event(5, 2, "kernel", "sgemm_128x64", 1, 3, launch_id=base + 2, op_id=base + 1, **linear),
        event(6, 2, "copy", "Memcpy DtoH", 5, 1, launch_id=base + 4, op_id=base + 3, size_bytes=4, **item),
    ]


def _states(start: int) -> list[dict[str, Any]]:
    spans = ((0, 4, LINEAR), (4, 2, ITEM), (6, 4, PYTHON))
    return [
        {
            "track_id": 1,
            "start_ns": start + at * MS,
            "duration_ns": length * MS,
            "stack_id": ids.stack_id([site]),
            "site_id": site,
        }
        for at, length, site in spans
    ]


def _memory(number: int, at: int) -> dict[str, Any]:
    size = 1024 if number % 2 == 0 else -1024
    return {
        "event_id": 1000 + number,
        "timestamp_ns": at,
        "action": "alloc" if size > 0 else "free",
        "address": 1,
        "size_bytes": size,
        "allocated_bytes": 4096 + max(size, 0),
        "reserved_bytes": 8192,
        "device": "cuda:0",
        "step": 0,
    }
