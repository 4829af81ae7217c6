"""A small run with a known fault: at one line the host waits for its kernel, which then waits behind Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from explorer.analysis.run import Run, open_run
from explorer.store.writer import RunWriter


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    opened = open_run(write_run(tmp_path_factory.mktemp("agent") / "run"))
    yield opened
    opened.close()


def write_run(directory: Path, python_us: int = 300) -> str:
    """Ten steps on one thread and one stream: `python_us` of Python at train.py:7, an op at line 8 and its kernel: 1 ms with
    300 us of Python."""
    python = python_us * 1000
    step_ns = 700_000 + python
    events: list[dict[str, Any]] = []

    def add(number: int, track: int, category: str, name: str, start: int, length: int, **more: Any) -> None:
        row = {"event_id": number, "track_id": track, "category": category, "name": name, "start_ns": start}
        events.append({**row, "duration_ns": length, "self_ns": length, **more})

    for step in range(10):
        at = step * step_ns
        base = step * 10
        add(
            base + 1,
            1,
            "op",
            "aten::mm",
            at + python,
            100_000,
            step=step,
            site_id=8,
            stack_id=80,
            phase="forward",
        )
        add(
            base + 2,
            1,
            "runtime",
            "cudaLaunchKernel",
            at + python + 20_000,
            20_000,
            step=step,
            parent_id=base + 1,
            site_id=8,
        )
        add(
            base + 3,
            7,
            "kernel",
            "gemm<" + "x" * 400 + ">",
            at + python + 50_000,
            500_000,
            step=step,
            launch_id=base + 2,
            op_id=base + 1,
            site_id=8,
        )
        add(
            base + 4, 1, "sync", "cudaStreamSynchronize", at + python + 150_000, 410_000, step=step, site_id=9
        )
    with RunWriter(directory) as writer:
        writer.write(
            "tracks",
            [
                {"track_id": 1, "kind": "thread", "device_type": "cpu", "label": "main"},
                {
                    "track_id": 7,
                    "kind": "stream",
                    "device_type": "cuda",
                    "device_index": 0,
                    "label": "stream 7",
                },
            ],
        )
        writer.write("events", events)
        code = {7: "batch = [f(x) for x in batch]", 8: "y = a @ b", 9: "loss.item()"}
        writer.write(
            "sites",
            [
                {
                    "site_id": n,
                    "file": "train.py",
                    "line": n,
                    "function": "step",
                    "code": code[n],
                    "is_user": True,
                }
                for n in code
            ],
        )
        writer.write("stacks", [{"stack_id": 80, "depth": 0, "site_id": 8}])
        writer.write(
            "steps",
            [
                {"step": s, "start_ns": s * step_ns, "duration_ns": step_ns, "complete": True}
                for s in range(10)
            ],
        )
        writer.write(
            "host_states",
            [
                {
                    "track_id": 1,
                    "start_ns": s * step_ns + begin,
                    "duration_ns": length,
                    "site_id": site,
                    "stack_id": None,
                }
                for s in range(10)
                for begin, length, site in (
                    (0, python, 7),
                    (python, 150_000, 8),
                    (python + 150_000, 550_000, 9),
                )
            ],
        )
        writer.write(
            "sources",
            [
                {
                    "file": "train.py",
                    "sha256": "0" * 64,
                    "text": "\n".join(f"line {n}" for n in range(1, 13)) + "\n",
                }
            ],
        )
    return writer.directory
