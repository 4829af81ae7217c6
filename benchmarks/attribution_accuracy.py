"""How many ops get the line that really ran them: recorded lines against a frame walk inside every op.

python benchmarks/attribution_accuracy.py [--model small|big|both] [--steps 3] [--json FILE]

Method: the program runs under a TorchDispatchMode that walks the interpreter's frames inside each op (the truth) while
neuron_profile records it. Each op that reaches its kernel is compared with the innermost recorded op that encloses that
moment on the same thread. For the backward pass the executing line is the one that called backward(); the responsible
line is compared with the traceback that autograd's anomaly mode keeps for every node.
"""

from __future__ import annotations

import argparse
import bisect
import json
import os
import platform
import re
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

os.environ.setdefault("KINETO_LOG_LEVEL", "6")

import capture_overhead
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from explorer import neuron_profile
from explorer.collectors.lines import budget
from explorer.store.reader import RunReader

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
MODEL_FILE = os.path.abspath(capture_overhead.__file__)


class Truth(TorchDispatchMode):
    """One entry per op: time, thread, executing line, line of the autograd node."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, int, int, int | None, bool]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != MODEL_FILE:
            frame = frame.f_back
        node = torch._C._current_autograd_node()
        forward = None
        if node is not None:
            for text in reversed(node.metadata.get("traceback_", [])):
                found = _FRAME.search(text)
                if found and found[1] == MODEL_FILE:
                    forward = int(found[2])
                    break
        line = frame.f_lineno if frame is not None else 0
        self.seen.append((time.time_ns(), threading.get_native_id(), line, forward, node is not None))
        return func(*args, **(kwargs or {}))


def measure(name: str, make: Callable[[], Callable[[], None]], steps: int) -> dict[str, Any]:
    step = make()
    step()
    # The truth itself makes thousands of Python calls a step, from which recording would back off.
    budget.SHARE = 1000.0
    truth = Truth()
    with tempfile.TemporaryDirectory() as folder:
        with (
            torch.autograd.set_detect_anomaly(True, check_nan=False),
            neuron_profile(
                folder + "/run", record_shapes=False, library_code=("*/attribution_accuracy.py",)
            ) as prof,
            truth,
        ):
            for _ in range(steps):
                step()
                prof.step()
        run = RunReader(str(prof.directory))
        sites = {row["site_id"]: row["line"] for row in run.read("sites").to_pylist()}
        innermost = {
            r["stack_id"]: sites[r["site_id"]] for r in run.read("stacks").to_pylist() if r["depth"] == 0
        }
        threads = {row["track_id"]: row["thread_id"] for row in run.read("tracks").to_pylist()}
        ops: dict[int, list[dict[str, Any]]] = defaultdict(list)
        columns = ["track_id", "category", "start_ns", "duration_ns", "site_id", "stack_id", "phase"]
        for event in run.read("events", columns=columns).to_pylist():
            if event["category"] == "op":
                ops[threads[event["track_id"]]].append(event)
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for thread, events in ops.items():
        events.sort(key=lambda event: event["start_ns"])
        starts = [event["start_ns"] for event in events]
        for moment, native_id, line, forward, in_backward in truth.seen:
            if native_id != thread:
                continue
            at = bisect.bisect_right(starts, moment) - 1
            while at >= 0 and events[at]["start_ns"] + events[at]["duration_ns"] <= moment:
                at -= 1
            if at < 0:
                continue
            event = events[at]
            kind = event["phase"]
            total[f"{kind}, executing line"] += 1
            right[f"{kind}, executing line"] += innermost.get(event["stack_id"]) == line
            expected = forward if in_backward else line
            if expected is not None:
                total[f"{kind}, responsible line"] += 1
                right[f"{kind}, responsible line"] += sites.get(event["site_id"]) == expected
    print(f"\n{name} model, {steps} steps, {len(truth.seen)} ops compared")
    result = {}
    for kind in sorted(total):
        share = right[kind] / total[kind]
        result[kind] = {"ops": total[kind], "right": right[kind], "share": share}
        print(f"  {kind:<30} {right[kind]:>6} of {total[kind]:>6}  {share:.2%}")
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=("small", "big", "both"), default="both")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--json", help="write the numbers to this file too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"Python {platform.python_version()}, torch {torch.__version__}")
    makers = {"small": capture_overhead.small_step, "big": capture_overhead.big_step}
    names = list(makers) if options.model == "both" else [options.model]
    results = {name: measure(name, makers[name], options.steps) for name in names}
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
