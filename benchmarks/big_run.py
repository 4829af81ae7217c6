"""Writes synthetic runs of any size: a training loop with nested ops, launches, kernels on two streams, and user lines.

Labelled synthetic in the manifest. Used by the speed benchmarks and by tests that need many events; not a model of any
real program. Every group of eight events is: a module-level op, two nested ops, a runtime launch, a kernel, a second
launch with a copy or collective on another stream, and a Python annotation.
"""

from __future__ import annotations

import argparse

import numpy as np
import pyarrow as pa

from explorer.model.ids import site_id, stack_id
from explorer.store.writer import RunWriter

START_NS = 1_700_000_000_000_000_000
GROUP = 8
"""Events per group."""
GROUP_NS = 40_000
"""Host time of one group."""
LINES = 40
OP_NAMES = (
    "aten::linear",
    "aten::gelu",
    "aten::layer_norm",
    "aten::scaled_dot_product_attention",
    "aten::add",
)
KERNEL_NAMES = ("gemm_f16", "gelu_kernel", "layer_norm_kernel", "flash_fwd", "add_kernel", "softmax_kernel")


def write_big_run(
    directory: str,
    events: int,
    *,
    rank: int = 0,
    steps: int = 20,
    part_events: int = 1_000_000,
    seed: int = 0,
) -> str:
    """Write a run of about `events` events in parts of `part_events`; returns its directory."""
    generator = np.random.default_rng(seed + rank)
    groups = max(events // GROUP, steps)
    writer = RunWriter(directory, rank=rank, made_by="generator")
    sites = [site_id("train.py", 10 + i, f"block_{i % 7}") for i in range(LINES)]
    stacks = [stack_id([site]) for site in sites]
    writer.write(
        "sites",
        {
            "site_id": sites,
            "file": ["train.py"] * LINES,
            "line": pa.array([10 + i for i in range(LINES)], pa.int32()),
            "function": [f"block_{i % 7}" for i in range(LINES)],
            "code": [f"x = layer_{i}(x)" for i in range(LINES)],
            "is_user": [True] * LINES,
        },
    )
    writer.write("stacks", {"stack_id": stacks, "depth": pa.array([0] * LINES, pa.int32()), "site_id": sites})
    writer.write(
        "tracks",
        [
            {"track_id": 0, "kind": "thread", "device_type": "cpu", "label": "main"},
            {"track_id": 1, "kind": "stream", "device_type": "cuda", "device_index": 0, "label": "stream 7"},
            {"track_id": 2, "kind": "stream", "device_type": "cuda", "device_index": 0, "label": "stream 20"},
        ],
    )
    per_step = -(-groups // steps)
    step_ns = per_step * GROUP_NS
    writer.write(
        "steps",
        {
            "step": pa.array(range(steps), pa.int32()),
            "start_ns": [START_NS + i * step_ns for i in range(steps)],
            "duration_ns": [step_ns - 1000] * steps,
            "complete": [True] * steps,
        },
    )
    free = np.zeros(2, np.int64)
    per_part = max(part_events // GROUP, 1)
    for first in range(0, groups, per_part):
        index = np.arange(first, min(first + per_part, groups), dtype=np.int64)
        writer.write("events", _events(generator, index, per_step, np.array(sites), np.array(stacks), free))
        writer.write(
            "host_states",
            {
                "track_id": np.zeros(2 * len(index), np.int32),
                "start_ns": np.stack([_start(index), _start(index) + 30_000], 1).ravel(),
                "duration_ns": np.tile(np.array([30_000, 10_000]), len(index)),
                "stack_id": np.stack(
                    [np.array(stacks)[index % LINES], np.array(stacks)[(index + 3) % LINES]], 1
                ).ravel(),
                "site_id": np.stack(
                    [np.array(sites)[index % LINES], np.array(sites)[(index + 3) % LINES]], 1
                ).ravel(),
            },
        )
    writer.manifest.attributes["synthetic"] = True
    writer.manifest.cost = {"op_ns": 600, "line_ns": 150, "method": "synthetic"}
    writer.close()
    return writer.directory


def _start(index: np.ndarray) -> np.ndarray:
    return START_NS + index * GROUP_NS


def _events(
    generator: np.random.Generator,
    index: np.ndarray,
    per_step: int,
    sites: np.ndarray,
    stacks: np.ndarray,
    free: np.ndarray,
) -> pa.Table:
    count = len(index)
    start = _start(index)
    base = index * GROUP
    op_kind = (index % len(OP_NAMES)).astype(np.int32)
    backward = (index % per_step) > per_step // 2
    kernel_ns = generator.integers(2_000, 36_000, count)
    other_ns = generator.integers(1_000, 60_000, count)
    kernel_start = _queue(start + 9_000, kernel_ns, free, 0)
    other_start = _queue(start + 15_000, other_ns, free, 1)
    # name codes: op names, then nested op names, runtime, annotation, kernels, copies
    names = [
        *OP_NAMES,
        "aten::addmm",
        "aten::t",
        "cudaLaunchKernel",
        "cudaMemcpyAsync",
        "block",
        *KERNEL_NAMES,
    ]
    names += ["ncclDevKernel_AllReduce_Sum_f16_RING_LL", "Memcpy HtoD (Pinned -> Device)"]
    code = {name: i for i, name in enumerate(names)}
    categories = ["op", "runtime", "annotation", "kernel", "copy", "collective"]
    collective = index % 3 == 0
    kernel_code = code["gemm_f16"] + generator.integers(0, len(KERNEL_NAMES), count)
    other_code = np.where(collective, len(names) - 2, len(names) - 1)
    slots = [
        # offset, duration, self, parent slot, track, category, name code
        (0, 38_000, 2_000, None, 0, 2, np.full(count, code["block"])),
        (1_000, 24_000, 8_000, 0, 0, 0, op_kind),
        (2_000, 14_000, 8_000, 1, 0, 0, np.full(count, code["aten::addmm"])),
        (16_500, 2_000, 2_000, 1, 0, 0, np.full(count, code["aten::t"])),
        (5_000, 6_000, 6_000, 2, 0, 1, np.full(count, code["cudaLaunchKernel"])),
        (26_000, 12_000, 12_000, 0, 0, 1, np.full(count, code["cudaMemcpyAsync"])),
    ]
    columns: dict[str, list[np.ndarray]] = {
        name: []
        for name in (
            "event_id",
            "parent_id",
            "track_id",
            "category",
            "name",
            "start_ns",
            "duration_ns",
            "self_ns",
            "launch_id",
            "op_id",
        )
    }
    none = np.full(count, -1)
    for number, (offset, duration, self_ns, parent, track, category, name) in enumerate(slots):
        columns["event_id"].append(base + number)
        columns["parent_id"].append(none if parent is None else base + parent)
        columns["track_id"].append(np.full(count, track))
        columns["category"].append(np.full(count, category))
        columns["name"].append(name)
        columns["start_ns"].append(start + offset)
        columns["duration_ns"].append(np.full(count, duration))
        columns["self_ns"].append(np.full(count, self_ns))
        columns["launch_id"].append(none)
        columns["op_id"].append(none)
    for number, track, category, name, begin, duration, launch, op in (
        (6, 1, np.full(count, 3), kernel_code, kernel_start, kernel_ns, base + 4, base + 2),
        (7, 2, np.where(collective, 5, 4), other_code, other_start, other_ns, base + 5, none),
    ):
        columns["event_id"].append(base + number)
        columns["parent_id"].append(none)
        columns["track_id"].append(np.full(count, track))
        columns["category"].append(category)
        columns["name"].append(name)
        columns["start_ns"].append(begin)
        columns["duration_ns"].append(duration)
        columns["self_ns"].append(duration)
        columns["launch_id"].append(launch)
        columns["op_id"].append(op)
    flat = {name: np.stack(parts, 1).ravel() for name, parts in columns.items()}
    step = np.repeat((index // per_step).astype(np.int32), GROUP)
    table = {
        "event_id": flat["event_id"],
        "parent_id": _nullable(flat["parent_id"]),
        "track_id": flat["track_id"].astype(np.int32),
        "category": pa.DictionaryArray.from_arrays(pa.array(flat["category"].astype(np.int32)), categories),
        "name": pa.DictionaryArray.from_arrays(pa.array(flat["name"].astype(np.int32)), names),
        "start_ns": flat["start_ns"],
        "duration_ns": flat["duration_ns"],
        "self_ns": flat["self_ns"],
        "launch_id": _nullable(flat["launch_id"]),
        "op_id": _nullable(flat["op_id"]),
        "step": step,
        "phase": pa.DictionaryArray.from_arrays(
            pa.array(np.repeat(backward.astype(np.int32), GROUP)), ["forward", "backward"]
        ),
        "site_id": np.repeat(sites[index % LINES], GROUP),
        "stack_id": np.repeat(stacks[index % LINES], GROUP),
        "attribution": pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(step), np.int32)), ["traced"]),
        "precision": pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(step), np.int32)), ["exact"]),
        "correlation_id": flat["event_id"],
    }
    return pa.table(table)


def _queue(enqueued: np.ndarray, duration: np.ndarray, free: np.ndarray, stream: int) -> np.ndarray:
    """Start times of work that runs in order on one stream, each not before it was enqueued."""
    total = np.cumsum(duration)
    before = total - duration
    slack = np.maximum.accumulate(np.maximum(enqueued, free[stream]) - before)
    begin = slack + before
    free[stream] = begin[-1] + duration[-1]
    return begin


def _nullable(values: np.ndarray) -> pa.Array:
    return pa.array(values, pa.int64(), mask=values < 0)


def main() -> None:
    """Write one synthetic run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--ranks", type=int, default=1)
    arguments = parser.parse_args()
    for rank in range(arguments.ranks):
        print(write_big_run(arguments.directory, arguments.events, rank=rank))


if __name__ == "__main__":
    main()
