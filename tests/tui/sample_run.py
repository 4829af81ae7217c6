"""A small training run written by hand, the same in every detail each time: two ranks of a loop with a data stall."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from explorer.model import ids
from explorer.store.writer import RunWriter

FILE = "train.py"
SOURCE = '''"""Trains a small model."""
import torch
from torch import nn


def collate(rows):
    return torch.stack([row["tokens"] for row in rows])


class Block(nn.Module):
    def forward(self, x):
        return self.norm(x + self.mlp(x))


def train_step(model, batch, optimizer):
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
    return loss.item()


for batch in loader:
    total += train_step(model, batch, optimizer)
'''
START = 1_760_000_000_000_000_000
STEP_NS = 20_000_000
LINES = {
    "collate": (7, "collate"),
    "mlp": (12, "Block.forward"),
    "loss": (16, "train_step"),
    "backward": (17, "train_step"),
    "optimizer": (18, "train_step"),
    "item": (19, "train_step"),
    "loop": (23, "<module>"),
    "loader": (22, "<module>"),
}
LONG_KERNEL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul>>(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)


def site(name: str) -> int:
    line, function = LINES[name]
    return ids.site_id(FILE, line, function)


def chain(*names: str) -> int:
    return ids.stack_id([site(name) for name in names])


STACKS = {name: (name, "loop") for name in ("loss", "backward", "optimizer", "item")} | {
    "mlp": ("mlp", "loss", "loop"),
    "collate": ("collate", "loader"),
    "loop": ("loop",),
    "loader": ("loader",),
}


class _Rank:
    """Events of one rank, numbered as they come."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.step_event = 0
        self.events: list[dict[str, Any]] = []
        self.states: list[dict[str, Any]] = []
        self.edges: list[dict[str, Any]] = []
        self.memory: list[dict[str, Any]] = []
        self.counters: list[dict[str, Any]] = []
        self.steps: list[dict[str, Any]] = []

    def event(self, track: int, category: str, name: str, start: int, duration: int, **more: Any) -> int:
        number = len(self.events) + 1
        if track == 1 and "parent_id" not in more and category != "step":
            more["parent_id"] = self.step_event
        self.events.append(
            {
                "event_id": number,
                "track_id": track,
                "category": category,
                "name": name,
                "start_ns": START + start,
                "duration_ns": duration,
                "self_ns": duration,
                **more,
            }
        )
        parent = more.get("parent_id")
        if parent:
            self.events[parent - 1]["self_ns"] -= duration
        return number

    def op(self, name: str, line: str, start: int, duration: int, step: int, phase: str, **more: Any) -> int:
        return self.event(
            1,
            "op",
            name,
            start,
            duration,
            step=step,
            phase=phase,
            site_id=site(line),
            stack_id=chain(*STACKS[line]),
            attribution="traced",
            precision="exact",
            **more,
        )

    def kernel(
        self,
        name: str,
        line: str,
        start: int,
        duration: int,
        step: int,
        phase: str,
        launch: int,
        op: int,
        **more: Any,
    ) -> int:
        category = more.pop("category", "kernel")
        number = self.event(
            more.pop("track", 2),
            category,
            name,
            start,
            duration,
            step=step,
            phase=phase,
            site_id=site(line),
            launch_id=launch,
            op_id=op,
            attribution="flow",
            precision="exact",
            correlation_id=launch,
            **more,
        )
        self.edges.append(
            {"source_id": launch, "target_rank": self.rank, "target_id": number, "kind": "launch"}
        )
        return number

    def launched(
        self,
        op: str,
        kernel: str,
        line: str,
        start: int,
        host: int,
        device_start: int,
        device: int,
        step: int,
        phase: str,
        module: int | None = None,
        **more: Any,
    ) -> int:
        parent = self.op(op, line, start, host, step, phase, module_id=module)
        launch = self.event(
            1,
            "runtime",
            "cudaLaunchKernel",
            start + host // 2,
            host // 4,
            parent_id=parent,
            step=step,
            phase=phase,
            site_id=site(line),
        )
        self.kernel(kernel, line, device_start, device, step, phase, launch, parent, module_id=module, **more)
        return parent

    def state(self, line: str, start: int, duration: int) -> None:
        self.states.append(
            {
                "track_id": 1,
                "start_ns": START + start,
                "duration_ns": duration,
                "stack_id": chain(*STACKS[line]),
                "site_id": site(line),
            }
        )


ROOT = ids.module_id("", "Model")
BLOCKS = [ids.module_id(f"blocks.{index}", "Block") for index in range(3)]


def _fill(out: _Rank, steps: int) -> None:
    slow = 400_000 * out.rank
    for step in range(steps):
        t = step * STEP_NS
        stall = 9_000_000 if step == 3 else 4_000_000
        out.step_event = out.event(1, "step", f"step {step}", t, STEP_NS, step=step)
        out.event(
            1,
            "data",
            "DataLoader.__next__",
            t,
            stall,
            step=step,
            phase="data",
            site_id=site("loader"),
            stack_id=chain("loader"),
        )
        out.state("loader", t, stall // 2)
        out.state("collate", t + stall // 2, stall - stall // 2)
        t += stall
        for index, block in enumerate(BLOCKS):
            start = t + index * 900_000
            out.launched(
                "aten::linear",
                "ampere_sgemm_128x64_tn",
                "mlp",
                start,
                400_000,
                start + 500_000,
                700_000 + slow,
                step,
                "forward",
                block,
                flops=2_000_000_000,
            )
            out.launched(
                "aten::add",
                LONG_KERNEL,
                "mlp",
                start + 450_000,
                200_000,
                start + 1_250_000 + slow,
                90_000,
                step,
                "forward",
                block,
            )
        out.state("mlp", t, 2_700_000)
        t += 2_700_000
        out.launched(
            "aten::mean", "reduce_kernel", "loss", t, 100_000, t + 1_200_000, 50_000, step, "forward", ROOT
        )
        out.state("loss", t, 150_000)
        t += 150_000
        for index, block in enumerate(reversed(BLOCKS)):
            start = t + index * 800_000
            out.launched(
                "MmBackward0",
                "ampere_sgemm_64x64_nt",
                "mlp",
                start,
                300_000,
                start + 1_300_000 + slow,
                760_000,
                step,
                "backward",
                block,
                flops=4_000_000_000,
            )
        out.launched(
            "c10d::allreduce_",
            "ncclDevKernel_AllReduce_Sum_f32",
            "backward",
            t + 2_400_000,
            50_000,
            t + 3_800_000 + slow,
            1_000_000,
            step,
            "backward",
            None,
            category="collective",
            track=3,
        )
        out.state("backward", t, 2_500_000)
        t += 2_500_000
        for index in range(8):
            out.launched(
                "aten::_foreach_add_",
                "multi_tensor_apply_kernel",
                "optimizer",
                t + index * 100_000,
                80_000,
                t + 2_600_000 + slow + index * 60_000,
                30_000,
                step,
                "optimizer",
            )
        out.state("optimizer", t, 900_000)
        t += 900_000
        wait = 3_000_000 + slow
        item = out.op("aten::item", "item", t, wait, step, "other")
        copy = out.op(
            "aten::_local_scalar_dense", "item", t + 20_000, wait - 40_000, step, "other", parent_id=item
        )
        launch = out.event(
            1,
            "runtime",
            "cudaMemcpyAsync",
            t + 30_000,
            20_000,
            parent_id=copy,
            step=step,
            site_id=site("item"),
        )
        out.kernel(
            "Memcpy DtoH (Device -> Pageable)",
            "item",
            t + wait - 60_000,
            10_000,
            step,
            "other",
            launch,
            copy,
            category="copy",
            size_bytes=4,
        )
        out.event(
            1,
            "sync",
            "cudaStreamSynchronize",
            t + 60_000,
            wait - 120_000,
            parent_id=copy,
            step=step,
            site_id=site("item"),
        )
        out.state("item", t, wait)
        t += wait
        out.state("loop", t, (step + 1) * STEP_NS - t)
        out.steps.append(
            {
                "step": step,
                "start_ns": START + step * STEP_NS,
                "duration_ns": STEP_NS,
                "complete": step < steps - 1,
                "phase": "train",
            }
        )
        _memory(out, step)
        for tick in range(4):
            at = START + step * STEP_NS + tick * STEP_NS // 4
            out.counters.append(
                {
                    "track_id": 4,
                    "timestamp_ns": at,
                    "name": "gpu utilisation",
                    "value": float((37 * (step * 4 + tick)) % 100),
                    "unit": "percent",
                }
            )
            out.counters.append(
                {
                    "track_id": 4,
                    "timestamp_ns": at,
                    "name": "power",
                    "value": 300.0 + 20 * tick + step,
                    "unit": "watt",
                }
            )


def _memory(out: _Rank, step: int) -> None:
    base = START + step * STEP_NS + 4_000_000
    total = 1 << 30
    for index in range(6):
        size = (index + 1) * 20 << 20
        total += size
        out.memory.append(
            {
                "event_id": 10_000 + step * 20 + index,
                "timestamp_ns": base + index * 500_000,
                "action": "alloc",
                "address": 4096 * (index + 1),
                "size_bytes": size,
                "allocated_bytes": total,
                "reserved_bytes": 2 << 30,
                "device": f"cuda:{out.rank}",
                "site_id": site("mlp"),
                "category": "activation",
                "step": step,
            }
        )
    for index in range(6):
        size = (index + 1) * 20 << 20
        total -= size
        out.memory.append(
            {
                "event_id": 10_010 + step * 20 + index,
                "timestamp_ns": base + 4_000_000 + index * 500_000,
                "action": "free",
                "address": 4096 * (index + 1),
                "size_bytes": -size,
                "allocated_bytes": total,
                "reserved_bytes": 2 << 30,
                "device": f"cuda:{out.rank}",
                "site_id": site("mlp"),
                "category": "activation",
                "step": step,
            }
        )


def write_sample_run(directory: Path, *, steps: int = 6, ranks: int = 2, device: bool = True) -> str:
    """Write the run and return its directory. Without `device`, host events only."""
    for rank in range(ranks):
        out = _Rank(rank)
        _fill(out, steps)
        events = [event for event in out.events if device or event["track_id"] == 1]
        with RunWriter(directory, rank=rank, made_by="generator") as writer:
            writer.write("events", events)
            writer.write("host_states", out.states)
            writer.write("steps", out.steps)
            tracks = [
                {
                    "track_id": 1,
                    "kind": "thread",
                    "device_type": "cpu",
                    "process_id": 100 + rank,
                    "process_name": "python",
                    "thread_id": 100 + rank,
                    "thread_name": "main",
                    "label": "python main",
                }
            ]
            if device:
                tracks += [
                    {
                        "track_id": 2,
                        "kind": "stream",
                        "device_type": "cuda",
                        "device_index": rank,
                        "thread_id": 7,
                        "label": "stream 7",
                    },
                    {
                        "track_id": 3,
                        "kind": "stream",
                        "device_type": "cuda",
                        "device_index": rank,
                        "thread_id": 20,
                        "label": "stream 20 nccl",
                    },
                ]
                writer.write("edges", out.edges)
                writer.write("memory_events", out.memory)
            tracks.append(
                {
                    "track_id": 4,
                    "kind": "counter",
                    "device_type": "cuda",
                    "device_index": rank,
                    "label": "telemetry",
                }
            )
            writer.write("counters", out.counters)
            writer.write("tracks", tracks)
            texts = SOURCE.splitlines()
            writer.write(
                "sites",
                [
                    {
                        "site_id": site(name),
                        "file": FILE,
                        "line": line,
                        "function": function,
                        "code": texts[line - 1].strip(),
                        "is_user": True,
                    }
                    for name, (line, function) in LINES.items()
                ],
            )
            writer.write(
                "stacks",
                [
                    {"stack_id": chain(*frames), "depth": depth, "site_id": site(frame)}
                    for frames in STACKS.values()
                    for depth, frame in enumerate(frames)
                ],
            )
            writer.write(
                "modules",
                [
                    {"module_id": ROOT, "path": "", "class_name": "Model"},
                    *(
                        {
                            "module_id": block,
                            "path": f"blocks.{index}",
                            "class_name": "Block",
                            "parent_id": ROOT,
                        }
                        for index, block in enumerate(BLOCKS)
                    ),
                ],
            )
            writer.write("sources", [{"file": FILE, "sha256": "0" * 64, "text": SOURCE}])
            devices = [{"device": "cpu", "name": "Test CPU", "vendor": "cpu"}]
            if device:
                devices.append(
                    {
                        "device": f"cuda:{rank}",
                        "name": "Test GPU",
                        "vendor": "nvidia",
                        "peak_flops": json.dumps({"float32": 60e12}),
                        "memory_bytes": 80 << 30,
                    }
                )
            writer.write("devices", devices)
            writer.health(
                "no_shapes",
                "warning",
                12,
                "Input shapes were recorded in one window only.",
                "Record with record_shapes=True.",
                "flops",
            )
    return str(directory)
